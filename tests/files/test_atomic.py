"""Files appear whole, with the right mode, together, or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest

from rankveil.errors import FileError, FormatError
from rankveil.files import Staged, check_writable, save


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Root may write anywhere, so give that up for a while."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def new(file: BinaryIO) -> None:
    file.write(b"new")


def stage(*outputs: tuple[Path, Callable[[BinaryIO], None]], then: Callable[[], None] = lambda: None) -> None:
    with Staged() as staged:
        for path, write in outputs:
            staged.add(path, write)
        then()


def half_way(file: BinaryIO) -> None:
    file.write(b"half")
    file.flush()
    raise RuntimeError("stopped")


def test_a_writer_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(RuntimeError), Staged() as staged:
        staged.add(path, half_way)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "old")]


def test_all_files_appear_together_or_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    a, b, c = (tmp_path / name for name in "abc")
    with pytest.raises(RuntimeError):
        stage((a, new), (b, new), (c, half_way))
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "old")]
    waiting: list[str] = []
    stage((a, new), (b, new), then=lambda: waiting.append(a.read_text()))
    assert waiting == ["old"]
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"a": "new", "b": "new"}


def test_a_rename_that_fails_takes_the_earlier_ones_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    a, b, c = (tmp_path / name for name in "abc")
    with pytest.raises(FileError, match="c: cannot be written: is a directory"):
        stage((a, new), (b, new), (c, new), then=c.mkdir)
    assert (tmp_path / "a").read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "c"]
    c.rmdir()
    rename = os.replace

    def refused(source: str, target: str) -> None:
        if target.endswith("c") and source.endswith(".tmp"):
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(FileError, match="c: cannot be written: input/output error"):
        stage((a, new), (b, new), (c, new))
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "old")]


@pytest.mark.parametrize(
    ("mask", "asked", "got"),
    [
        (0o022, 0o644, 0o644),
        (0o077, 0o644, 0o600),
        (0o027, 0o666, 0o640),
        (0o000, 0o600, 0o600),
        (0o377, 0o600, 0o600),
    ],
)
def test_modes_follow_the_umask_but_for_a_private_file(tmp_path: Path, mask: int, asked: int, got: int) -> None:
    with umask(mask), Staged() as staged:
        staged.add(tmp_path / "a", new, mode=asked)
    assert mode(tmp_path / "a") == got


def test_a_private_file_replaces_a_public_one(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o666)
    with Staged() as staged:
        staged.add(path, new, mode=0o600)
    assert mode(path) == 0o600


def test_temporaries_are_private_while_they_are_written(tmp_path: Path) -> None:
    seen: list[int] = []

    def look(file: BinaryIO) -> None:
        seen.extend(mode(entry) for entry in tmp_path.iterdir())
        file.write(b"new")

    with umask(0), Staged() as staged:
        staged.add(tmp_path / "a", look)
        seen.extend(mode(entry) for entry in tmp_path.iterdir())
    assert seen == [0o600] * 4  # the file and the journal beside it
    assert mode(tmp_path / "a") == 0o644


def test_two_outputs_cannot_share_a_name(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(FileError, match="two outputs"):
        stage((tmp_path / "a", new), (tmp_path / "link" / "a", new))
    assert [entry.name for entry in tmp_path.iterdir()] == ["link"]


@pytest.mark.parametrize("there", [True, False])
def test_nothing_is_written_through_a_link(tmp_path: Path, there: bool) -> None:
    real = tmp_path / "elsewhere" / "real.csv"
    real.parent.mkdir()
    if there:
        real.write_text("mine")
    (tmp_path / "link.csv").symlink_to(real)
    for write in (
        lambda path: save(pa.table({"a": [1]}), path),
        lambda path: stage((path, new)),
        lambda path: check_writable(f"sqlite:///{path}?table=t"),
    ):
        with pytest.raises(FileError, match=r"link\.csv.*: is a symbolic link to .*real\.csv; give that name itself"):
            write(tmp_path / "link.csv")
    assert [path.read_text() for path in real.parent.iterdir()] == (["mine"] if there else [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link.csv"]


@pytest.mark.parametrize(
    "ending",
    [
        "csv",
        "parquet",
        "sav",
        "xlsx",
        *(pytest.param(each, marks=pytest.mark.thorough) for each in ("feather", "dta", "zsav")),
    ],
)
def test_a_full_disk_gets_one_sentence(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, unmeasured: dict[str, str], ending: str
) -> None:
    """A limit on the size of files makes writing fail half-way, as a full disk does."""
    for needed, package in (("sav", "pyreadstat"), ("xlsx", "openpyxl")):
        if needed in ending:
            pytest.importorskip(package)
    path = tmp_path / f"t.{ending}"
    path.write_text("old")
    program = f"""
import os, resource, sys, tempfile
import numpy as np, pyarrow as pa
from rankveil.errors import FileError
from rankveil.files import save
table = pa.table({{"x": np.random.default_rng(0).random(200_000)}})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save(table, {str(path)!r})
except FileError as error:
    print(error, os.listdir(tempfile.gettempdir()))
"""
    environment = {**unmeasured, "TMPDIR": str(tmp_path_factory.mktemp("temporary"))}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == f"{path}: cannot be written: file too large []\n"
    assert done.stderr == ""
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(path.name, "old")]


def test_paths_that_cannot_be_written_are_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    for name, sentence in {
        "none/t.csv": "there is no folder .*none; make it first",
        "folder.csv": "is a folder",
        "pipe.csv": "is not an ordinary file",
    }.items():
        with pytest.raises(FileError, match=sentence):
            check_writable(tmp_path / name)
        with pytest.raises(FileError, match=rf"^sqlite:///.*\?table=t: {sentence}"):
            check_writable(f"sqlite:///{tmp_path / name}?table=t")
    for name in ("t.sas7bdat", "t.xpt", "t.manifest.json"):  # what is read, or is no table, and not written
        with pytest.raises(FormatError, match=r"the format \.\w+ cannot be written; use one of .*\.csv.*\.xlsx"):
            check_writable(tmp_path / name)
    check_writable(tmp_path / "t.manifest.json", table=False)
    for ending in ("csv", "parquet", "xlsx", "dta", "sav"):
        check_writable(tmp_path / f"t.{ending}")
    check_writable(f"sqlite:///{tmp_path}/t.db?table=t")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder.csv", "pipe.csv"]


def test_protected_folders_and_files_are_refused() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "old.csv").write_text("a\n")
        (folder / "old.csv").chmod(0o444)
        folder.chmod(0o555)
        with ordinary_user():
            with pytest.raises(FileError, match="cannot be written: permission denied"):
                check_writable(folder / "t.csv")
            with pytest.raises(FileError, match="write-protected"):
                check_writable(folder / "old.csv")
            with pytest.raises(FileError, match="cannot be written: permission denied"), Staged() as staged:
                staged.add(folder / "t.csv", new)
        folder.chmod(0o755)


def test_a_name_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(pa.table({"a": [1]}), "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a\n1\n"


def test_stopping_just_after_the_trial_file_is_made_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_file = os.open

    def stopped(path: str, *rest: int) -> int:
        os.close(open_file(path, *rest))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", stopped)
    with pytest.raises(KeyboardInterrupt):
        check_writable(tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_stopping_after_the_last_renaming_takes_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.replace

    def stopped(source: str, target: str) -> None:
        rename(source, target)
        if target.endswith("last"):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        stage((tmp_path / "first", new), (tmp_path / "last", new))
    assert sorted((file.name, file.read_text()) for file in tmp_path.iterdir()) == [("first", "new"), ("last", "new")]
