"""A journal beside files that are written together, by which the next program finishes or undoes a killed one's work.

It lies hidden in the folder of the first file, and in each other folder something that points to it; its writer holds
it locked. While it is empty nothing is decided: temporaries that are found are removed. Then it lists what gets which
name: from there on the new files take their places, whoever does it. A table of a database that was to be written
with them decides instead, by what came of its transaction.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

PRIVATE = 0o600

Question = Mapping[str, str]
"""What to ask to find out whether something beside files was written, such as a table and its transaction."""

Answer = Callable[[Question], bool | None]
"""Whether it was written; None when that cannot be told here."""

_BACK = b"back\n"
"""The end of a journal whose writer began to undo everything."""

_JOURNAL = re.compile(r"\.rankveil-([0-9a-f]{16})\.journal")
_TRIAL = re.compile(r"\.rankveil-[0-9a-f]{16}\.tmp")


@dataclass(frozen=True)
class Renaming:
    """A file that gets its name; what stood there has a second name meanwhile, if there was something."""

    target: str
    temporary: str
    kept: str | None
    mode: int


class Journal:
    """The journal of one program that writes several files together."""

    def __init__(self) -> None:
        self._name = secrets.token_hex(8)
        self._given: list[str] = []
        self._handles: dict[str, int] = {}
        self._decided = False

    def temporary(self, folder: str) -> str:
        """A new hidden name in a folder; with the first one there, what killed programs left is settled."""
        if folder not in self._handles:
            self._enter(folder)
        self._given.append(os.path.join(folder, f".rankveil-{self._name}-{len(self._given)}.tmp"))
        return self._given[-1]

    def decide(self, renamings: Sequence[Renaming], question: Question | None) -> None:
        """From here on the files get their names, unless the question is answered with no."""
        first, handle = next(iter(self._handles.items()))
        files = [asdict(each) for each in renamings]
        for file in files:  # as seen from the journal, so that a folder that is moved takes it along
            file |= {what: os.path.relpath(file[what], first) for what in ("target", "temporary", "kept") if file[what]}
        self._decided = True
        os.write(handle, json.dumps({"files": files, "question": question}).encode() + b"\n")
        os.fsync(handle)
        sync_folder(first)

    def take_back(self, renamed: Sequence[Renaming]) -> None:
        """Undo the renamings; where that is not possible, as in a folder that has gone, the next program does it."""
        if self._decided:
            with suppress(OSError):  # a full disk
                os.write(next(iter(self._handles.values())), _BACK)
        if undone(renamed):
            self.withdraw()

    def withdraw(self) -> None:
        """All files have their new names, or all their old ones: there is nothing more to decide."""
        if self._decided:
            os.ftruncate(next(iter(self._handles.values())), 0)
            self._decided = False

    def close(self) -> None:
        """Leave nothing behind, unless what was decided could not be brought to an end: then the next program does."""
        if not self._decided:
            for path in self._given:
                remove(path)
            for folder in reversed(self._handles):  # the one that others point to at last
                remove(self._path(folder))
        for handle in self._handles.values():
            os.close(handle)
        self._handles.clear()
        self._given.clear()

    def _enter(self, folder: str) -> None:
        settle(folder)
        path = self._path(folder)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE)
        self._handles[folder] = handle
        if not _locked(handle, path, without=True):  # somebody who settles took it for one that was left behind
            os.close(self._handles.pop(folder))
            return self._enter(folder)
        first = next(iter(self._handles))
        if first != folder:
            os.write(handle, json.dumps({"see": os.path.relpath(self._path(first), folder)}).encode())
        return None

    def _path(self, folder: str) -> str:
        return os.path.join(folder, f".rankveil-{self._name}.journal")


def settle(folder: str, answer: Answer = lambda question: None) -> None:
    """Finish or undo what killed programs of this user left in a folder; what is at work stays, and never fails."""
    with suppress(OSError):
        names = [name for name in os.listdir(folder) if name.startswith(".rankveil-")]
        for name in filter(_TRIAL.fullmatch, names):
            _remove_trial(os.path.join(folder, name))
        for name in filter(_JOURNAL.fullmatch, names):
            with suppress(OSError):
                _settle(os.path.join(folder, name), answer)


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


def _settle(path: str, answer: Answer) -> None:
    handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        if not _own(os.fstat(handle)) or not _locked(handle, path, without=False):
            return
        folder = os.path.dirname(path)
        told = _told(handle)
        if "see" in told:
            first = os.path.join(folder, told["see"])
            with suppress(FileNotFoundError):
                _settle(first, answer)
            if os.path.lexists(first):
                return
        elif "files" in told and not _carried_out(folder, told, answer):
            return
        found = _JOURNAL.fullmatch(os.path.basename(path))
        assert found is not None
        for name in os.listdir(folder):
            if name.startswith(f".rankveil-{found[1]}-"):
                remove(os.path.join(folder, name))
        remove(path)
    finally:
        os.close(handle)


def _carried_out(folder: str, told: Mapping[str, Any], answer: Answer) -> bool:
    """Bring all files to their new state or all to their old one; False when it cannot be told which."""

    def place(relative: str) -> str:
        return os.path.normpath(os.path.join(folder, relative))

    files = [
        Renaming(place(file["target"]), place(file["temporary"]), file["kept"] and place(file["kept"]), file["mode"])
        for file in told["files"]
    ]
    wanted = not told["back"] and (told["question"] is None or answer(told["question"]))
    if wanted is None:
        return False
    if wanted:
        for file in files:
            with suppress(FileNotFoundError):  # it has its name already
                os.chmod(file.temporary, file.mode)
                os.replace(file.temporary, file.target)
    else:
        undone([file for file in files if not os.path.lexists(file.temporary)])
    for each in {os.path.dirname(file.target) for file in files}:
        sync_folder(each)
    for file in files:  # those in other folders are not found by their names
        for left in (file.temporary, file.kept):
            remove(left or "")
    return True


def undone(renamed: Sequence[Renaming]) -> bool:
    """Give back their places to the files that stood there before; whether all of them have them."""
    done = 0
    for file in reversed(renamed):
        with suppress(OSError):
            os.replace(file.kept, file.target) if file.kept else os.unlink(file.target)
            done += 1
    return done == len(renamed)


def _told(handle: int) -> dict[str, Any]:
    """What a journal says; nothing when it is empty or cut off."""
    with suppress(ValueError):
        decided, _, more = os.read(handle, 1 << 20).partition(b"\n")
        told = json.loads(decided)
        if isinstance(told, dict):
            return {**told, "back": more == _BACK}
    return {}


def _own(found: os.stat_result) -> bool:
    """Whether nobody else can have put it there."""
    mine = found.st_uid == os.geteuid() if hasattr(os, "geteuid") else True
    return stat.S_ISREG(found.st_mode) and mine and not found.st_mode & 0o077


def _locked(handle: int, path: str, *, without: bool) -> bool:
    """Hold a journal until its handle is closed; False when another does, or it has gone.

    `without` is the answer where there are no such locks.
    """
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
