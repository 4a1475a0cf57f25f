"""The command itself: help and its examples, catalogues, demo, reproduce, and every way it can end."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.cli import failures, main, output
from rankveil.cli.app import VERBS
from rankveil.cli.progress import watching

SEED = "00112233445566778899aabbccddeeff"
COMMAND = [sys.executable, "-m", "rankveil"]


def examples_of(help_text: str) -> list[list[str]]:
    """The commands at the end of a help text, at least one."""
    _, mark, example = help_text.partition("Example")
    lines = example.partition(":\n")[2].replace("\\\n", " ").splitlines()
    found = [words for words in map(shlex.split, lines) if words]
    assert mark
    assert found
    return found


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What `rankveil demo` said, and the folder that it made."""
    folder, said = tmp_path_factory.mktemp("demo") / "rankveil-demo", io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said):
        patch.chdir(folder.parent)
        assert main(["demo", "-o", "rankveil-demo", "--seed", SEED]) == 0
    return said.getvalue(), folder


@pytest.fixture
def demo(demonstrated: tuple[str, Path], here: Path) -> str:
    """What `rankveil demo` said; the folder that it made is here."""
    said, folder = demonstrated
    shutil.copytree(folder, here / folder.name)
    return said


def test_every_example_in_the_help_runs(demo: str, run: Any) -> None:
    assert examples_of(run("demo", "--help").out) == [["rankveil", "demo", "-o", "rankveil-demo"]]
    for verb in VERBS:
        for words in examples_of(run(verb, "--help").out):
            assert words[:2] == ["rankveil", verb]
            if verb not in ("demo", "serve"):  # the one was run, the other would run until it is stopped
                # in the demo's release some records keep their ranks, so that its certificate is trivial
                run(*words[1:], code=int(verb == "certify"))


def test_help_names_every_verb_and_option(run: Any) -> None:
    said = run("--help").out
    assert run().out == said == run("-h").out
    assert all(f"  {verb} " in said for verb in VERBS)
    assert "..." not in said.partition("Commands:")[2]
    options = {
        "mask": "-o --method --set --then --plan --publish --seed-file --seed --manifest --secret --columns --json",
        "audit": "--measures --set --by --target --pair --report --public --fail-if --columns --key --no-mapping "
        "--secret --seed --kind --role --roles",
        "compare": "--methods --at --sweep --risk --utility --replicates --write-plan --resume --report --columns",
        "serve": "--port --workspace --no-browser",
        "subject-page": "-o --columns",
        "attack": "--manifest --no-manifest --knows --people --at-most --records --draws --subsets --links --report "
        "--key --no-mapping --secret --seed --columns --json",
        "certify": "--d --v --diversity --f --record --key --no-mapping --secret --seed --columns --json",
        "verify": "--record --f --draws --seed --manifest --columns --kind --missing --json",
    }
    for verb, names in options.items():
        words = run(verb, "--help").out.replace(",", " ").split()
        assert set(names.split()) <= set(words), verb
    for verb in ("inspect", "mask", "audit", "attack", "certify", "verify", "subject-page", "compare"):
        assert "--hierarchy A=F.csv" in run(verb, "--help").out, verb


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    for words in (["--help"], ["mask", "--help"]):
        took = []
        for _ in range(3):
            start = os.times()
            done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=True)
            end = os.times()  # the time of its own work, which a busy machine does not lengthen
            took.append(end.children_user + end.children_system - start.children_user - start.children_system)
        assert done.stdout.startswith("Usage: rankveil")
        assert min(took) < 0.5
    heavy = "import sys; from rankveil.cli import main; main(['audit', '--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert not {"numpy", "pyarrow", "narwhals", "rich.table"} & set(done.stdout.split())


def test_version(run: Any) -> None:
    assert run("--version").out == f"rankveil {rv.__version__}\n"


@pytest.mark.parametrize("verb", ["methods", "measures"])
def test_catalogues(run: Any, verb: str) -> None:
    entries = getattr(rv.catalogue, verb)()
    listed = run(verb, "--json").json
    assert [each["id"] for each in listed] == list(entries)
    assert all({"title", "parameters", "source"} <= set(each) for each in listed)
    said = run(verb).out
    assert all(f"{name} " in said for name in entries)


def test_the_table_of_methods(run: Any) -> None:
    head, *rows = run("methods").out.splitlines()[1:]
    assert head.split() == ["id", "title", "strength", "mapping", "marginals", "random", "transparent", "source"]
    row = next(row for row in rows if row.startswith("rank_swap "))
    kept = ["kept", "kept", "yes", "yes"]
    assert re.split(r"  +", row) == ["rank_swap", "Rank swapping", "p", *kept, "after Moore 1996"]


