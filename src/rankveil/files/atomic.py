"""Files that are written whole or not at all, one or several together, and a database's table with them."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from rankveil.errors import FileError
from rankveil.files.atomic_journal import PRIVATE, Journal, Question, Renaming, remove, sync_folder

_noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)


@dataclass(frozen=True)
class _Waiting:
    """A file that is written but does not have its name yet."""

    given: str
    target: str
    temporary: str
    mode: int


class Participant(Protocol):
    """Something beside files that is written with them or not at all, such as a table in a transaction."""

    committed: bool
    """Whether it can no longer be undone."""
    notes: tuple[str, ...]
    """What a person should know of it, once it is prepared."""
    told_as: str
    """What it is, for people."""
    question: Question
    """Once it is prepared: by what another program finds out whether it was committed."""

    def prepare(self) -> None:
        """Write everything where nobody sees it yet."""

    def commit(self) -> None:
        """Make it last; when this fails and `committed` is False, nothing was changed."""

    def abandon(self) -> None:
        """Undo what was prepared, whatever came of it; never fails."""


class Staged:
    """Several files written together or not at all, and with them at most one table of a database.

    `add` writes each at once to a temporary beside its target, readable by its owner alone. When the block
    ends well they get their modes and names in the order of adding; when it ends with an error they are
    removed, and files that stood there before are as they were. What `join` prepared is committed last, since it can
    still fail then, and the renaming of files can be undone. What a program leaves that is killed meanwhile is brought
    to one of these two ends by the next that writes there. No file is written through a symbolic link.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with Staged() as staged:
    ...         staged.add(f"{folder}/a.txt", lambda file: file.write(b"a"))
    ...         staged.add(f"{folder}/secret", lambda file: file.write(b"s"), mode=0o600)
    ...     sorted(os.listdir(folder))
    ['a.txt', 'secret']
    """

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._joined: Participant | None = None
        self._journal = Journal()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            self._waiting.clear()
            self._journal.close()
            if self._joined is not None and not self._joined.committed:
                self._joined.abandon()
            self._joined = None

    def join(self, participant: Participant) -> None:
        """Write something else together with the files; only one can join, since two could not be undone."""
        if self._joined is not None:
            raise FileError("only one table of a database can be written at a time")
        self._joined = participant
        participant.prepare()

    def add(self, path: str | os.PathLike[str], write: Callable[[BinaryIO], object], *, mode: int = 0o644) -> None:
        """Write one more file; its mode is lessened by the umask, but 0600 is kept as it is."""
        given = os.fspath(path)
        refuse_link(given)
        folder = os.path.realpath(os.path.dirname(given))
        target = os.path.join(folder, os.path.basename(given))
        if any(file.target == target for file in self._waiting):
            raise FileError(f"{given}: two outputs would have this name; give one of them another")
        with said_of(given):
            allowed = mode if mode == PRIVATE else mode_under_umask(folder, mode)
            temporary = self._journal.temporary(folder)
            with open(temporary, "xb", opener=_private) as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            self._waiting.append(_Waiting(given, target, temporary, allowed))

    def _commit(self) -> None:
        renamings: list[Renaming] = []
        done: list[Renaming] = []
        try:
            for file in self._waiting:
                with said_of(file.given):
                    renamings.append(Renaming(file.target, file.temporary, self._kept(file.target), file.mode))
            if renamings and self._several:
                with said_of(self._waiting[-1].given):
                    self._journal.decide(renamings, None if self._joined is None else self._joined.question)
            for file, renaming in zip(self._waiting, renamings, strict=True):
                with said_of(file.given):
                    os.chmod(file.temporary, file.mode)
                    done.append(renaming)
                    os.replace(file.temporary, file.target)
            if self._joined is not None:
                self._joined.commit()
        except BaseException:
            if self._in_place():  # Ctrl-C after the last step
                self._settled()
            else:
                self._journal.take_back([each for each in done if not os.path.lexists(each.temporary)])
            raise
        self._settled()

    def _settled(self) -> None:
        """Everything is in its place: make it last, and tell whoever asked what was written."""
        noted = _noted.get()
        if noted is not None:
            noted.extend(file.given for file in self._waiting)
            if self._joined is not None:
                noted.append(self._joined.told_as)
        for folder in {os.path.dirname(file.target) for file in self._waiting}:
            sync_folder(folder)
        self._journal.withdraw()

    @property
    def _several(self) -> bool:
        """Whether there is more than one thing, so that some could be written without the others."""
        return len(self._waiting) + (self._joined is not None) > 1

    def _kept(self, target: str) -> str | None:
        """A second name for the file that stands at `target`, or None when there is none, or nothing to undo."""
        if not self._several or not os.path.lexists(target):
            return None
        kept = self._journal.temporary(os.path.dirname(target))
        try:
            os.link(target, kept)
        except OSError:  # a file system without hard links
            with open(kept, "xb", opener=_private) as copy, open(target, "rb") as file:
                shutil.copyfileobj(file, copy)
            shutil.copymode(target, kept)
        return kept

    def _in_place(self) -> bool:
        """Whether the last step was taken."""
        if self._joined is not None:
            return self._joined.committed
        return any(  # of a folder that has gone neither is there
            os.path.lexists(file.target) and not os.path.lexists(file.temporary) for file in self._waiting[-1:]
        )


@contextmanager
def noting() -> Iterator[list[str]]:
    """A list of what is written meanwhile, whole and to stay."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


@contextmanager
def said_of(path: str, *, deed: str = "written") -> Iterator[None]:
    """Turn the system's refusal (full disk, no permission) into one sentence about `path`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0] or type(error).__name__
        raise FileError(f"{path}: cannot be {deed}: {reason[0].lower()}{reason[1:]}") from error


def refuse_link(path: str, told: str | None = None) -> None:
    """Refuse to write through a symbolic link: one that came with a folder may lead anywhere."""
    if os.path.islink(path):
        raise FileError(f"{told or path}: is a symbolic link to {os.path.realpath(path)}; give that name itself")


def mode_under_umask(folder: str, mode: int) -> int:
    """The mode that a new file gets in `folder`; fails as writing there would.

    An empty file tells: asking for the umask itself would change it for every thread.
    """
    probe = _fresh(folder)
    try:  # from before the file is there: Ctrl-C strikes as soon as it is made
        handle = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            return os.fstat(handle).st_mode & 0o777
        finally:
            os.close(handle)
    finally:
        remove(probe)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), PRIVATE)


def _fresh(folder: str) -> str:
    return os.path.join(folder, f".rankveil-{secrets.token_hex(8)}.tmp")
