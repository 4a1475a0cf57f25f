"""What a person said of the columns of a table, and the hierarchies that she gave."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rankveil.errors import FileError, ParameterError, RankveilError
from rankveil.hierarchy import Hierarchy
from rankveil.schema import Schema
from rankveil.web.workspace import is_file_name, new_id, write_bytes


@dataclass(frozen=True)
class Kept:
    """A hierarchy that lies beside a table."""

    name: str
    """As the person calls it; never a path."""
    file: str

    def read(self, folder: Path) -> Hierarchy:
        """The hierarchy itself."""
        path = folder / self.file
        try:
            return Hierarchy(Hierarchy.from_csv(path).rows, name=self.name)
        except RankveilError as error:
            raise type(error)(str(error).replace(str(path), self.name)) from None


@dataclass(frozen=True)
class Declared:
    """What a person said of the columns of a table."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[str] = ()
    left_out: Sequence[str] = ()
    """Columns that are left out before anything else is done."""
    hierarchies: Mapping[str, Kept] = field(default_factory=dict)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Declared:
        """From plain data."""
        known = {name: plain[name] for name in cls.__dataclass_fields__ if name in plain}
        kept = {name: Kept(**each) for name, each in plain.get("hierarchies", {}).items()}
        if not all(is_file_name(each.file) for each in kept.values()):  # a workspace may have come from somebody else
            raise FileError("a hierarchy of the table does not lie beside it")
        return cls(**{**known, "hierarchies": kept})

    def schema(self, names: Sequence[str], *, folder: Path) -> Schema:
        """For a table with these columns; the hierarchies lie in `folder`."""
        known = self.only(names)
        read = {name: kept.read(folder) for name, kept in known.hierarchies.items()}
        return Schema(known.kinds, known.levels, known.roles, tuple(self.missing), read)

    def only(self, names: Iterable[str]) -> Declared:
        """What was said of some columns."""
        names = set(names)

        def kept(given: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in given.items() if name in names}

        return replace(
            self,
            kinds=kept(self.kinds),
            levels=kept(self.levels),
            roles=kept(self.roles),
            left_out=tuple(name for name in self.left_out if name in names),
            hierarchies=kept(self.hierarchies),
        )

    @property
    def released(self) -> Declared:
        """What was said of the columns that are not left out."""
        named = {*self.kinds, *self.levels, *self.roles, *self.hierarchies}
        return self.only(named.difference(self.left_out))


def keep_hierarchy(declared: Declared, column: str, name: str, content: bytes, *, folder: Path) -> Declared:
    """With a hierarchy of a column, whose file is put into `folder`; two that differ do not have the same name."""
    if declared.kinds.get(column) == "numeric":
        raise ParameterError(f"column {column}: numbers have no hierarchy; choose another kind for it")
    others = {kept.name: kept for other, kept in declared.hierarchies.items() if other != column}
    number, wanted = 2, name
    while name in others:
        if (folder / others[name].file).read_bytes() == content:
            return replace(declared, hierarchies={**declared.hierarchies, column: others[name]})
        stem, ending = os.path.splitext(wanted)
        name, number = f"{stem}-{number}{ending}", number + 1
    kept = Kept(name, f"hierarchy-{new_id()}.csv")
    write_bytes(folder / kept.file, content)
    return replace(declared, hierarchies={**declared.hierarchies, column: kept})
