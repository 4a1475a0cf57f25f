"""The running example of new-directions through files and commands: the numbers of its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

PAIR = ("original.csv", "masked.csv")
NULL = (0.0025, 0.058625, 0.189875, 0.301375, 0.2595, 0.12875, 0.04275, 0.01425, 0.002375)


def test_attack(example: Path, run: Any) -> None:
    found = run("attack", *PAIR, "--json", code=1).json
    assert found["schema"] == "rankveil/attack/2"
    chance = found["chance"]
    assert chance["null"] == {str(d): pytest.approx(share, abs=1e-12) for d, share in enumerate(NULL)}
    assert found["exhaustive"] is True
    assert found["counts"] == {"correct": 6, "multiple": 4, "wrong": 10}
    single = [link["original"] for link in found["links"] if link["masked"] == [link["original"]]]
    assert single == [4, 5, 7, 12, 14, 20]
    several = [link["original"] for link in found["links"] if len(link["masked"]) > 1]
    assert several == [1, 9, 11, 19]
    first, ninth = found["links"][0], found["links"][8]
    assert first == {
        "original": 1,
        "masked": first["masked"],
        "d": first["d"],
        "distance": 4,
        "p_value": first["p_value"],
    }
    assert all(isinstance(d, int) for row in first["d"] for d in row)
    assert (ninth["masked"], ninth["d"]) == ([7, 9], [[0, 3, 0], [3, 0, 1]])
    assert {19, 20} <= set(found["matched_by_several"])
    assert sum(chance["observed"].values()) == pytest.approx(1)
    assert (chance["claims"], chance["claims_right"], chance["withstands"]) == (0, 0, True)
    assert 0 < chance["hellinger"] < 1
    assert 0 < chance["ks_p"] <= 1
    assert found["notes"] == ["no manifest lies beside the release: what was done is learned from the two tables"]
    # the paper's test explains every match by chance; more than every third link of the strongest intruder is right
    assert (found["verdict"], found["found"]["of"]) == ("fails", 20)
    assert found["found"]["right"] >= 8


def test_attack_in_words(example: Path, run: Any) -> None:
    said = run("attack", *PAIR, code=1).out
    assert said.startswith("About ")
    assert "can be found by somebody who knows all originals. The release FAILS (at most 9 % found, nobody with" in said
    assert "The paper's own test (no verdict): 0 matches are nearer than records of independent values come" in said
    assert "withstands" not in said
    assert "\x1b" not in said


def test_verify(example: Path, run: Any) -> None:
    found = run("verify", "masked.csv", "--record", "X1=100.87,X2=902.21,X3=5108.54", "--json").json
    assert found["schema"] == "rankveil/verify/1"
    assert found["nearest"] == [100.41, 903.25, 5087.90]
    assert found["ranks"] == [8, 2, 16]
    assert (found["record"], found["d"]) == (10, [4, 1, 4])
    assert 10 in found["records"]
    assert found["diversity"]["variance"] == pytest.approx([24.70, 155.00, 20167.78], abs=0.005)
    assert list(found["diversity"]) == ["variance", "distinct", "entropy", "closeness"]
    assert found["chance"]["exhaustive"] is True
    assert found["chance"]["approximate"] is True


def test_verify_in_words(example: Path, run: Any) -> None:
    said = run("verify", "masked.csv", "--record", "X1=100.87,X2=902.21,X3=5108.54").out
    assert "nearest to yours is number 10 of 20" in said
    assert "20168" in said
    assert said.startswith("How probable it is that a record is yours cannot be told: there is no manifest")
    assert "nobody" not in said


def test_verify_by_a_named_record(example: Path, run: Any) -> None:
    mine = ("--record", "X1=100.87", "--record", "X2=902.21,X3=5108.54")
    assert run("verify", "masked.csv", *mine, "--f", "3", "--json").json["d"] == [5, 1, 9]
    assert run("verify", "masked.csv", *mine, "--f", "euclidean", "--json").json["f"] == "euclidean"
    assert "The released record 3 of 20 at a distance of 9 ranks" in run("verify", "masked.csv", *mine, "--f", "3").out


def test_certify_a_record(example: Path, run: Any) -> None:
    found = run("certify", *PAIR, "--record", "3", "--json").json
    assert found["schema"] == "rankveil/certify/1"
    assert (found["holds"], found["trivial"], found["largest"]["d"]) == (True, False, [1, 0, 0])
    assert found["record"]["d"] == [5, 1, 9]
    assert found["d"] == found["largest"]["d"]
    assert found["v"] == pytest.approx(found["largest"]["v"])
    own = run("certify", *PAIR, "--record", "3", "--f", "minimax", "--json", code=1).json["record"]
    assert own["d"] == [4, 1, 4]
    assert own["v"] == pytest.approx([24.70, 155.00, 20167.78], abs=0.005)


def test_certify_too_much_is_a_failed_check(example: Path, run: Any) -> None:
    found = run("certify", *PAIR, "--d", "4,1,4", "--v", "10,10,10", "--json", code=1).json
    assert found["holds"] is False
    assert (found["d"], found["v"], found["diversity"]) == ([4, 1, 4], [10, 10, 10], "variance")
    assert 3 not in found["failing"]
    assert found["failing"] == sorted(found["failing"])
    said = run("certify", *PAIR, "--d", "4,1,4", "--record", "3", code=1).out
    assert "do NOT have the permuted privacy" in said
    assert "Original record 3:" in said
    assert "Original record 1 FAILS:" in run("certify", *PAIR, "--d", "20", "--record", "1", code=1).out


def test_a_certificate_of_no_distance_is_trivial(example: Path, run: Any) -> None:
    nearest = ("--f", "minimax")
    for asked in (nearest, ("--d", "0"), ("--d", "X1=0"), ("--d", "0", "--v", "X1=0", "--diversity", "distinct")):
        found = run("certify", *PAIR, *asked, "--json", code=1).json
        assert (found["holds"], found["trivial"], found["failing"]) == (True, True, []), asked
        said = run("certify", *PAIR, *asked, code=1).out
        assert said.startswith("Trivial: every record is within distance 0: this says nothing."), asked
        assert "All 20 records" not in said


def test_certify_less_holds(example: Path, run: Any) -> None:
    run("mask", "original.csv", "-o", "moved.csv", "--method", "distance_swap", "--set", "d=2")
    moved = ("certify", "original.csv", "moved.csv")
    found = run(*moved, "--d", "X1=1", "--json").json
    assert (found["holds"], found["trivial"], found["d"]) == (True, False, [1, 0, 0])
    assert "All 20 records have the permuted privacy" in run(*moved, "--d", "1").out
    assert "The largest (d, v, f)-permuted privacy" in run(*moved, "--diversity", "closeness").out
    assert min(run(*moved, "--json").json["largest"]["d"]) >= 2


def test_audit(example: Path, run: Any) -> None:
    found = run("audit", *PAIR, "--json").json
    assert found["schema"] == "rankveil/audit/1"
    assert (found["records"], found["attributes"], found["mapping"]) == (20, ["X1", "X2", "X3"], "rows")
    risk = found["measures"]["spearman_risk"]
    assert risk["details"]["per_attribute"] == {
        name: pytest.approx(value, abs=0.0005)
        for name, value in zip(("X1", "X2", "X3"), (0.722, 0.844, 0.776), strict=True)
    }
    assert risk["value"] == pytest.approx(0.844, abs=0.0005)
    assert (risk["family"], risk["better"], risk["bounds"]) == ("risk", "lower", [-1, 1])
    assert found["gates"] == []
    why = {"ci_overlap": "target", "ml_efficacy": "target", "use_kept": "--use uses.toml"}
    why |= dict.fromkeys(("k_anonymity", "sample_uniques", "t_closeness"), "quasi-identifier")
    why |= dict.fromkeys(("l_diversity", "entropy_l_diversity", "recursive_l_diversity"), "quasi-identifier")
    why |= dict.fromkeys(("contingency", "cramers_v", "total_variation"), "ordinal or nominal")
    why |= dict.fromkeys(("population_risk", "discernibility", "average_class_size"), "quasi-identifier")
    assert set(found["not_applicable"]) == set(why)
    for name, reason in why.items():
        assert reason in found["not_applicable"][name], name
