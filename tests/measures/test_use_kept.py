"""Estimates of a stated use: by hand and against scipy, what counts as kept, and what the release cannot give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import rankveil as rv
from rankveil.cli import main
from rankveil.errors import ParameterError

N = 600


def people(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, N).astype(float)
    region = rng.choice(["north", "south", "east"], N, p=[0.5, 0.3, 0.2])
    income = 1000 + 20 * age + 300 * (region == "south") + rng.normal(0, 200, N)
    sex = rng.choice(["f", "m"], N)
    return {"AGE": age, "REGION": region, "INCOME": income, "SEX": sex}


def measured(use: Any, before: Any, after: Any, **more: Any) -> Any:
    return rv.audit(pa.table(before), pa.table(after), measures=["use_kept"], use=use, **more).values["use_kept"]


def estimates(value: Any) -> dict[str, Any]:
    return {each["name"]: each for use in value.details["uses"] for each in use["estimates"]}


def test_slopes_are_those_of_least_squares() -> None:
    data = people()
    made = measured({"regression": {"formula": "INCOME ~ AGE + C(REGION)"}}, data, data)
    design = np.column_stack([np.ones(N), data["AGE"], data["REGION"] == "south", data["REGION"] == "east"])
    inverse = np.linalg.inv(design.T @ design)
    slopes = inverse @ design.T @ data["INCOME"]
    errors = data["INCOME"] - design @ slopes
    half = stats.t.ppf(0.975, N - 4) * np.sqrt(errors @ errors / (N - 4) * np.diag(inverse))
    found = estimates(made)
    assert set(found) == {"AGE", "REGION=south (against north)", "REGION=east (against north)"}
    for i, name in enumerate(("AGE", "REGION=south (against north)", "REGION=east (against north)"), start=1):
        side = found[name]["original"]
        assert side["estimate"] == pytest.approx(slopes[i])
        assert side["interval"] == pytest.approx([slopes[i] - half[i], slopes[i] + half[i]])
        assert side["significant"] == (abs(slopes[i]) > half[i])
    assert made.value == 1.0
    assert made.details["kept"] == made.details["estimates"] == 3


def test_an_intercept_is_no_estimate() -> None:
    before = people()
    after = {**before, "INCOME": before["INCOME"] + 1e6}
    assert measured({"regression": {"formula": "INCOME ~ AGE"}}, before, after).value == 1.0
    assert measured({"means": {"of": "INCOME"}}, before, after).value == 0.0


def test_what_counts_as_kept() -> None:
    before = people()
    rng = np.random.default_rng(1)
    formula = {"regression": {"formula": "INCOME ~ AGE"}}
    turned = estimates(measured(formula, before, {**before, "AGE": -before["AGE"]}))["AGE"]
    assert (turned["sign_kept"], turned["significance_kept"], turned["interval_kept"]) == (False, True, False)
    gone = estimates(measured(formula, before, {**before, "AGE": rng.permutation(before["AGE"])}))["AGE"]
    assert (gone["significance_kept"], gone["interval_kept"], gone["kept"]) == (False, False, False)
    # of no effect before and after: the sign is chance
    noise = {**before, "NOISE": rng.normal(size=N)}
    other = {**noise, "NOISE": -noise["NOISE"]}
    found = estimates(measured({"regression": {"formula": "INCOME ~ NOISE"}}, noise, other))["NOISE"]
    assert not found["original"]["significant"]
    assert np.sign(found["original"]["estimate"]) != np.sign(found["masked"]["estimate"])
    assert found["sign_kept"]
    # a slope of 20 in an interval of half length h: moved by h, half of both intervals is shared
    low, high = found_interval = estimates(measured(formula, before, before))["AGE"]["original"]["interval"]
    for move, kept in ((0.45, True), (0.55, False)):
        moved = before["INCOME"] + move * (high - low) * before["AGE"]
        shown = estimates(measured(formula, before, {**before, "INCOME": moved}))["AGE"]
        assert shown["overlap"] == pytest.approx(1 - move)
        assert (shown["kept"], shown["original"]["interval"]) == (kept, found_interval)


def test_means_of_groups_and_their_difference_from_the_others() -> None:
    before = people()
    made = estimates(measured({"means": {"of": "INCOME", "by": "REGION"}}, before, before))
    assert len(made) == 3
    for name in ("north", "south", "east"):
        here, there = (before["INCOME"][some] for some in (before["REGION"] == name, before["REGION"] != name))
        side = made[f"mean of INCOME, REGION={name}"]["original"]
        assert side["estimate"] == pytest.approx(here.mean())
        half = stats.t.ppf(0.975, here.size - 1) * here.std(ddof=1) / np.sqrt(here.size)
        assert side["interval"] == pytest.approx([here.mean() - half, here.mean() + half])
        assert side["significant"] == (stats.ttest_ind(here, there, equal_var=False).pvalue < 0.05)


def test_shares_of_cells_by_hand() -> None:
    before = {"A": ["x"] * 30 + ["y"] * 70, "B": ["u"] * 20 + ["v"] * 10 + ["u"] * 10 + ["v"] * 60}
    both = {"columns": ["A", "B"]}
    made = measured({"table": both}, before, before, **both)
    cell = estimates(made)["share of A=x, B=u"]["original"]
    assert cell["estimate"] == pytest.approx(0.2)
    assert cell["interval"] == pytest.approx(stats.binomtest(20, 100).proportion_ci(method="wilson"), rel=1e-9)
    # 20 where 30 * 30 / 100 = 9 are expected: (20 - 9) / sqrt(9 * 0.7 * 0.7) = 5.2
    assert cell["significant"]
    independent = {"A": ["x", "y"] * 50, "B": ["u"] * 50 + ["v"] * 50}
    made = measured({"table": both}, before, independent, **both)
    shown = estimates(made)
    assert len(shown) == 4
    assert not any(each["significance_kept"] for each in shown.values())
    assert made.value == 0.0
    alone = estimates(measured({"table": {"columns": ["A"]}}, before, before, **both))
    assert alone["share of A=x"]["sign_kept"] is None


def test_a_record_of_weight_w_counts_as_w() -> None:
    data = people()
    weight = np.random.default_rng(2).integers(1, 4, N).astype(float)
    before = {**data, "W": weight}
    made = measured(
        {"means": {"of": "INCOME"}, "table": {"columns": ["SEX"]}, "regression": {"formula": "INCOME ~ AGE"}},
        before,
        before,
        schema=rv.Schema(roles={"W": "weight"}),
    )
    found = estimates(made)
    assert found["mean of INCOME"]["original"]["estimate"] == pytest.approx(np.average(data["INCOME"], weights=weight))
    share = weight[data["SEX"] == "f"].sum() / weight.sum()
    assert found["share of SEX=f"]["original"]["estimate"] == pytest.approx(share)
    slope = np.polyfit(data["AGE"], data["INCOME"], 1, w=np.sqrt(weight))[0]
    assert found["AGE"]["original"]["estimate"] == pytest.approx(slope)
    assert made.value == 1.0


def test_missing_values_are_left_out_use_by_use() -> None:
    before = people()
    age = np.where(np.arange(N) % 2 == 0, np.nan, before["AGE"])
    holes = pa.table(before).set_column(0, "AGE", pa.array(age, from_pandas=True))
    made = rv.audit(holes, holes, measures=["use_kept"], use={"means": [{"of": "AGE"}, {"of": "INCOME"}]})
    found = estimates(made.values["use_kept"])
    assert found["mean of AGE"]["original"]["estimate"] == pytest.approx(np.nanmean(age))
    assert found["mean of INCOME"]["original"]["estimate"] == pytest.approx(before["INCOME"].mean())


def test_what_the_release_cannot_give_is_not_kept() -> None:
    before = people()
    without = {name: column for name, column in before.items() if name != "REGION"}
    use = {"means": [{"of": "INCOME"}, {"of": "INCOME", "by": "REGION"}]}
    made = rv.audit(pa.table(before), pa.table(without), measures=["use_kept"], use=use, columns=["INCOME"])
    assert made["use_kept"] == 1 / 4
    assert any("the release has no REGION" in note for note in made.notes)
    # two regions become one, which no original slope is about
    merged = {**before, "REGION": np.where(before["REGION"] == "north", "north", "others")}
    made = measured({"regression": {"formula": "INCOME ~ AGE + REGION"}}, before, merged)
    found = estimates(made)
    assert found["AGE"]["masked"] is not None
    assert found["REGION=south (against north)"]["masked"] is None
    assert not found["REGION=south (against north)"]["kept"]


def test_codes_are_numbers_unless_they_are_said_to_be_categories() -> None:
    before = people()
    before["GRADE"] = np.random.default_rng(3).choice(["1", "2", "3"], N)
    plain = estimates(measured({"regression": {"formula": "INCOME ~ GRADE"}}, before, before))
    assert list(plain) == ["GRADE"]
    slope = np.polyfit(before["GRADE"].astype(float), before["INCOME"], 1)[0]
    assert plain["GRADE"]["original"]["estimate"] == pytest.approx(slope)
    assert len(estimates(measured({"regression": {"formula": "INCOME ~ C(GRADE)"}}, before, before))) == 2
    assert len(estimates(measured({"regression": {"formula": "AGE ~ C(REGION)"}}, before, before))) == 2


def test_uses_that_make_no_sense_say_why() -> None:
    before = people()
    made = measured({"regression": {"formula": "REGION ~ AGE"}, "means": {"of": "AGE"}}, before, before)
    assert made.value == 1.0
    assert any("REGION has categories that are no numbers" in note for note in made.notes)
    with pytest.raises(ParameterError, match="there is no column INCOM; did you mean INCOME"):
        measured({"means": {"of": "INCOM"}}, before, before)
    without = rv.audit(pa.table(before), pa.table(before), measures=["use_kept"])
    assert "--use uses.toml" in without.not_applicable["use_kept"]


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.csv as csv

    before = people()
    csv.write_csv(pa.table(before), tmp_path / "original.csv")
    csv.write_csv(pa.table({**before, "AGE": before["AGE"][::-1]}), tmp_path / "masked.csv")
    (tmp_path / "uses.toml").write_text('[[regression]]\nformula = "INCOME ~ AGE"\n', encoding="utf-8")
    files = [str(tmp_path / name) for name in ("original.csv", "masked.csv", "uses.toml")]
    code = main(["audit", *files[:2], "--use", files[2], "--fail-if", "use_kept<0.5", "--measures", "um", "--json"])
    content = json.loads(capsys.readouterr().out)
    assert code == 1
    assert content["measures"]["use_kept"]["value"] == 0.0
    assert content["measures"]["use_kept"]["details"]["uses"][0]["use"] == "INCOME ~ AGE"
