"""What is wrong with tables and folders is said in one sentence, also on the command line, and nothing stays behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil.cli import main
from rankveil.errors import FileError, FormatError, PairError, ParameterError, TableError


@pytest.fixture
def refused(engine: Any) -> Any:
    """An audit that must be refused, with nothing left in the scratch folder."""

    def run(original: Any, masked: Any, error: type[Exception], match: str, **how: Any) -> None:
        before = set(os.listdir(engine.scratch))
        with pytest.raises(error, match=match):
            rv.audit(original, masked, cluster=engine, measures=["cm1"], **how)
        assert set(os.listdir(engine.scratch)) == before

    return run


def test_tables_that_do_not_belong_together(refused: Any, tied: Any, write: Any, tmp_path: Path) -> None:
    x, y = tied(60)
    original, masked = write(x, y, rows=20)
    short = tmp_path / "short.parquet"
    pq.write_table(pa.table({f"V{j}": y[:59, j] for j in range(5)}), short)
    refused(original, short, PairError, r"has 60 records and .*short.parquet 59")
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({f"V{j}": y[:, j] for j in range(4)}), other)
    refused(original, other, PairError, r"the masked one has no V4; name the columns to compare with --columns")
    refused(other, masked, PairError, r"the original one has no V4")
    refused(original, masked, TableError, r"has no column V9", columns=["V9"])
    refused(original, masked, TableError, r"column V1 is named twice", columns=["V1", "V1"])


def test_parts_that_are_not_alike(refused: Any, tied: Any, write: Any) -> None:
    original, masked = write(*tied(60), rows=20)
    odd = original / "part-000020.parquet"
    pq.write_table(pa.table({"V0": np.zeros(20)}), odd)
    refused(original, masked, FormatError, r"part-000020.parquet has other columns \(V1, V2, V3, V4\)")
    pq.write_table(pa.table({f"V{j}": np.zeros(20, np.int64) for j in range(5)}), odd)
    refused(original, masked, FormatError, r"part-000020.parquet has other types in V0, V1, V2, V3, V4")


def test_a_damaged_file_in_the_middle_is_named(refused: Any, tied: Any, write: Any) -> None:
    original, masked = write(*tied(300), rows=100)
    part = original / "part-000100.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:4] + bytes(300) + whole[304:])  # the footer is as it was: a worker finds out
    refused(original, masked, FormatError, r"part-000100.parquet: is not a Parquet file, or is damaged")
    part.write_bytes(whole[:-20])
    refused(original, masked, FormatError, r"part-000100.parquet: is not a Parquet file, or is damaged")


def test_values_that_have_no_place(refused: Any, tied: Any, write: Any) -> None:
    x, y = tied(60)
    y[33, 2], y[50, 2] = np.inf, -np.inf
    refused(*write(x, y, rows=20), TableError, r"masked table, column V2: infinite values \(the first in row 34\)")


def test_whole_numbers_that_are_too_long(refused: Any, tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    pq.write_table(pa.table({"ID": [1, 2**53, 3], "A": [1, 2, 3]}), path)
    refused(path, path, TableError, r"column ID: its whole numbers are beyond 2\^53", columns=["ID", "A"])


def test_paths_that_are_no_parquet(refused: Any, tied: Any, write: Any, tmp_path: Path) -> None:
    original, _ = write(*tied(20), rows=20)
    text = tmp_path / "masked.csv"
    text.write_text("A\n1\n")
    refused(original, text, ParameterError, r"masked.csv: on a cluster tables are Parquet files")
    refused(original, tmp_path / "gone.parquet", FileError, r"gone.parquet: there is no such file or folder")
    refused(original, pa.table({"A": [1]}), ParameterError, r"given by their paths")
    (tmp_path / "empty").mkdir()
    refused(original, tmp_path / "empty", FormatError, r"empty: the folder has no Parquet files; name one that has")
    refused((tmp_path / "empty").as_uri(), original, FormatError, r"empty: the folder has no Parquet files")


def test_scratch_without_space_is_found_ahead(
    refused: Any, tied: Any, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))  # a disk that is nearly full
    refused(*write(*tied(60), rows=20), FileError, r"the job may need .* of scratch and .* are free")


class Tables(NamedTuple):
    original: str
    masked: str
    scratch: str


@pytest.fixture
def files(tied: Any, write: Any, tmp_path: Path) -> Tables:
    original, masked = write(*tied(400), rows=50)
    (tmp_path / "scratch").mkdir()
    return Tables(str(original), str(masked), str(tmp_path / "scratch"))


def test_the_command_line(files: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["audit", files.original, files.masked, "--cluster", "local:1", "--scratch", files.scratch, "--json"]
    assert main([*words, "--measures", "cm1,rank_linkage", "--subjects", "100", "--fail-if", "cm2<2"]) == 1
    said = capsys.readouterr()
    assert said.err == ""
    made = json.loads(said.out)
    memory = rv.audit(files.original, files.masked, measures=["cm1", "cm2"])
    assert made["measures"]["cm1"]["value"] == pytest.approx(memory["cm1"], rel=1e-12)
    assert made["measures"]["rank_linkage"]["details"]["subjects"] == 100
    assert made["gates"] == [{"rule": "cm2<2", "value": pytest.approx(memory["cm2"], rel=1e-12), "ok": False}]
    assert os.listdir(files.scratch) == []


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--cluster", "remote"], "cluster remote: must be local, local:N, or a scheduler's address"),
        (["--cluster", "local:1", "--by", "V0"], "by is not for a cluster; leave it out"),
        (["--cluster", "local:1", "--key", "V0", "--no-mapping"], "they contradict each other"),
        (["--cluster", "local:1", "--memory", "lots"], "memory must be a size such as 3GiB"),
        (["--cluster", "tcp://127.0.0.1:9"], "name a scratch folder that all its workers see"),
    ],
)
def test_a_command_that_is_refused(
    words: list[str], what: str, files: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", files.original, files.masked, *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("rankveil: ")
    assert what in said.err
    assert said.err.count("\n") == 1


def test_a_release_that_was_reordered_needs_its_secret(files: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    release = rv.mask(pq.read_table(files.original), "record_shuffle", seed=1)
    beside = Path(f"{files.masked}.manifest.json")
    beside.write_text(release.manifest.to_json())
    assert main(["audit", files.original, files.masked, "--cluster", "local:1"]) == 2
    told = f"its rows were reordered, as its manifest says; give its secret, as in --secret {files.masked}.secret.json"
    assert told in capsys.readouterr().err
    words = ["audit", files.original, files.masked, "--cluster", "local:1", "--measures", "cm1", "--json"]
    secret = Path(files.scratch) / "secret.json"
    secret.write_text(release.secret.to_json())
    assert main([*words, "--secret", str(secret)]) == 0
    named = json.loads(capsys.readouterr().out)
    secret.rename(f"{files.masked}.secret.json")
    assert main(words) == 0  # and where it lies beside the release it need not be named
    found = json.loads(capsys.readouterr().out)
    assert (found["mapping"], found["measures"]) == (named["mapping"], named["measures"])
    assert f"the mapping was read from the secret beside the release: {files.masked}.secret.json" in found["notes"]


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.thorough)]
)
def test_control_c_keeps_what_is_done_and_ends_the_workers(
    sent: signal.Signals, code: int, files: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [sys.executable, "-m", "rankveil", "audit", files.original, files.masked, "--cluster", "local:1"]
    words += ["--scratch", files.scratch, "--measures", "cm2,rank_linkage", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 90
    while not any(path.stat().st_size > 5000 for path in Path(files.scratch).glob("rankveil-*/journal")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert err.startswith("rankveil: stopped; what was done is kept in ")
    assert err.count("\n") == 1
    assert workers
    assert not [worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE]
    [kept] = os.listdir(files.scratch)
    assert kept in err
    capsys.readouterr()
    assert main([*words[3:], "--resume"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert "what an earlier run had done was taken up" in made["notes"]
    memory = rv.audit(files.original, files.masked, measures=["cm2", "rank_linkage"])
    for name in memory.values:
        assert made["measures"][name]["value"] == pytest.approx(memory[name], rel=1e-9)
    assert os.listdir(files.scratch) == []
