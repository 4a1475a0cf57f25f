"""A journal beside files that are written together, by which the next writer finishes or undoes a killed one's work.

Every folder that is written has a part of it, hidden, locked by its writer and sealed with the user's key
(`user_key`). A part names plain files of its own folder only. While it says no more than that it was begun, nothing is
decided: temporaries that are found are removed. Then each part lists what gets which name, that of the first folder
last: its line decides for all, and from there on the new files take their places, whoever does it. A table of a
database that was to be written with them decides instead, by what came of its transaction.

A journal is a file in a folder that may have come from somebody else, so it is trusted for nothing without its seal.
The seal holds for one folder (by its inode), so that a copy in another folder is refused. Every file is known by its
inode, size and time: an old journal that is put back finds other files than it tells of, and changes nothing.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rankveil.files.user_key import is_private, is_sealed, seal

PRIVATE = 0o600

Question = Mapping[str, str]
"""What to ask to find out whether something beside files was written, such as a table and its transaction."""

Answer = Callable[[Question], bool | None]
"""Whether it was written; None when that cannot be found out here."""

_JOURNAL = re.compile(r"\.rankveil-([0-9a-f]{16})\.journal")
_TEMPORARY = re.compile(r"\.rankveil-[0-9a-f]{16}-\d+\.tmp")
_TRIAL = re.compile(r"\.rankveil-[0-9a-f]{16}\.tmp")
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_LARGEST = 1 << 20

_DROP = "drop"
"""Nothing was decided, or everything was done: only temporaries are left."""


@dataclass(frozen=True)
class Renaming:
    """A file that gets its name; what stood there has a second name meanwhile, if there was something."""

    target: str
    temporary: str
    kept: str | None
    mode: int


@dataclass(frozen=True)
class _Part:
    """The part of a journal in one folder."""

    path: str
    handle: int
    folder: int
    """The inode of its folder."""
    begun: int
    """Its size while nothing is decided."""


class Journal:
    """The journal of one program that writes several files together."""

    def __init__(self) -> None:
        self._name = secrets.token_hex(8)
        self._given: list[str] = []
        self._parts: dict[str, _Part] = {}
        self._decided = False

    def temporary(self, folder: str) -> str:
        """A new hidden name in a folder; with the first one there, what killed programs left is settled."""
        if folder not in self._parts:
            self._enter(folder)
        self._given.append(os.path.join(folder, f".rankveil-{self._name}-{len(self._given)}.tmp"))
        return self._given[-1]

    def decide(self, renamings: Sequence[Renaming], question: Question | None) -> None:
        """From here on the files get their names, unless the question is answered with no."""
        first, *others = self._parts
        for folder in (*others, first):
            part = self._parts[folder]
            entry: dict[str, Any] = {
                "files": [_entry(each) for each in renamings if os.path.dirname(each.target) == folder]
            }
            if folder == first:
                entry |= {"question": question}
                entry |= {"others": [os.path.relpath(self._parts[other].path, folder) for other in others]}
                self._decided = True
            else:
                entry |= {"first": os.path.relpath(self._parts[first].path, folder)}
                entry |= {"folder of first": self._parts[first].folder}
            _add(part.handle, self._name, part.folder, entry)
            os.fsync(part.handle)
            sync_folder(folder)

    def take_back(self, renamed: Sequence[Renaming]) -> None:
        """Undo the renamings; where that is not possible, as in a folder that has gone, the next program does it."""
        if self._decided:
            with suppress(OSError):  # a full disk
                _add(self._first.handle, self._name, self._first.folder, {"back": True})
        if undone(renamed):
            self.withdraw()

    def withdraw(self) -> None:
        """All files have their new names, or all their old ones: there is nothing more to decide."""
        if self._decided:
            os.ftruncate(self._first.handle, self._first.begun)
            self._decided = False

    def close(self) -> None:
        """Leave nothing behind, unless what was decided could not be brought to an end: then the next program does."""
        if not self._decided:
            for path in self._given:
                remove(path)
            for part in reversed(self._parts.values()):  # the one that others point to at last
                remove(part.path)
        for part in self._parts.values():
            os.close(part.handle)
        self._parts.clear()
        self._given.clear()

    @property
    def _first(self) -> _Part:
        return next(iter(self._parts.values()))

    def _enter(self, folder: str) -> None:
        settle(folder)
        path = os.path.join(folder, f".rankveil-{self._name}.journal")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE)
        inode = os.stat(folder).st_ino
        self._parts[folder] = _Part(path, handle, inode, 0)
        if not _locked(handle, path, without=True):  # somebody who settles took it for one that was left behind
            os.close(self._parts.pop(folder).handle)
            return self._enter(folder)
        self._parts[folder] = _Part(path, handle, inode, _add(handle, self._name, inode, {"begun": True}))
        os.fsync(handle)  # before there is a temporary
        return None


def settle(folder: str, answer: Answer = lambda question: None) -> tuple[str, ...]:
    """Finish or undo what killed programs of this user left in a folder that is written; what is at work stays.

    It never fails. What was found and left alone comes back, for people.
    """
    notes: list[str] = []
    with suppress(OSError):
        names = sorted(name for name in os.listdir(folder) if name.startswith(".rankveil-"))
        for name in filter(_TRIAL.fullmatch, names):
            _remove_trial(os.path.join(folder, name))
        for name in filter(_JOURNAL.fullmatch, names):
            with suppress(OSError):
                note = _settle(os.path.join(folder, name), answer)
                notes += [f"{os.path.join(folder, name)}: {note}"] if note else []
    return tuple(notes)


def unfinished(folder: str) -> Iterator[tuple[list[str], Question | None]]:
    """What killed programs of this user had decided in a folder and not brought to an end: names, and the question.

    Nothing is changed.
    """
    with suppress(OSError):
        for name in filter(_JOURNAL.fullmatch, sorted(os.listdir(folder))):
            with suppress(OSError):
                found = _unfinished(os.path.join(folder, name))
                if found is not None:
                    yield found


def remove(path: str) -> None:
    """Remove a file if it is there."""
    with suppress(OSError):
        os.unlink(path)


def sync_folder(folder: str) -> None:
    """Make new names last through a power cut, where the system offers that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def undone(renamed: Sequence[Renaming]) -> bool:
    """Give back their places to the files that stood there before; whether all of them have them."""
    done = 0
    for file in reversed(renamed):
        with suppress(OSError):
            os.replace(file.kept, file.target) if file.kept else os.unlink(file.target)
            done += 1
    return done == len(renamed)


