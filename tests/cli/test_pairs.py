"""The options of audit, attack and certify: which columns, which record is which, gates, reports."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rankveil as rv
from rankveil import datasets, files

PAIR = ("original.csv", "masked.csv")


def test_measures_and_columns(example: Path, run: Any) -> None:
    found = run("audit", *PAIR, "--measures", "permutation_level", "--columns", "X1,X3", "--json").json
    assert list(found["measures"]) == ["permutation_level"]
    assert found["attributes"] == ["X1", "X3"]
    assert "not compared: X2" in found["notes"]
    found = run("attack", *PAIR, "--columns", "X1", "--columns", "X2", "--json", code=1).json
    assert found["attributes"] == found["knows"]["columns"] == ["X1", "X2"]
    assert run("certify", *PAIR, "--columns", "X2", "--json", code=1).json["attributes"] == ["X2"]


def test_gates(example: Path, run: Any) -> None:
    found = run(
        "audit", *PAIR, "--fail-if", "spearman_risk>0.8", "--fail-if", "permutation_level<0.01", "--json", code=1
    ).json
    assert [(gate["rule"], gate["ok"]) for gate in found["gates"]] == [
        ("spearman_risk>0.8", False),
        ("permutation_level<0.01", True),
    ]
    assert run("audit", *PAIR, "--fail-if", "spearman_risk>0.9", "--json").json["gates"][0]["ok"] is True
    said = run("audit", *PAIR, "--fail-if", "spearman_risk>0.8", code=1).out
    assert re.search(r"spearman_risk>0.8 +0.\d+ +FAILED", said)
    assert re.search(r"spearman_risk>0.9 +0.\d+ +held", run("audit", *PAIR, "--fail-if", "spearman_risk>0.9").out)


def test_no_mapping(example: Path, run: Any) -> None:
    found = run("audit", *PAIR, "--no-mapping", "--json").json
    needing = {name for name, entry in rv.catalogue.measures().items() if entry.mapping}
    assert found["mapping"] == "none"
    assert needing <= set(found["not_applicable"])
    assert not needing & set(found["measures"])
    assert {"cm3", "um", "rank_linkage", "pil"} <= set(found["measures"])
    assert "do not apply: it needs to know" in run("audit", *PAIR, "--no-mapping", "--all").out
    found = run("attack", *PAIR, "--no-mapping", "--json", code=1).json
    assert found["counts"] == {"correct": None, "multiple": 4, "wrong": None}
    assert (found["claims_right"], found["chance"]["claims_right"], found["found"]["right"]) == (None, None, None)
    assert "which links are right is not known here" in run("attack", *PAIR, "--no-mapping", code=1).out
    assert run("certify", *PAIR, "--no-mapping", "--json", code=1).json["f"] == "minimax"


def test_key(example: Path, run: Any) -> None:
    original, masked = datasets.running_example()
    number = list(range(1, 21))
    files.save(original.append_column("id", [number]), "keyed.csv")
    files.save(masked.append_column("id", [number]).take(number[::-1][1:]), "turned.csv")
    found = run("audit", "keyed.csv", "turned.csv", "--key", "id", "--json").json
    assert (found["mapping"], found["records"], found["attributes"]) == ("key", 19, ["X1", "X2", "X3"])
    assert any("1 original records have no partner" in note or "left out" in note for note in found["notes"])


def test_secret_of_a_reordered_release(example: Path, run: Any) -> None:
    run("mask", "original.csv", "-o", "mixed.csv", "--method", "record_shuffle")
    pair = ("original.csv", "mixed.csv", "--secret", "mixed.csv.secret.json")
    found = run("audit", *pair, "--json").json
    assert found["mapping"] == "secret"
    assert not any("secret" in note for note in found["notes"])
    assert found["measures"]["permutation_level"]["value"] == 0
    attacked = run("attack", *pair, "--json", code=1).json
    assert (attacked["counts"]["correct"], attacked["certain"], attacked["found"]["share"]) == (20, 20, 1)
    assert run("certify", *pair, "--json", code=1).json["mapping"] == "secret"
    other = run("audit", "masked.csv", "mixed.csv", "--secret", "mixed.csv.secret.json", "--json").json
    assert any("made for another original" in note for note in other["notes"])


def test_secret_without_a_mapping(example: Path, run: Any) -> None:
    run("mask", "original.csv", "-o", "swapped.csv", "--method", "rank_swap", "--keep-order")
    found = run("audit", "original.csv", "swapped.csv", "--secret", "swapped.csv.secret.json", "--json").json
    assert found["mapping"] == "rows"
    assert any("holds no mapping" in note for note in found["notes"])


def test_seed_decides_ties(write: Callable[[str, str], str], run: Any) -> None:
    write("a.csv", "X\n" + "\n".join(map(str, range(30))))
    write("b.csv", "X\n" + "\n".join(str(x // 10) for x in range(30)))

    def risk(seed: int) -> float:
        found = run("audit", "a.csv", "b.csv", "--seed", seed, "--json").json
        return float(found["measures"]["spearman_risk"]["value"])

    assert risk(0) == risk(0)
    assert len({risk(seed) for seed in range(4)}) > 1


def test_draws_and_subsets(example: Path, run: Any) -> None:
    original = datasets.demo(200).select(["AGE", "INCOME", "TAX"])
    files.save(original, "people.csv")
    found = run("attack", "people.csv", "people.csv", "--draws", "500", "--subsets", "--json", code=1).json
    chance = found["chance"]
    assert (found["draws"], found["exhaustive"], chance["withstands"]) == (500, False, False)
    assert found["subsets"]["tried"] == 7
    assert found["subsets"]["best"]["claims"] >= chance["claims"] > 100
    said = run("attack", "people.csv", "people.csv", "--draws", "500", "--subsets", code=1).out
    assert "The release FAILS (at most 9 % found, nobody with certainty): more people are found than that and" in said
    assert f"(no verdict): {chance['claims']} matches are nearer" in said


def test_links_computed_elsewhere(example: Path, write: Callable[[str, str], str], run: Any, refused: Any) -> None:
    rows = "\n".join(f"{row},{row}" for row in range(1, 21))
    write("links.csv", f"original,masked\n{rows}\n")
    found = run("attack", *PAIR, "--links", "links.csv", "--json", code=1).json
    assert found["counts"] == {"correct": 20, "multiple": 0, "wrong": 0}
    write("half.csv", "original,masked\n1,1\n")
    assert "leave out original records 2, 3" in refused("attack", *PAIR, "--links", "half.csv")
    write("far.csv", f"original,masked\n{rows}\n1,99\n")
    assert "1-99" in refused("attack", *PAIR, "--links", "far.csv")
    write("zero.csv", "original,masked\n0,1\n1,1.5\n")
    assert "zero.csv: rows 1, 2 do not hold" in refused("attack", *PAIR, "--links", "zero.csv")
    write("gap.csv", "original,masked\n1,1\n2,\n")
    assert "gap.csv: row 2 does not hold" in refused("attack", *PAIR, "--links", "gap.csv")
    write("named.csv", "from,to\n1,1\n")
    assert "named.csv: there is no column original" in refused("attack", *PAIR, "--links", "named.csv")


@pytest.mark.parametrize(
    ("verb", "figure"), [("audit", "How far the values moved"), ("attack", "How people are found")]
)
def test_report(example: Path, run: Any, verb: str, figure: str) -> None:
    code = 1 if verb == "attack" else 0
    said = run(verb, *PAIR, "--report", "page.html", code=code).out
    page = Path("page.html").read_text(encoding="utf-8")
    assert "report: page.html" in said
    assert figure in page
    assert f"rankveil {verb} original.csv masked.csv --report page.html" in re.sub("</?span>", "", page)
    assert "internal" in page.lower()
    json.loads(run(verb, *PAIR, "--report", "page.html", "--json", code=code).out)
    assert sorted(path.name for path in example.iterdir()) == ["masked.csv", "original.csv", "page.html"]


def test_report_of_a_release_without_mapping_or_with_claims(example: Path, run: Any) -> None:
    run("audit", *PAIR, "--no-mapping", "--fail-if", "spearman_risk>2", "--report", "a.html", code=1)
    assert "not apply: it needs to know" in Path("a.html").read_text(encoding="utf-8")
    files.save(datasets.demo(300).select(["AGE", "INCOME", "TAX"]), "people.csv")
    run("attack", "people.csv", "people.csv", "--subsets", "--report", "b.html", code=1)
    page = Path("b.html").read_text(encoding="utf-8")
    assert "Matches that the paper&#39;s test calls nearer than chance" in page
    assert "The 50 nearest of " in page


@pytest.mark.parametrize("verb", ["audit", "attack"])
def test_report_overwrites_no_input(example: Path, refused: Any, verb: str) -> None:
    assert "the report would overwrite the original" in refused(verb, *PAIR, "--report", "original.csv")
    Path("link.html").symlink_to("masked.csv")
    assert "the report would overwrite the masked table" in refused(verb, *PAIR, "--report", "link.html")
    assert "there is no folder" in refused(verb, *PAIR, "--report", "no/such.html")


def test_reports_from_python(example: Path) -> None:
    original, masked = datasets.running_example()
    rv.audit(original, masked).report("audit.html")
    rv.attack(original, masked).report(example / "attack.html")
    page = Path("attack.html").read_text(encoding="utf-8")
    assert "can be found by somebody who knows all originals. The release FAILS" in page
    assert "20 records were compared on 3 attributes" in Path("audit.html").read_text(encoding="utf-8")
    with pytest.raises(rv.FileError, match="no folder"):
        rv.audit(original, masked).report("no/audit.html")


def test_a_declared_column_may_be_dropped_from_the_release(example: Path, run: Any) -> None:
    original, _ = datasets.running_example()
    files.save(original.append_column("WHO", [[f"p{i}" for i in range(20)]]), "named.csv")
    found = run("audit", "named.csv", "masked.csv", "--role", "WHO=identifier", "--kind", "WHO=nominal", "--json").json
    assert found["attributes"] == ["X1", "X2", "X3"]


@pytest.mark.parametrize("verb", ["audit", "attack", "certify"])
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("A,B\n1,2\n", "A,B\n3,4\n"),
        ("A,B\n1,5\n1,6\n1,7\n", "A,B\n1,6\n1,5\n1,7\n"),
        ("A,B\n1,1\n1,1\n1,1\n", "A,B\n2,2\n2,2\n2,2\n"),
        ("A,B\n1,3\n2,2\n3,1\n", "A,B\n1,3\n2,2\n3,1\n"),
        ("A,B\n1,2\n1,2\n5,6\n", "A,B\n1,2\n5,6\n1,2\n"),
        ("A,B\n1,1e200\n2,-1e200\n3,1e300\n", "A,B\n1,1e300\n2,1e200\n3,-1e200\n"),
    ],
    ids=["one record", "constant column", "all ties", "masked equals original", "duplicate rows", "huge"],
)
def test_tables_at_the_edge(write: Callable[[str, str], str], run: Any, verb: str, x: str, y: str) -> None:
    write("x.csv", x)
    write("y.csv", y)
    trivial = verb == "certify" and "1e200" not in x  # every d is 0 in all but the last
    code = int(trivial or verb == "attack")  # of so few anybody is found too often
    version = 2 if verb == "attack" else 1
    assert run(verb, "x.csv", "y.csv", "--json", code=code).json["schema"] == f"rankveil/{verb}/{version}"
    assert run(verb, "x.csv", "y.csv", code=code).out


def test_an_attack_whose_paper_test_claims_nothing_hides_neither_chance_nor_who_is_found(
    example: Path, run: Any
) -> None:
    people = datasets.demo(400).select(["INCOME", "TAX", "AGE"])
    files.save(people, "people.csv")
    files.save(rv.mask(people, "rank_swap", p=30, seed=1).data, "swapped.csv")
    asked = ("attack", "people.csv", "swapped.csv", "--at-most", "0.001")
    found = run(*asked, "--json", code=1).json
    assert (found["chance"]["claims"], found["chance"]["ks_p"] < 0.001) == (0, True)
    assert found["found"]["share"] > found["found"]["guessing"]
    said = run(*asked, code=1).out
    assert said.startswith(found["sentence"])
    assert re.search(r"Kolmogorov-Smirnov\s+p-value\s+\S*e-", said)


@pytest.mark.parametrize("verb", ["audit", "attack"])
def test_a_public_page_tells_of_no_single_record(example: Path, run: Any, verb: str) -> None:
    files.save(datasets.demo(300).select(["AGE", "INCOME", "TAX"]), "people.csv")
    # always the same noise: a measure may come to a number that is also somebody's income
    run("mask", "people.csv", "-o", "noisy.csv", "--method", "additive_noise", "--set", "alpha=0.01", "--seed", "5")
    code = 1 if verb == "attack" else 0
    run(verb, "people.csv", "noisy.csv", "--report", "inside.html", code=code)
    said = run(verb, "people.csv", "noisy.csv", "--report", "outside.html", "--public", code=code).out
    assert "for internal use" not in said
    # without plotly's own script, which holds all sorts of words and numbers
    own = re.compile(r"<script[^>]*>[^<]{0,200}plotly\.js.*?</script>", re.DOTALL)
    inside, outside = (own.sub("", Path(n).read_text(encoding="utf-8")) for n in ("inside.html", "outside.html"))
    assert len(outside) < 2_000_000
    harmful = {
        "audit": ("Most exposed records", "Distributions before"),
        "attack": ("Matches that the paper&#39;s test", "The best link of"),
    }
    for words in (*harmful[verb], "INTERNAL: not for release"):
        assert words in inside
        assert words not in outside
    values = [str(value) for value in datasets.demo(300)["INCOME"].to_pylist() if value is not None]
    assert not [value for value in values if re.search(rf"(?<![\w.+/]){re.escape(value)}(?![\w.+/])", outside)]


def test_a_scenario_a_limit_and_the_risk_of_every_person(example: Path, run: Any, refused: Any) -> None:
    said = run("attack", *PAIR, "--knows", "X1", "--people", "0.5", "--records", "risk.csv", "--at-most", "1").out
    assert "who knows X1 of about 50 % of the people" in said
    assert "the worst case" in said
    assert "The risk of every person: risk.csv" in said
    rows = files.load("risk.csv").data
    assert rows.column_names == ["original", "masked", "probability", "candidates", "certain", "right"]
    assert rows.num_rows == 10
    run("attack", *PAIR, "--records", "risk.parquet", "--at-most", "1")
    assert files.load("risk.parquet").data.num_rows == 20
    assert "the records would overwrite the original" in refused("attack", *PAIR, "--records", "original.csv")
    assert "knows: X9 is no column of both tables" in refused("attack", *PAIR, "--knows", "X9")
    assert "people must be a share" in refused("attack", *PAIR, "--people", "0")
    assert "at_most must be a share from 0 to 1" in refused("attack", *PAIR, "--at-most", "9")
