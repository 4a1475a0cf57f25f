"""Full disks, folders that cannot be written or vanish, too little memory, Ctrl-C: one sentence, nothing by halves."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankveil import files, memory
from rankveil.errors import ClusterError
from rankveil.execute import in_workers
from rankveil.masking.register import REGISTER

MIB = 2**20
NOBODY = 65534
OLD = {"out.csv": "old release", "out.csv.manifest.json": "old manifest", "out.csv.secret.json": "old secret"}
MASK = ("mask", "original.csv", "-o", "out.csv", "--method", "rank_swap", "--json")
PAIR = ("original.csv", "masked.csv")
COMPARE = ("compare", "original.csv", "--methods", "rank_swap", "--at", "risk=0.3", "--utility", "um", "--workers", "1")


def table(rows: int, columns: int = 3) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({f"V{j}": rng.normal(size=rows) for j in range(columns)})


def write_tables(folder: Path, *, rows: int = 300, columns: int = 3) -> None:
    made = table(rows, columns)
    files.save(made, folder / "original.csv")
    files.save(
        pa.table([column.take(pa.array(np.arange(rows)[::-1])) for column in made.columns], names=made.column_names),
        folder / "masked.csv",
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    write_tables(folder)
    return folder


@pytest.fixture
def refused(commands: Any) -> Callable[..., str]:
    """A command that must be refused: one sentence, nothing on standard output, every file as it was."""

    def run(folder: Path, *argv: str | Path, **befalls: Any) -> str:
        before = contents(folder)
        made = commands.run(folder, *argv, **befalls)
        assert (made.code, made.out) == (2, ""), made.err
        assert made.err.startswith("rankveil: ")
        assert made.err.count("\n") == 1, made.err
        assert contents(folder) == before
        return str(made.err).removeprefix("rankveil: ").rstrip("\n")

    return run


# ---- disks and folders ----


@pytest.mark.parametrize("size", [0, 700, 5000])
def test_mask_on_a_full_disk_leaves_the_old_release(here: Path, refused: Any, size: int) -> None:
    """A limit on the size of files makes writing fail as a full disk does: of the secret, the manifest, the release."""
    for name, text in OLD.items():
        (here / name).write_text(text)
    said = refused(here, *MASK, size=size)
    assert said.startswith("out.csv")
    assert said.endswith(": cannot be written: file too large")


@pytest.mark.parametrize("verb", ["audit", "attack"])
def test_a_report_on_a_full_disk(here: Path, refused: Any, verb: str) -> None:
    said = refused(here, verb, *PAIR, "--report", "page.html", "--json", size=3000)
    assert said == "page.html: cannot be written: file too large"


def test_compare_on_a_full_disk_names_its_state(here: Path, commands: Any) -> None:
    whole = commands.run(here, *COMPARE, "--json")
    said = commands.run(here, *COMPARE, "--json", size=400)
    state = "original.csv.compare-state"
    assert (said.code, said.err) == (
        2,
        f"rankveil: {state}: cannot be written, where finished work of the comparison is kept: file too large\n",
    )
    assert set(contents(here)) == {*PAIR, state}
    assert commands.run(here, *COMPARE, "--json", "--resume").out == whole.out


@pytest.mark.thorough
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    write_tables(tmp_path, rows=20_000)
    (tmp_path / "disk").mkdir()
    program = 'mount -t tmpfs -o size=256k none disk && "$@"; code=$?; ls -A disk; exit $code'
    inside = [sys.executable, "-m", "rankveil", *("disk/out.csv" if word == "out.csv" else word for word in MASK)]
    made = subprocess.run(
        ["unshare", "-m", "sh", "-c", program, "sh", *inside], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if "unshare" in made.stderr or "mount" in made.stderr:
        pytest.skip("a small disk cannot be made here: that needs more rights")
    assert (made.returncode, made.stdout) == (2, "")
    assert made.stderr == "rankveil: disk/out.csv: cannot be written: no space left on device\n"


@pytest.fixture
def protected() -> Iterator[Path]:
    """A folder that can be read and not written; root could, so a test of root's is done as another user."""
    folder = Path(tempfile.mkdtemp(prefix="rankveil-"))
    write_tables(folder)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_folder_that_cannot_be_written(protected: Path, refused: Any) -> None:
    limits = {"user": NOBODY} if os.geteuid() == 0 else {}
    assert refused(protected, *MASK, **limits) == "out.csv: cannot be written: permission denied"
    said = refused(protected, *COMPARE, **limits)
    assert said == "original.csv.compare-state: cannot be written: permission denied"
    said = refused(protected, "audit", *PAIR, "--report", "page.html", **limits)
    assert said == "page.html: cannot be written: permission denied"


@pytest.mark.parametrize("name", ["in.csv", "in.parquet", "in.xlsx", "in.db"])
def test_a_file_that_vanishes_before_it_is_read(here: Path, commands: Any, name: str) -> None:
    (here / "original.csv").unlink()
    given = "sqlite:///in.db?table=t" if name == "in.db" else name
    files.save(table(50), here / name if name == given else f"sqlite:///{here}/in.db?table=t")
    before, said = contents(here), ""
    for time in range(1, 20):  # files are opened, and their folder is looked at, more than once
        made = commands.run(here, "mask", given, "-o", "out.csv", *MASK[4:], removed=[time, name])
        if made.code == 0:
            break
        assert (made.code, made.out, made.err.count("\n")) == (2, "", 1), made.err
        assert re.search("there is no such file|cannot be read|cannot be written: unable to open", made.err), made.err
        said = made.err
        (here / name).write_bytes(before[name])
        assert contents(here) == before
    assert said


