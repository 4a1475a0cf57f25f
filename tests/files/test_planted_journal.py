"""A folder of data may come from anybody: a journal in it is believed only with the seal of the user's own key."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rankveil import files
from rankveil.cli import main
from rankveil.errors import FileError
from rankveil.files import atomic_journal, user_key

NAME = "0123456789abcdef"
JOURNAL = f".rankveil-{NAME}.journal"
CSV = "A,B\n" + "".join(f"{i},{i * i % 17}\n" for i in range(30))
MASK = ["--method", "rank_swap", "--json"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with something worth to be overwritten, and in it a folder of data that came from somebody else."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "data.csv").write_text(CSV)
    (tmp_path / "authorized_keys").write_text("mine")
    monkeypatch.chdir(tmp_path / "data")
    return tmp_path


def state(*folders: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every byte, mode and time below some folders, and of the folders themselves."""
    found = {}
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            told = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(told.st_mode) else b""
            found[str(path)] = (content, told.st_mode, told.st_mtime_ns)
    return found


def plant(folder: Path, content: Mapping[str, Any] | str, name: str = JOURNAL) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content) + "\n")
    path.chmod(0o600)
    return path


def sealed(folder: Path, *entries: Mapping[str, Any], name: str = NAME) -> Path:
    """A journal with the seal of the user's own key."""
    path = plant(folder, "", f".rankveil-{name}.journal")
    handle = os.open(path, os.O_WRONLY)
    for entry in ({"begun": True}, *entries):
        atomic_journal._add(handle, name, os.stat(folder).st_ino, entry)
    os.close(handle)
    return path


def renaming(target: str, temporary: str) -> dict[str, Any]:
    return {"target": target, "temporary": temporary, "kept": None, "mode": 0o600}


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(list(words))
    said = capsys.readouterr()
    return code, said.out, said.err


def check_ignored(capsys: pytest.CaptureFixture[str], verb: str, *journals: Path) -> None:
    """A verb runs as if the journals were not there; one that writes says so."""
    before = state(Path.cwd())
    if verb == "inspect":
        assert ran(capsys, "inspect", "data.csv")[0] == 0
        assert state(Path.cwd()) == before
        return
    code, out, _ = ran(capsys, "mask", "data.csv", "-o", "out.csv", *MASK)
    assert code == 0
    for journal in journals:
        assert journal.exists()
        ignored = "this journal was not sealed with your key, so it was ignored"
        assert any(f"{journal.name}: {ignored}" in note for note in json.loads(out)["notes"])


@pytest.mark.parametrize("verb", ["inspect", "mask"])
@pytest.mark.parametrize("temporary", ["evil", f".rankveil-{NAME}-0.tmp"])
def test_a_planted_journal_overwrites_nothing(
    home: Path, capsys: pytest.CaptureFixture[str], verb: str, temporary: str
) -> None:
    Path(temporary).write_text("planted")
    told = [renaming("../authorized_keys", temporary), renaming("data.csv", temporary)]
    journal = plant(Path.cwd(), {"files": told, "question": None})
    check_ignored(capsys, verb, journal)
    assert (home / "authorized_keys").read_text() == "mine"
    assert Path("data.csv").read_text() == CSV


@pytest.mark.parametrize("verb", ["inspect", "mask"])
def test_a_planted_journal_that_points_to_another_overwrites_nothing(
    home: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    Path("sub").mkdir()
    Path("sub/evil").write_text("planted")
    plant(Path("sub"), {"files": [renaming("../../authorized_keys", "evil")], "question": None})
    journal = plant(Path.cwd(), {"see": f"sub/{JOURNAL}"})
    check_ignored(capsys, verb, journal)
    assert (home / "authorized_keys").read_text() == "mine"


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A server of somebody else's, which wants the password."""
    monkeypatch.setenv("PGPASSWORD", "word")
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "2")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def check_unheard(server: socket.socket) -> None:
    with pytest.raises(BlockingIOError):
        server.accept()