def _settle(path: str, answer: Answer) -> str:
    """Bring a part of a journal to its end; or why it was left alone, when people should know that."""
    found = os.lstat(path)
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return ""
    foreign = (
        "this journal was not sealed with your key, so it was ignored: your programs did not write it here, or could "
        "not keep their key; delete it, and the files of its name that end in .tmp"
    )
    if not is_private(found):
        return foreign
    handle = os.open(path, os.O_RDWR | _NO_LINK)
    try:
        if not is_private(os.fstat(handle)) or not _locked(handle, path, without=False):
            return ""
        if found.st_size == 0:  # killed before anything was written with it
            remove(path)
            return ""
        entries = _entries(handle, path)
        if entries is None:
            return foreign
        wanted = _wanted(path, entries, answer)
        folder, files = os.path.dirname(path), entries[1]["files"] if len(entries) > 1 else []
        if wanted is None and _superseded(folder, files):
            wanted = _DROP
        if wanted is None:
            return (
                "a program was stopped while it was writing files together with a table or with another folder; the "
                "same command again finishes that"
            )
        if wanted != _DROP and not _carried_out(folder, files, forward=wanted is True):
            return "the files of this journal have changed since, so it was ignored; delete it, and its .tmp files"
        temporary = re.compile(re.escape(os.path.basename(path).removesuffix(".journal")) + r"-\d+\.tmp")
        for name in filter(temporary.fullmatch, os.listdir(folder)):
            remove(os.path.join(folder, name))
        others = entries[1].get("others", ()) if len(entries) > 1 else ()
        if wanted == _DROP or not any(os.path.lexists(os.path.join(folder, other)) for other in others):
            remove(path)
        return ""
    finally:
        os.close(handle)


def _unfinished(path: str) -> tuple[list[str], Question | None] | None:
    handle = os.open(path, os.O_RDONLY | _NO_LINK)
    try:
        entries = _entries(handle, path) if is_private(os.fstat(handle)) else None
        if entries is None or len(entries) < 2 or not _locked(handle, path, without=False, alone=False):
            return None
        asked: list[Question] = []
        if _wanted(path, entries, lambda question: asked.append(question)) == _DROP:
            return None
        return [file["target"] for file in entries[1]["files"]], asked[0] if asked else None
    finally:
        os.close(handle)


