"""Files to tables and back, as the verbs need them."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from rankveil.cli import addresses, words
from rankveil.cli.options import Matching, Reading
from rankveil.cli.room import check_file
from rankveil.errors import FileError, PairError, ParameterError, TableError, suggestion

if TYPE_CHECKING:
    import pyarrow as pa

    from rankveil.columns import Cells
    from rankveil.files import Dialect, Loaded
    from rankveil.hierarchy import Hierarchy
    from rankveil.schema import Schema
    from rankveil.table import Table

T = TypeVar("T")


@dataclass(frozen=True)
class Opened:
    """A table read from a file, and how the file was written."""

    table: Table
    dialect: Dialect | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Pairing:
    """Original and masked, and the keyword arguments that say how they belong together."""

    original: Table
    masked: Table | list[Table]
    matching: dict[str, Any]
    notes: list[str]

    @property
    def tables(self) -> list[Table]:
        """All tables, the original first."""
        return [self.original, *(self.masked if isinstance(self.masked, list) else [self.masked])]


def open_table(path: str, reading: Reading) -> Opened:
    """Read a file with what was declared of its columns."""
    from rankveil.table import Table

    schema = declared_schema(reading)
    loaded = _loaded(path, reading)
    load_pandas()
    table = Table(loaded.data, schema=schema, decimal=loaded.dialect.decimal if loaded.dialect else ".")
    return Opened(table, loaded.dialect, loaded.notes)


def open_release(path: str, reading: Reading) -> Opened:
    """Read a masked table; what is declared of a column that the release dropped is not held against it."""
    from rankveil.table import Table

    loaded = _loaded(path, reading)
    schema = declared_schema(reading).only(loaded.data.column_names)
    table = Table(loaded.data, schema=schema, decimal=loaded.dialect.decimal if loaded.dialect else ".")
    return Opened(table, loaded.dialect, loaded.notes)


def _loaded(path: str, reading: Reading) -> Loaded:
    """What a file holds, or a Parquet table at an address."""
    from rankveil import files
    from rankveil.partitions.places import is_address

    if is_address(path):
        from rankveil.cluster.tables import table_at

        return table_at(path)
    check_file(path)
    return files.load(path, separator=reading.separator, decimal=reading.decimal, encoding=reading.encoding)


def open_pair(
    original: str, masked: str, reading: Reading, matching: Matching, *, manifest: str | None = None
) -> Pairing:
    """Read both files and what says how they belong together; the manifest beside the release unless one is named."""
    from rankveil.beside import read_secret, secret_name

    secret = None if matching.secret is None else read_secret(matching.secret)
    first = open_table(original, reading)
    second = open_release(masked, reading)
    notes = [*first.notes, *second.notes]
    if secret is not None:
        if secret.is_of(first.table) is False:
            notes.append(
                "the secret was made for another original, or for this one read in another way (--missing, format)"
            )
        if secret.order is None:
            notes.append("the secret holds no mapping: the rows of that release were not reordered")
    how: dict[str, Any] = {"columns": reading.chosen, "key": matching.key, "secret": secret, "seed": matching.seed}
    mapping = not matching.no_mapping
    if mapping and matching.key is None and secret is None:
        found, mapping = mapping_of(masked, notes, records=len(second.table), manifest=manifest)
        if found is not None and found.is_of(first.table) is False:
            raise PairError(
                f"{secret_name(masked)}: the secret beside the release was made for another original, or for this one "
                "read in another way (--missing, --columns), so it was not used; give it with --secret if it is the "
                "right one, or a key column with --key, or say --no-mapping"
            )
        how["secret"] = found
    return Pairing(first.table, second.table, {**how, "mapping": mapping}, notes)


def mapping_of(
    masked: str, notes: list[str], *, records: int, manifest: str | None = None, alone: bool = True
) -> tuple[Any, bool]:
    """What tells which record is whose, as it lies beside the release, and whether any is."""
    from rankveil.beside import mapping_beside

    said: list[str] = []
    found = mapping_beside(masked, said, manifest=manifest, records=records, alone=alone)
    notes += map(addresses.hidden, said)
    return found


def open_releases(
    original: str, masked: Sequence[str], reading: Reading, matching: Matching, *, manifests: Sequence[str | None]
) -> Pairing:
    """Read an original and its releases, each with the mapping that lies beside it, or that its manifest tells."""
    return together(
        [
            open_pair(original, path, reading, matching, manifest=own)
            for path, own in zip(masked, manifests, strict=True)
        ]
    )


def together(each: Sequence[Pairing]) -> Pairing:
    """Several releases of one original."""
    first = each[0]
    if len(each) == 1:
        return first
    notes = list(dict.fromkeys(note for one in each for note in one.notes))
    how = {**first.matching, **{what: [one.matching[what] for one in each] for what in ("secret", "mapping")}}
    return Pairing(first.original, [one.tables[1] for one in each], how, notes)


def open_versions(original: str, masked: Sequence[str], reading: Reading, matching: Matching) -> Pairing:
    """Read an original and several masked versions of it, each with the manifest that lies beside it."""
    first, others = open_table(original, reading), [open_release(path, reading) for path in masked]
    notes = [*first.notes, *(note for each in others for note in each.notes)]
    found: list[tuple[Any, bool]] = [(None, not matching.no_mapping) for _ in masked]
    if not matching.no_mapping and matching.key is None:
        found = [
            mapping_of(path, notes, records=len(each.table), alone=False)
            for path, each in zip(masked, others, strict=True)
        ]
    how: dict[str, Any] = {"columns": reading.chosen, "key": matching.key, "seed": matching.seed}
    how["secret"], how["mapping"] = (list(each) for each in zip(*found, strict=True))
    return Pairing(first.table, [each.table for each in others], how, notes)


def manifest_of(given: str | None, masked: str, table: Any, notes: list[str]) -> Any:
    """The manifest that was named, or the one beside the release; None where there is none."""
    from rankveil import files
    from rankveil.beside import parsed_from
    from rankveil.files import registry
    from rankveil.manifest import Manifest, content_of

    path = given
    if path is None:
        beside = f"{files.companion(registry.sheet_of(masked)[0])}.manifest.json"
        if not os.path.isfile(beside):
            notes.append("no manifest lies beside the release: what was done is learned from the two tables")
            return None
        path = beside
    made = parsed_from(path, "manifest", Manifest.from_json)
    try:
        content_of(made, records=len(table))
    except FileError as error:
        raise FileError(f"{path}: {error}") from None
    if given is None:
        notes.append(f"read the manifest beside the release: {path}")
    return made


def manifest_beside(masked: str, table: Any, notes: list[str]) -> Any:
    """The manifest beside a release, or none where there is none that can be used, which is said."""
    try:
        return manifest_of(None, masked, table, notes)
    except FileError as error:
        said = f"{addresses.hidden(str(error))}; it was not used"
        if said not in notes:
            notes.append(said)
        return None


def note_other_table(masked: str, table: Table, notes: list[str]) -> None:
    """Note that a release is not what the manifest beside it describes, where there is one that can be read."""
    from rankveil import files
    from rankveil.beside import parsed_from
    from rankveil.files import registry
    from rankveil.manifest import Manifest, other_table

    path = f"{files.companion(registry.sheet_of(masked)[0])}.manifest.json"
    if not os.path.isfile(path):
        return
    with suppress(FileError):  # which is said where the manifest is needed
        said = other_table(parsed_from(path, "manifest", Manifest.from_json), table)
        notes += [] if said is None else [f"{files.shown(masked)}: {said}"]


def load_pandas() -> None:
    """Load what pyarrow loads with its first array of numbers anyway, where it would swallow a Ctrl-C meanwhile."""
    with suppress(Exception):  # not installed, or broken: pyarrow does without it
        import pandas  # noqa: F401


def declared_schema(reading: Reading) -> Schema:
    """Kinds, orders, roles and missing markers from the TOML file and the flags, which win."""
    from rankveil.schema import Schema

    declared = _from_toml(reading.roles) if reading.roles else _Declared()
    kinds, levels, roles, missing = declared.kinds, declared.levels, declared.roles, declared.missing
    for name, text in words.pairs(reading.kind, option="--kind").items():
        kind, sign, order = text.partition(":")
        if sign and kind.strip() != "ordinal":
            raise ParameterError(f"--kind {name}={text}: only an ordinal column has an order")
        kinds[name] = kind.strip()
        if sign:
            levels[name] = tuple(word.strip() for word in order.split("<"))
        elif kind != "ordinal":
            levels.pop(name, None)
    roles |= words.pairs(reading.role, option="--role")
    if reading.missing:
        missing = tuple(words.items(reading.missing, option="--missing"))
    hierarchies = {**declared.hierarchies, **words.pairs(reading.hierarchy, option="--hierarchy")}
    return Schema(kinds=kinds, levels=levels, roles=roles, missing=missing, hierarchies=_read_hierarchies(hierarchies))


def hierarchies_seen_from(path: str, reading: Reading) -> dict[str, str]:
    """The files of the declared hierarchies, as a file of roles at `path` names them."""
    named = {**(_from_toml(reading.roles).hierarchies if reading.roles else {})}
    named |= words.pairs(reading.hierarchy, option="--hierarchy")
    folder = os.path.dirname(os.path.abspath(path))
    return {
        name: given if os.path.isabs(given) else os.path.relpath(os.path.abspath(given), folder)
        for name, given in named.items()
    }


def _read_hierarchies(paths: Mapping[str, str]) -> dict[str, Hierarchy]:
    from rankveil.hierarchy import Hierarchy

    for path in paths.values():
        addresses.refuse_address(path, "hierarchy")
    return {name: Hierarchy.from_csv(path) for name, path in paths.items()}


@dataclass
class _Declared:
    """What a file of roles says."""

    kinds: dict[str, str] = field(default_factory=dict)
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    hierarchies: dict[str, str] = field(default_factory=dict)


def _from_toml(path: str) -> _Declared:
    from rankveil.beside import read_text

    try:
        plain = tomllib.loads(read_text(path, "file of roles"))
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError too
        raise ParameterError(f"{path}: is not TOML: {error}") from None
    _known(path, plain, ("columns", "missing"), where="")
    columns = plain.get("columns", {})
    if not isinstance(columns, dict) or not all(isinstance(given, dict) for given in columns.values()):
        raise ParameterError(f"{path}: columns are tables, as in [columns.INCOME]")
    made = _Declared(missing=_texts(plain.get("missing", []), f"{path}: missing"))
    for name, given in columns.items():
        _known(path, given, ("kind", "role", "levels", "hierarchy"), where=f"[columns.{name}] ")
        for key, found in (("kind", made.kinds), ("role", made.roles), ("hierarchy", made.hierarchies)):
            if key in given:
                if not isinstance(given[key], str):
                    raise ParameterError(f"{path}: [columns.{name}] {key} must be a text")
                found[name] = given[key]
        if name in made.hierarchies:  # a path in a file is seen from that file
            addresses.refuse_address(made.hierarchies[name], "hierarchy")
            made.hierarchies[name] = os.path.join(os.path.dirname(path), made.hierarchies[name])
        if "levels" in given:
            made.levels[name] = _texts(given["levels"], f"{path}: [columns.{name}] levels")
            if made.kinds.setdefault(name, "ordinal") != "ordinal":
                raise ParameterError(f"{path}: [columns.{name}] has levels, but only an ordinal column has an order")
    return made


def _known(path: str, given: Mapping[str, Any], known: tuple[str, ...], *, where: str) -> None:
    for key in given:
        if key not in known:
            raise ParameterError(f"{path}: {where}there is no setting {key}{suggestion(key, known)}")


def _texts(given: object, what: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(word, str | int | float) for word in given):
        raise ParameterError(f'{what} must be a list, as in ["low", "high"]')
    return tuple(str(word) for word in given)


def check_outputs(
    outputs: Mapping[str, str],
    inputs: Mapping[str, str | None],
    *,
    table: str | None = None,
    otherwise: Mapping[str, Callable[[str], object]] | None = None,
) -> list[str]:
    """Before any work: every output can be written, and none is an input or another output.

    `otherwise` has those that are no files, and what refuses them. What a person should know of the folders comes back.
    """
    from rankveil import files

    others = {what: path for what, path in inputs.items() if path is not None}
    notes: dict[str, None] = {}
    for what, path in outputs.items():
        if not path:
            raise ParameterError(f"the name of the {what} is empty")
        checked = (otherwise or {}).get(what)
        if what != table and checked is None:
            addresses.refuse_address(path, what)
        for other, taken in others.items():
            if files.same_file(path, taken):
                raise FileError(
                    f"{addresses.hidden_word(path)}: the {what} would overwrite the {other}; give another name"
                )
        if checked is None:
            notes |= dict.fromkeys(files.check_writable(path, table=what == table))
        else:
            checked(path)
        others[what] = path
    return list(notes)


def with_types(data: pa.Table, table: Table) -> pa.Table:
    """A release that came from text, with numbers as numbers: for formats that know types."""
    from rankveil.table import Table

    released = Table(data, schema=table.schema.only(data.column_names), decimal=table.decimal)
    for place, name in enumerate(data.column_names):
        cells = table.cells(name)
        released_cells = released.cells(name).written_like(cells)
        if released_cells.temporal is not None and cells.is_text:
            moments = _as_moments(released_cells)
            if moments is not None:
                data = data.set_column(place, name, moments)
        elif cells.is_text and cells.kind != "nominal" and not cells.levels and released_cells.kind == cells.kind:
            numbers = _as_numbers(released, name)
            if numbers is not None:
                data = data.set_column(place, name, numbers)
    return data


def _as_numbers(table: Table, name: str) -> pa.Array | None:
    """A text column as whole numbers or decimals, missing cells as nulls; None when it cannot be."""
    import numpy as np
    import pyarrow as pa

    try:
        values = table.values(name)
    except TableError:  # not masked, and not clean: it stays as it is
        return None
    missing = np.isnan(values)
    if not table.cells(name).integral:
        return pa.array(values, mask=missing)
    if np.any(np.abs(values[~missing]) >= 2.0**53):
        return None
    return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)


def _as_moments(cells: Cells) -> pa.Array | None:
    """Dates or times as such, missing cells as nulls; None when a text is none that there is."""
    import pyarrow as pa

    try:
        return cells.moments()
    except pa.ArrowInvalid:  # not masked, and not clean: it stays as it is
        return None


def folder_for(path: str) -> bool:
    """Make the folder when it is not there; True when it was made."""
    addresses.refuse_address(path, "folder", wanted="folder")
    if os.path.isdir(path):
        return False
    if os.path.lexists(path):
        raise FileError(f"{path}: is not a folder; give the name of a new or existing one")
    try:
        os.makedirs(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be made: {(error.strerror or 'the system refused').lower()}") from None
    return True
