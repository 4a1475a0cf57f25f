"""The tables of a workspace: as they came, with what was declared of their columns."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rankveil import datasets, files
from rankveil.errors import FileError, FormatError, ParameterError, RankveilError
from rankveil.files import Dialect, databases, registry
from rankveil.files.atomic import said_of
from rankveil.files.folders import ENDING, refuse_table_format
from rankveil.inspection import Inspection, inspect
from rankveil.manifest import Manifest
from rankveil.table import Table
from rankveil.web import looking
from rankveil.web.declared import Declared, keep_hierarchy
from rankveil.web.workspace import Workspace, is_file_name, new_id, read_json, write_bytes, write_json

_SETTINGS = {"user", "password", "host", "port", "dbname", "sslmode"}
"""What an address of a server may set here; others name files of this machine or run on the server."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST_NAME = 120
_KEPT_OPEN = 2
"""Tables that stay in memory: the one that is worked on, and the one before."""

_FROM_OUTSIDE = ("upload", "inbox")
"""Origins of files that others wrote."""

EXAMPLES = {
    "demo": "1000 people who never were: ages, incomes, taxes, savings",
    "running-example": "20 records, the running example of the literature",
}


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
    notes: Sequence[str] = ()
    """What was to be said when it came, and cannot be told from its file."""

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

    @cached_property
    def seen(self) -> Inspection:
        """A first look at it, which reads every column."""
        return inspect(self.table)


