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
    assert run("attack", *PAIR, "--columns", "X1", "--columns", "X2", "--json").json["attributes"] == ["X1", "X2"]
    assert run("certify", *PAIR, "--columns", "X2", "--json").json["attributes"] == ["X2"]


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
    assert "Gates that FAILED: spearman_risk>0.8." in said
    assert "Every gate held." in run("audit", *PAIR, "--fail-if", "spearman_risk>0.9").out


def test_no_mapping(example: Path, run: Any) -> None:
    found = run("audit", *PAIR, "--no-mapping", "--json").json
    needing = {name for name, entry in rv.catalogue.measures().items() if entry.mapping}
    assert found["mapping"] == "none"
    assert needing <= set(found["not_applicable"])
    assert not needing & set(found["measures"])
    assert {"cm3", "um", "rank_linkage", "pil"} <= set(found["measures"])
    assert "do not apply: it needs to know" in run("audit", *PAIR, "--no-mapping").out
    found = run("attack", *PAIR, "--no-mapping", "--json").json
    assert found["counts"] == {"correct": None, "multiple": 4, "wrong": None}
    assert found["claims_right"] is None
    assert "find several equally near" in run("attack", *PAIR, "--no-mapping").out
    assert run("certify", *PAIR, "--no-mapping", "--json").json["f"] == "minimax"


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
    assert run("attack", *pair, "--json").json["counts"]["correct"] == 20
    assert run("certify", *pair, "--json").json["mapping"] == "secret"
    other = run("audit", "masked.csv", "mixed.csv", "--secret", "mixed.csv.secret.json", "--json").json
    assert any("made for another original" in note for note in other["notes"])


def test_secret_without_a_mapping(example: Path, run: Any) -> None:
    run("mask", "original.csv", "-o", "swapped.csv", "--method", "rank_swap")
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
    found = run("attack", "people.csv", "people.csv", "--draws", "500", "--subsets", "--json").json
    assert (found["draws"], found["exhaustive"], found["withstands"]) == (500, False, False)
    assert found["subsets"]["tried"] == 7
    assert found["subsets"]["best"]["claims"] >= found["claims"] > 100
    said = run("attack", "people.csv", "people.csv", "--draws", "500", "--subsets").out
    assert "does NOT withstand" in said
    assert "more (--json lists all links)" in said


def test_links_computed_elsewhere(example: Path, write: Callable[[str, str], str], run: Any, refused: Any) -> None:
    rows = "\n".join(f"{row},{row}" for row in range(1, 21))
    write("links.csv", f"original,masked\n{rows}\n")
    found = run("attack", *PAIR, "--links", "links.csv", "--json").json
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
    ("verb", "figure"), [("audit", "How far the values moved"), ("attack", "Real records against")]
)
def test_report(example: Path, run: Any, verb: str, figure: str) -> None:
    said = run(verb, *PAIR, "--report", "page.html").out
    page = Path("page.html").read_text(encoding="utf-8")
    assert "report: page.html" in said
    assert figure in page
    assert f"rankveil {verb} original.csv masked.csv --report page.html" in re.sub("</?span>", "", page)
    assert "internal" in page.lower()
    json.loads(run(verb, *PAIR, "--report", "page.html", "--json").out)
    assert sorted(path.name for path in example.iterdir()) == ["masked.csv", "original.csv", "page.html"]


def test_report_of_a_release_without_mapping_or_with_claims(example: Path, run: Any) -> None:
    run("audit", *PAIR, "--no-mapping", "--fail-if", "spearman_risk>2", "--report", "a.html", code=1)
    assert "not apply: it needs to know" in Path("a.html").read_text(encoding="utf-8")
    files.save(datasets.demo(300).select(["AGE", "INCOME", "TAX"]), "people.csv")
    run("attack", "people.csv", "people.csv", "--subsets", "--report", "b.html")
    page = Path("b.html").read_text(encoding="utf-8")
    assert "Matches that can be claimed" in page
    assert "most exposed of" in page


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
    assert "withstands the known-plaintext attack" in Path("attack.html").read_text(encoding="utf-8")
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
    assert run(verb, "x.csv", "y.csv", "--json").json["schema"] == f"rankveil/{verb}/1"
    assert run(verb, "x.csv", "y.csv").out


def test_an_attack_without_claims_does_not_hide_that_the_whole_differs_from_chance(example: Path, run: Any) -> None:
    people = datasets.demo(400).select(["INCOME", "TAX", "AGE"])
    files.save(people, "people.csv")
    files.save(rv.mask(people, "rank_swap", p=30, seed=1).data, "swapped.csv")
    found = run("attack", "people.csv", "swapped.csv", "--json").json
    assert (found["claims"], found["ks_p"] < 0.001) == (0, True)
    assert "do differ from those of random ones" in run("attack", "people.csv", "swapped.csv").out
    assert "do differ" not in run("attack", *PAIR).out


@pytest.mark.parametrize("verb", ["audit", "attack"])
def test_a_public_page_tells_of_no_single_record(example: Path, run: Any, verb: str) -> None:
    files.save(datasets.demo(300).select(["AGE", "INCOME", "TAX"]), "people.csv")
    # always the same noise: a measure may come to a number that is also somebody's income
    run("mask", "people.csv", "-o", "noisy.csv", "--method", "additive_noise", "--set", "alpha=0.01", "--seed", "5")
    run(verb, "people.csv", "noisy.csv", "--report", "inside.html")
    assert "for internal use" not in run(verb, "people.csv", "noisy.csv", "--report", "outside.html", "--public").out
    # without plotly's own script, which holds all sorts of words and numbers
    own = re.compile(r"<script[^>]*>[^<]{0,200}plotly\.js.*?</script>", re.DOTALL)
    inside, outside = (own.sub("", Path(n).read_text(encoding="utf-8")) for n in ("inside.html", "outside.html"))
    assert len(outside) < 2_000_000
    harmful = {"audit": ("Most exposed records", "Distributions before"), "attack": ("Matches that can be claimed",)}
    for words in (*harmful[verb], "INTERNAL: not for release"):
        assert words in inside
        assert words not in outside
    values = [str(value) for value in datasets.demo(300)["INCOME"].to_pylist() if value is not None]
    assert not [value for value in values if re.search(rf"(?<![\w.+/]){re.escape(value)}(?![\w.+/])", outside)]
