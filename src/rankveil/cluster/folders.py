"""The folder of a release in parts: it gets its name when all of its files are written, and replaces an earlier one."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from rankveil import files
from rankveil.errors import FileError, ParameterError
from rankveil.files import registry
from rankveil.files.atomic import refuse_link
from rankveil.files.folders import ENDING
from rankveil.partitions import places

_SENTENCE = b"rankveil is writing a release here; it is incomplete as long as this object is there.\n"


class Folder:
    """A folder of Parquet files that gets its name when all of them are written.

    An earlier release that has the name has a hidden one meanwhile, and goes when the new one has its place. At an
    address nothing is replaced. An object store has no renaming: there the files are copied to their names, beside a
    mark that says that they are incomplete, and the manifest comes last; when anything fails all of it is removed.
    """

    def __init__(self, target: str, *, name: str) -> None:
        self.far = places.is_address(target)
        self._objects = self.far and not places.renames(target)
        self.target = places.absolute(target)
        above, own = self.target.rpartition("/")[::2] if self.far else os.path.split(self.target)
        self.staging = places.joined(above, f".{own}.{name}")
        self._kept = places.joined(above, f".{own}.replaced")
        self._manifest: tuple[str, str] | None = None
        self._written: list[str] = []
        self._renamed = False
        self.left: list[str] = []
        """What could not be removed at an address, for people."""
        self.committed = False
        self.notes: tuple[str, ...] = ()
        self.told_as = target
        self.question: Mapping[str, str] = {"folder": self.target, "staging": self.staging, "kept": self._kept}

    def check(self) -> None:
        """Refuse a place that is taken, or named like another format, before anything is done."""
        ending = registry.ending_of(self.target.rpartition("/")[2] if self.far else self.target)
        if ending in registry.formats() and ending != registry.FOLDER_ENDING:
            raise ParameterError(
                f"{self.target}: on a cluster a release is a folder of Parquet files; give it a name that ends in "
                f"{registry.FOLDER_ENDING}"
            )
        if self._objects and "/" not in self.target.partition("://")[2]:
            raise ParameterError(f"{self.target}: is a whole bucket; name a folder in it, as in {self.target}/release")
        if not self.far:
            refuse_link(self.target)
            files.bring_back(self.target, self._kept)
        if places.exists(self.target) and (self.far or not _is_release(self.target)):
            why = "" if self.far else " and holds something else than Parquet files"
            raise FileError(f"{self.target}: is there already{why}; name another folder, or delete it first")
        if self._manifest is not None:
            check_new(self._manifest[0])

    def make(self, *, fresh: bool) -> None:
        """Make the folder in which the parts are written; at an object store try whether that is allowed.

        On a disk, what lies there already is taken over from an earlier run only.
        """
        if self._objects:
            places.put_key(places.joined(self.staging, ".rankveil"), _SENTENCE)
            return
        if not self.far and (fresh or os.path.islink(self.staging)):
            with suppress(OSError):
                os.unlink(self.staging) if os.path.islink(self.staging) else shutil.rmtree(self.staging)
        places.make_folder(self.staging)

    def prepare(self) -> None:
        """Everything was written already."""

    def publish(self, path: str, manifest: str) -> None:
        """A manifest that goes to an address with the folder."""
        self._manifest = path, manifest

    def commit(self) -> None:
        """Give the folder its name."""
        self.check()
        try:
            if self.far:
                self._copy() if self._objects else self._rename()
                self._put_manifest()
            else:
                self._put_manifest()
                if os.path.lexists(self.target):
                    places.move(self.target, self._kept)
                places.move(self.staging, self.target)
            self.committed = True
        except BaseException:
            moved = os.path.lexists(self.target) and not os.path.lexists(self.staging)
            self.committed = moved and not self.far  # Ctrl-C after the last step
            if not self.committed:
                places.to_its_end(self._take_back)
            raise
        finally:
            if not self.far:
                files.bring_back(self.target, self._kept)
        if self._objects:
            places.to_its_end(self.discard)
            self.notes = (self.said_of_left(),) if self.left else ()

    def abandon(self) -> None:
        """Nothing: whoever made the parts keeps them, to resume the work, or discards them."""

    def discard(self) -> None:
        """Remove the folder in which the parts were written; what could not be removed is in `left`."""
        try:
            if self._objects:
                self.left += places.remove_keys(places.keys_below(self.staging))
            elif places.exists(self.staging):
                places.remove_folder(self.staging)
        except Exception:  # an error of its own would hide the one that matters
            self.left.append(f"any key with the prefix {self.staging}/" if self._objects else self.staging)

    def said_of_left(self) -> str:
        """What is to be done about what could not be removed."""
        return f"could not be removed, and must be deleted: {', '.join(self.left)}"

    def part(self, number: int) -> str:
        """Where the release of a partition lies meanwhile."""
        return places.joined(self.staging, f"part-{number:05d}.parquet")

    def _copy(self) -> None:
        """Copy the parts to their names at an object store, beside a mark as long as they are incomplete."""
        parts = places.parquet_files(self.staging)
        mark = places.joined(self.target, places.MARK)
        self._put(mark, _SENTENCE)
        for part in parts:
            self._written.append(places.joined(self.target, part.rpartition("/")[2]))
            places.to_its_end(partial(places.copy_key, part, self._written[-1]))
        places.to_its_end(partial(places.remove, mark))

    def _rename(self) -> None:
        self._renamed = True
        places.to_its_end(partial(places.move, self.staging, self.target))

    def _put_manifest(self) -> None:
        if self._manifest is not None:
            self._put(self._manifest[0], self._manifest[1].encode("utf-8"))

    def _put(self, path: str, content: bytes) -> None:
        self._written.append(path)
        places.to_its_end(partial(places.put_key, path, content))

    def _take_back(self) -> None:
        """Undo what was done of a commit, the mark at last: what remains with it is not taken for whole."""
        mark = places.joined(self.target, places.MARK)
        self.left += places.remove_keys(key for key in self._written if key != mark)
        if mark in self._written:
            self.left += places.remove_keys([mark]) if not self.left else places.that_may_remain([mark])
        if self._renamed:
            try:
                if not places.exists(self.staging):
                    places.move(self.target, self.staging)
            except Exception:  # an error of its own would hide the one that matters
                self.left.append(self.target)
        self._written, self._renamed = [], False


def check_target(path: str) -> None:
    """Refuse a place where no release in parts can be written."""
    Folder(path, name="").check()


def check_new(path: str) -> None:
    """Refuse a file at an address that is there already: nothing is replaced there."""
    if places.exists(path):
        raise FileError(f"{path}: is there already; give another name, or delete it first")


def _is_release(path: str) -> bool:
    """Whether there is a Parquet file, or a folder with nothing but such files."""
    if not os.path.isdir(path):
        return path.lower().endswith(ENDING) and os.path.isfile(path)
    with os.scandir(path) as entries:
        return all(
            entry.name.lower().endswith(ENDING)
            and not entry.name.startswith(".")
            and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)
            for entry in entries
        )
