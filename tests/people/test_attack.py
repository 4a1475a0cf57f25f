"""The verdict of an attack: who is found, the limit, the scenario, the document, and what is refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.intruder.calibration import wilson
from rankveil.people.intruder import sentence

PEOPLE = 120
COLUMNS = ["A0", "A1", "A2"]


def table(values: Any) -> pa.Table:
    return pa.table({f"A{j}": column for j, column in enumerate(np.asarray(values, dtype=float).T)})


@pytest.fixture(scope="module")
def original() -> pa.Table:
    return table(np.random.default_rng(1).lognormal(3, 1, size=(PEOPLE, 3)).round(2))


@pytest.fixture(scope="module")
def noisy(original: pa.Table) -> rv.Release:
    return rv.mask(original, rv.Plan.of("additive_noise", alpha=0.3).then("round"), seed=5)


@pytest.fixture(scope="module")
def grouped(original: pa.Table) -> rv.Release:
    return rv.mask(original, "mdav", k=15, seed=5)


def attack(*tables: Any, **told: Any) -> rv.Attack:
    return rv.attack(*tables, draws=200, **told)


def test_an_unmasked_table_fails_and_everybody_is_certain(original: pa.Table) -> None:
    made = attack(original, original)
    assert (made.verdict, made.holds, made.found, made.certain) == ("fails", False, 1.0, PEOPLE)
    assert (made.claims, made.claims_right) == (PEOPLE, PEOPLE)
    assert made.sentence == f"Everybody can be found by somebody who knows all originals; {PEOPLE} with certainty."
    assert repr(made) == f"Attack({made.sentence})"


def test_a_release_in_large_groups_holds(original: pa.Table, grouped: rv.Release) -> None:
    made = attack(original, grouped)
    assert (made.verdict, made.holds, made.certain) == ("holds", True, 0)
    assert made.found == pytest.approx(8 / PEOPLE)  # eight groups of 15, one bet in each is right
    assert made.sentence == "About 1 person in 15 can be found by somebody who knows all originals."
    assert made.finding is not None
    assert made.finding.evidence[0].source == "manifest"


def test_the_limit_decides_and_nobody_may_be_certain(original: pa.Table, grouped: rv.Release) -> None:
    share = attack(original, grouped).found
    assert attack(original, grouped, at_most=share + 1e-9).holds
    assert attack(original, grouped, at_most=share - 1e-9).holds is False
    # one record of its own among groups: certain, whatever the limit
    values = np.repeat([[1.0, 2.0], [5.0, 3.0]], 20, axis=0)
    values[0] = (9.0, 9.0)
    few = attack(table(values), table(values), at_most=1)
    assert (few.certain, few.verdict) == (1, "fails")
    assert few.found == pytest.approx(3 / 40)
    assert few.sentence == "About 1 person in 13 can be found by somebody who knows all originals; 1 with certainty."


def test_blind_guessing_is_said_to_be_that() -> None:
    same = table(np.ones((50, 2)))
    made = attack(same, same)
    assert made.found == pytest.approx(1 / 50)
    assert made.holds
    assert made.sentence == (
        "About 1 person in 50 can be found by somebody who knows all originals, no more than by blind guessing."
    )


def test_a_share_is_said_as_people_say_it() -> None:
    def said(share: float, certain: int = 0) -> str:
        found = {"share": share, "right": share * 1000, "guessing": 0.001, "of": 1000}
        return (
            sentence({"found": found, "certain": certain, "verdict": "fails", "limit": 0.09})
            .split(" can be")[0]
            .split(" is found")[0]
        )

    assert [said(share) for share in (0.0, 0.31, 0.45, 0.7, 0.97, 0.9996)] == [
        "Nobody",
        "About 1 person in 3",
        "About 1 person in 2",
        "About 7 people in 10",
        "Nearly everybody",
        "Everybody",
    ]


def test_the_document(original: pa.Table, noisy: rv.Release) -> None:
    made = attack(original, noisy)
    content = made.to_dict()
    assert (content["schema"], content["verdict"], content["limit"]) == ("rankveil/attack/2", "fails", 0.09)
    found, right = content["found"], content["found"]["right"]
    assert found["share"] == made.found == right / PEOPLE
    assert found["interval"] == list(wilson(right, PEOPLE))
    assert (found["of"], found["guessing"]) == (PEOPLE, 1 / PEOPLE)
    # 120 bets of about this chance: a right expectation is missed by so much once in a million
    assert abs(found["expected"] - right) < 4.9 * np.sqrt(PEOPLE * 0.25)
    assert [each["id"] for each in content["evidence"]][:2] == ["likelihood", "structure"]
    assert content["evidence"][0]["from"] == "manifest"
    assert all({"found", "certain"} <= each.keys() for each in content["evidence"])
    assert content["knows"] == {"columns": COLUMNS, "people": 1.0, "chosen": False}
    assert content["claims_right"] <= content["claims"]
    assert content["sentence"] == made.sentence
    assert (content["mapping"], content["records"], content["attributes"]) == ("rows", PEOPLE, COLUMNS)
    assert {"links", "counts", "chance", "draws", "exhaustive", "fdr", "notes"} <= content.keys()
    assert "worst" not in content
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_every_person_has_a_row(original: pa.Table, noisy: rv.Release) -> None:
    made = attack(original, noisy)
    rows = made.rows()
    assert list(rows) == ["original", "masked", "probability", "candidates", "certain", "right"]
    assert rows["original"] == list(range(1, PEOPLE + 1))
    own = [right for right, a, b in zip(rows["right"], rows["original"], rows["masked"], strict=True) if a == b]
    assert sum(rows["right"]) == made.to_dict()["found"]["right"] == sum(own)
    assert sum(rows["probability"]) == pytest.approx(made.to_dict()["found"]["expected"])
    assert min(rows["candidates"]) >= 1
    frame = made.to_frame()
    assert list(frame.columns) == list(rows)
    assert frame["right"].sum() == sum(rows["right"])


def test_a_reordered_release_brings_its_secret(original: pa.Table) -> None:
    plan = rv.Plan.of("additive_noise", alpha=0.3).then("round").then("record_shuffle")
    release = rv.mask(original, plan, seed=3)
    whole = attack(original, release)
    assert whole.mapping == "secret"
    apart = attack(original, release.data, manifest=release.manifest.content, secret=release.secret)
    assert apart.to_dict() == whole.to_dict()
    order = release.secret.order
    assert order is not None
    rows = whole.rows()
    right = [order[b - 1] + 1 == a for a, b in zip(rows["original"], rows["masked"], strict=True)]
    assert rows["right"] == [float(each) for each in right]
    assert attack(original, release, mapping=False).mapping == "none"


def test_a_synthetic_release_has_no_mapping(original: pa.Table) -> None:
    release = rv.mask(original, "ipso", seed=1)
    assert release.manifest["mapping"] == "none"
    made = attack(original, release)
    assert (made.mapping, made.to_dict()["found"]["right"]) == ("none", None)
    assert rv.audit(original, release, measures=["people_found"]).mapping == "none"


def test_without_a_mapping_the_share_is_what_he_expects(original: pa.Table, noisy: rv.Release) -> None:
    known, blind = attack(original, noisy), attack(original, noisy, mapping=False)
    content = blind.to_dict()
    assert (content["found"]["right"], content["claims_right"], content["mapping"]) == (None, None, "none")
    assert content["found"]["share"] == content["found"]["expected"] / PEOPLE
    assert content["found"]["expected"] == known.to_dict()["found"]["expected"]
    assert [each["found"] for each in content["evidence"]] == [None] * len(content["evidence"])
    assert blind.rows()["right"] == [None] * PEOPLE
    assert blind.sentence.endswith("(his own expectation: which links are right is not known here).")
    assert content["verdict"] == "fails"


def test_a_scenario_decides_and_the_worst_case_stands_beside_it(original: pa.Table, noisy: rv.Release) -> None:
    full = attack(original, noisy)
    one = attack(original, noisy, knows=["A1"])
    content = one.to_dict()
    assert content["knows"] == {"columns": ["A1"], "people": 1.0, "chosen": True}
    assert content["worst"]["found"] == full.to_dict()["found"]
    assert content["worst"]["knows"]["columns"] == COLUMNS
    assert one.found < full.found
    assert one.found <= one.to_dict()["worst"]["found"]["share"]
    assert " somebody who knows A1" in one.sentence
    held = attack(original, noisy, knows=["A1"], at_most=(one.found + full.found) / 2)
    assert held.holds  # by the scenario, not by the worst case
    assert attack(original, noisy, knows=["A0", "A1"]).to_dict()["knows"]["columns"] == ["A0", "A1"]


def test_who_knows_a_share_of_the_people(original: pa.Table, noisy: rv.Release) -> None:
    made = attack(original, noisy, people=0.25)
    content = made.to_dict()
    assert (content["found"]["of"], content["knows"]["people"]) == (30, 0.25)
    assert len(made.rows()["original"]) == 30
    assert content["worst"]["found"]["of"] == PEOPLE
    assert "who knows about 25 % of the people" in made.sentence
    again, other = (attack(original, noisy, people=0.25, seed=seed) for seed in (0, 1))
    assert again.rows() == made.rows()
    assert other.rows()["original"] != made.rows()["original"]


def test_a_column_that_was_left_as_it_is_is_evidence(original: pa.Table) -> None:
    release = rv.mask(original, "permute", columns=["A0"], seed=2)
    everything, masked_only = attack(original, release), attack(original, release, columns=["A0"])
    assert (everything.found, everything.certain, everything.verdict) == (1.0, PEOPLE, "fails")
    assert attack(original, release.data).found == 1.0  # A1 and A2 show themselves: they still belong together
    assert masked_only.to_dict()["knows"]["columns"] == ["A0"]
    assert masked_only.found < 0.09


def test_a_key_tells_the_truth_and_is_no_evidence(original: pa.Table, grouped: rv.Release) -> None:
    names = pa.array([f"p{i}" for i in range(PEOPLE)])
    keyed, released = original.append_column("ID", names), grouped.data.append_column("ID", names)
    made = attack(keyed, released.slice(15), key="ID", manifest=None)
    assert made.to_dict()["knows"]["columns"] == COLUMNS
    assert (made.mapping, made.to_dict()["found"]["of"]) == ("key", PEOPLE - 15)
    assert any("the key ID tells the protector who is who" in note for note in made.notes)
    more = attack(keyed.slice(15), released, key="ID")
    assert more.to_dict()["found"]["of"] == PEOPLE - 15


@pytest.mark.parametrize("fewer", [True, False])
def test_another_number_of_records_needs_a_mapping_or_none(
    original: pa.Table, noisy: rv.Release, *, fewer: bool
) -> None:
    tables = (original, noisy.data.slice(40)) if fewer else (original.slice(40), noisy.data)
    with pytest.raises(rv.PairError, match=r"the original has \d+ records and the masked table \d+; name a key column"):
        attack(*tables)
    made = attack(*tables, mapping=False)
    assert made.to_dict()["found"]["right"] is None
    assert made.to_dict()["found"]["guessing"] == 1 / tables[1].num_rows
    assert made.verdict in ("fails", "holds")


def test_a_sample_is_counted_over_the_people_in_it(original: pa.Table) -> None:
    release = rv.mask(original, "sample", share=0.25, seed=3)
    made = attack(original, release)
    assert (made.mapping, made.to_dict()["found"]["of"], made.found) == ("secret", 30, 1.0)


@pytest.mark.parametrize("limit", [-0.1, 1.1, float("nan"), True, None, "0.09"])
def test_a_limit_that_is_no_share_is_refused(original: pa.Table, limit: Any) -> None:
    with pytest.raises(rv.ParameterError, match=r"at_most must be a share from 0 to 1, such as 0\.09, not "):
        attack(original, original, at_most=limit)


@pytest.mark.parametrize("people", [0, -1, 1.5, float("nan"), True, None, "all"])
def test_people_who_are_no_share_are_refused(original: pa.Table, people: Any) -> None:
    with pytest.raises(rv.ParameterError, match="people must be a share"):
        attack(original, original, people=people)


@pytest.mark.parametrize(("knows", "named"), [(["A9"], "A9"), (["A0", "A9"], "A9"), ([], "nothing")])
def test_knowing_no_column_is_refused(original: pa.Table, knows: list[str], named: str) -> None:
    said = f"knows: {named} is no column of both tables; he can use A0, A1, A2"
    with pytest.raises(rv.ParameterError, match=said):
        attack(original, original, knows=knows)


def changed(release: rv.Release, **step: Any) -> dict[str, Any]:
    """A manifest with something else in its first step."""
    content = copy.deepcopy(dict(release.manifest.content))
    content["steps"][0] |= step
    return content


def test_a_manifest_of_another_release_is_refused(original: pa.Table, noisy: rv.Release, grouped: rv.Release) -> None:
    with pytest.raises(rv.FileError, match="does not describe this release: column A0 has 120 values that its steps"):
        attack(original, noisy.data, manifest=grouped.manifest)
    small = rv.mask(original.slice(20), "additive_noise", alpha=0.3, seed=1)
    with pytest.raises(rv.FileError, match="is that of another release, of another number of records"):
        attack(original, noisy.data, manifest=small.manifest)
    audit = rv.audit(original, noisy.data, manifest=small.manifest, measures=["people_found", "um"])
    assert audit["people_found"] == rv.audit(original, noisy.data, measures=["people_found"])["people_found"]
    assert any("is that of another release" in note and "learned from the two tables" in note for note in audit.notes)


def test_a_manifest_of_other_columns_is_refused(original: pa.Table, noisy: rv.Release) -> None:
    said = "step 1 of the manifest masks WAGE, which the original does not have: it is the manifest of another table"
    with pytest.raises(rv.FileError, match=said):
        attack(original, noisy.data, manifest=changed(noisy, columns=["WAGE"]))


def test_a_column_that_was_masked_as_another_kind_is_to_be_declared() -> None:
    schools = rv.datasets.demo(80).select(["AGE", "EDUCATION"])
    words = pa.DictionaryArray.from_arrays(  # which tell no order themselves
        schools["EDUCATION"].combine_chunks().indices, ["oak", "elm", "ash"], ordered=True
    )
    schools = schools.set_column(1, "EDUCATION", words)
    release = rv.mask(schools, "mdav", k=3)
    plain = schools.set_column(1, "EDUCATION", schools["EDUCATION"].cast(pa.string()))
    with pytest.raises(rv.FileError, match=r"EDUCATION: the manifest says .* ordinal, .*--kind EDUCATION=ordinal:low<"):
        attack(plain, release)
    declared = rv.Schema(kinds={"EDUCATION": "ordinal"}, levels={"EDUCATION": ("oak", "elm", "ash")})
    assert attack(plain, release, schema=declared).found == attack(schools, release).found


def test_a_manifest_of_a_newer_version_is_refused(original: pa.Table, noisy: rv.Release) -> None:
    with pytest.raises(rv.FileError, match=r"step 1 .* cannot be repeated: there is no method teleport.*--no-manifest"):
        attack(original, noisy.data, manifest=changed(noisy, method="teleport"))
    with pytest.raises(rv.FileError, match=r"has no parameter warp; .*another version of rankveil"):
        attack(original, noisy.data, manifest=changed(noisy, parameters={"alpha": 0.3, "warp": 9}))


@pytest.mark.parametrize("steps", [None, [], {}, "x"])
def test_a_manifest_without_steps_is_refused(original: pa.Table, noisy: rv.Release, steps: Any) -> None:
    with pytest.raises(rv.FileError, match="the manifest names no steps"):
        attack(original, noisy.data, manifest={**noisy.manifest.content, "steps": steps})


@pytest.mark.parametrize("step", [3, None, {}, {"method": "additive_noise"}, {"method": "mdav", "parameters": 3}])
def test_a_damaged_manifest_is_refused(original: pa.Table, noisy: rv.Release, step: Any) -> None:
    with pytest.raises(rv.FileError, match="step 1 of the manifest is damaged"):
        attack(original, noisy.data, manifest={**noisy.manifest.content, "steps": [step]})
    with pytest.raises(rv.ParameterError, match="manifest must be a Manifest or its content, not str"):
        attack(original, noisy.data, manifest=noisy.manifest.to_json())


def test_where_the_papers_test_does_not_apply_the_verdict_stands() -> None:
    x = pa.table({"A": [1.0, None, 3.0, None], "B": [None, 2.0, None, 4.0]})
    made = attack(x, x)
    assert made.plaintext is None
    assert (made.verdict, made.found) == ("fails", 1.0)
    assert made.counts == {"correct": None, "multiple": None, "wrong": None}
    assert any(note.startswith("the paper's own test does not apply") for note in made.notes)
    assert "chance" not in made.to_dict()
    assert "Everybody" in made._repr_html_()


def test_nearly_everybody_is_not_ten_of_ten() -> None:
    found = {"share": 0.95, "right": 95, "guessing": 0.01, "of": 100}
    said = sentence({"found": found, "certain": 0, "verdict": "fails", "limit": 0.09})
    assert said.startswith("Nearly everybody can be found")