def test_demo(demo: str, here: Path, run: Any) -> None:
    names = ["masked.csv", "masked.csv.manifest.json", "masked.csv.secret.json", "original.csv", "region.csv"]
    names += ["report.html"]
    folder = here / "rankveil-demo"
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / "masked.csv.secret.json").stat().st_mode & 0o777 == 0o600
    assert "Try next:" in demo
    holding = [name for name in names if SEED in (folder / name).read_text(encoding="utf-8")]
    assert holding == ["masked.csv.secret.json"]
    assert SEED not in demo
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "How people are found" in page
    assert "The paper&#39;s own test" in page
    assert "How far the values moved" in page
    assert "PERSON" not in (folder / "masked.csv").read_text(encoding="utf-8")
    for line in demo.partition("Try next:\n")[2].splitlines():
        if line.startswith("  rankveil "):
            run(*shlex.split(line)[1:])


def test_demo_as_json_into_a_folder(here: Path, run: Any, refused: Any) -> None:
    Path("there").mkdir()
    found = run("demo", "-o", "there", "--json").json
    assert found["schema"] == "rankveil/demo/1"
    assert all(Path(name).exists() for name in found["files"])
    assert [each["verdict"] for each in found["maskings"]] == ["fails", "holds"]
    assert found["maskings"][0]["found"] > 0.5
    assert (found["maskings"][1]["found"] <= 0.09, found["maskings"][1]["certain"]) == (True, 0)
    Path("file").write_text("x")
    assert refused("demo", "-o", "file") == "file: is not a folder; give the name of a new or existing one"
    assert "hexadecimal" in refused("demo", "--seed", "xyz")
    assert "cannot be made" in refused("demo", "-o", "file/below")
    (here / "there" / "report.html").unlink()
    (here / "there" / "report.html").mkdir()
    assert "report.html: is a folder" in refused("demo", "-o", "there")


def test_reproduce(here: Path, run: Any, refused: Any) -> None:
    found = run("reproduce", "masking-as-permutation", "-o", "again", "--json").json
    assert (found["schema"], found["paper"]) == ("rankveil/reproduce/1", "masking-as-permutation")
    assert {"item", "published", "computed", "difference", "ok"} <= set(found["tables"][0]["rows"][0])
    assert found["figures"]
    assert all(Path(name).exists() for name in found["figures"])
    assert "did you mean new-directions?" in refused("reproduce", "new-direction")
    assert "no such folder" in refused("reproduce", "new-directions", "--data", "nowhere")


def test_reproduce_in_words(run: Any) -> None:
    said = run("reproduce", "masking-as-permutation").out
    assert "masking-as-permutation:" in said
    assert "Table 1" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["msk"], "there is no verb msk; did you mean mask?"),
        (["zzz"], "there is no verb zzz; known: attack, audit"),
        (["mask"], "IN is missing (see rankveil mask --help)"),
        (["mask", "a.csv"], "--output/-o is missing"),
        (["attack", "a.csv"], "MASKED... is missing"),
        (["verify", "a.csv"], "--record is missing"),
        (["verify", "a.csv", "--record"], "--record' requires an argument"),
        (["certify", "a.csv", "b.csv", "c.csv"], "unexpected extra argument"),
        (["audit", "a.csv", "b.csv", "--mesures", "x"], "there is no option --mesures; did you mean --measures?"),
        (["audit", "a.csv", "b.csv", "-x"], "there is no option -x (see rankveil audit --help)"),
        (["audit", "a.csv", "b.csv", "--set", "basis=values"], "reads like um.basis=values"),
        (["audit", "a.csv", "b.csv", "--pair", "nearest"], "give --no-mapping too"),
        (["audit", "a.csv", "b.csv", "c.csv", "--secret", "s.json"], "--secret is of one release"),
        (["audit", "a.csv", "b.csv", "--seed", SEED], "--seed must be a whole number"),
        (["--verzion"], "there is no option --verzion; did you mean --version?"),
        (["audit", "a.csv", "b.csv", "--json=yes"], "--json"),
    ],
)
def test_wrong_usage(here: Path, refused: Any, words: list[str], sentence: str) -> None:
    assert sentence in refused(*words)


def end_of(error: BaseException) -> int:
    def fail(argv: list[str]) -> int:
        raise error

    return failures.guarded(fail, [])


def test_a_mistake_of_our_own_tells_its_place_and_not_its_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def deep(argv: list[str]) -> int:
        output.plain({"seed": object()})
        return 0

    monkeypatch.delenv("RANKVEIL_DEBUG", raising=False)
    assert end_of(ValueError(f"secret {SEED}")) == 3
    assert failures.guarded(deep, []) == 3
    said = capsys.readouterr().err
    assert SEED not in said
    assert "(ValueError at rankveil/cli/failures.py:" in said
    assert "(TypeError at rankveil/cli/output.py:" in said
    assert said.count("\n") == 2
    monkeypatch.setenv("RANKVEIL_DEBUG", "1")
    assert end_of(ValueError("what happened")) == 3
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "what happened" in said


