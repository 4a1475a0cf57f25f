"""The folder of an engine in the scratch folder, and those that killed programs left there.

It may hold original data, and a program that is killed cannot remove it. So it says whose it is, and the next engine
removes those whose owner has gone. A scratch folder is often shared by several machines: of another one nobody here
can tell who has gone, and what it left stays.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from typing import Any

_PREFIX, _OWNER = "rankveil-engine-", "owner"


class Own:
    """A new folder that its owner alone can read."""

    def __init__(self, scratch: str) -> None:
        remove_left(scratch)
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=scratch)
        self._handle = -1
        try:
            self._handle = os.open(os.path.join(self.path, _OWNER), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            _locked(self._handle)  # before it says anything: only a folder that says whose it is can be removed
            os.write(self._handle, json.dumps({"host": socket.gethostname(), "pid": os.getpid()}).encode())
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the folder; once is enough."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def remove_left(scratch: str) -> None:
    """Remove the folders of this user's engines of this machine whose processes have gone; never fails."""
    with suppress(OSError):
        for name in os.listdir(scratch):
            if name.startswith(_PREFIX):
                with suppress(OSError, ValueError, KeyError, TypeError):
                    _remove(os.path.join(scratch, name))


def _remove(folder: str) -> None:
    found = os.lstat(folder)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        return
    handle = os.open(os.path.join(folder, _OWNER), os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        owner = json.loads(os.read(handle, 4096))
        # the lock tells of a process in another container, whose number says nothing here
        if owner["host"] == socket.gethostname() and not _runs(owner["pid"]) and _locked(handle):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def _runs(pid: Any) -> bool:
    """Whether there is a process of that number, be it another one by now."""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _locked(handle: int) -> bool:
    """Hold a file until its handle is closed; False when another process does, True where there are no such locks."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        pass
    return True
