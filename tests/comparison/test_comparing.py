"""Comparisons: targets, ranking, the recommended plan, and the same numbers however the work is split or stopped."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.comparison.running import Journal
from rankveil.comparison.study import Result
from rankveil.errors import ParameterError
from rankveil.seeds import CommonSeed

SEED = CommonSeed.of(0)
"""As a comparison draws with its seed 0: a release of its plan would have draws of its own."""

METHODS = ["mdav", "additive_noise", "rank_swap"]
FAST: dict[str, Any] = {"risk": "permutation_level", "utility": ["pil", "um"], "replicates": 2, "workers": 1}


def test_methods_are_brought_to_the_same_risk_and_ranked(original: pa.Table) -> None:
    made = rv.compare(original, [*METHODS, "identity"], at={"risk": 0.1}, **FAST)
    by_id = {one.id: one for one in made.methods}
    for name in METHODS:
        # a group has whole numbers of records, and so has the reach of a swap
        slack = {"mdav": 0.02, "rank_swap": 0.005, "additive_noise": 0.0005}[name]
        assert by_id[name].attained == pytest.approx(0.1, abs=slack)
        place = by_id[name].place
        assert place is not None
        # what it attained is what an audit of that plan says
        again = [
            rv.audit(
                original,
                rv.mask(original, place.plan, seed=SEED, replicate=r).data,
                measures=["permutation_level"],
            )
            for r in range(1 if name == "mdav" else 2)
        ]
        assert np.mean([each["permutation_level"] for each in again]) == pytest.approx(by_id[name].attained, rel=1e-9)
    assert not by_id["identity"].reached
    assert by_id["identity"].rank is None
    assert "from 0 to 0, not 0.1" in (by_id["identity"].note or "")
    ranked = [one for one in made.order if one.rank is not None]
    losses = [one.place.values["pil"].mean for one in ranked if one.place]
    assert losses == sorted(losses)
    assert ranked[0].rank == 1
    assert made.recommendation().startswith(f"Take {ranked[0].id} with ")
    assert ranked[0].place is not None
    assert made.pick is not None
    given = made.pick.confirmed
    assert (given["seeds"], "held" in given) == (10, False)
    said = f"Somebody who knows every original record and all that is published finds {100 * given['found']:.3g} % of"
    assert said in made.recommendation()


def test_a_recommendation_says_whether_others_came_to_the_target(original: pa.Table) -> None:
    for others, words in ((["identity"], "it alone comes to"), ([], "it comes to")):
        said = rv.compare(original, ["additive_noise", *others], at={"risk": 0.1}, **FAST).recommendation()
        assert f": {words} permutation_level 0.1, with pil " in said


def test_methods_whose_intervals_overlap_share_a_rank(original: pa.Table) -> None:
    made = rv.compare(original, METHODS, at={"risk": 0.1}, **FAST)
    for one, other in zip(made.order, made.order[1:], strict=False):
        if one.rank is None or other.rank is None:
            continue
        leader = next(each for each in made.order if each.rank == other.rank)
        assert leader.place is not None
        assert other.place is not None
        if leader is not other:
            assert leader.place.values["pil"].overlaps(other.place.values["pil"])


def test_the_document_has_the_form_of_the_interface(original: pa.Table) -> None:
    made = json.loads(json.dumps(rv.compare(original, ["mdav"], at={"risk": 0.1}, **FAST).to_dict(), allow_nan=False))
    assert (made["schema"], made["at"], made["risk"]) == ("rankveil/compare/1", {"risk": 0.1}, "permutation_level")
    (one,) = made["methods"]
    wanted = {"id", "parameters", "attained", "attainable", "reached", "evaluations", "utility", "rank"}
    assert wanted <= set(one)
    assert set(one["utility"]["um"]) == {"mean", "sd", "interval"}
    assert isinstance(one["parameters"]["k"], int)
    assert len(one["attainable"]) == 2


def test_at_equal_utility_methods_are_ranked_by_risk(original: pa.Table) -> None:
    made = rv.compare(original, ["additive_noise", "rank_swap"], at={"utility": 30}, **FAST)
    assert [one.attained for one in made.methods] == [pytest.approx(30, abs=0.1), pytest.approx(30, abs=3)]
    levels = [one.place.values["permutation_level"].mean for one in made.order if one.place]
    assert levels == sorted(levels, reverse=True)
    assert made.ranked_by == "permutation_level"


def test_the_least_strength_with_which_few_people_are_found(original: pa.Table) -> None:
    made = rv.compare(original, ["mdav", "shuffle", "additive_noise"], at={"found": 0.3}, **FAST)
    by_id = {one.id: one for one in made.methods}
    for name in ("mdav", "shuffle", "additive_noise"):
        one = by_id[name]
        assert one.reached
        assert one.place is not None
        attacks = [
            rv.attack(original, rv.mask(original, one.place.plan, seed=SEED, replicate=r), draws=10, at_most=0.3)
            for r in range(1 if name == "mdav" else 2)
        ]
        assert all(each.holds for each in attacks)
        if name == "mdav":  # it is the least: with one record fewer in a group more are found
            weaker = rv.attack(original, rv.mask(original, "mdav", k=one.place.parameters["k"] - 1), at_most=0.3)
            assert not weaker.holds
    assert made.best is not None
    assert made.pick is not None
    assert made.pick.method is made.best
    assert made.pick.confirmed["found"] == made.best.attained < 0.3
    assert (made.pick.confirmed["seeds"], made.pick.confirmed["held"]) == (10, 10)


def test_who_is_found_by_columns_that_are_left_as_they_are_is_counted_but_not_by_identifiers() -> None:
    people = rv.datasets.demo(100).select(["PERSON", "AGE", "HOURS", "TAX"])
    asked: dict[str, Any] = {"at": {"found": 0.2}, **FAST}
    some = rv.compare(people, ["mdav"], columns=["AGE", "HOURS"], **asked)
    (one,) = some.methods
    assert (one.reached, one.attained) == (False, 1.0)
    assert one.note == "it attains found from 1 to 1 (1 where somebody is certain), not at most 0.2: 1 is the nearest"
    assert any("identifiers are to be dropped: PERSON" in note for note in some.notes)
    (all_of_them,) = rv.compare(people, ["mdav"], columns=["AGE", "HOURS", "TAX"], **asked).methods
    assert all_of_them.reached
    assert all_of_them.attained <= 0.2


def test_every_attribute_is_tuned_to_the_same_level(original: pa.Table) -> None:
    made = rv.compare(original, ["additive_noise", "mdav"], at={"level": 0.2}, **FAST)
    noise = next(one for one in made.methods if one.id == "additive_noise")
    assert noise.reached
    strengths = [given["strength"] for given in noise.attributes.values()]
    assert len(set(strengths)) == 3
    assert all(given["level"] == pytest.approx(0.2, abs=0.005) for given in noise.attributes.values())
    assert noise.place is not None
    masked = rv.mask(original, noise.place.plan, seed=SEED)  # the plan runs, with one strength for each column
    assert masked.manifest["steps"][0]["columns"]
    mdav = next(one for one in made.methods if one.id == "mdav")
    assert "one strength for all" in (mdav.note or "")


def test_the_map_marks_what_nothing_beats(original: pa.Table) -> None:
    made = rv.compare(original, ["mdav", "additive_noise"], sweep=True, points=5, **FAST)
    assert made.at == {}
    points = [(one.id, point) for one in made.methods for point in one.points]
    assert {name for name, _ in points} == {"mdav", "additive_noise"}
    assert 9 <= len(points) <= 10

    def beats(a: Any, b: Any) -> bool:
        risk = (a.values["permutation_level"].mean, b.values["permutation_level"].mean)
        loss = (a.values["pil"].mean, b.values["pil"].mean)
        return risk[0] >= risk[1] and loss[0] <= loss[1] and (risk[0], loss[0]) != (risk[1], loss[1])

    for _, point in points:
        assert point.front is not any(beats(other, point) for _, other in points)
    json.dumps(made.to_dict(), allow_nan=False)


def test_workers_change_nothing(original: pa.Table) -> None:
    alone = rv.compare(original, METHODS, at={"risk": 0.1}, **FAST).to_dict()
    together = rv.compare(original, METHODS, at={"risk": 0.1}, **{**FAST, "workers": 2}).to_dict()
    assert alone == together


def test_a_stopped_comparison_goes_on_where_it_was(original: pa.Table, tmp_path: Path) -> None:
    whole = rv.compare(original, METHODS, at={"risk": 0.1}, **FAST).to_dict()
    state = tmp_path / "state"

    def stop(done: int, total: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rv.compare(original, METHODS, at={"risk": 0.1}, state=state, progress=stop, **FAST)
    kept = state.read_text().splitlines()
    assert len(kept) == 8
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    state.write_text("\n".join(kept[:-1]) + "\n" + kept[-1][:20])  # killed in the middle of a line
    counted: list[int] = []
    again = rv.compare(
        original, METHODS, at={"risk": 0.1}, state=state, resume=True, progress=lambda d, t: counted.append(d), **FAST
    )
    assert again.to_dict() == whole
    assert not state.exists()
    everything: list[int] = []
    rv.compare(original, METHODS, at={"risk": 0.1}, progress=lambda d, t: everything.append(d), **FAST)
    kept_at = counted.index(6)  # what was kept is counted at once, the rest one by one
    assert kept_at < 5
    assert counted[kept_at:] == list(range(6, max(everything) + 1))
    with pytest.raises(KeyboardInterrupt):
        rv.compare(original, METHODS, at={"risk": 0.1}, state=state, progress=stop, **FAST)
    with pytest.raises(ParameterError, match="state of another comparison"):
        rv.compare(original, METHODS, at={"risk": 0.1}, state=state, resume=True, seed=5, **FAST)


def test_the_journal_keeps_what_it_was_told(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = Journal(path, of="x", resume=False)
    first.add("a", Result({"m": 1.0}, {"n": "why"}))
    first.close(done=False)
    second = Journal(path, of="x", resume=True)
    assert second.results["a"] == Result({"m": 1.0}, {"n": "why"})
    second.add("b", Result({}, error="no"))
    second.close(done=False)
    assert set(Journal(path, of="x", resume=True).results) == {"a", "b"}
    with pytest.raises(ParameterError, match="go on with --resume, or delete the file"):
        Journal(path, of="x", resume=False)
    assert path.exists()


def test_a_state_that_somebody_else_wrote_is_not_taken_up(tmp_path: Path) -> None:
    """It lies in the working folder, which may have come from anybody; its numbers would decide the comparison."""
    path = tmp_path / "journal"
    first = Journal(path, of="x", resume=False)
    for key in "abc":
        first.add(key, Result({"m": 1.0}))
    first.close(done=False)
    lines = [json.loads(line) for line in path.read_text().splitlines()]

    def planted(*entries: dict[str, Any]) -> Journal:
        path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
        return Journal(path, of="x", resume=True)

    for seal in ({}, {"seal": None}, {"seal": "0" * 64}, {"seal": lines[1]["seal"]}):
        header = {name: value for name, value in lines[0].items() if name != "seal"} | seal
        with pytest.raises(ParameterError, match=r"not sealed with your key .*; delete it, or leave out --resume"):
            planted(header, *lines[1:])
    for changed in ({"values": {"m": 0.0}}, {"key": "d"}, {"seal": lines[1]["seal"]}):
        assert set(planted(*lines[:2], lines[2] | changed, lines[3]).results) == {"a"}
    path.write_text(json.dumps(lines[0]) + "\n" + "[" * 100_000 + "\n")
    assert Journal(path, of="x", resume=True).results == {}
    with pytest.raises(ParameterError, match="not sealed with your key"):  # a state of another comparison, renamed
        planted(lines[0] | {"of": "y"}, *lines[1:])


def test_a_method_that_fails_does_not_stop_the_others(original: pa.Table) -> None:
    made = rv.compare(original, ["laplace_dp", "rank_swap"], at={"risk": 0.1}, **FAST)
    failed = next(one for one in made.methods if one.id == "laplace_dp")
    assert not failed.reached
    assert "lower" in (failed.note or "")
    assert made.best is not None
    assert made.best.id == "rank_swap"
    study = rv.compare(
        original, ["laplace_dp"], at={"risk": 0.3}, parameters={"laplace_dp": {"lower": -500, "upper": 500}}, **FAST
    )
    assert study.best is not None
    assert study.best.place is not None
    assert "fast" not in study.best.place.plan.steps[0].parameters  # the plan for a release is not the study's
    assert any("fast=true" in note for note in study.notes)


def test_the_plan_is_written_and_runs(original: pa.Table, tmp_path: Path) -> None:
    made = rv.compare(original, ["rank_swap"], at={"risk": 0.1}, columns=["A", "B"], **FAST)
    made.write_plan(tmp_path / "plan.toml")
    plan = rv.Plan.from_toml((tmp_path / "plan.toml").read_text())
    assert list(rv.mask(original, plan).changed) == ["A", "B"]
    nothing = rv.compare(original, ["identity"], at={"risk": 0.1}, **FAST)
    assert nothing.recommendation().startswith("No method reached the target")
    with pytest.raises(ParameterError, match="no method reached the target"):
        nothing.write_plan(tmp_path / "none.toml")


def test_it_shows_itself(original: pa.Table, tmp_path: Path) -> None:
    made = rv.compare(original, ["mdav", "rank_swap"], at={"risk": 0.1}, **FAST)
    assert list(made.to_frame().index) == [one.id for one in made.order]
    assert "<table>" in made._repr_html_()
    assert repr(made).startswith("Comparison(Take ")
    made.report(tmp_path / "page.html")
    assert "INTERNAL" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "say where to compare"),
        ({"at": {"risk": 0.1}, "sweep": True}, "say where to compare"),
        ({"at": {"risk": 0.1, "level": 0.2}}, "compare at one target"),
        ({"at": {"risc": 0.1}}, "there is no target risc; did you mean risk?"),
        ({"at": {"risk": float("nan")}}, "must be a number"),
        ({"at": {"claims": 0}}, "the target claims is retired: .* as in --at found=0.09"),
        ({"at": {"found": 0}}, "the share of people found lies between 0 and 1, as in found=0.09, not 0"),
        ({"at": {"found": 9}}, "the share of people found lies between 0 and 1, as in found=0.09, not 9"),
        ({"at": {"level": 2}}, "between 0 and 1"),
        ({"at": {"risk": 0.1}, "replicates": 0}, "replicates must be at least 1"),
        ({"at": {"risk": 0.1}, "risk": "cm9"}, "there is no measure cm9"),
        ({"at": {"risk": 0.1}, "utility": ["x"]}, "there is no measure x"),
        ({"at": {"risk": 0.1}, "methods": []}, "name at least one method"),
        ({"at": {"risk": 0.1}, "methods": ["mdaw"]}, "there is no method mdaw; did you mean mdav?"),
        ({"at": {"risk": 0.1}, "methods": ["round"]}, "round is a step after a masking"),
        ({"at": {"risk": 0.1}, "parameters": {"rank_swap": {"p": 3}}}, "rank_swap, which is not compared"),
        ({"at": {"risk": 0.1}, "parameters": {"mdav": {"q": 3}}}, "mdav has no parameter q"),
        ({"at": {"risk": 0.1}, "columns": ["X"]}, "no column X"),
    ],
)
def test_what_makes_no_sense_is_refused(original: pa.Table, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(rv.RankveilError, match=sentence.replace("?", r"\?")):
        rv.compare(original, given.pop("methods", ["mdav"]), **{**FAST, **given})


def test_a_fixed_strength_is_one_place(original: pa.Table) -> None:
    made = rv.compare(original, ["mdav", "rank_swap"], at={"risk": 0.1}, parameters={"mdav": {"k": "3"}}, **FAST)
    mdav = next(one for one in made.methods if one.id == "mdav")
    assert mdav.evaluations == 1
    assert mdav.place is not None
    assert mdav.place.parameters == {"k": 3}
    assert not mdav.reached
    with pytest.raises(ParameterError, match="mdav: k must be a whole number"):
        rv.compare(original, ["mdav"], at={"risk": 0.1}, parameters={"mdav": {"k": "many"}}, **FAST)


def test_an_end_that_cannot_be_measured_does_not_hide_what_lies_before_it(original: pa.Table) -> None:
    # with one group of all records um does not apply, yet it falls to 0.5 before
    made = rv.compare(original, ["mdav"], at={"utility": 0.5}, **{**FAST, "utility": ["um"]})
    (one,) = made.methods
    assert one.attainable is not None
    assert one.attainable[0] < 0.5
    assert one.reached


def test_what_is_off_the_target_is_said(original: pa.Table) -> None:
    made = rv.compare(original, ["mdav"], at={"risk": 0.02}, **FAST)
    (one,) = made.methods
    assert one.attained is not None
    assert abs(one.attained - 0.02) > 0.01
    assert "k is a whole number" in (one.note or "")
    assert "(0.02 was asked for)" in made.recommendation()


def test_the_front_is_of_risk_and_utility_also_at_a_target(original: pa.Table) -> None:
    made = rv.compare(original, METHODS, at={"risk": 0.1}, **FAST)
    places = [one.place for one in made.methods if one.place]
    for place in places:
        level, loss = place.values["permutation_level"].mean, place.values["pil"].mean
        beaten = any(
            other.values["permutation_level"].mean >= level and other.values["pil"].mean <= loss and other is not place
            for other in places
        )
        assert place.front is not beaten


def test_what_a_measure_approximates_is_said(original: pa.Table, tmp_path: Path) -> None:
    given = {**FAST, "utility": ["emd"], "settings": {"emd": {"exact": 50, "clusters": 10}}}
    state = tmp_path / "state"
    made = rv.compare(original, ["rank_swap", "mdav"], at={"risk": 0.1}, **given)
    notes = [note for note in made.notes if note.startswith("emd: approximate, on ")]
    assert any("rank_swap" in note for note in notes)
    assert any("mdav" in note for note in notes)

    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rv.compare(original, ["rank_swap", "mdav"], at={"risk": 0.1}, state=state, progress=stop, **given)
    again = rv.compare(original, ["rank_swap", "mdav"], at={"risk": 0.1}, state=state, resume=True, **given)
    assert again.notes == made.notes


def test_what_is_left_out_is_said() -> None:
    people = rv.datasets.demo(200).select(["AGE", "INCOME", "SAVINGS", "REGION"])
    made = rv.compare(people, ["rank_swap"], at={"risk": 0.1}, **FAST)
    assert made.complete < made.records
    assert "not compared: REGION" in made.notes
    assert any(f"{200 - made.complete} of 200 records have missing values" in note for note in made.notes)
    # REGION, which is not compared, is released as it is: whom it helps to find is counted
    assert "that is published finds" in made.recommendation()
    assert "It leaves as they are: REGION." in made.recommendation()
