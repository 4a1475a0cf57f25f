"""The tables of a workspace: as they came, with what was declared of their columns."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rankveil import datasets, files
from rankveil.errors import FileError, ParameterError, RankveilError
from rankveil.files import Dialect, registry
from rankveil.table import Schema, Table
from rankveil.web.workspace import Workspace, new_id, read_json, write_json

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST_NAME = 120
_KEPT_OPEN = 2
"""Tables that stay in memory: the one that is worked on, and the one before."""

EXAMPLES = {
    "demo": "1000 people who never were: ages, incomes, taxes, savings",
    "running-example": "20 records, the running example of the literature",
}


@dataclass(frozen=True)
class Declared:
    """What a person said of the columns of a table."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[str] = ()
    left_out: Sequence[str] = ()
    """Columns that are left out before anything else is done."""

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Declared:
        """From plain data."""
        return cls(**{name: plain[name] for name in cls.__dataclass_fields__ if name in plain})

    def schema(self, names: Sequence[str]) -> Schema:
        """For a table with these columns."""

        def kept(given: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in given.items() if name in names}

        return Schema(kept(self.kinds), kept(self.levels), kept(self.roles), tuple(self.missing))


@dataclass(frozen=True)
class Source:
    """A table of the workspace."""

    id: str
    name: str
    """As the person calls it; never a path."""
    file: str
    origin: str
    added: float
    declared: Declared

    @property
    def stem(self) -> str:
        """Its name without ending, for the names of what is made from it.

        >>> Source("0", "my data.csv", "table.csv", "upload", 0.0, Declared()).stem
        'my_data'
        """
        return re.sub(r"[^A-Za-z0-9_-]+", "_", self.name.rpartition(".")[0] or self.name).strip("_") or "table"

    @property
    def ending(self) -> str:
        """The ending that says its format."""
        return registry.ending_of(self.file)


@dataclass(frozen=True)
class Opened:
    """A table in memory, how its file was written, and what was assumed."""

    table: Table
    dialect: Dialect | None
    notes: tuple[str, ...]
    everything: tuple[str, ...]
    """All its columns, also those left out."""


def open_table(path: Path, declared: Declared) -> Opened:
    """Read a file, leave out what is to be left out, and declare the columns."""
    try:
        loaded = files.load(path)
    except RankveilError as error:  # people know the file by another name
        raise type(error)(str(error).replace(f"{path}:", "the file").replace(str(path), "the file")) from None
    everything = tuple(loaded.data.column_names)
    gone = [name for name in declared.left_out if name in everything]
    data = loaded.data.drop_columns(gone) if gone else loaded.data
    table = Table(
        data, schema=declared.schema(data.column_names), decimal=loaded.dialect.decimal if loaded.dialect else "."
    )
    return Opened(table, loaded.dialect, loaded.notes, everything)


def plain_name(given: str) -> str:
    """The name of an uploaded file as people may see it; one that is a path is refused."""
    if "/" in given or "\\" in given or ".." in given:
        raise ParameterError("the name of a file must not be a path (no /, \\ or ..); rename it")
    name = _CONTROL.sub("", given).strip()
    if not name or name.startswith("."):
        raise ParameterError("choose a file first")
    if len(name) > _LONGEST_NAME:
        raise ParameterError(f"the name of the file is longer than {_LONGEST_NAME} letters; rename it")
    return name


class Sources:
    """All tables of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._open: dict[tuple[str, int], Opened] = {}
        self._guard = threading.Lock()

    def all(self) -> list[Source]:
        """The latest first."""
        found = [source for id in self._workspace.ids("data") if (source := self.find(id)) is not None]
        return sorted(found, key=lambda source: -source.added)

    def find(self, id: str) -> Source | None:
        """The table of that ID, or None."""
        try:
            meta = read_json(self._workspace.folder("data", id) / "meta.json")
            return None if meta is None else _source(id, meta)
        except (FileError, KeyError, TypeError):
            return None

    def path(self, source: Source) -> Path:
        """Where its file lies."""
        return self._workspace.folder("data", source.id) / source.file

    def opened(self, source: Source) -> Opened:
        """The table itself; the last ones stay in memory."""
        stamp = (self._workspace.folder("data", source.id) / "meta.json").stat().st_mtime_ns
        key = (source.id, stamp)
        with self._guard:
            if key not in self._open:
                made = open_table(self.path(source), source.declared)
                self._open = {other: kept for other, kept in self._open.items() if other[0] != source.id}
                while len(self._open) >= _KEPT_OPEN:
                    self._open.pop(next(iter(self._open)))
                self._open[key] = made
            return self._open[key]

    def add(
        self, name: str, fill: Callable[[Path], object], *, origin: str, declared: Declared | None = None
    ) -> Source:
        """A new table, whose file `fill` writes; one that cannot be read is refused and not kept."""
        name = plain_name(name)
        registry.reader(name)  # refuses an ending that nothing reads
        id = new_id()
        folder = self._workspace.folder("data", id)
        folder.mkdir(mode=0o700)
        source = Source(id, name, f"table{registry.ending_of(name)}", origin, time.time(), declared or Declared())
        try:
            path = folder / source.file
            fill(path)
            os.chmod(path, 0o600)
            opened = open_table(path, source.declared)
            if len(opened.table) == 0:
                raise ParameterError("the table has no records")
            self._write(source)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return source

    def add_example(self, which: str) -> Source:
        """One of the tables that come with rankveil."""
        if which == "demo":
            declared = Declared(
                levels={"EDUCATION": ("primary", "secondary", "tertiary")},
                kinds={"EDUCATION": "ordinal"},
                roles={"PERSON": "identifier"},
                left_out=("PERSON",),
            )
            return self.add(
                "people.csv", lambda path: files.save(datasets.demo(), path), origin="example", declared=declared
            )
        if which == "running-example":
            original, _ = datasets.running_example()
            return self.add("running-example.csv", lambda path: files.save(original, path), origin="example")
        raise ParameterError("there is no such example")

    def inbox(self) -> list[str]:
        """The files that were put into the inbox and can be read."""
        folder = self._workspace.root / "inbox"
        return sorted(entry.name for entry in os.scandir(folder) if _can_be_picked(entry))

    def pick(self, name: str) -> Source:
        """A copy of a file of the inbox; only a name that the inbox itself lists is taken."""
        if name not in self.inbox():
            raise ParameterError("there is no such file in the inbox")
        origin = self._workspace.root / "inbox" / name
        return self.add(name, lambda path: shutil.copyfile(origin, path), origin="inbox")

    def declare(self, source: Source, declared: Declared) -> Source:
        """Other declarations, unless they do not fit the table."""
        opened = open_table(self.path(source), declared)
        for name in declared.kinds:
            if name in opened.table.names and opened.table.cells(name).kind != "nominal":
                opened.table.values(name)
        made = replace(source, declared=declared)
        self._write(made)
        return made

    def _write(self, source: Source) -> None:
        write_json(self._workspace.folder("data", source.id) / "meta.json", asdict(source))


def _can_be_picked(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
        return False
    return registry.ending_of(entry.name) in registry.formats()


def _source(id: str, meta: Mapping[str, Any]) -> Source:
    return Source(
        id=id,
        name=str(meta["name"]),
        file=str(meta["file"]),
        origin=str(meta["origin"]),
        added=float(meta["added"]),
        declared=Declared.of(meta["declared"]),
    )
