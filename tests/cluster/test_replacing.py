"""A release in parts takes the place of an earlier one, whole or not at all; tables that are given by their paths."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil import files
from rankveil.cli import main
from rankveil.cluster.folders import Folder
from rankveil.errors import FileError, ParameterError
from rankveil.masking.register import REGISTER
from rankveil.plans import Plan

SEED = "5eed0123456789abcdef5eed0123456789abcdef5eed0123456789abcdef5eed"


def people() -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table({"AGE": rng.integers(18, 70, 90), "RENT": np.round(rng.normal(500, 90, 90), 1)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The table as three files."""
    made = tmp_path / "original"
    made.mkdir()
    for start in range(0, 90, 30):
        pq.write_table(people().slice(start, 30), made / f"part-{start:03d}.parquet")
    return made


def released(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.ParquetFile(path).read() for path in sorted(folder.iterdir())])


def assert_only(place: Path, *names: str) -> None:
    """Nothing else lies there, hidden or not."""
    assert sorted(os.listdir(place)) == sorted(names)


def earlier(tmp_path: Path) -> Path:
    """A release that is there already."""
    out = tmp_path / "out"
    out.mkdir()
    for number in range(9):
        pq.write_table(pa.table({"OLD": [1]}), out / f"part-{number:05d}.parquet")
    return out


def test_an_earlier_release_is_replaced(engine: Any, folder: Path, tmp_path: Path) -> None:
    out = earlier(tmp_path)
    plan = Plan.of("additive_noise")
    (tmp_path / "one.parquet").write_bytes((out / "part-00000.parquet").read_bytes())
    (tmp_path / "link").symlink_to("out")
    for target in (out, tmp_path / "one.parquet"):
        rv.mask(folder, plan, seed=SEED, cluster=engine, output=target)
        assert released(target).equals(rv.mask(people(), plan, seed=SEED).published().data)
    with pytest.raises(FileError, match=r"link: is a symbolic link to .*out; give that name itself"):
        rv.mask(folder, plan, seed=SEED, cluster=engine, output=tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    beside = [f"{name}.{what}.json" for name in ("out", "one.parquet") for what in ("manifest", "secret")]
    assert_only(tmp_path, "original", "out", "one.parquet", "link", REGISTER, *beside)


def test_an_earlier_release_stays_when_the_new_one_cannot_have_its_place(tmp_path: Path) -> None:
    out = earlier(tmp_path)
    made = Folder(str(out), name="new")
    with pytest.raises(FileError, match="out: cannot be written: no such file"):
        made.commit()  # nothing was written that could come there
    assert not made.committed
    assert_only(tmp_path, "out")
    assert len(os.listdir(out)) == 9


def test_a_place_that_was_taken_meanwhile_does_not_cost_the_work_of_a_stopped_job(
    engine: Any, folder: Path, tmp_path: Path
) -> None:
    how: dict[str, Any] = {"seed": SEED, "cluster": engine, "output": tmp_path / "out"}

    def stop(done: int, of: int) -> None:
        if done > of // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="--resume goes on"):
        rv.mask(folder, "rank_swap", progress=stop, **how)
    (tmp_path / "out").write_text("mine")
    with pytest.raises(FileError, match="out: is there already"):
        rv.mask(folder, "rank_swap", resume=True, **how)
    (tmp_path / "out").unlink()
    made = rv.mask(folder, "rank_swap", resume=True, **how)
    assert "what an earlier run had done was taken up" in made.notes


@pytest.mark.parametrize("moved", [1, 2])
def test_a_program_that_is_killed_while_it_replaces_a_release(moved: int, tmp_path: Path) -> None:
    out = earlier(tmp_path)
    script = """
import os, signal, sys
from rankveil import files
from rankveil.cluster.folders import Folder

rename, left = os.rename, int(sys.argv[2])

def until(*names):
    global left
    rename(*names)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

os.rename = until
made = Folder(sys.argv[1], name="new")
os.mkdir(made.staging)
open(made.part(0), "w").close()
with files.Staged() as staged:
    staged.add(sys.argv[1] + ".secret.json", lambda file: file.write(b"new"))
    staged.join(made)
"""
    secret = tmp_path / "out.secret.json"
    secret.write_text("old")
    subprocess.run([sys.executable, "-c", script, str(out), str(moved)], timeout=60, check=False)
    assert out.exists() == (moved == 2)
    files.settle(out)  # as whoever writes there does
    assert secret.read_text() == ("new" if moved == 2 else "old")
    assert len(os.listdir(out)) == (1 if moved == 2 else 9)
    assert_only(tmp_path, "out", "out.secret.json", *([] if moved == 2 else [".out.new"]))


def test_the_command_line_replaces_a_release(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = earlier(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ["mask", str(folder), "-o", str(out), "--method", "rank_swap", "--seed", SEED, "--cluster", "local:1"]
    words += ["--scratch", str(scratch)]
    assert main(words) == 0
    assert released(out).equals(rv.mask(people(), "rank_swap", seed=SEED).published().data)
    assert_only(tmp_path, "original", "out", "out.manifest.json", "out.secret.json", REGISTER, "scratch")
    (out / "notes.txt").write_text("mine")
    assert main(words) == 2
    assert "out: is there already and holds something else" in capsys.readouterr().err


def test_a_table_is_given_by_its_path(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan.of("additive_noise")
    made = rv.mask(folder, plan, seed=SEED)
    assert made.data.equals(rv.mask(people(), plan, seed=SEED).data)
    written = rv.mask(str(folder), plan, seed=SEED, output=tmp_path / "file.parquet")
    assert pq.read_table(tmp_path / "file.parquet").equals(made.published().data)
    assert (tmp_path / "file.parquet.secret.json").read_text() == written.secret.to_json()
    rv.mask(str(folder), plan, seed=SEED, output=tmp_path / "kept.parquet", shuffled=False)
    assert pq.read_table(tmp_path / "kept.parquet").equals(made.data)
    asked = {"at": {"risk": 0.3}, "utility": ["um"], "replicates": 1, "workers": 1}
    compared = rv.compare(people(), ["additive_noise"], **asked).to_dict()
    assert rv.compare(folder, ["additive_noise"], **asked).to_dict() == compared
    assert rv.compare(folder.as_uri(), ["additive_noise"], **asked).to_dict() == compared
    (tmp_path / "t.csv").write_text("A;B\n1,5;2\n2,5;3\n4,5;4\n")
    assert rv.mask(tmp_path / "t.csv", "identity").data.column("A").to_pylist() == ["1,5", "2,5", "4,5"]
    for given, output in ((people(), tmp_path / "a.parquet"), (folder, tmp_path / "a.csv")):
        with pytest.raises(ParameterError, match=r"leave it out and write the release with write\(\)"):
            rv.mask(given, plan, output=output)
    with pytest.raises(FileError, match=r"part-000\.parquet: the release would overwrite the original"):
        rv.mask(folder, plan, output=folder / "part-000.parquet")
    monkeypatch.setattr("rankveil.cluster.masks.memory.available", lambda: 1000)  # of a machine that is nearly full
    with pytest.raises(ParameterError, match=r"are free; name the folder that a release in parts is written to"):
        rv.mask(folder, plan)
    parts = rv.mask(folder, plan, seed=SEED, output=tmp_path / "out.parquet", memory="1GiB", scratch=tmp_path)
    assert "masked in parts by processes of this machine" in parts.notes[0]
    assert released(tmp_path / "out.parquet").equals(made.published().data)
