"""Bad input: one sentence that names the place and the remedy, exit code 2, no output file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[[str, str], str]
MASK = ("-o", "out.csv", "--method", "rank_swap")


def rows(count: int, line: Callable[[int], str] = str) -> str:
    return "".join(f"{line(i)}\n" for i in range(count))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("empty.csv", "", "empty.csv: is empty"),
        ("ragged.csv", "A,B\n1,2\n3\n", "ragged.csv: row"),
        ("header.csv", "A,B\n", "no records"),
        ("empties.csv", "A,B\n,\n,\n", "no usable column"),
        ("twice.csv", "A,A\n1,2\n", "several columns are named A"),
        ("data.doc", "A\n1\n", "data.doc"),
    ],
)
def test_a_file_that_cannot_be_masked(write: Write, refused: Any, name: str, text: str, sentence: str) -> None:
    write(name, text)
    assert sentence in refused("mask", name, *MASK)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (rows(30, lambda i: "n/a" if i in (11, 20) else str(i)), '(rows 12, 21: "n/a")'),
        (rows(30, lambda i: "inf" if i == 4 else str(i)), "column A: infinite values (row 5)"),
        ("x\nz\n", "column A: rank_swap takes numeric and ordinal and nominal (with a hierarchy) columns"),
    ],
)
def test_a_named_column_that_cannot_be_masked(write: Write, refused: Any, text: str, sentence: str) -> None:
    write("in.csv", "A\n" + text)
    assert sentence in refused("mask", "in.csv", *MASK, "--columns", "A", "--role", "A=confidential")


@pytest.mark.parametrize("verb", ["inspect", "mask", "audit", "attack", "certify", "verify"])
def test_a_file_that_is_not_there(example: Path, refused: Any, verb: str) -> None:
    more = {
        "mask": MASK,
        "audit": ("masked.csv",),
        "attack": ("masked.csv",),
        "certify": ("masked.csv",),
        "verify": ("--record", "A=1"),
    }
    assert refused(verb, "nothing.csv", *more.get(verb, ())) == "nothing.csv: there is no such file"


def test_the_remedy_for_text_among_numbers_works(write: Write, run: Any, refused: Any) -> None:
    write("in.csv", "A\n" + rows(30, lambda i: "n/a" if i == 11 else "-9" if i == 12 else str(i)))
    named = (*MASK, "--columns", "A", "--role", "A=confidential")
    assert refused("mask", "in.csv", *named).endswith("declare it missing with --missing n/a")
    run("mask", "in.csv", *named, "--missing", "n/a,-9", "--keep-order")
    lines = Path("out.csv").read_text().splitlines()
    assert lines[12:14] == ["n/a", "-9"]


def test_text_that_is_read_as_missing_is_told(write: Write, run: Any) -> None:
    write("in.csv", "A\n" + rows(30, lambda i: "n/a" if i == 11 else str(i)))
    assert 'note: read as missing cells: "n/a"' in run("mask", "in.csv", *MASK, "--keep-order").out
    assert Path("out.csv").read_text().splitlines()[12] == "n/a"
    assert "read as missing" not in run("mask", "in.csv", *MASK, "--missing", "n/a", "--role", "A=confidential").out


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--columns", "X1,X9"), "there is no column X9; known: X1, X2, X3"),
        (("--columns", "X1,X1"), "column X1 is named twice"),
        (("--set", "p.X9=3"), "there is no column X9"),
        (("--set", "p=101"), "rank_swap: p must be a number from 0 to 100, not '101'"),
        (("--set", "p=much"), "p must be a number"),
        (("--set", "pp=3"), "rank_swap has no parameter pp; did you mean p?"),
        (("--set", "p"), "--set: p is not of the form NAME=VALUE"),
        (("--set", "p=3,p=4"), "--set: p is given twice"),
        (("--set", "p=3,4"), "p must be a number from 0 to 100, not '3,4'"),
        (("--then", "rond"), "there is no method rond; did you mean round?"),
        (("--then", "round:decimal=1"), "round has no parameter decimal; did you mean decimals?"),
        (("--kind", "X9=ordinal"), "there is no column X9"),
        (("--kind", "X1=ordinl"), "there is no kind ordinl; did you mean ordinal?"),
        (("--kind", "X1=numeric:a<b"), "only an ordinal column has an order"),
        (("--kind", "X1=nominal", "--columns", "X1"), "column X1"),
        (("--role", "X1=identifer"), "there is no role identifer; did you mean identifier?"),
        (("--roles", "none.toml"), "none.toml: the file of roles cannot be read"),
        (("--columns", 'X1,"X2'), "--columns: a double quote"),
        (("--publish", "um9"), "there is no measure um9"),
        (("--separator", "ab"), "separator"),
    ],
)
def test_options_of_mask(example: Path, refused: Any, more: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused("mask", "original.csv", *MASK, *more)


def test_no_method(example: Path, refused: Any) -> None:
    said = refused("mask", "original.csv", "-o", "out.csv", "--set", "p=20")
    assert said.startswith("--set is of a method: name it with --method (additive_noise, ")
    assert (
        refused("mask", "original.csv", "-o", "out.csv", "--method", "rank_swop")
        == "there is no method rank_swop; did you mean rank_swap?"
    )
    assert "distance_swap needs d" in refused("mask", "original.csv", "-o", "out.csv", "--method", "distance_swap")


@pytest.mark.parametrize("verb", ["audit", "attack", "certify"])
def test_pairs_that_do_not_belong_together(example: Path, write: Write, run: Any, refused: Any, verb: str) -> None:
    write("other.csv", "X1,X2,Y\n" + rows(20, lambda i: f"{i},{i},{i}"))
    if verb == "attack":  # columns may have been dropped: he uses those that there are
        found = run(verb, "original.csv", "other.csv", "--at-most", "1", "--json").json
        assert found["knows"]["columns"] == ["X1", "X2"]
        assert any("the tables have different columns: the masked one has no X3" in note for note in found["notes"])
        write("foreign.csv", "Y,Z\n" + rows(20, lambda i: f"{i},{i}"))
        assert "have no column in common" in refused(verb, "original.csv", "foreign.csv")
    else:
        assert "the tables have different columns" in refused(verb, "original.csv", "other.csv")
    write("short.csv", "X1,X2,X3\n1,2,3\n")
    assert "name a key column with --key" in refused(verb, "original.csv", "short.csv")
    write("keys.csv", "id,X1\n1,1\n1,2\n2,3\n")
    assert "a key must be unique" in refused(verb, "keys.csv", "keys.csv", "--key", "id")
    assert "no key column nr" in refused(verb, "keys.csv", "keys.csv", "--key", "nr")
    assert "give one of key, secret and no mapping" in refused(
        verb, "original.csv", "masked.csv", "--key", "X1", "--no-mapping"
    )
    assert "secret" in refused(verb, "original.csv", "masked.csv", "--secret", "original.csv")
    told = refused(verb, "original.csv", "masked.csv", "--columns", "X7")
    assert ("not in both tables: X7" if verb == "attack" else "there is no column X7") in told
    assert "whole number" in refused(verb, "original.csv", "masked.csv", "--seed", "-1")


def test_options_of_audit(example: Path, refused: Any) -> None:
    pair = ("audit", "original.csv", "masked.csv")
    assert "there is no measure spearman; did you mean spearman_risk?" in refused(*pair, "--measures", "spearman")
    assert "a gate reads like 'cm2<0.05'" in refused(*pair, "--fail-if", "spearman_risk=1")
    assert "there is no measure cmx" in refused(*pair, "--fail-if", "cmx<1")


def test_options_of_attack(example: Path, refused: Any) -> None:
    assert "draws must be" in refused("attack", "original.csv", "masked.csv", "--draws", "0")
    assert "--draws must be a whole number" in refused("attack", "original.csv", "masked.csv", "--draws", "many")


def test_options_of_certify(example: Path, refused: Any) -> None:
    pair = ("certify", "original.csv", "masked.csv")
    assert "d needs one number for each of the 3 attributes, not 2" in refused(*pair, "--d", "1,2")
    assert "--d: x is not a number" in refused(*pair, "--d", "x")
    assert "0 or more" in refused(*pair, "--d", "-1")
    assert "v: there is no attribute X9" in refused(*pair, "--v", "X9=1")
    assert "did you mean variance?" in refused(*pair, "--diversity", "varance")
    assert "f must be mapping or minimax or euclidean" in refused(*pair, "--f", "best")
    assert "f cannot be the mapping" in refused(*pair, "--no-mapping", "--f", "mapping")
    assert "there is no complete original record 21" in refused(*pair, "--record", "21")


def test_options_of_verify(example: Path, write: Write, refused: Any) -> None:
    mine = ("verify", "masked.csv", "--record")
    assert "there is no column X9" in refused(*mine, "X9=1")
    assert "'abc' is not a number" in refused(*mine, "X1=abc")
    assert "NAME=VALUE" in refused(*mine, "X1=1,5")
    assert "X1 is given twice" in refused(*mine, "X1=1", "--record", "X1=2")
    assert "f must be minimax, euclidean or the number" in refused(*mine, "X1=1", "--f", "nearest")
    assert "there is no complete released record 99" in refused(*mine, "X1=1", "--f", "99")
    assert "--record gives no value for column X2" in refused(*mine, "X1=1", "--columns", "X1,X2")
    write("m.json", "{}")
    assert "m.json: this is not a manifest" in refused(*mine, "X1=1", "--manifest", "m.json")
    assert "none.json: the manifest cannot be read" in refused(*mine, "X1=1", "--manifest", "none.json")
    assert "draws" in refused(*mine, "X1=1", "--draws", "0")
    assert "at least one value" in refused(*mine, "")


def test_names_cannot_break_the_sentence(write: Write, refused: Any) -> None:
    write("in.csv", '"A\nB\x1b[2J"\n' + rows(30, lambda i: "??" if i == 3 else str(i % 10)))
    assert "column A\\nB\\x1b[2J: 1 value is not a number" in refused(
        "mask", "in.csv", *MASK, "--columns", '"A\nB\x1b[2J"'
    )


def test_an_empty_name_of_a_file(refused: Any) -> None:
    assert refused("inspect", "") == "the name of a file is empty"


def test_roles_that_leave_no_column(example: Path, refused: Any) -> None:
    said = refused("mask", "original.csv", *MASK, "--role", "X1=identifier,X2=weight,X3=other")
    assert "every numeric or ordinal one was given the role" in said


def test_a_table_with_very_many_columns_is_not_listed_whole(write: Write, refused: Any) -> None:
    names = [f"V{i}" for i in range(500)]
    write("wide.csv", ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    said = refused("mask", "wide.csv", *MASK, "--columns", "zzz")
    assert said.endswith("and 470 more")
