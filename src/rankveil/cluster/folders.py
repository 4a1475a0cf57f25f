"""The folder of a release in parts: it gets its name when all of its files are written, and replaces an earlier one."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress

from rankveil import files
from rankveil.errors import FileError, ParameterError
from rankveil.files import registry
from rankveil.partitions import places


class Folder:
    """A folder of Parquet files that gets its name when all of them are written.

    An earlier release that has the name has a hidden one meanwhile, and goes when the new one has its place. At an
    address nothing is replaced: a place of objects has no renaming, and readers would find some files of each.
    """

    def __init__(self, target: str, *, name: str) -> None:
        found = places.absolute(target)
        self._far = places.is_address(target)
        self.target = os.path.realpath(found) if not self._far and os.path.islink(found) else found
        above, own = self.target.rpartition("/")[::2] if self._far else os.path.split(self.target)
        self.staging = places.joined(above, f".{own}.{name}")
        self._kept = places.joined(above, f".{own}.replaced")
        self._manifest: tuple[str, str] | None = None
        self.committed = False
        self.notes: tuple[str, ...] = ()
        self.told_as = target
        self.question: Mapping[str, str] = {"folder": self.target, "staging": self.staging, "kept": self._kept}

    def check(self) -> None:
        """Refuse a place that is taken, or named like another format, before anything is done."""
        ending = registry.ending_of(self.target.rpartition("/")[2] if self._far else self.target)
        if ending in registry.formats() and ending != registry.FOLDER_ENDING:
            raise ParameterError(
                f"{self.target}: on a cluster a release is a folder of Parquet files; give it a name that ends in "
                f"{registry.FOLDER_ENDING}"
            )
        if not self._far:
            files.bring_back(self.target, self._kept)
        if places.exists(self.target) and (self._far or not _is_release(self.target)):
            why = "" if self._far else " and holds something else than Parquet files"
            raise FileError(f"{self.target}: is there already{why}; name another folder, or delete it first")

    def prepare(self) -> None:
        """Everything was written already."""

    def publish(self, path: str, manifest: str) -> None:
        """A manifest that goes to an address with the folder."""
        self._manifest = path, manifest

    def commit(self) -> None:
        """Give the folder its name."""
        self.check()
        if self._manifest is not None:
            with places.open_output(self._manifest[0]) as file:
                file.write(self._manifest[1].encode("utf-8"))
        try:
            if not self._far and os.path.lexists(self.target):
                places.move(self.target, self._kept)
            places.move(self.staging, self.target)
            self.committed = True
        except BaseException:
            moved = os.path.lexists(self.target) and not os.path.lexists(self.staging)
            self.committed = moved and not self._far  # Ctrl-C after the last step
            if self._manifest is not None and not self.committed:
                with suppress(Exception):  # an error of its own would hide the one that matters
                    places.remove(self._manifest[0])
            raise
        finally:
            if not self._far:
                files.bring_back(self.target, self._kept)

    def abandon(self) -> None:
        """Remove what was written."""
        with suppress(Exception):  # what stays is hidden, and nobody reads it
            places.remove_folder(self.staging)

    def part(self, number: int) -> str:
        """Where the release of a partition lies meanwhile."""
        return places.joined(self.staging, f"part-{number:05d}.parquet")


def check_target(path: str) -> None:
    """Refuse a place where no release in parts can be written."""
    Folder(path, name="").check()


def _is_release(path: str) -> bool:
    """Whether there is a Parquet file, or a folder with nothing but such files."""
    if not os.path.isdir(path):
        return path.lower().endswith(places.ENDING) and os.path.isfile(path)
    with os.scandir(path) as entries:
        return all(
            entry.name.lower().endswith(places.ENDING)
            and not entry.name.startswith(".")
            and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)
            for entry in entries
        )