def state_of(folder: Path) -> str:
    """Whether the release, its manifest and its secret are the old ones or new ones, all three."""
    files.check_writable(folder / "no.csv")  # whatever writes there settles what was left half-way
    found = {(folder / name).read_text() == text for name, text in OLD.items()}
    assert len(found) == 1
    return "old" if found.pop() else "new"


def deeds_of(commands: Any, folder: Path) -> range:
    """The last deeds of a masking in its folder, by number."""
    total = int(commands.run(folder, *MASK, deed=10_000).err.split()[-1])
    return range(total - 14, total + 1)


def renew(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write_tables(folder)
    for name, text in OLD.items():
        (folder / name).write_text(text)


def test_a_folder_that_vanishes_while_it_is_written(here: Path, commands: Any) -> None:
    renew(here)
    away = here.with_name("here-away")
    for deed in deeds_of(commands, here):
        renew(here)
        made = commands.run(here, *MASK, deed=deed, what="vanish")
        assert made.err.count("\n") <= 1, made.err
        assert made.code == (2 if made.err else 0)
        assert not here.exists()
        state = state_of(away)
        assert state == "new" or made.code == 2
        assert [name for name in contents(away) if name.startswith(".")] == []
        shutil.rmtree(away)


def test_control_c_tells_whether_something_was_written(here: Path, commands: Any) -> None:
    renew(here)
    told = {}
    for deed in deeds_of(commands, here):
        renew(here)
        made = commands.run(here, *MASK, deed=deed, what="SIGINT")
        assert (made.code, made.out) == (130, "")
        told[state_of(here)] = made.err
        assert set(contents(here)) == {*PAIR, *OLD} | ({REGISTER} if state_of(here) == "new" else set())
    names = "out.csv.secret.json, out.csv.manifest.json, out.csv, rankveil-register.json"
    assert told == {
        "old": "rankveil: stopped; nothing was written\n",
        "new": f"rankveil: stopped; {names} were written\n",
    }


# ---- memory ----

LARGE = ("original.feather", "masked.feather")
JOBS = {
    "mask": ("mask", LARGE[0], *MASK[2:]),
    "measure": ("audit", *LARGE),
    "attack": ("attack", *LARGE),
    "certify": ("certify", *LARGE),
    "compare": ("compare", LARGE[0], *COMPARE[2:]),
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    write_tables(folder, rows=40_000, columns=10)
    for name in LARGE:
        files.save(table(40_000, 10), folder / name)
    return folder


@pytest.mark.parametrize("job", JOBS)
def test_what_does_not_fit_is_refused_in_advance(large: Path, refused: Any, job: str) -> None:
    said = refused(large, *JOBS[job], space=15 * MIB)
    assert re.match(rf"to {job} [48]00,000 cells needs about \d+ MiB of memory and \d+ MiB are free; .*--columns", said)


def test_a_file_that_is_larger_than_what_is_free_is_not_read(large: Path, refused: Any) -> None:
    said = refused(large, *MASK, space=6 * MIB)
    assert re.match(r"original.csv: reading it needs about 15 MiB of memory and \d MiB are free; write it as", said)


def test_the_limits_of_a_process_and_of_its_groups_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for names in (("max", "current", "inactive_file"), ("limit_in_bytes", "usage_in_bytes", "total_inactive_file")):
        folder = tmp_path / names[0]
        folder.mkdir()
        (folder / f"memory.{names[0]}").write_text(f"{9 * MIB}\n")
        (folder / f"memory.{names[1]}").write_text(f"{7 * MIB}\n")
        monkeypatch.setattr(memory, "GROUP", str(folder))
        assert memory.available() == 2 * MIB
        (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {3 * MIB}\n")
        assert memory.available() == 5 * MIB
        (folder / f"memory.{names[1]}").write_text(f"{20 * MIB}\n")
        assert memory.available() == 0


def test_memory_that_runs_out_after_all_gets_one_sentence(large: Path, refused: Any) -> None:
    """The model of this measure needs much more than the tables, which is not foreseen."""
    said = refused(large, *JOBS["mask"], "--publish", "propensity", space=150 * MIB)
    assert said == "there is not enough memory for this; try fewer columns or records"


def test_a_worker_that_is_killed_is_told_in_one_sentence() -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(
        ClusterError, match="a worker process was killed again and again, perhaps for want of memory; try fewer workers"
    ):
        in_workers(exec, program, [{}, {}], workers=2)


def test_the_work_of_a_worker_that_is_killed_is_done_again(tmp_path: Path) -> None:
    def task(mark: Path, item: int) -> int:
        if item == 5:
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                return -item
            os.kill(os.getpid(), signal.SIGKILL)
        return -item

    assert in_workers(task, tmp_path / "mark", range(20), workers=4) == [-item for item in range(20)]
    assert (tmp_path / "mark").exists()
