"""Two Parquet tables of any size: which columns of them are compared, and whether they would fit in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankveil import metadata
from rankveil.cluster import memory
from rankveil.columns import EXACT
from rankveil.errors import FileError, PairError, ParameterError, TableError, listing, suggestion
from rankveil.partitions.parquet import Source, check_aligned, survey
from rankveil.table import UNMASKED_ROLES, Schema, listed

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[np.float64]

_ENDING = ".parquet"
_IN_MEMORY = 120
"""Bytes that a cell of either table takes at most while all measures are computed in memory, as measured."""

_BESIDE = 2**30
"""Bytes that measures take whatever the size of the tables."""

_OF_FREE = 0.8
"""The share of the free memory that tables in memory may take."""


@dataclass(frozen=True)
class Checked(Source):
    """A source whose numbers are looked at as they are read: one that is missing or infinite has no place here."""

    long: frozenset[str] = frozenset()
    """Columns of whole numbers that may be longer than floating-point numbers are exact."""

    def read(self, columns: Sequence[str], start: int, stop: int) -> list[Array]:
        """As a source does; a value that is no finite number is an error."""
        found = super().read(columns, start, stop)
        for name, values in zip(columns, found, strict=True):
            good = np.abs(values) < EXACT if name in self.long else np.isfinite(values)
            if not good.all():
                row = int(np.flatnonzero(~good)[0])
                what = "missing values" if np.isnan(values[row]) else "infinite values"
                raise TableError(
                    f"{self.path}: column {name}: {'whole numbers beyond 2^53' if name in self.long else what} (the "
                    f"first in row {start + row + 1}), which a cluster does not measure; leave it out with --columns"
                )
        return found


@dataclass(frozen=True)
class Tables:
    """An original and a masked table, row by row the same subjects, and the columns that are compared."""

    original: Checked
    masked: Checked
    names: tuple[str, ...]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.original)

    @property
    def files(self) -> list[str]:
        """All files of both."""
        return [file.path for source in (self.original, self.masked) for file in source.files]

    def identity(self) -> dict[str, Any]:
        """What tells these tables from others without a look into them: places, sizes and times of their files."""
        found = [(path, os.stat(path)) for path in self.files]
        return {"files": [(path, each.st_size, each.st_mtime_ns) for path, each in found], "columns": self.names}


def is_parquet(path: object) -> bool:
    """Whether something names a Parquet file, or a folder of them."""
    if not isinstance(path, str | os.PathLike):
        return False
    name = os.fspath(path)
    if not isinstance(name, str) or "://" in name:
        return False
    return name.lower().endswith(_ENDING) or (
        os.path.isdir(name) and any(entry.lower().endswith(_ENDING) for entry in os.listdir(name))
    )


def open_tables(
    original: str | os.PathLike[str],
    masked: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    schema: Schema | None = None,
) -> Tables:
    """Both tables by their footers; those that cannot be compared row by row are refused."""
    for path in (original, masked):
        if isinstance(path, str | os.PathLike) and "://" not in os.fspath(path) and not os.path.exists(path):
            raise FileError(f"{path}: there is no such file or folder")
        if not is_parquet(path):
            raise ParameterError(
                f"{path}: on a cluster tables are Parquet files or folders of them, given by their paths"
            )
    (first, fields_x), (second, fields_y) = map(_opened, (original, masked))
    schema = schema or Schema()
    schema.check(first.names)
    _refuse_declarations(schema)
    left_x = _left_out(first, fields_x, schema)
    left_y = _left_out(second, fields_y, schema.only(second.names))
    notes: list[str] = []
    names = _chosen(first, second, columns, left_x, left_y, notes)
    check_aligned(first, second, names)
    if len(first) == 0:
        raise TableError(f"{first.path}: the table has no records")
    return Tables(first, second, names, tuple(notes))


def _opened(path: str | os.PathLike[str]) -> tuple[Checked, pa.Schema]:
    """A table by its footers, and the types of its columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = survey(os.path.abspath(os.fspath(path)))
    fields = pq.read_schema(source.files[0].path)
    long = frozenset(field.name for field in fields if field.type in (pa.int64(), pa.uint64()))
    return Checked(source.path, source.files, source.names, source.gaps, long), fields


