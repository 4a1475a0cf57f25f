"""A workspace may have come from somebody else: their sessions do not hold, and no link of theirs is followed."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rankveil.errors import FileError
from rankveil.web.sessions import Sessions
from rankveil.web.workspace import Workspace

ID = "0123456789abcdef"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    (made / ".profile").write_text("mine")
    (made / "letter").write_text("mine")
    return made


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_session_that_was_planted_does_not_open_the_workbench(start: Any, tmp_path: Path) -> None:
    Workspace(tmp_path / "w")
    known = [hashlib.sha256(b"theirs").hexdigest()]
    for planted in ({"sessions": known}, {"sessions": known, "seal": "0" * 64}, {"sessions": 5, "seal": []}):
        (tmp_path / "w" / "sessions.json").write_text(json.dumps(planted))
        assert not Sessions(Workspace(tmp_path / "w"), token="x").knows("theirs")
    (tmp_path / "w" / "sessions.json").write_text(json.dumps({"sessions": known}))
    cookie = Sessions(Workspace(tmp_path / "w"), token="x").cookie
    server = start(tmp_path / "w", token="first")
    assert server.client(cookies={cookie: "theirs"}).get("/").status_code == 403


def test_the_sessions_of_another_workspace_do_not_hold_here(tmp_path: Path) -> None:
    session = Sessions(Workspace(tmp_path / "w"), token="first").exchange("first")
    assert session is not None
    assert Sessions(Workspace(tmp_path / "w"), token="second").knows(session)
    Workspace(tmp_path / "v")
    (tmp_path / "v" / "sessions.json").write_bytes((tmp_path / "w" / "sessions.json").read_bytes())
    assert not Sessions(Workspace(tmp_path / "v"), token="third").knows(session)


@pytest.mark.parametrize("room", ["data", "plans", "runs", "inbox"])
def test_a_room_that_is_a_link_is_refused(tmp_path: Path, home: Path, room: str) -> None:
    Workspace(tmp_path / "w")
    os.rmdir(tmp_path / "w" / room)
    (tmp_path / "w" / room).symlink_to(home)
    before = contents(home)
    with pytest.raises(FileError, match=f"its folder {room} is a symbolic link"):
        Workspace(tmp_path / "w")
    assert contents(home) == before


@pytest.mark.parametrize("room", ["data", "runs"])
def test_what_a_link_in_a_workspace_leads_to_is_neither_swept_nor_shown(tmp_path: Path, home: Path, room: Any) -> None:
    workspace = Workspace(tmp_path / "w")
    (tmp_path / "w" / room / ID).symlink_to(home)
    (tmp_path / "w" / room / ".gone-x").symlink_to(home)
    (home / "meta.json").write_text("{}")
    (home / "run.json").write_text("{}")
    before = contents(home)
    workspace.hold()
    workspace.release()
    assert workspace.ids(room) == []
    with pytest.raises(FileError, match="nothing of that name"):
        workspace.folder(room, ID)
    assert contents(home) == before


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path, home: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    (tmp_path / "w" / ".lock").symlink_to(home / "letter")
    with pytest.raises(FileError, match=r"\.lock: cannot be opened"):
        workspace.hold()
    assert contents(home)["letter"] == "mine"


@pytest.mark.parametrize("where", ["../../../home/letter", "/etc/passwd", "a/b.csv"])
def test_a_table_or_a_hierarchy_that_lies_elsewhere_is_not_opened(enter: Any, where: str) -> None:
    user = enter()
    id = user.example()
    meta = Path(user.bench.workspace.root) / "data" / id / "meta.json"
    good = json.loads(meta.read_text())
    assert user.bench.sources.find(id) is not None
    for planted in ({"file": where}, {"declared": {"hierarchies": {"X1": {"name": "h.csv", "file": where}}}}):
        meta.write_text(json.dumps(good | planted))
        assert user.bench.sources.find(id) is None
