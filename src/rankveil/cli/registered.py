"""All releases of a table that the register of a folder tells of, for an attack on them together."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rankveil.cli.options import Matching, Reading
from rankveil.cli.tables import Pairing, open_pair, open_table, parsed_from, together
from rankveil.errors import FileError, ParameterError, RankveilError, listing

if TYPE_CHECKING:
    from rankveil.masking.register import Entry


def open_registered(
    original: str, register: str, reading: Reading, matching: Matching, *, manifests: bool
) -> tuple[Pairing, list[Any]]:
    """The releases of an original that a register names, with their manifests; what could not be read is noted.

    Nothing is opened but ordinary files: a register that was sealed by the user names no database or address to connect
    to.
    """
    from rankveil.manifest import fingerprint
    from rankveil.masking.register import read

    if matching.secret is not None:
        raise ParameterError("--secret is of one release; the register names that of each")
    entries = read(register)
    first = open_table(original, reading)
    told = fingerprint(first.table)
    wanted = [each for each in entries if each.fingerprint == told]
    if not wanted:
        raise FileError(
            f"{register}: names no release of this original, as it is read here (columns, order of rows, --missing)"
        )
    folder = os.path.dirname(os.path.realpath(register))
    pairs, documents, names, lost = [], [], [], []
    for entry in wanted:
        try:
            pair, document = _opened(entry, folder, original, reading, matching)
        except RankveilError as error:
            lost.append(f"{entry.told()}, of the register, was not attacked: {error}")
            continue
        pairs.append(pair)
        documents.append(document if manifests else None)
        names.append(entry.told())
    if not pairs:
        raise FileError(f"{register}: no release that it names can be read; {lost[0]}")
    both = together(pairs)
    said = f"attacked together, from the register {register}: {listing(names, most=10)}"
    both.notes[:0] = [said, *lost]
    return both, documents


def _opened(entry: Entry, folder: str, original: str, reading: Reading, matching: Matching) -> tuple[Pairing, Any]:
    """A release that a register names, with its manifest."""
    from rankveil.digests import digest_of
    from rankveil.manifest import Manifest
    from rankveil.masking.register import is_elsewhere

    if is_elsewhere(entry.release):
        raise FileError("it lies in a database or at an address, which is opened only where the command names it")
    release = os.path.join(folder, entry.release)
    manifest, secret = (
        None if name is None or is_elsewhere(name) else os.path.join(folder, name)
        for name in (entry.manifest, entry.secret)
    )
    document = None if manifest is None else parsed_from(manifest, "manifest", Manifest.from_json)
    mapping = "kept" if document is None else document.content.get("mapping")
    if mapping == "none":
        matching = replace(matching, no_mapping=True)
    elif mapping == "reordered" and matching.key is None and secret is not None:
        matching = replace(matching, secret=secret)
    pair = open_pair(original, release, reading, matching)
    if digest_of(pair.tables[1]) != entry.digest:
        raise FileError(f"{release}: holds another table now")
    return pair, document