def _wanted(path: str, entries: Sequence[Mapping[str, Any]], answer: Answer) -> bool | str | None:
    """Whether the files are to have their new names or their old ones; None when it cannot be found out here."""
    if len(entries) < 2:
        return _DROP
    decision = entries[1]
    if "first" in decision:
        first = os.path.normpath(os.path.join(os.path.dirname(path), decision["first"]))
        try:
            if os.stat(os.path.dirname(first)).st_ino != decision["folder of first"]:
                return None
            handle = os.open(first, os.O_RDONLY | _NO_LINK)
        except FileNotFoundError:
            return _DROP if os.path.isdir(os.path.dirname(first)) else None
        except OSError:
            return None
        try:
            told = _entries(handle, first)
        finally:
            os.close(handle)
        return None if told is None or (len(told) > 1 and "first" in told[1]) else _wanted(first, told, answer)
    if len(entries) > 2:
        return False
    return True if decision["question"] is None else answer(decision["question"])


def _carried_out(folder: str, files: Sequence[Mapping[str, Any]], *, forward: bool) -> bool:
    """Bring all files to their new state or all to their old one; False when they are not those of the journal."""
    steps: list[tuple[str, str, int]] = []
    outdated = False
    for file in files:
        own = all(_TEMPORARY.fullmatch(name) for name in (file["temporary"], file["kept"]) if name)
        if not own or os.path.basename(file["target"]) != file["target"]:
            return False
        target, temporary = os.path.join(folder, file["target"]), os.path.join(folder, file["temporary"])
        kept = os.path.join(folder, file["kept"]) if file["kept"] else ""
        waits, now = _identity(temporary), _identity(target)
        if waits not in (None, file["new"]):
            return False
        if forward and waits is not None:
            outdated |= now != file["old"]  # somebody has written there since
            steps.append((temporary, target, file["mode"]))
        elif not forward and waits is None and now == file["new"]:
            if kept and _identity(kept) != file["aside"]:
                return False
            steps.append((kept, target, -1))
    for source, target, mode in [] if outdated else steps:
        if mode >= 0:
            os.chmod(source, mode)
        os.replace(source, target) if source else os.unlink(target)
    sync_folder(folder)
    return True


def _superseded(folder: str, files: Sequence[Mapping[str, Any]]) -> bool:
    """Whether somebody has written since what the journal was to write."""
    return any(_identity(os.path.join(folder, file["target"])) not in (file["old"], file["new"]) for file in files)


def _entry(file: Renaming) -> dict[str, Any]:
    """What a journal says of a file: plain names, and by what the files are known again."""
    return {
        "target": os.path.basename(file.target),
        "temporary": os.path.basename(file.temporary),
        "kept": file.kept and os.path.basename(file.kept),
        "mode": file.mode,
        "new": _identity(file.temporary),
        "old": _identity(file.target),
        "aside": file.kept and _identity(file.kept),
    }


def _identity(path: str) -> list[int] | None:
    """By what a file is known again, through renaming too; None when there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return [found.st_ino, found.st_size, found.st_mtime_ns] if stat.S_ISREG(found.st_mode) else []


def _add(handle: int, name: str, folder: int, entry: Mapping[str, Any]) -> int:
    """Write one more line of a journal; how long that is."""
    content = json.dumps(entry)
    line = f"{seal('journal', _bound(name, folder, content))} {content}\n".encode()
    if os.write(handle, line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return len(line)


def _entries(handle: int, path: str) -> list[dict[str, Any]] | None:
    """What a journal says, without a last line that was cut off; None when it is not sealed for its folder."""
    found = _JOURNAL.fullmatch(os.path.basename(path))
    folder = os.stat(os.path.dirname(path)).st_ino
    *lines, _ = os.read(handle, _LARGEST).split(b"\n")
    made = []
    for line in lines:
        sealed, _, content = line.decode("utf-8", "replace").partition(" ")
        if found is None or not is_sealed("journal", _bound(found[1], folder, content), sealed):
            return None
        made.append(json.loads(content))
    return made or None


def _bound(name: str, folder: int, content: str) -> bytes:
    """What is sealed: a line in the journal of this name, in this folder."""
    return f"{name} {folder} {content}".encode()


def _locked(handle: int, path: str, *, without: bool, alone: bool = True) -> bool:
    """Hold a journal until its handle is closed; False when another does, or it has gone.

    `without` is the answer where there are no such locks.
    """
    try:
        import fcntl

        fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return without
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False


def _remove_trial(path: str) -> None:
    """Remove the empty file by which a killed program tried whether it may write."""
    found = os.lstat(path)
    if found.st_size == 0 and stat.S_ISREG(found.st_mode):
        remove(path)
