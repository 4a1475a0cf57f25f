"""Ctrl-C in the middle of writing a release: exit code 130, one sentence, and everything as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankveil.files import save

OUTS = ["out.dta", "out.sav", "out.xlsx", "sqlite:///out.db?table=people", "duckdb:///out.db?table=people"]
PACKAGES = {"out.dta": "pyreadstat", "out.sav": "pyreadstat", "out.xlsx": "openpyxl", OUTS[-1]: "duckdb"}
MASK = ["--method", "permute", "--columns", "x", "--role", "k=other"]
SAID = "rankveil: stopped; nothing was written\n"

PROGRAM = """
import json, os, signal, sys, tempfile, threading, time
from rankveil.cli import main

FOLDERS = (os.getcwd(), tempfile.gettempdir())
BEGUN = 1 << 13

def size(entry):
    try:
        return entry.stat().st_size
    except OSError:
        return 0

def stop_when_begun(done):
    while not done.is_set():
        if any(size(entry) > BEGUN for folder in FOLDERS for entry in os.scandir(folder)):
            os.kill(os.getpid(), signal.SIGINT)
            return
        time.sleep(0.001)

def stopped(out):
    done = threading.Event()
    watcher = threading.Thread(target=stop_when_begun, args=(done,))
    watcher.start()
    try:
        code = main(["mask", sys.argv[1], "-o", out, *sys.argv[3:]])
        done.set()
        watcher.join()
        return code
    except KeyboardInterrupt:  # too late
        return 0

for out in json.loads(sys.argv[2]):
    code = stopped(out)
    while code == 0:  # it was faster than the signal
        for folder in FOLDERS:
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
        code = stopped(out)
    print(json.dumps([out, code, *(os.listdir(folder) for folder in FOLDERS)]), file=sys.stderr, flush=True)
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rows = 150_000
    save(pa.table({"x": np.random.default_rng(0).random(rows), "k": np.arange(rows)}), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def test_stopping_leaves_nothing_of_a_file(people: Path, tmp_path: Path) -> None:
    for package in set(PACKAGES.values()):
        pytest.importorskip(package)
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(people), json.dumps(OUTS), *MASK],
        cwd=here,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == "".join(f"{SAID}{json.dumps([out, 130, [], []])}\n" for out in OUTS)
    assert done.returncode == 0


def test_stopping_leaves_the_table_of_a_server(people: Path, server: Any, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    server.sql("CREATE TABLE people (x double precision, k bigint)")
    server.sql("INSERT INTO people VALUES (0.5, 7)")
    server.sql(
        "CREATE FUNCTION slow() RETURNS trigger AS 'BEGIN PERFORM pg_sleep(0.01); RETURN NEW; END' LANGUAGE plpgsql"
    )
    server.sql("CREATE TRIGGER slow BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION slow()")
    command = [sys.executable, "-m", "rankveil", "mask", str(people), "-o", server.url("people")]
    at_work = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'rankveil' AND query LIKE 'COPY%'"
    with subprocess.Popen([*command, *MASK], cwd=here, stderr=subprocess.PIPE, text=True) as process:
        try:
            while process.poll() is None and not server.sql(at_work):
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=60)[1] == SAID
        finally:
            process.kill()
    assert process.returncode == 130
    assert server.sql("SELECT * FROM people") == [(0.5, 7)]
    assert list(here.iterdir()) == []
