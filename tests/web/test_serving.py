"""`rankveil serve` as people start it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import httpx
import jsonschema_rs
import pytest

from rankveil.cli import main

BROWSER = """import json, os, stat, sys
from pathlib import Path
from urllib.request import url2pathname
arguments = sys.argv[2:]
page = Path(url2pathname(arguments[-1].removeprefix("file://")))
modes = [oct(stat.S_IMODE(os.stat(each).st_mode)) for each in (page.parent, page)]
made = Path(sys.argv[1])
made.with_suffix(".part").write_text(json.dumps([modes, str(page), page.read_text(), arguments]))
made.with_suffix(".part").rename(made)
"""
"""A browser that writes down with what it was started, and what it found there."""


def started(workspace: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rankveil", "serve", "--no-browser", "--workspace", str(workspace), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_it_prints_an_address_that_lets_one_browser_in(tmp_path: Path) -> None:
    server = started(tmp_path / "w")
    assert server.stdout is not None
    assert server.stdout.readline() == f"The workspace is {tmp_path / 'w'}.\n"
    address = server.stdout.readline().removeprefix("Open ").strip()
    assert address.startswith("http://127.0.0.1:")
    with httpx.Client(trust_env=False, timeout=60) as client:
        assert client.get(address.partition("?")[0]).status_code == 403
        assert client.get(address).status_code == 200
        assert client.get(address.partition("?")[0]).status_code == 200
    again = subprocess.run(
        [sys.executable, "-m", "rankveil", "serve", "--no-browser", "--workspace", str(tmp_path / "w")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert again.returncode == 2
    assert again.stdout == ""
    assert "another rankveil serve uses this workspace" in again.stderr
    server.send_signal(signal.SIGINT)
    rest, complaints = server.communicate(timeout=60)
    assert "For another browser: http://127.0.0.1:" in rest
    assert "Traceback" not in complaints
    assert server.returncode in (0, 130)


def test_it_listens_on_this_machine_only(tmp_path: Path) -> None:
    server = started(tmp_path / "w", "--json")
    assert server.stdout is not None
    text = ""
    while "}" not in text:
        text += server.stdout.readline()
    told = json.loads(text)
    assert told["schema"] == "rankveil/serve/1"
    schema = json.loads((files("rankveil") / "documents.schema.json").read_text(encoding="utf-8"))
    jsonschema_rs.Draft202012Validator(schema).validate(told)
    port = httpx.URL(told["address"]).port
    assert port is not None
    for family, here in ((socket.AF_INET, "127.0.0.2"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as other:
            other.settimeout(5)
            assert other.connect_ex((here, port)) != 0
    server.send_signal(signal.SIGTERM)
    assert server.communicate(timeout=60)[0] == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--port", "70000"], "--port must be a whole number from 0 to 65535, not 70000"),
        (["--limit", "0"], "--limit must be at least 1, not 0"),
        (["--workspace", "."], "is neither empty nor a workspace"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("x")
    assert main(["serve", "--no-browser", *words]) == 2
    told = capsys.readouterr()
    assert sentence in told.err
    assert told.out == ""


def test_a_port_that_is_taken_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--no-browser", "--workspace", str(tmp_path / "w"), "--port", str(port)]) == 2
    assert f"port {port} cannot be used: address already in use" in capsys.readouterr().err


@pytest.mark.parametrize("used", [True, False], ids=["used", "never used"])
def test_no_process_is_started_with_the_token(used: bool, tmp_path: Path) -> None:
    script, log = tmp_path / "browser.py", tmp_path / "log"
    script.write_text(BROWSER)
    command = [sys.executable, "-m", "rankveil", "serve", "--workspace", str(tmp_path / "w")]
    there = {"DISPLAY": ":0", "BROWSER": f"{sys.executable} {script} {log} %s", "TMPDIR": str(tmp_path)}
    environment = {**os.environ, **there}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        address = server.stdout.readline().removeprefix("Open ").strip()
        token = address.partition("token=")[2]
        assert len(token) > 20
        ends = time.monotonic() + 60
        while not log.exists() and time.monotonic() < ends:
            time.sleep(0.05)
        modes, page, text, arguments = json.loads(log.read_text())
        assert modes == ["0o700", "0o600"]
        assert arguments == [Path(page).as_uri()]
        assert token not in " ".join([*arguments, *command])
        assert f'content="0; url={address}"' in text
        assert Path(page).exists()
        if used:
            with httpx.Client(trust_env=False, timeout=60) as client:
                assert client.get(address).status_code == 200
            assert not Path(page).parent.exists()
    finally:
        server.send_signal(signal.SIGTERM)
        complaints = server.communicate(timeout=60)[1]
    assert "Traceback" not in complaints
    assert not Path(page).parent.exists()
