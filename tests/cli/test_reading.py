"""What is declared of columns: flags, the file of roles, missing markers, and the form of a CSV file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankveil.cli.options import Reading
from rankveil.cli.tables import declared_schema

Write = Callable[[str, str], str]


@pytest.fixture
def people(write: Write) -> str:
    words = ("low", "middle", "high")
    rows = "".join(f"{i},{words[i % 3]},{i * i},{1 if i % 4 else 'n/a'}\n" for i in range(12))
    return write("people.csv", f"ID,EDU,PAY,GROUP\n{rows}")


def test_inspect(people: str, run: Any) -> None:
    found = run("inspect", people, "--missing", "n/a", "--json").json
    assert (found["schema"], found["file"], found["records"]) == ("rankveil/inspect/1", people, 12)
    assert found["csv"] == {"separator": ",", "decimal": ".", "encoding": "utf-8"}
    assert found["masked"] == ["EDU", "PAY"]
    by_name = {column["name"]: column for column in found["columns"]}
    assert by_name["ID"]["looks_like_identifier"] is True
    assert (by_name["ID"]["role"], by_name["ID"]["role_given"]) == ("identifier", False)
    assert (by_name["GROUP"]["missing"], by_name["GROUP"]["distinct"], by_name["GROUP"]["ties"]) == (3, 1, 1.0)
    assert (by_name["EDU"]["kind"], by_name["EDU"]["masked"]) == ("ordinal", True)


def test_inspect_in_words(people: str, run: Any) -> None:
    said = run("inspect", people, "--kind", "EDU=ordinal:low<middle<high", "--role", "ID=identifier").out
    assert "people.csv: 12 records, 4 columns." in said
    assert "low < middle < high" in said
    assert "ordinal (guess)" not in said
    assert "masking would refuse" not in said  # GROUP is text as long as n/a is not declared
    assert "leave out" in said


def test_inspect_names_problems_without_failing(write: Write, run: Any) -> None:
    write("in.csv", "A,Z,D\n" + "".join(f"{'?' if i == 3 else i},00{i},{2**60 + i}\n" for i in range(20)))
    found = run("inspect", "in.csv", "--json").json
    by_name = {column["name"]: column for column in found["columns"]}
    assert by_name["A"]["decision"]["missing"] == ["?"]
    assert by_name["A"]["problem"] is None
    assert "leading zeros" in by_name["Z"]["why_not_numeric"]
    assert "beyond 2^53" in by_name["D"]["why_not_numeric"]
    said = run("inspect", "in.csv", "--columns", "A,Z").out
    assert "masking would refuse column A: 1 value is not a number" in said


def test_inspect_chosen_columns_and_empty_tables(people: str, write: Write, run: Any, refused: Any) -> None:
    assert run("inspect", people, "--columns", "PAY", "--json").json["masked"] == ["PAY"]
    assert run("inspect", people, "--columns", "EDU", "--json").json["masked"] == ["EDU"]
    assert "there is no column EDO; did you mean EDU?" in refused("inspect", people, "--columns", "EDO")
    found = run("inspect", write("none.csv", "A,B\n"), "--json").json
    assert (found["records"], found["masked"]) == (0, [])
    assert "nothing would be masked: the table has no records" in found["notes"]


def test_roles_from_a_file_and_flags_that_win(people: str, write: Write, run: Any) -> None:
    write(
        "roles.toml",
        'missing = ["n/a", -9]\n'
        '[columns.EDU]\nkind = "ordinal"\nrole = "quasi-identifier"\nlevels = ["low", "middle", "high"]\n'
        '[columns.ID]\nrole = "identifier"\n[columns.PAY]\nkind = "ordinal"\n',
    )
    found = run("inspect", people, "--roles", "roles.toml", "--json").json
    by_name = {column["name"]: column for column in found["columns"]}
    assert found["masked"] == ["EDU", "PAY"]
    assert by_name["EDU"]["levels"] == ["low", "middle", "high"]
    assert (by_name["PAY"]["kind"], by_name["GROUP"]["missing"]) == ("ordinal", 3)
    flags = ("--kind", "EDU=nominal,PAY=numeric", "--role", "ID=confidential", "--missing", "NONE")
    found = run("inspect", people, "--roles", "roles.toml", *flags, "--json").json
    by_name = {column["name"]: column for column in found["columns"]}
    assert found["masked"] == ["ID", "EDU", "PAY", "GROUP"]  # its role was given, so a nominal column is masked too
    other = run("inspect", people, "--roles", "roles.toml", *flags, "--role", "EDU=other", "--json").json
    assert other["masked"] == ["ID", "PAY", "GROUP"]
    assert (by_name["EDU"]["kind"], by_name["GROUP"]["missing"]) == ("nominal", 0)
    kept = declared_schema(Reading(roles="roles.toml", kind=["EDU=ordinal"]))
    assert kept.levels == {"EDU": ("low", "middle", "high")}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[columns", "is not TOML"),
        ("mising = []", "there is no setting mising; did you mean missing?"),
        ("missing = 3", "missing must be a list"),
        ("columns = 3", "columns are tables"),
        ("[columns.EDU]\nknd = 'x'", "[columns.EDU] there is no setting knd; did you mean kind?"),
        ("[columns.EDU]\nkind = 3", "[columns.EDU] kind must be a text"),
        ("[columns.EDU]\nkind = 'numeric'\nlevels = ['a']", "only an ordinal column has an order"),
        ("[columns.EDU]\nlevels = 'a'", "levels must be a list"),
        ("[columns.EDUC]\nkind = 'ordinal'", "there is no column EDUC; did you mean EDU?"),
        ("[columns.EDU]\nlevels = ['low', 'high']", "'middle' (row 2) is not one of its levels"),
    ],
)
def test_files_of_roles_that_are_wrong(people: str, write: Write, refused: Any, text: str, sentence: str) -> None:
    write("roles.toml", text)
    command = ("mask", people, "-o", "out.csv", "--method", "rank_swap", "--roles", "roles.toml", "--missing", "n/a")
    assert sentence in refused(*command)


def test_ordinal_words_are_masked_and_audited(people: str, run: Any) -> None:
    order = ("--kind", "EDU=ordinal:low<middle<high", "--columns", "EDU,PAY")
    run("mask", people, "-o", "out.csv", "--method", "permute", *order)
    found = run("audit", people, "out.csv", *order, "--json").json
    assert found["attributes"] == ["EDU", "PAY"]
    mine = ("--record", "EDU=middle,PAY=16", *order[:2])
    assert run("verify", "out.csv", *mine, "--json").json["nearest"] == ["middle", 16]


def test_decimal_commas(write: Write, run: Any) -> None:
    rows = "".join(f"{i},25;{i}\n" for i in range(12))
    write("x.csv", f"A;B\n{rows}")
    assert run("audit", "x.csv", "x.csv", "--json").json["attributes"] == ["A", "B"]
    for record in ('"A=3,25",B=3', 'A="3,25",B=3', "A=3.25,B=3"):
        assert run("verify", "x.csv", "--record", record, "--json").json["nearest"] == [3.25, 3]


def test_the_form_of_a_csv_file_can_be_given(write: Write, run: Any) -> None:
    Path("x.csv").write_bytes("A|Ü\n1,5|x\n2,5|y\n".encode("cp1252"))
    given = ("--separator", "|", "--decimal", ",", "--encoding", "cp1252")
    found = run("inspect", "x.csv", *given, "--json").json
    assert [column["name"] for column in found["columns"]] == ["A", "Ü"]
    assert found["csv"]["decimal"] == ","
    assert found["masked"] == ["A", "Ü"]


def test_the_manifest_makes_the_check_exact(people: str, run: Any) -> None:
    run("mask", people, "-o", "out.csv", "--method", "permute", "--columns", "ID,PAY", "--release-identifier", "ID")
    mine = ("verify", "out.csv", "--record", "ID=3,PAY=9", "--seed", "5", "--draws", "100", "--json")
    assert run(*mine, "--no-manifest").json["chance"]["approximate"] is True
    found = run(*mine, "--manifest", "out.csv.manifest.json").json
    assert found == run(*mine).json  # the manifest beside the release is read by itself
    assert found["chance"]["approximate"] is False
    assert found["notes"] == ["what was released has nothing to do with your value: ID, PAY"]
    run(
        "mask",
        people,
        "-o",
        "noise.csv",
        "--method",
        "additive_noise",
        "--columns",
        "ID,PAY",
        "--release-identifier",
        "ID",
    )
    noisy = run("verify", "noise.csv", "--record", "PAY=9", "--manifest", "noise.csv.manifest.json", "--json").json
    assert noisy["chance"]["approximate"] is True
    assert run(*mine, "--columns", "PAY").json["attributes"] == ["PAY"]


def test_what_was_assumed_of_a_file_is_told(write: Write, run: Any) -> None:
    write("x.csv", "A,B\n1,2\n\n3,4\n")
    for verb in (("inspect", "x.csv"), ("audit", "x.csv", "x.csv"), ("verify", "x.csv", "--record", "A=1")):
        assert any("blank line" in note for note in run(*verb, "--json").json["notes"])


HIERARCHY = "low;basic;*\nmiddle;basic;*\nhigh;advanced;*\n"


def test_inspect_shows_hierarchies(people: str, write: Write, run: Any) -> None:
    write("edu.csv", HIERARCHY)
    given = ("--hierarchy", "EDU=edu.csv")
    found = run("inspect", people, *given, "--json").json
    by_name = {column["name"]: column for column in found["columns"]}
    assert by_name["EDU"]["hierarchy"] == {"name": "edu.csv", "categories": [3, 2, 1]}
    assert (by_name["EDU"]["kind"], by_name["EDU"]["distinct"], by_name["EDU"]["problem"]) == ("nominal", 3, None)
    assert by_name["PAY"]["hierarchy"] is None
    assert "hierarchy edu.csv: 2 levels above (3 > 2 > 1 categories)" in run("inspect", people, *given).out
    write("roles.toml", '[columns.EDU]\nhierarchy = "edu.csv"\n')
    assert run("inspect", people, "--roles", "roles.toml", "--json").json == found


@pytest.mark.parametrize("role", [(), ("--role", "EDU=quasi-identifier")])
def test_inspect_names_what_a_hierarchy_lacks(people: str, write: Write, run: Any, refused: Any, role: Any) -> None:
    write("edu.csv", HIERARCHY.replace("middle", "midle"))
    given = (people, "--hierarchy", "EDU=edu.csv", *role)
    [column] = [each for each in run("inspect", *given, "--json").json["columns"] if each["name"] == "EDU"]
    problem = column["problem"]
    assert problem.startswith("column EDU: ")
    assert problem.endswith("; add a line for it; did you mean midle?")
    assert all(word in problem for word in ("edu.csv", "'middle'", "row 2"))
    assert (column["distinct"], column["hierarchy"]["categories"]) == (3, [3, 2, 1])
    assert f"masking would refuse {problem}" in run("inspect", *given).out
    masking = ("-o", "out.csv", "--method", "recode", "--set", "level=1", "--columns", "EDU")
    assert refused("mask", *given, *masking) == problem


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("low;basic\nlow;advanced\n", "'low' has two parents, 'basic' (line 1) and 'advanced' (line 2)"),
        ("low;basic;*\nmiddle;basic\n", "line 2 has 2 levels, the first has 3"),
        ("low\nmiddle\n", "a hierarchy needs a level above its leaves"),
        ("", "the hierarchy has no lines"),
    ],
)
def test_a_file_that_is_no_hierarchy(people: str, write: Write, refused: Any, text: str, sentence: str) -> None:
    write("edu.csv", text)
    told = refused("inspect", people, "--hierarchy", "EDU=edu.csv")
    assert told.startswith("edu.csv: ")
    assert sentence in told


def test_decisions_are_printed_written_and_read(write: Write, run: Any, refused: Any) -> None:
    rows = "".join(
        f"{1 + i // 3},{i},{1 + i % 2},{'N' if i % 4 == 0 else 10 * i},{i % 3}.5,x {i % 3}\n" for i in range(90)
    )
    file = write("in.csv", f"hid,pid,sex,income,wgt,a class\n{rows}")
    said = run("inspect", file, "--write-roles", "roles.toml").out
    assert "pseudonymise" in said
    assert "leave out" in said
    assert "decisions: roles.toml" in said
    found = {each["name"]: each["decision"] for each in run("inspect", file, "--json").json["columns"]}
    assert {name: (each["kind"], each["role"], each["action"]) for name, each in found.items()} == {
        "hid": ("unordered", "group", "pseudonymise"),
        "pid": ("unordered", "identifier", "leave out"),
        "sex": ("unordered", "quasi-identifier", "mask"),
        "income": ("numbers", "confidential", "mask"),
        "wgt": ("numbers", "weight", "keep"),
        "a class": ("unordered", "quasi-identifier", "mask"),
    }
    text = Path("roles.toml").read_text(encoding="utf-8")
    assert text.startswith('missing = ["N"]\n')
    assert all(f"# {each['action']}: " in text for each in found.values())
    applied = run("inspect", file, "--roles", "roles.toml", "--json").json
    assert applied["masked"] == ["sex", "income", "a class"]
    kinds = {each["name"]: (each["kind"], each["role"], each["role_given"]) for each in applied["columns"]}
    assert kinds["hid"] == ("nominal", "group", True)
    assert kinds["income"] == ("numeric", "confidential", True)
    assert [each["problem"] for each in applied["columns"]] == [None] * 6
    assert "would overwrite the table" in refused("inspect", file, "--write-roles", file)


def test_a_second_weight_and_what_was_declared_are_written_too(people: str, write: Write, run: Any) -> None:
    write("in.csv", "w,hh_weight,b\n" + "".join(f"1,{1 + i % 7}.5,{'low' if i % 3 else 'high'}\n" for i in range(40)))
    run("inspect", "in.csv", "--write-roles", "roles.toml", "--missing", "n/a")
    found = run("inspect", "in.csv", "--roles", "roles.toml", "--json").json["columns"]
    assert [each["role"] for each in found] == ["other", "weight", "quasi-identifier"]
    assert found[2]["levels"] == ["low", "high"]
    text = Path("roles.toml").read_text(encoding="utf-8")
    assert 'missing = ["n/a"]' in text
    assert "a table has one weight, so this one is kept as it is" in text
    Path("more").mkdir()
    write("edu.csv", "low;any\nmiddle;any\nhigh;any\n")
    run("inspect", people, "--hierarchy", "EDU=edu.csv", "--write-roles", "more/roles.toml")
    assert 'hierarchy = "../edu.csv"' in Path("more/roles.toml").read_text(encoding="utf-8")
    [column] = [
        each
        for each in run("inspect", people, "--roles", "more/roles.toml", "--json").json["columns"]
        if each["hierarchy"]
    ]
    assert column["name"] == "EDU"