@pytest.mark.parametrize("verb", ["inspect", "mask"])
@pytest.mark.parametrize("authentic", [False, True])
def test_no_journal_names_a_server_to_connect_to(
    home: Path, capsys: pytest.CaptureFixture[str], listener: socket.socket, verb: str, authentic: bool
) -> None:
    """Not even one of the user's own: only an address in the command itself is connected to."""
    address = f"postgresql://me@127.0.0.1:{listener.getsockname()[1]}/db?table=t"
    told = {"files": [], "question": {"table": address, "state": "1"}, "others": []}
    if authentic:
        journal = sealed(Path.cwd(), told)
        content = journal.read_bytes()
        assert ran(capsys, verb, "data.csv", *(["-o", "out.csv", *MASK] if verb == "mask" else []))[0] == 0
        assert journal.read_bytes() == content
    else:
        check_ignored(capsys, verb, plant(Path.cwd(), told))
    check_unheard(listener)


def test_a_planted_link_in_the_place_of_a_journal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path(JOURNAL).symlink_to(home / "authorized_keys")
    Path(f".rankveil-{NAME}.tmp").symlink_to(home / "authorized_keys")
    check_ignored(capsys, "mask", Path(JOURNAL))
    assert (home / "authorized_keys").read_text() == "mine"


