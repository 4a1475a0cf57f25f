"""A key of the user's own, by which a later program recognises what an earlier one of the same user wrote.

It lies in the user's state directory ($XDG_STATE_HOME/rankveil, or ~/.local/state/rankveil), never beside data: whoever
hands over a folder of data can put any file into it, but cannot seal it. The key is made when something is sealed for
the first time; reading never makes it. Where it cannot be kept (a read-only home), seals are made with a key that ends
with the process, and no later program accepts them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from functools import cache

_SIZE = 32
_PRIVATE = 0o600


def seal(purpose: str, content: bytes) -> str:
    """The HMAC-SHA256 of some content, as hexadecimal digits; `purpose` keeps seals of different kinds apart."""
    return _sealed(_kept() or _made() or _of_this_process(), purpose, content)


def is_sealed(purpose: str, content: bytes, given: object) -> bool:
    """Whether a seal of this content was made with the user's key."""
    if not isinstance(given, str) or not given.isascii():
        return False
    return hmac.compare_digest(_sealed(_kept() or _of_this_process(), purpose, content), given)


def place() -> str:
    """The file of the key; empty where there is no place for it."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # one that depends on the working folder could be brought by somebody else
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "rankveil", "key") if os.path.isabs(state) else ""


def is_private(found: os.stat_result) -> bool:
    """Whether it is a regular file of this user that nobody else can read or change."""
    mine = found.st_uid == os.geteuid() if hasattr(os, "geteuid") else True
    closed = not found.st_mode & 0o077 if os.name == "posix" else True
    return stat.S_ISREG(found.st_mode) and mine and closed


def _sealed(key: bytes, purpose: str, content: bytes) -> str:
    return hmac.new(key, purpose.encode() + b"\0" + content, hashlib.sha256).hexdigest()


def _kept() -> bytes | None:
    """The key that is there, unless somebody else could know it or have put it there."""
    with suppress(OSError):
        handle = os.open(place(), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            key = os.read(handle, _SIZE + 1)
            return key if len(key) == _SIZE and is_private(os.fstat(handle)) else None
        finally:
            os.close(handle)
    return None


def _made() -> bytes | None:
    """Make the key; None where it cannot be kept. Of two programs that make it at once, both take the first one's."""
    path = place()
    if not path:
        return None
    beside = f"{path}.{secrets.token_hex(8)}"
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
            with open(handle, "wb") as file:
                file.write(secrets.token_bytes(_SIZE))
                file.flush()
                os.fsync(handle)
            with suppress(FileExistsError):
                os.link(beside, path)
        finally:
            with suppress(OSError):
                os.unlink(beside)
    return _kept()


@cache
def _of_this_process() -> bytes:
    return secrets.token_bytes(_SIZE)
