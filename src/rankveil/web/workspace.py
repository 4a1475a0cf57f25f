"""The workspace: a folder, closed to others, that keeps data, plans and runs.

    workspace.json          what marks the folder
    sessions.json           hashes of the sessions of browsers
    inbox/                  files that a person put here to be picked instead of uploaded
    data/ID/                a table as it came, and meta.json: its name and what was declared of it
    plans/ID.json           the plan that is being built for a table, with its history
    runs/ID/                one piece of work: run.json, progress.json, result.json or failure.json, and its outputs

An ID is drawn at random and checked whenever it comes back: no text of a request becomes a path unchecked. A workspace
may have come from somebody else: nothing in it is followed through a symbolic link, neither to write nor to delete.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from rankveil.errors import FileError

WORKSPACE_SCHEMA = "rankveil/workspace/1"
Room = Literal["data", "plans", "runs", "inbox"]

_ID = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_GONE = ".gone-"
_LOCK = ".lock"


def new_id() -> str:
    """A name that nobody can guess and that is no path."""
    return secrets.token_hex(8)


def is_id(text: str) -> bool:
    """Whether a text could be an ID.

    >>> is_id("0123456789abcdef"), is_id("../../../../etc/x"), is_id("0123456789abcdef\\n")
    (True, False, False)
    """
    return _ID.fullmatch(text) is not None


def is_file_name(text: str) -> bool:
    """Whether a text is the plain name of a file and nothing more.

    >>> is_file_name("masked.csv"), is_file_name("../masked.csv"), is_file_name(".hidden"), is_file_name("a..b")
    (True, False, False, False)
    """
    return _NAME.fullmatch(text) is not None and ".." not in text


class Workspace:
    """The folder; while one server holds it, no other can."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(os.path.realpath(root))
        self._lock: Any = None
        _make(self.root)
        for room in ("data", "plans", "runs", "inbox"):
            if (self.root / room).is_symlink():
                raise FileError(f"{self.root}: its folder {room} is a symbolic link; put a folder in its place")
            (self.root / room).mkdir(mode=0o700, exist_ok=True)

    def folder(self, room: Room, id: str) -> Path:
        """The folder of a thing, whether it is there or not."""
        found = self.root / room / id
        if not is_id(id) or found.is_symlink():
            raise FileError("there is nothing of that name in the workspace")
        return found

    def ids(self, room: Room) -> list[str]:
        """What there is in a room."""
        with os.scandir(self.root / room) as entries:
            return [entry.name for entry in entries if is_id(entry.name) and not entry.is_symlink()]

    def remove(self, room: Room, id: str) -> None:
        """Delete the folder of a thing for good; once it is gone under its name, it is nowhere half there."""
        aside = self.root / room / f"{_GONE}{new_id()}"
        try:
            os.replace(self.folder(room, id), aside)
        except FileNotFoundError:
            return
        except OSError as error:
            raise FileError(f"it cannot be deleted: {(error.strerror or 'the system refused').lower()}") from None
        shutil.rmtree(aside, ignore_errors=True)

    def _sweep(self) -> None:
        """Delete what an earlier server had begun to write or to delete when it was killed."""
        for room, mark in (("data", "meta.json"), ("runs", "run.json")):
            for left in (self.root / room).iterdir():
                if left.is_symlink():
                    continue
                if left.name.startswith(_GONE) or (is_id(left.name) and not (left / mark).exists()):
                    shutil.rmtree(left, ignore_errors=True)
        things = [self.root / room / id for room in ("data", "runs") for id in self.ids(room)]
        for folder in (self.root, self.root / "plans", *things):
            for left in folder.glob(".*"):
                if left.name != _LOCK and left.is_file():
                    _unlink(left)
        for plan in (self.root / "plans").iterdir():
            if not (self.root / "data" / plan.stem).exists():
                _unlink(plan)

    def hold(self) -> None:
        """Take the workspace for this process until it ends; an error when another one has it."""
        self._lock_it()
        self._sweep()

    def _lock_it(self) -> None:
        try:
            import fcntl
        except ImportError:  # a system without such locks
            return
        self._lock = open_lock(self.root)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise FileError(f"{self.root}: another rankveil serve uses this workspace; stop it first") from None

    def release(self) -> None:
        """Let others take the workspace."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def open_lock(folder: Path) -> Any:
    """A file in a folder to hold a lock on, for its owner alone."""
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        return open(os.open(folder / _LOCK, flags, 0o600), "wb")
    except OSError as error:
        reason = (error.strerror or "the system refused").lower()
        raise FileError(f"{folder / _LOCK}: cannot be opened: {reason}") from None


def _unlink(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _make(root: Path) -> None:
    mark = root / "workspace.json"
    try:
        if root.exists() and not root.is_dir():
            raise FileError(f"{root}: is not a folder; give the name of a new or empty one")
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not mark.exists():
            if any(root.iterdir()):
                raise FileError(f"{root}: is neither empty nor a workspace; give the name of a new or empty folder")
            write_json(mark, {"schema": WORKSPACE_SCHEMA})
        elif (read_json(mark) or {}).get("schema") != WORKSPACE_SCHEMA:
            raise FileError(f"{root}: was made by another version of rankveil; give another folder")
        os.chmod(root, 0o700)
    except OSError as error:
        raise FileError(f"{root}: cannot be used: {(error.strerror or 'the system refused').lower()}") from None


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a document whole or not at all, for its owner alone."""
    write_bytes(path, json.dumps(content, ensure_ascii=False).encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, for its owner alone."""
    beside = path.with_name(f".{secrets.token_hex(6)}.tmp")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise FileError(f"{path.name}: cannot be written: {(error.strerror or 'the system refused').lower()}") from None
    finally:
        _unlink(beside)


def read_json(path: Path) -> dict[str, Any] | None:
    """A document, or None when it is not there or is no document."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