@pytest.mark.parametrize("content", ["\n", "{}\n", "[" * 100_000, "x" * 5_000_000, f"{'0' * 64} {{}}\n", "\x00\n"])
def test_nonsense_in_a_journal(home: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    journal = plant(Path.cwd(), content)
    for verb in ("inspect", "mask"):
        check_ignored(capsys, verb, journal)


# ---- journals of one's own ----

KILLED = """
import os, signal, sys
from rankveil.files import Staged

left = int(sys.argv[1])

def look(event, args):
    global left
    if event == "os.rename":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

with Staged() as staged:
    for path in sys.argv[2:]:
        staged.add(path, lambda file: file.write(b"A,B\\n1,2\\n3,4\\n"))
    sys.addaudithook(look)
"""


def kill(*paths: str, at: int = 2) -> None:
    """A program that is killed when some of its files have their names."""
    made = subprocess.run([sys.executable, "-c", KILLED, str(at), *paths], check=False, timeout=60)
    assert made.returncode == -signal.SIGKILL


def hidden(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


NEW = "A,B\n1,2\n3,4\n"


def test_reading_changes_nothing_and_the_next_writer_finishes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("out.csv.secret.json", "out.csv"):
        Path(name).write_text("old")
    kill("out.csv.secret.json", "out.csv")
    before = state(home)
    pair = ["data.csv", "data.csv"]
    for words in (
        ["inspect", "data.csv"],
        ["audit", *pair, "--measures", "um"],
        ["attack", *pair],
        ["certify", *pair],
        ["verify", "data.csv", "--record", "A=1,B=2"],
    ):
        assert ran(capsys, *words)[0] in (0, 1), words
        assert state(home) == before, words
    for words in (
        ["inspect", "out.csv"],
        ["audit", "data.csv", "out.csv"],
        ["audit", *pair, "--secret", "out.csv.secret.json"],
    ):
        code, out, err = ran(capsys, *words)
        assert (code, out) == (2, "")
        assert err.endswith(
            "a program was stopped while it was writing this together with other files; run the same command again, "
            "which finishes or replaces them\n"
        )
        assert state(home) == before, words
    assert ran(capsys, "mask", "data.csv", "-o", "other.csv", *MASK)[0] == 0
    assert [Path(name).read_text() for name in ("out.csv", "out.csv.secret.json")] == [NEW, NEW]
    assert hidden(Path.cwd()) == []
    assert ran(capsys, "inspect", "out.csv")[0] == 0


def test_a_copy_of_a_journal_in_another_folder_is_refused(home: Path) -> None:
    kill("one.csv", "two.csv")
    for copy in ("copy", "sub/copy"):
        shutil.copytree(Path.cwd(), home / copy)
        before = state(home / copy)
        [note] = files.settle(home / copy / "x.csv")
        assert "was not sealed with your key" in note
        assert state(home / copy) == before
    os.rename(Path.cwd(), home / "moved")  # but a folder that is moved takes its own along
    assert files.settle(home / "moved" / "x.csv") == ()
    assert (home / "moved" / "two.csv").read_text() == NEW
    assert hidden(home / "moved") == []


def test_an_old_journal_that_is_put_back_changes_nothing(home: Path) -> None:
    kill("one.csv", "two.csv", "three.csv")
    [journal, *temporaries] = sorted(hidden(Path.cwd()), key=lambda name: not name.endswith(".journal"))
    content = Path(journal).read_bytes()
    assert files.settle("x.csv") == ()
    Path("two.csv").write_text("mine")
    for name in temporaries:  # with what somebody else wants to be there
        Path(name).write_text("planted")
    plant(Path.cwd(), content.decode(), journal)
    before = state(Path.cwd())
    [note] = files.settle("x.csv")
    assert note.endswith(
        "the files of this journal have changed since, so it was ignored; delete it, and its .tmp files"
    )
    assert state(Path.cwd()) == before
    for name in temporaries:
        os.unlink(name)
    assert files.settle("x.csv") == ()
    assert (Path("two.csv").read_text(), Path("one.csv").read_text()) == ("mine", NEW)


def test_an_old_journal_that_undoes_removes_no_other_file(home: Path) -> None:
    """Its temporary has gone, as if it had its name; but what has the name is something else."""
    told = {**renaming("data.csv", f".rankveil-{NAME}-0.tmp"), "new": [1, 2, 3], "old": None, "aside": None}
    sealed(Path.cwd(), {"files": [told], "question": None, "others": []}, {"back": True})
    assert files.settle("x.csv") == ()
    assert Path("data.csv").read_text() == CSV


@pytest.mark.parametrize("names", [("../authorized_keys", f".rankveil-{NAME}-0.tmp"), ("x.csv", "data.csv")])
def test_even_a_sealed_journal_renames_only_its_own_files_of_its_folder(home: Path, names: tuple[str, str]) -> None:
    Path(f".rankveil-{NAME}-0.tmp").write_text("planted")
    known = {"new": atomic_journal._identity(names[1]), "old": atomic_journal._identity(names[0]), "aside": None}
    journal = sealed(Path.cwd(), {"files": [{**renaming(*names), **known}], "question": None, "others": []})
    assert len(files.settle("x.csv")) == 1
    assert journal.exists()
    assert Path("data.csv").read_text() == CSV
    assert (home / "authorized_keys").read_text() == "mine"


def test_what_was_written_since_is_not_replaced_by_an_older_one(home: Path) -> None:
    kill("one.csv", "two.csv")
    Path("two.csv").write_text("newer")
    assert files.settle("x.csv") == ()
    assert Path("two.csv").read_text() == "newer"
    assert hidden(Path.cwd()) == []


@pytest.mark.parametrize("first", ["here", "there"])
def test_every_folder_is_settled_by_who_writes_there(home: Path, first: str) -> None:
    folders = {"here": Path.cwd(), "there": home / "private"}
    folders["there"].mkdir()
    (home / "private" / "secret.json").write_text("old")
    kill("../private/secret.json", "out.csv", at=1)
    second = "there" if first == "here" else "here"
    before = state(folders[second])
    assert files.settle(folders[first] / "x") == ()
    assert state(folders[second]) == before
    with pytest.raises(FileError, match="a program was stopped while it was writing this"):
        files.check_finished(folders[second] / ("secret.json" if second == "there" else "out.csv"))
    for name in (second, first):
        assert files.settle(folders[name] / "x") == ()
    assert (home / "private" / "secret.json").read_text() == Path("out.csv").read_text() == NEW
    assert [hidden(folder) for folder in folders.values()] == [[], []]


def test_a_part_whose_first_one_was_planted_is_left_alone(home: Path) -> None:
    """The decision lies in another folder, and is believed only with its own seal."""
    (home / "private").mkdir()
    kill("../private/secret.json", "out.csv", at=1)
    [journal] = [path for path in (home / "private").iterdir() if path.suffix == ".journal"]
    plant(journal.parent, {"files": [], "question": None, "others": []}, journal.name)
    before = state(Path.cwd())
    assert len(files.settle("x.csv")) == 1
    assert state(Path.cwd()) == before


# ---- the key ----


def test_the_key_is_made_by_the_first_write_and_is_private(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    plant(Path.cwd(), {"files": [], "question": None})
    assert ran(capsys, "inspect", "data.csv")[0] == 0
    assert not (home / "state").exists()
    assert ran(capsys, "mask", "data.csv", "-o", "out.csv", *MASK)[0] == 0
    [key] = (home / "state" / "rankveil").iterdir()
    assert str(key) == user_key.place()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (key, key.parent)] == [0o600, 0o700]
    made = user_key.seal("test", b"content")
    assert user_key.is_sealed("test", b"content", made)
    for purpose, content, given in (("other", b"content", made), ("test", b"others", made), ("test", b"content", "é")):
        assert not user_key.is_sealed(purpose, content, given)
    key.chmod(0o644)  # others may know it by now
    assert not user_key.is_sealed("test", b"content", made)


@pytest.mark.parametrize("given", ["", "state", "./data"])
def test_the_key_never_lies_in_the_working_folder(home: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", given)
    monkeypatch.setenv("HOME", str(home))
    assert user_key.place() == str(home / ".local/state/rankveil/key")


def test_where_no_key_can_be_kept_files_are_written_and_nothing_is_taken_up(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "authorized_keys"))  # no folder can be made there
    kill("one.csv", "two.csv")
    before = state(Path.cwd())
    assert ran(capsys, "inspect", "one.csv")[0] == 0
    assert state(Path.cwd()) == before
    code, out, _ = ran(capsys, "mask", "data.csv", "-o", "out.csv", *MASK)
    assert code == 0
    assert any("was not sealed with your key" in note for note in json.loads(out)["notes"])
    after = state(Path.cwd())
    assert {path: told for path, told in after.items() if path in before and path != str(Path.cwd())} == {
        path: told for path, told in before.items() if path != str(Path.cwd())
    }


# ---- manifests and secrets ----


@pytest.mark.parametrize("content", ["[" * 100_000, "no manifest", '{"schema": "rankveil/manifest/1"}', "{}", "\x00"])
def test_a_planted_manifest_is_not_used(home: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    shutil.copy("data.csv", "masked.csv")
    Path("masked.csv.manifest.json").write_text(content)
    before = state(home)
    code, out, _ = ran(capsys, "audit", "data.csv", "masked.csv", "--measures", "um", "--json")
    assert code == 0
    assert json.loads(out)["mapping"] == "rows"
    assert any("masked.csv.manifest.json: " in note and "was not used" in note for note in json.loads(out)["notes"])
    assert state(home) == before


@pytest.mark.parametrize("content", ["[" * 100_000, "no secret", '{"schema": "rankveil/secret/1"}', "{}", "\x00"])
def test_a_planted_secret_is_refused(home: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    Path("masked.csv.secret.json").write_text(content)
    before = state(home)
    words = ["audit", "data.csv", "data.csv", "--secret", "masked.csv.secret.json"]
    code, out, err = ran(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("rankveil: masked.csv.secret.json: ")
    assert state(home) == before


def test_the_secret_of_another_original_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.csv").write_text(CSV.replace("3,", "4,"))
    assert ran(capsys, "mask", "other.csv", "-o", "out.csv", *MASK)[0] == 0
    _, out, _ = ran(capsys, "audit", "data.csv", "out.csv", "--secret", "out.csv.secret.json", "--json")
    assert any("the secret was made for another original" in note for note in json.loads(out)["notes"])


def test_a_secret_of_another_original_beside_a_release_is_not_used(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mapping that is wrong would make a release look safe, and nobody has named this secret."""
    Path("other.csv").write_text(CSV.replace("3,", "4,"))
    shuffle = ["--method", "additive_noise", "--then", "record_shuffle", "--role", "A=confidential", "--json"]
    assert ran(capsys, "mask", "data.csv", "-o", "out.csv", *shuffle)[0] == 0
    assert ran(capsys, "mask", "other.csv", "-o", "else.csv", *shuffle)[0] == 0
    assert ran(capsys, "audit", "data.csv", "out.csv", "--measures", "um")[0] == 0
    shutil.copy("else.csv.secret.json", "out.csv.secret.json")
    for verb, more in (("audit", ["--measures", "um"]), ("attack", []), ("certify", ["--d", "0,0"])):
        code, out, err = ran(capsys, verb, "data.csv", "out.csv", *more)
        assert (code, out) == (2, "")
        assert "out.csv.secret.json: the secret beside the release was made for another original" in err


# ---- links in the places of outputs ----


@pytest.mark.parametrize("name", ["out.csv", "out.csv.manifest.json", "out.csv.secret.json"])
def test_a_planted_link_in_the_place_of_an_output(home: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    Path(name).symlink_to("../authorized_keys")
    before = state(home)
    code, out, err = ran(capsys, "mask", "data.csv", "-o", "out.csv", *MASK)
    assert (code, out) == (2, "")
    assert f"{name}: is a symbolic link to {home / 'authorized_keys'}; give that name itself" in err
    assert {path: told[0] for path, told in state(home).items()} == {path: told[0] for path, told in before.items()}


def test_planted_links_in_the_places_of_what_a_comparison_keeps(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "data.csv", "--methods", "rank_swap", "--at", "risk=0.3", "--utility", "um"]
    words += ["--columns", "A,B", "--replicates", "1", "--workers", "1"]
    Path("data.csv.compare-state.new").symlink_to("../authorized_keys")
    assert ran(capsys, *words)[0] == 0
    Path("data.csv.compare-state").symlink_to("../authorized_keys")
    code, _, err = ran(capsys, *words, "--resume")
    assert code == 2
    assert "is a symbolic link" in err
    assert (home / "authorized_keys").read_text() == "mine"


def test_a_planted_journal_of_sqlite_is_not_carried_out_by_a_reader(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SQLite would undo a change that a journal tells of, in the database and perhaps in other files."""
    import sqlite3

    program = (
        "import os, sqlite3\n"
        "c = sqlite3.connect('a.db', isolation_level=None)\n"
        "c.execute('CREATE TABLE t (a, b)'); c.execute('BEGIN')\n"
        "c.executemany('INSERT INTO t VALUES (?, ?)', [(i, i) for i in range(2000)])\n"
        "c.execute('COMMIT'); c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN')\n"
        "c.execute('UPDATE t SET a = a + 1')\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert Path("a.db-journal").stat().st_size
    before = state(Path.cwd())
    code, _, err = ran(capsys, "inspect", "sqlite:///a.db?table=t")
    assert code == 2
    assert "a program was stopped in the middle of changing it; writing to it undoes that" in err
    assert state(Path.cwd()) == before
    files.check_writable("sqlite:///a.db?table=t")
    assert ran(capsys, "inspect", "sqlite:///a.db?table=t")[0] == 0
    with sqlite3.connect("a.db") as connection:
        assert connection.execute("SELECT sum(a) FROM t").fetchone() == (sum(range(2000)),)
    connection.close()