def _refuse_declarations(schema: Schema) -> None:
    """What people can declare of columns and a cluster does not heed yet is refused, not passed over."""
    for what, given in (
        ("missing markers", schema.missing),
        ("orders of levels", schema.levels),
        ("hierarchies", schema.hierarchies),
        ("weights", schema.with_role("weight")),
    ):
        if given:
            raise ParameterError(f"{what} are not for tables on a cluster yet; leave them out")


def _left_out(source: Source, fields: pa.Schema, schema: Schema) -> dict[str, str]:
    """Columns that are not compared, and why."""
    found = {}
    for name in source.names:
        why = _why_not(fields.field(name), (schema.kinds or {}).get(name))
        role = (schema.roles or {}).get(name)
        if role in UNMASKED_ROLES:
            why = f"role {role}"
        elif not why and name in source.gaps:
            why = "missing cells"
        if why:
            found[name] = why
    return found


def _why_not(field: pa.Field, kind: str | None) -> str:
    import pyarrow as pa

    if not (pa.types.is_floating(field.type) or pa.types.is_integer(field.type)):
        return str(field.type)
    if kind == "nominal":
        return "nominal"
    described = metadata.read(field)
    if kind is None and described is not None:
        if described.level == "nominal" or (described.level == "" and described.labels):
            return "values with labels"
        if described.has_missing_codes:
            return "codes for missing cells"
    return ""


def _chosen(
    original: Source,
    masked: Source,
    columns: Sequence[str] | None,
    left_x: Mapping[str, str],
    left_y: Mapping[str, str],
    notes: list[str],
) -> tuple[str, ...]:
    """The columns to compare: the chosen ones, or all of numbers."""
    if columns is not None:
        names = listed(columns)
        for name in names:
            for source, left in ((original, left_x), (masked, left_y)):
                if name not in source.names:
                    raise TableError(f"{source.path} has no column {name}{suggestion(name, source.names)}")
                if name in left and left[name] != "role identifier":
                    raise TableError(
                        f"{source.path}: column {name} ({left[name]}) is not one that a cluster measures; leave it out"
                    )
        if len(set(names)) < len(names):
            raise TableError(f"column {next(name for name in names if names.count(name) > 1)} is named twice")
    else:
        usable = [name for name in original.names if name not in left_x]
        lost = [name for name in usable if name not in masked.names]
        new = [name for name in masked.names if name not in original.names and name not in left_y]
        for where, gone in (("masked", lost), ("original", new)):
            if gone:
                raise PairError(
                    f"the tables have different columns: the {where} one has no {listing(gone)}; "
                    "name the columns to compare with --columns"
                )
        names = tuple(name for name in usable if name not in left_y)
    if not names:
        raise TableError("no usable column is left to compare: on a cluster these are columns of numbers without gaps")
    others = {name: left_x.get(name) or left_y.get(name) for name in original.names if name not in names}
    if others:
        told = listing((f"{name} ({why})" if why else name for name, why in others.items()), most=10)
        notes.append(f"not compared: {told}")
    return names


def needed_in_memory(original: Source, masked: Source) -> int:
    """Bytes that measuring two tables in memory may take."""
    cells = sum(len(source) * len(source.names) for source in (original, masked))
    return cells * _IN_MEMORY + _BESIDE


def too_large(original: object, masked: object) -> str | None:
    """What to say when two Parquet tables do not fit in memory; None when they do, or cannot be told."""
    paths = [os.fspath(path) for path in (original, masked) if isinstance(path, str | os.PathLike)]
    if len(paths) < 2 or not all(is_parquet(path) and os.path.exists(path) for path in paths):
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
