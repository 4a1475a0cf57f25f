"""The password in a database's address is told to nobody, wherever on the command line the address stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rankveil.cli import addresses, failures, main
from rankveil.cli.app import VERBS, command

PASSWORD = "hunter2"
ADDRESS = f"postgresql://u:{PASSWORD}@127.0.0.1:1/db?table=t"
"""Of a server that is not there."""
ODD = (
    f"postgresql://u:{PASSWORD} {PASSWORD}@127.0.0.1:1/db?table=t",
    f"postgresql://u:{PASSWORD}/@127.0.0.1:1/db?table=t",
    f"postgresql://u:a@{PASSWORD}@127.0.0.1:1/db?table=t",
    f"postgresql://127.0.0.1:1/db?table=t&password={PASSWORD}",
    f"postgresql://u:{PASSWORD}@127.0.0.1:1/db",
    f"sqlite://u:{PASSWORD}@127.0.0.1/db?table=t",
    f"mysql://u:{PASSWORD}@127.0.0.1:1/db?table=t",
)
"""Others that people write: with a blank, with signs that an address must write otherwise, of other programs."""

PAIR = ["original.csv", "masked.csv"]
WORDS = {
    "demo": [],
    "inspect": PAIR[:1],
    "mask": [*PAIR[:1], "-o", "out.csv", "--method", "rank_swap"],
    "audit": [*PAIR, "--measures", "cm2"],
    "attack": PAIR,
    "certify": PAIR,
    "verify": [*PAIR[1:], "--record", "X1=1"],
    "subject-page": [*PAIR[1:], "-o", "page.html"],
    "compare": [*PAIR[:1], "--methods", "rank_swap", "--at", "level=0.2", "--utility", "um", "--replicates", "1"],
    "serve": ["--port", "70000"],  # which is refused: no server is started
    "methods": [],
    "measures": [],
    "reproduce": ["masking-as-permutation"],
}
"""A command of each verb that needs nothing else."""
FREE = ("--title",)
"""Options whose text is what a person wants to see."""


def options(verb: str) -> Iterator[tuple[str, str]]:
    """Every option of a verb that takes a value, and how the help calls that value."""
    for parameter in command().commands[verb].params:
        if parameter.param_type_name == "option" and not parameter.is_flag and parameter.opts[0] not in FREE:
            yield parameter.opts[0], parameter.metavar or ""


def is_path(metavar: str) -> bool:
    return metavar in ("DIR", "OUT", "F") or metavar.startswith("F.") or metavar.endswith("=F.csv")


def commands(verb: str, address: str, *, only_paths: bool) -> Iterator[list[str]]:
    """The command with the address in each place in turn."""
    words = WORDS[verb]
    for place, word in enumerate(words):
        if word.endswith(".csv"):
            yield [verb, *words[:place], address, *words[place + 1 :]]
    yield [verb, *words, address]
    for name, metavar in options(verb):
        value = f"X1={address}" if "=" in metavar else address
        if is_path(metavar) or not only_paths:
            yield [verb, *words, name, value]
        if is_path(metavar) and not only_paths:
            yield [verb, *words, f"{name}={value}"]


def everything_in(folder: Path) -> str:
    """The names and contents of all files and folders."""
    paths = sorted(folder.rglob("*"))
    texts = [path.read_bytes().decode("utf-8", "replace") for path in paths if path.is_file()]
    return "\n".join([*(str(path.relative_to(folder)) for path in paths), *texts])


def assert_kept_secret(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    code = main(words)
    said = capsys.readouterr()
    assert code in (0, 1, 2), (words, said.err)
    assert PASSWORD not in said.out + said.err, words
    assert PASSWORD not in everything_in(folder), words
    return said.err


def test_every_verb_is_tried() -> None:
    assert tuple(WORDS) == VERBS
    paths = {verb: {name for name, metavar in options(verb) if is_path(metavar)} for verb in VERBS}
    assert {"--plan", "--seed-file", "--manifest", "--secret", "--roles", "--hierarchy"} < paths["mask"]
    assert {"--links", "--report", "--secret"} < paths["attack"]
    assert {"--state", "--write-plan", "--report"} < paths["compare"]
    assert [paths[verb] for verb in ("demo", "serve", "reproduce")] == [
        {"--output"},
        {"--workspace"},
        {"--data", "--output"},
    ]


@pytest.mark.parametrize("verb", VERBS)
def test_an_address_in_every_place(example: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    for words in commands(verb, ADDRESS, only_paths=False):
        assert_kept_secret(words, example, capsys)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("address", [ODD[0], *(pytest.param(each, marks=pytest.mark.thorough) for each in ODD[1:])])
def test_odd_addresses_where_a_path_can_stand(
    example: Path, capsys: pytest.CaptureFixture[str], verb: str, address: str
) -> None:
    for words in commands(verb, address, only_paths=True):
        assert_kept_secret(words, example, capsys)


def test_an_address_instead_of_a_verb(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = assert_kept_secret([ADDRESS], here, capsys)
    assert said.startswith("rankveil: there is no verb postgresql://u:***@127.0.0.1:1/db?table=t; known: ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["inspect", "original.csv", ADDRESS],
            "unexpected extra argument(s) (postgresql://u:***@127.0.0.1:1/db?table=t)",
        ),
        (["inspect", "original.csv", "--roles", ADDRESS], "t: the file of roles cannot be an address; give the name"),
        (["inspect", "original.csv", "--hierarchy", f"X1={ADDRESS}"], "t: the hierarchy cannot be an address"),
        (["mask", "original.csv", "-o", "o.csv", "--plan", ADDRESS], "t: the plan cannot be an address"),
        (["mask", *WORDS["mask"][:1], "-o", "o.csv", "--secret", ADDRESS], "t: the secret cannot be an address"),
        (["audit", *PAIR, "--secret", ADDRESS], "t: the secret cannot be an address"),
        (["audit", *PAIR, "--report", ADDRESS], "t: the report cannot be an address; give the name of a file"),
        (["attack", *PAIR, "--links", ADDRESS], "postgresql://u:***@127.0.0.1:1/db?table=t: there is no connection"),
        (["verify", "masked.csv", "--record", "X1=1", "--manifest", ADDRESS], "t: the manifest cannot be an address"),
        (["compare", *WORDS["compare"], "--state", ADDRESS], "t: the state cannot be an address"),
        (["audit", *PAIR, "--scratch", ADDRESS], "t: the scratch folder cannot be an address; give the name of a fol"),
        (["demo", "-o", ADDRESS], "t: the folder cannot be an address; give the name of a folder"),
    ],
)
def test_the_rest_of_the_sentence_stays(example: Path, refused: Any, words: list[str], told: str) -> None:
    assert told in refused(*words)


def test_a_hierarchy_named_in_the_file_of_roles(example: Path, refused: Any) -> None:
    (example / "more").mkdir()
    (example / "more" / "roles.toml").write_text(f'[columns.X1]\nhierarchy = "{ADDRESS}"\n')
    told = refused("inspect", "original.csv", "--roles", "more/roles.toml")
    assert told.startswith("postgresql://u:***@127.0.0.1:1/db?table=t: the hierarchy cannot be an address")


def test_what_slips_through_is_hidden_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(argv: list[str]) -> int:
        raise OSError(5, "Input/output error", f"folder/{ADDRESS}")

    assert failures.guarded(fail, []) == 2
    expected = "rankveil: folder/postgresql://u:***@127.0.0.1:1/db?table=t: input/output error\n"
    assert capsys.readouterr().err == expected
    monkeypatch.setenv("RANKVEIL_DEBUG", "1")
    assert failures.guarded(fail, []) == 2
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert PASSWORD not in said


@pytest.mark.parametrize(
    ("word", "told"),
    [
        (ADDRESS, "postgresql://u:***@127.0.0.1:1/db?table=t"),
        (f"--report={ADDRESS}", "--report=postgresql://u:***@127.0.0.1:1/db?table=t"),
        (
            f"A=sqlite:///a.db?table=t,B={ADDRESS}",
            "A=sqlite:///a.db?table=t,B=postgresql://u:***@127.0.0.1:1/db?table=t",
        ),
        ("duckdb:///my file.db?table=t", "duckdb:///my file.db?table=t"),
        ("tcp://node7:8786", "tcp://node7:8786"),
        ("tcp://me:word@node7:8786", "tcp://..."),
        ("'spearman_risk>0.9'", "'spearman_risk>0.9'"),
    ],
)
def test_words_of_a_command_in_a_report(word: str, told: str) -> None:
    assert addresses.hidden_word(word) == told


def test_our_own_examples_of_addresses_are_told_as_they_are(here: Path, refused: Any) -> None:
    assert refused("inspect", "postgresql://u:a@b@h/db?table=t") == (
        "postgresql://...: is not an address of a table; write it like "
        "postgresql://user@host:5432/database?table=name; "
        "inside a name or a password write @ / ? # as %40 %2F %3F %23"
    )
    assert refused("inspect", "mysql://h/db").endswith("duckdb://, postgres://, postgresql://, sqlite://")
