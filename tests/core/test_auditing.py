"""Audits: what is asked for, what does not apply, gates, and how a result shows itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import FileError, NotApplicableError, PairError, ParameterError
from rankveil.manifest import Manifest
from rankveil.matching import MOST_DOMAINS
from rankveil.pairing import pair_tables
from rankveil.verdict.gates import Gate


@pytest.fixture
def pair() -> tuple[pa.Table, pa.Table]:
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    original = {"A": x, "B": 10 * x, "K": np.full(5, 7.0)}
    return pa.table(original), pa.table({**original, "A": x[[1, 0, 3, 2, 4]]})


def test_every_measure_is_there_unless_some_are_asked_for(pair: Any) -> None:
    made = rv.audit(*pair)
    assert {*made, *made.not_applicable} == set(rv.catalogue.measures())
    some = rv.audit(*pair, measures=["permutation_level", "permutation_level"])
    assert list(some) == ["permutation_level"]
    with pytest.raises(ParameterError, match="spearman_risk was not asked for; this audit has permutation_level"):
        some["spearman_risk"]
    with pytest.raises(ParameterError, match="there is no measure permutation; did you mean permutation_level"):
        some["permutation"]
    with pytest.raises(ParameterError, match="there is no measure"):
        rv.audit(*pair, measures=["cm99"])


def test_the_document_has_the_form_of_the_interface(pair: Any) -> None:
    made = json.loads(
        json.dumps(
            rv.audit(*pair, columns=["A", "B", "K"], fail_if=["permutation_level<0.05"]).to_dict(), allow_nan=False
        )
    )
    assert set(made) == {
        *("schema", "records", "attributes", "mapping", "rankings", "measures", "not_applicable", "gates", "notes"),
        *("status", "headline", "advice"),
    }
    assert (made["schema"], made["records"], made["mapping"]) == ("rankveil/audit/1", 5, "rows")
    assert made["attributes"] == ["A", "B", "K"]
    level = made["measures"]["permutation_level"]
    assert level == {
        "value": pytest.approx(0.8 / 4 / 3),
        "family": "confidentiality",
        "better": "higher",
        "bounds": [0, 1],
        "records": {"used": 5, "most": 5, "of": 5},
        "details": level["details"],
    }
    assert level["details"]["per_attribute"] == {"A": pytest.approx(0.2), "B": 0, "K": 0}
    assert level["details"]["maximum"] == {"A": 0.25, "B": 0, "K": 0}
    assert made["gates"] == [{"rule": "permutation_level<0.05", "value": level["value"], "ok": True}]


def test_a_column_without_meaning_is_left_out_and_named(pair: Any) -> None:
    made = rv.audit(*pair, columns=["A", "B", "K"])
    assert made["spearman_risk"] == 1.0
    assert made.values["spearman_risk"].details["per_attribute"] == {"A": pytest.approx(0.8), "B": 1.0}
    assert "K" in made.values["spearman_risk"].details["not_applicable"]
    assert any(note.startswith("spearman_risk: column K left out: ") for note in made.notes)
    constant = rv.audit(pair[0].select(["K"]), pair[1].select(["K"]), columns=["K"])
    assert set(constant.not_applicable) >= {"spearman_risk", "difference_variance"}
    with pytest.raises(NotApplicableError, match="spearman_risk: in no column"):
        constant["spearman_risk"]


@pytest.mark.parametrize(
    ("rule", "ok"),
    [
        ("spearman_risk>0.9", False),
        ("spearman_risk > 1.0", True),
        ("spearman_risk>=1", False),
        ("spearman_risk<1e0", True),
        ("spearman_risk<=1", False),
        ("permutation_level<0.05", True),
        ("permutation_level<-.5", True),
    ],
)
def test_gates_fail_when_their_rule_comes_true(pair: Any, rule: str, ok: bool) -> None:
    made = rv.audit(*pair, fail_if=[rule])
    assert made.ok is ok
    assert made.gates[0]["ok"] is ok


def test_a_gate_on_a_measure_that_does_not_apply_fails(pair: Any) -> None:
    made = rv.audit(pair[0].select(["K"]), pair[1].select(["K"]), columns=["K"], fail_if=["spearman_risk>0.9"])
    assert made.gates == [{"rule": "spearman_risk>0.9", "value": None, "ok": False}]
    assert not made.ok


def test_a_gate_brings_its_measure_along(pair: Any) -> None:
    made = rv.audit(*pair, measures=["permutation_level"], fail_if=["difference_variance<0.1"])
    assert list(made) == ["permutation_level", "difference_variance"]


@pytest.mark.parametrize(
    "rule", ["", "cm2", "permutation_level=0.5", "permutation_level<", "permutation_level<1e", "<1"]
)
def test_a_gate_that_cannot_be_read_is_refused(rule: str) -> None:
    with pytest.raises(ParameterError, match="a gate reads like"):
        Gate.parse(rule)


def test_a_gate_on_an_unknown_measure_is_refused() -> None:
    with pytest.raises(ParameterError, match="did you mean spearman_risk"):
        Gate.parse("spearman_rsk<1")


def test_an_audit_shows_itself_as_a_frame_and_in_a_notebook(pair: Any) -> None:
    made = rv.audit(*pair)
    frame = made.to_frame()
    assert list(frame.index) == list(made)
    assert frame.loc["spearman_risk", "value"] == 1.0
    assert "<td>spearman_risk</td>" in made._repr_html_()


def test_an_audit_tells_itself_in_short_and_without_values(pair: Any) -> None:
    shown = repr(rv.audit(*pair, columns=["A", "B"], measures=["spearman_risk"]))
    assert shown == "Audit(amber, 5 records, guarantees 0, spearman_risk 1)"


def test_several_versions_give_means_deviations_and_intervals(pair: Any) -> None:
    other = pa.table({**{name: pair[1][name] for name in ("B", "K")}, "A": pair[0]["A"]}).select(["A", "B", "K"])
    made = rv.audit(pair[0], [pair[1], other], measures=["permutation_level"], fail_if=["permutation_level>0.03"])
    one = rv.audit(*pair, measures=["permutation_level"])["permutation_level"]
    details = made.values["permutation_level"].details
    assert made["permutation_level"] == pytest.approx(one / 2)
    assert details["replicates"] == [one, 0.0]
    assert details["sd"] == pytest.approx(one / 2**0.5)
    reach = 12.7062047 * one / 2  # Student's t for one degree of freedom, times sd / sqrt 2
    assert details["interval"] == [0.0, pytest.approx(one / 2 + reach)]
    assert not made.ok
    assert list(made.to_frame().columns) == ["title", "family", "value", "sd", "low", "high", "better", "records"]
    json.dumps(made.to_dict(), allow_nan=False)
    alone = rv.audit(pair[0], [pair[1]], measures=["permutation_level"])
    assert alone["permutation_level"] == one
    assert alone.values["permutation_level"].details["interval"] is None
    with pytest.raises(ParameterError, match="no masked table"):
        rv.audit(pair[0], [])


def test_several_versions_share_the_work_on_the_original(pair: Any) -> None:
    first = pair_tables(*pair)
    second = pair_tables(pair[0], pair[0], beside=first)
    assert second.table.sides["x"] is first.table.sides["x"]
    assert pair_tables(pair[0], pair[0], columns=["A"], beside=first).table.sides["x"] is not first.table.sides["x"]


@pytest.fixture
def regions() -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 90))
    region = np.repeat(["north", "south", "west"], 30)
    original = pa.table({"A": x, "B": y, "R": region})
    return original, pa.table({"A": np.where(region == "south", x + 5, x), "B": y})


def test_losses_on_subdomains_are_those_of_the_subdomains_alone(regions: Any) -> None:
    original, masked = regions
    made = rv.audit(original, masked, by="R")
    losses = [name for name in made if get_measure(name).family in ("loss", "utility")]
    losses = [name for name in losses if "released" not in get_measure(name).needs]  # of whole tables
    assert losses
    for name in losses:
        by = made.values[name].details["by"]
        assert list(by) == ["north", "south", "west"]
        for number, level in enumerate(by):
            rows = slice(30 * number, 30 * number + 30)
            part = rv.audit(
                original.slice(rows.start, 30).drop_columns("R"), masked.slice(rows.start, 30), measures=[name]
            )
            assert by[level]["value"] == (None if name in part.not_applicable else pytest.approx(part[name], rel=1e-9))
            assert by[level]["records"] == 30
    assert "by" not in made.values["spearman_risk"].details
    assert any("by R, in 3 subdomains" in note for note in made.notes)


def test_subdomains_of_tables_that_do_not_correspond(regions: Any) -> None:
    original, masked = regions
    release = masked.append_column("R", original["R"]).slice(10, 70)
    made = rv.audit(original, release, by="R", mapping=False)
    measures = [get_measure(name) for name in made]
    names = [each.id for each in measures if each.family == "utility" and not {"released"} & set(each.needs)]
    name = next(name for name in names if not get_measure(name).equal)
    assert [each["records"] for each in made.values[name].details["by"].values()] == [20, 30, 20]
    with pytest.raises(PairError, match="column R in the masked table"):
        rv.audit(original, masked, by="R", mapping=False)
    with pytest.raises(PairError, match="no column X to form subdomains by"):
        rv.audit(original, masked, by="X", columns=["A", "B"])
    many = pa.table({"A": np.arange(MOST_DOMAINS + 1.0)})
    with pytest.raises(PairError, match=f"column A has {MOST_DOMAINS + 1} different values"):
        rv.audit(many, many, by="A", columns=["A"])


def test_subdomains_without_a_mapping_are_measured_on_the_columns_that_a_measure_takes(regions: Any) -> None:
    original, masked = regions
    release = masked.append_column("R", original["R"]).slice(10, 70)
    asked = {"columns": ["A", "R", "B"], "mapping": False, "measures": ["contingency", "total_variation", "emd"]}
    made = rv.audit(original, release, by="R", **asked)
    for name in made:
        by = made.values[name].details["by"]
        assert list(by) == ["north", "south", "west"]
        for level, found in by.items():
            part = [side.filter(pc.equal(side["R"], level)) for side in (original, release)]
            assert found["value"] == pytest.approx(rv.audit(*part, **asked)[name], rel=1e-9), (name, level)


@pytest.mark.parametrize("scale", [1e150, 1e300, 1.5e308])
def test_several_versions_of_large_numbers_have_means_and_spreads(scale: float) -> None:
    original, first, second = (
        pa.table({name: scale * np.random.default_rng(seed).uniform(-1, 1, 9) for name in "AB"}) for seed in range(3)
    )
    some = ["loss_values_mae", "loss_means_mae", "permutation_level"]
    made = rv.audit(original, [first, second, original], measures=some)
    json.dumps(made.to_dict(), allow_nan=False)
    alone = [rv.audit(original, each, measures=some)["loss_values_mae"] / scale for each in (first, second, original)]
    details = made.values["loss_values_mae"].details
    assert made["loss_values_mae"] / scale == pytest.approx(np.mean(alone))
    assert details["sd"] / scale == pytest.approx(np.std(alone, ddof=1))
    assert (details["interval"] is None) == (scale > 1e308)  # its upper end is too large for a number


def test_a_target_concerns_only_measures_of_a_stated_use(regions: Any) -> None:
    original, masked = regions
    pair = original, masked.append_column("R", original["R"])
    asked = {"measures": ["total_variation", "ci_overlap"], "columns": ["A", "B", "R"]}
    made = rv.audit(*pair, target="A", **asked)
    assert made["total_variation"] == rv.audit(*pair, **asked)["total_variation"]
    assert (
        "the target R is not a column that it takes"
        in rv.audit(*pair, target="R", **asked).not_applicable["ci_overlap"]
    )


def test_parameters_of_measures_are_checked(pair: Any) -> None:
    with pytest.raises(ParameterError, match="permutation_level has no parameter q; it has none"):
        rv.audit(*pair, settings={"permutation_level": {"q": 1}})
    with pytest.raises(ParameterError, match="there is no measure x"):
        rv.audit(*pair, settings={"x": {}})
    with pytest.raises(ParameterError, match="the target X is not among the columns compared: A, B, K"):
        rv.audit(*pair, target="X", columns=["A", "B", "K"])
    with pytest.raises(ParameterError, match="pair must be nearest"):
        rv.audit(*pair, pair="farthest", mapping=False)


def test_what_suppression_and_sampling_lose_shows_in_measures_of_distributions() -> None:
    """Cells that are gone are not cells that are right: distributions are those of the release and of the original."""
    original = pa.table({"T": ["a"] * 6 + ["b"] * 4, "X": np.arange(10.0)})
    lost = pa.table({"T": pa.array(["a"] * 6 + [None] * 4), "X": pa.array([*range(8), None, None], pa.float64())})
    chosen = {"columns": ["T", "X"], "measures": ["total_variation", "il2", "permutation_level"]}
    made = rv.audit(original, lost, **chosen)
    assert made["total_variation"] == pytest.approx(0.4)
    assert made["il2"] == pytest.approx(1 / 4.5)  # 4.5 against 3.5
    assert made["permutation_level"] == 0  # a record that is there has not moved
    release = rv.mask(original, "sample", size=5, columns=None, seed=1)
    sampled = rv.audit(original, release.data, secret=release.secret, **chosen)
    apart = rv.audit(original, release.data, mapping=False, columns=["T", "X"], measures=["total_variation", "il2"])
    for name in ("total_variation", "il2"):
        assert sampled[name] == pytest.approx(apart[name], rel=1e-12)
    assert any("over all records that are complete on their own side: 10 original" in note for note in sampled.notes)


def test_a_note_is_said_once_for_a_measure_and_its_parts() -> None:
    rng = np.random.default_rng(5)
    x = {"A": rng.normal(size=150), "B": rng.normal(size=150), "C": rng.choice(["u", "v", "w"], 150)}
    y = {**x, "A": x["A"] + rng.normal(size=150), "B": x["B"] + rng.normal(size=150)}
    schema = rv.Schema(kinds={"C": "nominal"})
    tables = [rv.Table(pa.table(each), schema=schema) for each in (x, y)]
    notes = rv.audit(*tables, measures=["pil", "il"], columns=["A", "B", "C"]).notes
    assert [note for note in notes if "left out: C" in note] == [
        "pil, il: it takes numeric and ordinal columns; left out: C"
    ]
    # what only parts say is said with their names, all in one note
    x["A"][:3] = 0.0
    tables = [rv.Table(pa.table(each), schema=schema) for each in (x, y)]
    notes = rv.audit(*tables, measures=["il"], columns=["A", "B"]).notes
    assert [note for note in notes if "are 0" in note] == ["il: il1: 3 of the 300 original values are 0 and left out"]
    notes = rv.audit(*tables, measures=["il", "il1"], columns=["A", "B"]).notes
    assert [note for note in notes if "are 0" in note] == ["il1: 3 of the 300 original values are 0 and left out"]


def test_several_versions_may_have_their_own_mapping() -> None:
    original, masked = rv.datasets.running_example()
    made = rv.audit(original, [masked, masked], measures=["cm2"], mapping=[True, False])
    assert made.mappings == ("rows", "none")
    assert made["cm2"] == rv.audit(original, masked)["cm2"]
    with pytest.raises(rv.ParameterError, match="2 masked tables need as many mappings, not 1"):
        rv.audit(original, [masked, masked], mapping=[True])


def test_what_belongs_into_a_schema_is_told_so(pair: Any) -> None:
    calls: list[Any] = [rv.audit, rv.attack, rv.certify, rv.reverse_map]
    for call in calls:
        with pytest.raises(ParameterError, match=r"no argument hierarchy; give it as schema=rv.Schema\(hierarchies="):
            call(*pair, hierarchy={})
    with pytest.raises(ParameterError, match=r"no argument kind; give it as schema=rv.Schema\(kinds="):
        rv.verify(pair[1], {"A": 1}, kind={"A": "numeric"})
    with pytest.raises(ParameterError, match=r"no argument roles; give it as schema=rv.Schema\(roles="):
        rv.compare(pair[0], ["rank_swap"], at={"risk": 0.1}, roles={})
    with pytest.raises(ParameterError, match="there is no argument colums; did you mean columns"):
        rv.audit(*pair, colums=["A"])


@pytest.mark.parametrize("mapping", ["none", "rows", "False", None, 0, 1, {"schema": "rankveil/secret/1"}])
def test_a_mapping_that_is_no_answer_is_refused(mapping: Any) -> None:
    # "none" is what a manifest says, and Python takes it for true
    x = pd.DataFrame({"A": np.arange(20.0), "B": np.arange(20.0) ** 2})
    y = x.iloc[::-1].reset_index(drop=True)
    asked = [
        lambda: rv.audit(x, y, mapping=mapping),
        lambda: rv.audit(x, [y, y], mapping=[False, mapping]),
        lambda: rv.attack(x, y, mapping=mapping),
        lambda: rv.certify(x, y, mapping=mapping),
        lambda: rv.reverse_map(x, y, mapping=mapping),
    ]
    for ask in asked:
        with pytest.raises(rv.ParameterError, match=r"^mapping must be True or False, not "):
            ask()
    assert rv.audit(x, y, mapping=np.bool_(False), measures=["emd"]).mapping == "none"


@pytest.mark.parametrize("said", ["None", True, 5, None])
def test_a_manifest_that_says_no_mapping_there_is_is_damaged(said: Any) -> None:
    x = pd.DataFrame({"A": np.arange(20.0)})
    release = rv.mask(x, "permute", seed=1)
    content = {**release.manifest.content, "mapping": said}
    with pytest.raises(FileError, match="the manifest is damaged: its mapping must be kept or reordered or none, not"):
        rv.attack(x, release.data, manifest=content)
    with pytest.raises(FileError, match="the manifest is damaged: its mapping"):
        Manifest.from_json(json.dumps(content))
