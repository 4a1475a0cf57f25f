"""Two Parquet tables of any size: what was told of them, and whether they would fit in memory."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankveil import memory
from rankveil.cluster.work import Work
from rankveil.errors import FileError, FormatError, PairError, ParameterError, TableError, suggestion
from rankveil.files import Loaded
from rankveil.files.folders import ENDING, refuse_table_format
from rankveil.pairing import checked_mapping
from rankveil.partitions import places
from rankveil.partitions.aligning import parted_tables
from rankveil.partitions.parquet import Rows, Source, check_aligned, survey
from rankveil.partitions.parted import Parted
from rankveil.schema import UNMASKED_ROLES, Schema, listed
from rankveil.seeds import Seed

_IN_MEMORY = 120
"""Bytes that a cell of either table takes at most while all measures are computed in memory, as measured."""

_BESIDE = 2**30
"""Bytes that measures take whatever the size of the tables."""

_OF_FREE = 0.8
"""The share of the free memory that tables in memory may take."""


@dataclass(frozen=True)
class Given:
    """An original and a masked table, and what was told of their columns and of how their records correspond."""

    original: Source
    masked: Source
    columns: tuple[str, ...] | None = None
    schema: Schema = field(default_factory=Schema)
    key: str | None = None
    mapping: bool = True
    order: Rows | None = None
    """The original row of each masked record, where the rows were reordered."""

    @property
    def files(self) -> list[str]:
        """All files of both."""
        return [file.path for source in (self.original, self.masked) for file in source.files]

    @property
    def notes(self) -> tuple[str, ...]:
        """Which files of folders are read."""
        return (*self.original.notes, *self.masked.notes)

    @property
    def width(self) -> int:
        """How many columns are compared at most."""
        names = self.original.names if self.columns is None else self.columns
        return len([name for name in names if (self.schema.roles or {}).get(name) not in UNMASKED_ROLES])

    def identity(self) -> dict[str, Any]:
        """What tells this task from others without a look into the tables."""
        told = (self.schema, self.columns, self.key, self.mapping, self.order)
        declared = hashlib.sha256(pickle.dumps(told)).hexdigest()
        return {"files": [(path, *places.stamp(path)) for path in self.files], "declared": declared}

    def parted(self, work: Work, *, seed: Seed, **more: Any) -> Parted:
        """The tables in parts, cut as the work says, their records brought together."""
        return parted_tables(
            work,
            self.original,
            self.masked,
            bounds={side: tuple(work.kept[side]) for side in "xy"},
            scratch=work.scratch,
            seed=seed,
            columns=self.columns,
            schema=self.schema,
            key=self.key,
            mapping=self.mapping,
            order=self.order,
            **more,
        )

    def check(self) -> None:
        """Refuse tables that cannot be compared, as far as the footers tell."""
        for source in (self.original, self.masked):
            for name in self.columns or ():
                if name not in source.names:
                    raise TableError(f"{source.path} has no column {name}{suggestion(name, source.names)}")
        if len(self.original) == 0:
            raise TableError(f"{self.original.path}: the table has no records")
        if self.mapping and self.key is None and self.order is None:
            check_aligned(self.original, self.masked, ())


def is_parquet(path: object) -> bool:
    """Whether something names a Parquet file, or a folder of them."""
    if not isinstance(path, str | os.PathLike):
        return False
    name = os.fspath(path)
    if not isinstance(name, str) or ("://" in name and not places.is_address(name)):
        return False
    return name.lower().endswith(ENDING) or (places.is_folder(name) and bool(places.parquet_files(name)))


def given_tables(
    original: str | os.PathLike[str],
    masked: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    schema: Schema | None = None,
    key: str | None = None,
    mapping: bool = True,
    secret: Any = None,
) -> Given:
    """Both tables by their footers, and what was told of them."""
    check_parquet(original, masked)
    mapping = checked_mapping(mapping)
    if secret is not None and not hasattr(secret, "order"):
        raise PairError("secret must be the secret of a release, as in release.secret or Secret.from_json(text)")
    order = None if secret is None else secret.order
    if sum((key is not None, order is not None, not mapping)) > 1:
        raise PairError("give one of key, secret and no mapping: they contradict each other")
    first, second = (survey(places.absolute(path)) for path in (original, masked))
    schema = Schema.of(schema)
    schema.check(first.names)
    made = Given(first, second, None if columns is None else listed(columns), schema, key, mapping, order)
    made.check()
    return made


def check_parquet(*paths: str | os.PathLike[str]) -> None:
    """Refuse what is no Parquet file, and no folder of them."""
    for path in paths:
        if isinstance(path, str | os.PathLike) and not _may_be(os.fspath(path)):
            raise FileError(f"{path}: there is no such file or folder")
        if isinstance(path, str | os.PathLike) and _names_files(os.fspath(path)):
            refuse_table_format(os.fspath(path), places)
        if isinstance(path, str | os.PathLike) and _is_empty(os.fspath(path)):
            raise FormatError(f"{path}: the folder has no Parquet files; name one that has {ENDING} files in it")
        if not is_parquet(path):
            raise ParameterError(
                f"{path}: on a cluster tables are Parquet files or folders of them, given by their paths"
            )


def _may_be(path: str) -> bool:
    """Whether there is something; of what is no path of files, others tell."""
    return not _names_files(path) or places.exists(path)


def _is_empty(path: str) -> bool:
    """Whether it is a folder without Parquet files."""
    return _names_files(path) and places.is_folder(path) and not places.parquet_files(path)


def _names_files(path: str) -> bool:
    """Whether it is a path, or an address of files and not of a database."""
    return "://" not in path or places.is_address(path)


def table_at(address: str) -> Loaded:
    """A Parquet table at an address in memory, where it must fit."""
    check_parquet(address)
    source = survey(places.absolute(address))
    return Loaded(source.whole(), notes=source.notes)


def needed_in_memory(original: Source, masked: Source) -> int:
    """Bytes that measuring two tables in memory may take."""
    cells = sum(len(source) * len(source.names) for source in (original, masked))
    return cells * _IN_MEMORY + _BESIDE


def too_large(original: object, masked: object) -> str | None:
    """What to say when two Parquet tables do not fit in memory; None when they do, or cannot be told."""
    paths = [os.fspath(path) for path in (original, masked) if isinstance(path, str | os.PathLike)]
    if len(paths) < 2 or not all(is_parquet(path) and places.exists(path) for path in paths):
        return None
    need = needed_in_memory(*map(survey, paths))
    free = memory.available()
    if need <= free * _OF_FREE:
        return None
    return f"in memory the tables may need {memory.shown(need)}, and {memory.shown(free)} are free"


def rows_at_a_time(names: Sequence[str], worker_memory: int) -> int:
    """Rows of a partition that leave a worker room."""
    each = 8 * len(names) * _PER_VALUE
    return int(np.clip(worker_memory // 4 // each, _FEWEST, _MOST))


_PER_VALUE = 8
"""Numbers that a worker holds for one value of a partition: both tables, ranks, standardised powers."""

_FEWEST, _MOST = 10_000, 250_000
"""Rows of a partition; Parquet's row groups stay whole."""