def test_other_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert end_of(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "rankveil: stopped; nothing was written\n"
    assert end_of(PermissionError(13, "Permission denied", "x.csv")) == 2
    assert capsys.readouterr().err == "rankveil: x.csv: permission denied\n"
    assert end_of(MemoryError()) == 2
    assert "not enough memory" in capsys.readouterr().err


def test_stopping_by_the_keyboard(example: Path) -> None:
    os.mkfifo("seed")
    process = subprocess.Popen(
        [*COMMAND, "mask", "original.csv", "-o", "out.csv", "--method", "permute", "--seed-file", "seed"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell in the background ignores it
    )
    with process, opened_when_read("seed", while_runs=process):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "rankveil: stopped; nothing was written\n")
    assert sorted(path.name for path in example.iterdir()) == ["masked.csv", "original.csv", "seed"]


@contextmanager
def opened_when_read(fifo: str, *, while_runs: subprocess.Popen[str]) -> Iterator[None]:
    """Wait until the command reads from the pipe; it then waits for what is never written."""
    while while_runs.poll() is None:
        try:
            end = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)
            continue
        yield
        os.close(end)
        return
    pytest.fail(while_runs.communicate()[1])


@pytest.mark.parametrize("words", [["methods"], ["attack", "original.csv", "masked.csv", "--json"]])
def test_nobody_reads(example: Path, words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, *words], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_full_disk_behind_standard_output(example: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("only where there is such a device")
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "methods"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("rankveil: no space left on device\n")


def test_a_terminal_that_knows_no_umlauts(example: Path) -> None:
    Path("x.csv").write_text("Ä,B\n1,2\n3,4\n", encoding="utf-8")
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for more in ([], ["--json"]):
        words = [*COMMAND, "inspect", "x.csv", *more]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=ascii_only)
        assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["columns"][0]["name"] == "Ä"


def test_a_terminal(example: Path) -> None:
    import pty

    leader, follower = pty.openpty()
    words = [*COMMAND, "audit", "original.csv", "masked.csv", "--measures", "rank_linkage"]  # a measure makes a table
    said = b""
    with subprocess.Popen(words, stdout=follower, stderr=follower, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(follower)
        try:
            while part := os.read(leader, 65536):  # while it runs: a terminal holds a few thousand letters only
                said += part
        except OSError:  # the way in which a closed terminal ends
            pass
    os.close(leader)
    assert process.returncode == 0
    assert "Re-identification rate" in said.decode()
    assert "\u2500" in said.decode()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_to_a_person_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for quiet, patience, shown in ((False, 0.0, True), (True, 0.0, False), (False, 60.0, False)):
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with watching("linking", quiet=quiet, patience=patience) as report:
            for done in range(30):
                report(done, 30)
                time.sleep(0.01 if patience == 0 else 0)
        assert ("linking" in terminal.getvalue()) is shown


def test_no_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with watching("linking", quiet=False, patience=0.0) as report:
        report(1, 2)
        time.sleep(0.05)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_markup_in_names_is_shown_as_it_is(here: Path, run: Any) -> None:
    Path("x.csv").write_text("[bold]A[/bold],:smile:\n1,2\n3,4\n", encoding="utf-8")
    said = run("inspect", "x.csv").out
    assert "[bold]A[/bold]" in said
    assert ":smile:" in said


def test_json_knows_no_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np

    output.emit({"a": np.float64(1.5), "b": np.array([1, 2]), "c": float("nan"), "d": {3: (np.int64(4), True)}})
    assert json.loads(capsys.readouterr().out) == {"a": 1.5, "b": [1, 2], "c": None, "d": {"3": [4, True]}}


def test_a_long_document_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit({"links": list(range(100_000)), "p": float("inf")})
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert json.loads(said) == {"links": list(range(100_000)), "p": None}


def test_main_returns_a_number() -> None:
    assert main(["--version"]) == 0


@pytest.mark.parametrize("closed", [("stdout",), ("stderr",), ("stdin", "stdout", "stderr")])
def test_closed_streams(example: Path, closed: tuple[str, ...]) -> None:
    numbers = [("stdin", "stdout", "stderr").index(name) for name in closed]

    def close() -> None:
        for number in numbers:
            os.close(number)

    mask = [*COMMAND, "mask", "original.csv", "-o", "out.csv", "--method", "permute"]
    assert subprocess.run(mask, preexec_fn=close, stdin=subprocess.DEVNULL, check=False).returncode == 0
    assert (example / "out.csv").exists()
    assert subprocess.run([*COMMAND, "inspect", "none.csv"], preexec_fn=close, check=False).returncode == 2


@pytest.mark.skipif(
    pa.__version__.startswith("23.0."), reason="pyarrow 23.0 aborts at the end where an import within it was stopped"
)
def test_stopping_while_pandas_is_loaded(example: Path) -> None:
    """pyarrow loads it in the middle of the work and would swallow the interruption."""
    code = """
import sys
class Stop:
    def find_spec(self, name, *rest):
        if name == "pandas":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop())
from rankveil.cli import main
sys.exit(main(["inspect", "original.csv"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "rankveil: stopped; nothing was written\n")
