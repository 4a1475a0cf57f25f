"""The small files that lie beside a release: its manifest, and the secret that tells which record is whose."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from rankveil import files
from rankveil.errors import FileError, PairError, RankveilError
from rankveil.files import databases, registry
from rankveil.manifest import Manifest, Secret
from rankveil.partitions import places

T = TypeVar("T")


def mapping_beside(
    masked: str | os.PathLike[str],
    notes: list[str],
    *,
    manifest: str | None = None,
    records: int | None = None,
    alone: bool = True,
) -> tuple[Secret | None, bool]:
    """The secret of a release whose rows were reordered, and whether its records correspond to original ones at all.

    The `manifest` tells it, which lies beside the release unless it is named; where none can be used, the secret beside
    the release does, if it has a mapping of so many records; otherwise records correspond by their order. A release
    that is not `alone` is one of several, for which no secret can be named. What was read is noted, and what was not
    used although it was there.
    """
    masked = os.fspath(masked)
    far = places.is_address(masked)
    told_as = masked if far else files.shown(masked)
    beside = places.absolute(masked) if far else files.companion(registry.sheet_of(masked)[0])
    private = secret_name(masked)
    secret = None if far or not os.path.isfile(private) else private
    mapping = _told(manifest or f"{beside}.manifest.json", notes, records=records)
    if mapping == "kept" or (mapping is None and secret is None):
        return None, True
    if mapping == "none":
        notes.append(f"{told_as}: its manifest says that its records do not correspond to original ones (no mapping)")
        return None, False
    found = None if secret is None else read_secret(secret)
    if mapping is None and (found is None or found.order is None or records not in (None, found.order.size)):
        return None, True
    if found is not None and found.order is not None:
        notes.append(f"the mapping was read from the secret beside the release: {private}")
        return found, True
    lacks = f"; {private} holds no mapping, so it is that of another release" if found is not None else ""
    how = "give its secret, as in" if alone else "put its secret beside it, or measure it alone with it, as in"
    raise PairError(
        f"{told_as}: its rows were reordered, as its manifest says{lacks}; {how} --secret {private}, or "
        f"{'' if alone else 'give '}a key column with --key"
    )


def secret_name(masked: str) -> str:
    """Where the secret of a release lies; that of one at an address is here, for a secret never went there."""
    if places.is_address(masked):
        return f"{places.absolute(masked).rpartition('/')[2]}.secret.json"
    return f"{files.companion(registry.sheet_of(masked)[0])}.secret.json"


def _told(path: str, notes: list[str], *, records: int | None) -> str | None:
    """What a manifest says of the mapping: kept, reordered or none; None where none can be used."""
    if not (places.exists(path) if places.is_address(path) else os.path.isfile(path)):
        return None
    try:
        told = parsed_from(path, "manifest", Manifest.from_json).content
    except FileError as error:
        notes.append(f"{error}; it was not used")
        return None
    counts = told.get("records")
    if not isinstance(counts, dict) or records not in (None, counts.get("out")):
        notes.append(f"{path}: is the manifest of another release, of another number of records; it was not used")
        return None
    return str(told.get("mapping")) if told.get("mapping") in ("reordered", "none") else "kept"


def read_secret(path: str) -> Secret:
    """The protector's secret."""
    return parsed_from(path, "secret", Secret.from_json)


def parsed_from(path: str, what: str, parse: Callable[[str], T]) -> T:
    """What a small file says; errors name the file."""
    text = places.read_text(path) if what == "manifest" and places.is_address(path) else read_text(path, what)
    try:
        return parse(text)
    except RankveilError as error:
        raise type(error)(f"{path}: {error}") from None


def read_text(path: str, what: str) -> str:
    """The text of a small file."""
    if databases.is_address(path):
        raise FileError(f"{databases.shown(path)}: the {what} cannot be an address; give the name of a file")
    files.check_finished(path)
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except OSError as error:
        reason = (error.strerror or "the system refused").lower()
        raise FileError(f"{path}: the {what} cannot be read: {reason}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: the {what} cannot be read: it is not UTF-8 text") from None