def open_table(path: Path, declared: Declared, *, name: str, folder: Path | None = None) -> Opened:
    """Read a file that people know by `name`, leave out what is to be left out, and declare the columns.

    `folder` is that of the hierarchies, where they do not lie beside the file.
    """
    try:
        loaded = files.load(path)
    except RankveilError as error:
        raise type(error)(str(error).replace(str(path), name)) from None
    everything = tuple(loaded.data.column_names)
    gone = [each for each in declared.left_out if each in everything]
    data = loaded.data.drop_columns(gone) if gone else loaded.data
    schema = declared.schema(data.column_names, folder=folder or path.parent)
    table = Table(data, schema=schema, decimal=loaded.dialect.decimal if loaded.dialect else ".")
    return Opened(table, loaded.dialect, tuple(note.replace(str(path), name) for note in loaded.notes), everything)


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

    def folder(self, source: Source) -> Path:
        """Where all that belongs to it lies."""
        return self._workspace.folder("data", source.id)

    def path(self, source: Source) -> Path:
        """Where its file lies."""
        return self.folder(source) / source.file

    def opened(self, source: Source) -> Opened:
        """The table itself; the last ones stay in memory."""
        with self._guard:
            key = self._key(source)
            if key not in self._open:
                self._keep_open(key, open_table(self.path(source), source.declared, name=source.name))
            return self._open[key]

    def _key(self, source: Source) -> tuple[str, int]:
        """Another one after every change of what is declared."""
        return source.id, (self._workspace.folder("data", source.id) / "meta.json").stat().st_mtime_ns

    def _keep_open(self, key: tuple[str, int], opened: Opened) -> None:
        self._open = {other: kept for other, kept in self._open.items() if other[0] != key[0]}
        while len(self._open) >= _KEPT_OPEN:
            self._open.pop(next(iter(self._open)))
        self._open[key] = opened

    def manifest(self, source: Source) -> Manifest | None:
        """The manifest that came with a table, when it is a release that was made elsewhere."""
        try:
            text = (self._workspace.folder("data", source.id) / "manifest.json").read_text(encoding="utf-8")
        except OSError:
            return None
        return Manifest.from_json(text)

    def add(
        self,
        name: str,
        fill: Callable[[Path], Sequence[str] | None],
        *,
        origin: str,
        declared: Declared | None = None,
        manifest: bytes | None = None,
    ) -> Source:
        """A new table, whose file `fill` writes, perhaps with its manifest; what cannot be read is refused.

        `fill` may return what is to be said of it. A file that came from outside is first read in another process.
        """
        name = plain_name(name)
        registry.reader(name)  # refuses an ending that nothing reads
        id = new_id()
        folder = self._workspace.folder("data", id)
        folder.mkdir(mode=0o700)
        file = f"table{registry.ending_of(name)}"
        try:
            path = folder / file
            with said_of(name, deed="kept"):
                notes = fill(path) or ()
                os.chmod(path, 0o600)
            if origin in _FROM_OUTSIDE:
                looking.look_at(path, name=name)
            source = Source(id, name, file, origin, time.time(), declared or Declared(), tuple(notes))
            opened = open_table(path, source.declared, name=name)
            if len(opened.table) == 0:
                raise ParameterError("the table has no records")
            if manifest is not None:
                write_bytes(folder / "manifest.json", _checked(manifest, records=len(opened.table)))
            self._write(source, opened)
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
        if registry.ending_of(name) == ENDING:
            try:
                refuse_table_format(str(origin))  # the copy will not lie beside the log of the format
            except FormatError as error:
                raise FormatError(str(error).replace(str(origin), name).replace(str(origin.parent), "inbox")) from None
        beside = origin.with_name(f"{name}.manifest.json")
        manifest = beside.read_bytes() if beside.is_file() and not beside.is_symlink() else None

        def fill(path: Path) -> None:
            shutil.copyfile(origin, path)

        return self.add(name, fill, origin="inbox", manifest=manifest)

    def add_database(self, url: str) -> Source:
        """A copy of a table of a server, or of a database file in the inbox; the address itself is not kept."""
        if registry.database(url) is None:
            examples = "postgresql://user:password@host/database?table=name, or sqlite:///file.db?table=name"
            raise ParameterError(f"this is not the address of a table; write it like {examples}")
        address, folder = databases.parse(url), f"{quote(str(self._workspace.root / 'inbox'))}/"
        if address.file:
            url = f"{address.scheme}:///{folder}{quote(self._database_file(address.file))}?{url.partition('?')[2]}"
        elif not set(address.settings) <= _SETTINGS:
            raise ParameterError(f"the address may set only {', '.join(sorted(_SETTINGS))} and table here")
        name = re.sub(r"[^\w.-]+", "_", address.table).strip("._") or "table"

        def fill(path: Path) -> list[str]:
            try:
                notes = looking.copy_table(url, path, name=databases.shown(url))
            except RankveilError as error:
                raise type(error)(str(error).replace(folder, "")) from None
            return [note.replace(folder, "") for note in notes]

        return self.add(f"{name}.parquet", fill, origin="database")

    def _database_file(self, name: str) -> str:
        """The name of a file in the inbox; no other file of this machine is opened."""
        path = self._workspace.root / "inbox" / plain_name(name)
        if path.is_symlink() or not path.is_file():
            raise ParameterError("there is no such file in the inbox; put the database there first")
        return path.name

    def declare(
        self, source: Source, declared: Declared, *, hierarchies: Mapping[str, tuple[str, bytes]] | None = None
    ) -> Source:
        """Other declarations, unless they do not fit the table; new hierarchies are names and contents of files."""
        before = set(os.listdir(self.folder(source)))
        try:
            for column, (name, content) in (hierarchies or {}).items():
                declared = keep_hierarchy(declared, column, plain_name(name), content, folder=self.folder(source))
            opened = open_table(self.path(source), declared, name=source.name)
            for name in {**declared.kinds, **declared.hierarchies}:
                if name in opened.table.names:
                    cells = opened.table.cells(name)
                    if cells.kind != "nominal" or name in declared.hierarchies:
                        opened.table.values(name)
            made = replace(source, declared=declared)
            self._write(made, opened)
        except BaseException:
            for kept in declared.hierarchies.values():
                if kept.file not in before:
                    (self.folder(source) / kept.file).unlink(missing_ok=True)
            raise
        return made

    def remove(self, source: Source) -> None:
        """Delete a table."""
        with self._guard:
            self._open = {key: kept for key, kept in self._open.items() if key[0] != source.id}
            self._workspace.remove("data", source.id)

    def _write(self, source: Source, opened: Opened) -> None:
        opened.seen  # noqa: B018 - here a person waits for a table to be read, and the page that follows is quick
        with self._guard:
            write_json(self._workspace.folder("data", source.id) / "meta.json", asdict(source))
            self._keep_open(self._key(source), opened)


def _checked(manifest: bytes, *, records: int) -> bytes:
    """A manifest that is one, and of a release of so many records."""
    try:
        told = Manifest.from_json(manifest.decode("utf-8-sig")).content
    except UnicodeDecodeError:
        raise FileError("this is not a manifest: it is not UTF-8 text") from None
    counts = told.get("records")
    if told.get("mapping") not in ("kept", "reordered", "none"):
        raise FileError("this is not a manifest: it does not tell how records correspond to those of the original")
    if not isinstance(counts, dict) or counts.get("out") != records:
        raise FileError(
            f"this is the manifest of another release: the table has {records} records, and it tells others"
        )
    return manifest.decode("utf-8-sig").encode("utf-8")


def _can_be_picked(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
        return False
    return registry.ending_of(entry.name) in registry.formats()


def _source(id: str, meta: Mapping[str, Any]) -> Source | None:
    """The table that a document tells of; None when it is not one that lies in its folder."""
    if not is_file_name(str(meta["file"])):
        return None
    return Source(
        id=id,
        name=str(meta["name"]),
        file=str(meta["file"]),
        origin=str(meta["origin"]),
        added=float(meta["added"]),
        declared=Declared.of(meta["declared"]),
        notes=tuple(meta.get("notes", ())),
    )
