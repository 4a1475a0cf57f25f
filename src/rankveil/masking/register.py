"""The register of releases: which were made of which table, so that several of one are known to be several.

Whoever has k releases of one table with independent noise has their mean, whose noise is 1 / sqrt(k) of one's. The
register lies beside the secrets, readable by its owner alone, and is sealed with the user's key for its folder
(`files.user_key`): one that came with a folder is not believed, and nothing that it names is opened.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from rankveil import files
from rankveil.errors import FileError, listing
from rankveil.files import databases, user_key

REGISTER = "rankveil-register.json"
"""The name of the file, in the folder of the secrets."""

REGISTER_SCHEMA = "rankveil/register/1"
_LARGEST = 1 << 24
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(frozen=True)
class Entry:
    """A release: of which table, when, how, and where it lies, seen from the folder of the register."""

    fingerprint: str
    """That of the original, as in the secret."""
    date: str
    plan: Mapping[str, Any]
    digest: str
    """That of the content of the release, as in its manifest."""
    release: str
    manifest: str | None
    secret: str | None

    @classmethod
    def of(cls, fingerprint: str, manifest: Mapping[str, Any], plan: Mapping[str, Any], places: Sequence[str]) -> Self:
        """That of a release, from its manifest and plan; `places` are those of release, manifest and secret."""
        folder = os.path.dirname(os.path.realpath(places[2]))
        named = [files.shown(place) if is_elsewhere(place) else _seen_from(folder, place) for place in places]
        return cls(fingerprint, str(manifest["date"]), dict(plan), str(manifest["digest"]), *named)

    def told(self) -> str:
        """Its name and date, for people."""
        return f"{self.release} ({self.date})"

    def is_like(self, other: Entry) -> bool:
        """Whether both are of one table and say the same: then there is nothing to average."""
        return (self.fingerprint, self.digest) == (other.fingerprint, other.digest)


@dataclass(frozen=True)
class Entered:
    """What became of the entry of a release."""

    count: int | None
    """How many different releases of the table there are now; None where the register could not be used."""
    notes: tuple[str, ...]


class Register:
    """The register in the folder of a secret, while a release is written there.

    `add` writes it with the other files of the release or not at all. It never fails: a release is not given up for
    its entry, but the notes say that it has none. Until the block ends no other program of this kind changes it.
    """

    def __init__(self, secret: str) -> None:
        self.folder = os.path.dirname(os.path.realpath(secret))
        self.path = os.path.join(os.path.dirname(secret), REGISTER)
        self._lock: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def add(self, staged: files.Staged, entry: Entry) -> Entered:
        """Enter a release."""
        self._wait()
        try:
            known = read(self.path) if os.path.lexists(self.path) else ()
            earlier = [each for each in known if each.fingerprint == entry.fingerprint and not each.is_like(entry)]
            others = [each for each in known if not each.is_like(entry)]
            content = _sealed(self.folder, [*others, entry])
            staged.add(self.path, lambda file: file.write(content), mode=0o600)
        except (FileError, OSError) as error:
            return Entered(None, (f"this release is not in the register of releases: {error}",))
        return Entered(1 + len(earlier), self._said(earlier))

    def _said(self, earlier: Sequence[Entry]) -> tuple[str, ...]:
        if not earlier:
            return ()
        count = len(earlier)
        which = _ORDINALS[count] if count < len(_ORDINALS) else f"{count + 1}th"
        return (
            f"this is the {which} release of this table, after {listing([each.told() for each in earlier], most=5)}: "
            "an intruder can average them; "
            f"rankveil attack ORIGINAL --register {shlex.quote(self.path)} attacks all of them together",
        )

    def _wait(self) -> None:
        """Lock the folder, where the system offers that."""
        with suppress(ImportError, OSError):
            import fcntl

            self._lock = os.open(self.folder, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_EX)


def read(path: str) -> tuple[Entry, ...]:
    """The releases in a register that this user's programs wrote in this folder; any other is refused."""
    files.check_finished(path)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        reason = (error.strerror or "the system refused").lower()
        raise FileError(f"{path}: the register cannot be read: {reason}") from None
    try:
        plain = json.loads(text[:_LARGEST])
        releases, seal = plain["releases"], plain["seal"]
        if plain["schema"] != REGISTER_SCHEMA or not isinstance(releases, list):
            raise ValueError
        folder = os.path.dirname(os.path.realpath(path))
        sealed = user_key.is_sealed(REGISTER_SCHEMA, _content(folder, releases), seal)
        entries = tuple(Entry(**{each.name: plain[each.name] for each in fields(Entry)}) for plain in releases)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FileError(f"{path}: is no register of releases, or a damaged one; {_REMEDY}") from None
    if not sealed:
        raise FileError(f"{path}: no program of yours wrote it in this folder, so it is not believed; {_REMEDY}")
    return entries


_REMEDY = "move it away to begin a new one"


def is_elsewhere(place: str) -> bool:
    """Whether a place is no file or folder of this machine but an address, or a table of a database."""
    return "://" in place or databases.is_address(place)


def _seen_from(folder: str, place: str) -> str:
    return os.path.relpath(os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place)), folder)


def _sealed(folder: str, releases: Sequence[Entry]) -> bytes:
    plain = [asdict(each) for each in releases]
    seal = user_key.seal(REGISTER_SCHEMA, _content(folder, plain))
    made = {"schema": REGISTER_SCHEMA, "releases": plain, "seal": seal}
    return (json.dumps(made, indent=1) + "\n").encode()


def _content(folder: str, releases: list[Any]) -> bytes:
    """What is sealed: the entries, for one folder by its inode, so that a copy elsewhere is refused."""
    told = json.dumps(releases, sort_keys=True, ensure_ascii=True)
    return f"{os.stat(folder).st_ino}\0{told}".encode()
