"""What a user can work out from the release and its manifest."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rankveil as rv

RNG = np.random.default_rng(6)
DATA = RNG.multivariate_normal([10.0, -3.0, 5.0], [[4.0, 1.0, 0.5], [1.0, 9.0, -2.0], [0.5, -2.0, 1.0]], size=400)
NAMES = ["a", "b", "c"]


def frame(values: Any = DATA) -> pa.Table:
    return pa.table({name: np.asarray(values)[:, j] for j, name in enumerate(NAMES)})


def moments(table: pa.Table) -> tuple[Any, Any]:
    values = np.column_stack([table[name].to_numpy() for name in table.column_names])
    return values.mean(axis=0), np.cov(values, rowvar=False, bias=True)


def test_additive_noise_is_taken_off_the_variances_only() -> None:
    release = rv.mask(frame(), "additive_noise", seed=1, alpha=0.5, **{"alpha.b": 0.2, "sd.c": 0.3})
    mean, released = moments(release.data)
    found = rv.correct(release.data, release.manifest)
    expected = released.copy()
    expected[0, 0] /= 1 + 0.5**2
    expected[1, 1] /= 1 + 0.2**2
    expected[2, 2] -= 0.3**2
    assert np.allclose(found.covariance, expected, rtol=1e-12)
    assert np.allclose(found.released_covariance, released, rtol=1e-12)
    assert np.allclose(found.mean, mean, rtol=1e-12)
    assert found.names == ("a", "b", "c")
    assert found.records == 400


def test_multiplicative_noise_is_taken_off_the_mean_squares() -> None:
    release = rv.mask(frame(), "multiplicative_noise", seed=1, beta=0.4)
    mean, released = moments(release.data)
    found = rv.correct(release.data, release.manifest)
    expected = released.copy()
    for j in range(3):
        expected[j, j] = (released[j, j] + mean[j] ** 2) / (1 + 0.4**2 / 3) - mean[j] ** 2
    assert np.allclose(found.covariance, expected, rtol=1e-12)


def test_several_steps_are_undone_from_the_last() -> None:
    plan = (
        rv.Plan.of("multiplicative_noise", beta=0.3)
        .then("additive_noise", alpha=0.4, columns=["a", "b"])
        .then("identity")
    )
    release = rv.mask(frame(), plan.then("record_shuffle").then("round"), seed=2)
    mean, released = moments(release.data)
    expected = released.copy()
    for j in range(3):
        digits = max(len(f"{v:.17g}".partition(".")[2]) for v in release.data[NAMES[j]].to_pylist()[:50])
        assert digits > 11  # rounded to the original's own decimals, which adds nothing that shows
    for j in (0, 1):
        expected[j, j] /= 1 + 0.4**2
    for j in range(3):
        expected[j, j] = (expected[j, j] + mean[j] ** 2) / (1 + 0.3**2 / 3) - mean[j] ** 2
    assert np.allclose(rv.correct(release.data, release.manifest).covariance, expected, rtol=1e-12)


def test_corrected_moments_are_those_of_the_original() -> None:
    rng = np.random.default_rng(11)
    x = frame(
        rng.multivariate_normal([50.0, 20.0, 5.0], [[4.0, 1.0, 0.5], [1.0, 9.0, -2.0], [0.5, -2.0, 1.0]], size=200_000)
    )
    mean, covariance = moments(x)
    plan = rv.Plan.of("multiplicative_noise", beta=0.1).then("additive_noise", alpha=0.5)
    release = rv.mask(x, plan, seed=3)
    found = rv.correct(release.data, release.manifest)
    # standard errors are below 0.4 percent of the spread products (the largest: the variance of a, mean 50)
    spread = np.sqrt(np.diag(np.cov(np.column_stack([release.data[name].to_numpy() for name in NAMES]), rowvar=False)))
    assert np.all(np.abs(found.covariance - covariance) < 0.02 * np.outer(spread, spread))
    assert np.all(np.abs(found.mean - mean) < 0.02 * spread)
    wrong = np.abs(np.diag(found.released_covariance) / np.diag(covariance) - 1)
    assert np.all(wrong > 0.25)
    assert np.allclose(np.diag(found.correlation), 1.0)


@pytest.mark.parametrize("method", ["rank_swap", "permute", "distance_swap"])
def test_methods_without_a_correction_are_named(method: str) -> None:
    release = rv.mask(frame(), method, seed=1, **({"d": 3} if method == "distance_swap" else {}))
    with pytest.raises(rv.ParameterError, match=f"there is no correction for {method}"):
        rv.correct(release.data, release.manifest)
    noisy = rv.mask(frame(), "additive_noise", then=["clip"], seed=1)
    with pytest.raises(rv.ParameterError, match="there is no correction for clip"):
        rv.correct(noisy.data, noisy.manifest)


def test_manifests_in_every_form() -> None:
    release = rv.mask(frame(), "additive_noise", seed=1)
    text = release.manifest.to_json()
    one = rv.correct(release.data, release.manifest).to_dict()
    assert rv.correct(release.data, text).to_dict() == one
    assert rv.correct(release.data, dict(release.manifest.content)).to_dict() == one
    for make in (pd.DataFrame, pl.DataFrame):
        assert rv.correct(make(release.data.to_pydict()), text).to_dict() == one
    with pytest.raises(rv.RankveilError, match="not a manifest"):
        rv.correct(release.data, {"schema": "rankveil/secret/1"})
    with pytest.raises(rv.RankveilError, match="not a manifest"):
        rv.correct(release.data, "{}")


def test_what_is_not_numeric_or_not_masked_takes_no_part() -> None:
    mixed = frame().append_column("w", pa.array(["x", "y"] * 200)).append_column("whole", pa.array(range(400)))
    release = rv.mask(mixed, "additive_noise", columns=["a", "b"], seed=1)
    assert rv.correct(release.data, release.manifest).names == ("a", "b")
    with pytest.raises(rv.TableError, match="the table has no column a"):
        rv.correct(release.data.drop_columns(["a"]), release.manifest)
    shuffled = rv.mask(pa.table({"w": ["x", "y"]}), "record_shuffle", seed=1)
    with pytest.raises(rv.TableError, match="names no masked column"):
        rv.correct(shuffled.data, shuffled.manifest)


def test_missing_values_are_left_out_and_counted() -> None:
    holed = pa.table({"a": [1.0, None, 3.0, 5.0], "b": [2.0, 1.0, None, 4.0]})
    release = rv.mask(holed, "additive_noise", sd=0.0, seed=1)
    found = rv.correct(release.data, release.manifest)
    assert found.records == 2
    assert found.mean.tolist() == [3.0, 3.0]
    assert found.covariance.tolist() == [[4.0, 2.0], [2.0, 1.0]]
    assert any("2 records have missing values" in note for note in found.notes)


def test_a_variance_below_nothing_is_nothing_and_its_column_is_named() -> None:
    few = pa.table({"a": [1.0, 1.1, 0.9], "b": [3.0, 1.0, 2.0], "c": [0.0, 1e6, -1e6]})
    release = rv.mask(few, "additive_noise", sd=0.0, seed=1)
    stronger = dict(release.manifest.content)
    stronger["steps"] = [{**stronger["steps"][0], "parameters": {"alpha": 0.1, "sd": 50.0}}]
    found = rv.correct(release.data, stronger)
    assert np.diag(found.covariance)[:2].tolist() == [0.0, 0.0]
    assert found.covariance[2, 2] > 0
    assert np.all(np.isfinite(found.correlation))
    (note,) = [note for note in found.notes if "below 0" in note]
    assert note.startswith("the corrected variance came out below 0 and is given as 0: a, b;")
    assert not any("below 0" in note for note in rv.correct(release.data, release.manifest).notes)


def test_noise_of_columns_that_were_dropped_counts_in_what_the_others_spent() -> None:
    # three columns share epsilon: b has noise of scale 3 * 100 / 30, whoever else is released
    x = pa.table({name: np.random.default_rng(k).uniform(20, 80, 20_000) for k, name in enumerate(NAMES)})
    plan = rv.Plan.of("laplace_dp", epsilon=30, lower=0, upper=100, fast=True)
    release = rv.mask(x, plan.then("drop", columns=["a", "c"]), seed=1)
    released = float(release.data["b"].to_numpy().var())
    assert rv.correct(release.data, release.manifest).covariance[0, 0] == pytest.approx(released - 2 * 10.0**2)
    truth = float(x["b"].to_numpy().var())
    assert released - 2 * (100 / 30) ** 2 > 1.2 * truth  # what one column alone would have spent
    assert abs(released - 2 * 10.0**2 - truth) < 4.9 * np.sqrt(5 * (2 * 100) ** 2 + 4 * 200 * truth) / np.sqrt(20_000)


@pytest.mark.parametrize("decimals", [-1, None])
def test_what_rounding_adds_is_taken_off(decimals: int | None) -> None:
    n = 200_000
    unit = 10.0 if decimals == -1 else 1.0
    x = pa.table({"a": np.rint(np.random.default_rng(1).normal(50, unit, n))})
    release = rv.mask(
        x, rv.Plan.of("additive_noise", sd=1.5 * unit, columns=["a"]).then("round", decimals=decimals), seed=2
    )
    found, released = rv.correct(release.data, release.manifest), float(release.data["a"].to_numpy().var())
    assert found.covariance[0, 0] == pytest.approx(released - unit**2 / 12 - (1.5 * unit) ** 2, rel=1e-12)
    truth = float(x["a"].to_numpy().var())
    error = 4.9 * np.sqrt((2 * 1.5**4 + 4 * 1.5**2) * unit**4 / n)  # of the noise's variance and its product with x
    assert abs(found.covariance[0, 0] - truth) < error
    assert abs(released - (1.5 * unit) ** 2 - truth) > error  # what was given before
    assert not any("unit" in note for note in found.notes)


def test_units_are_taken_off_once_for_the_coarsest_after_each_noise() -> None:
    plan = rv.Plan.of("additive_noise", sd=2.0, columns=["a", "b"]).then("round", decimals=1)
    release = rv.mask(frame(), plan.then("record_shuffle").then("round", decimals=0, columns=["a"]), seed=1)
    manifest = json.loads(release.manifest.to_json())
    _, released = moments(release.data.select(["a", "b"]))

    def corrected(**grid: Any) -> Any:
        for column in manifest["columns"]:
            column["grid"] = grid.get(column["name"])
        return np.diag(rv.correct(release.data, manifest).covariance)

    def expected(a: float, b: float) -> Any:
        return pytest.approx(np.diag(released) - 4.0 - np.array([a, b]) ** 2 / 12, rel=1e-12)

    assert corrected() == expected(1.0, 0.1)
    assert corrected(a=0.01, b=0.01) == expected(1.0, 0.1)  # the noise left whole multiples of it: rounded away
    assert corrected(a=0.01, b=0.5) == expected(1.0, 0.5)
    for wrong in (-1.0, True, "1"):
        with pytest.raises(rv.ParameterError, match="the manifest is damaged: the grid of column a"):
            corrected(a=wrong)


def test_every_noise_has_its_own_rounding() -> None:
    plan = rv.Plan.of("additive_noise", sd=2.0, columns=["a"]).then("round", decimals=0)
    plan = plan.then("multiplicative_noise", beta=0.2, columns=["a"]).then("round", decimals=0)
    release = rv.mask(frame(), plan, seed=1)
    y = release.data["a"].to_numpy()
    square = (y.var() - 1 / 12 + y.mean() ** 2) / (1 + 0.2**2 / 3)
    wanted = square - y.mean() ** 2 - 1 / 12 - 2.0**2
    assert rv.correct(release.data, release.manifest).covariance[0, 0] == pytest.approx(wanted, rel=1e-9)


def test_rounding_to_the_original_s_own_decimals_first_changes_nothing() -> None:
    whole = pa.table({"a": np.rint(DATA[:, 0])})
    plan = rv.Plan.of("round", columns=["a"])
    release = rv.mask(whole, plan.then("additive_noise", sd=1.0), seed=1)
    released = float(release.data["a"].to_numpy().var())
    manifest = json.loads(release.manifest.to_json())
    for column in manifest["columns"]:
        column.pop("grid", None)
    assert rv.correct(release.data, manifest).covariance[0, 0] == pytest.approx(released - 1.0)


def test_a_unit_that_is_wide_beside_the_noise_is_said() -> None:
    release = rv.mask(
        frame(), rv.Plan.of("additive_noise", sd=0.2, columns=["a", "b"]).then("round", decimals=0), seed=1
    )
    (note,) = [note for note in rv.correct(release.data, release.manifest).notes if "twice" in note]
    assert note.endswith("so that what it adds is not known and the corrected variance is rough: a, b")


def test_one_record() -> None:
    release = rv.mask(pa.table({"a": [1.0]}), "additive_noise", seed=1)
    found = rv.correct(release.data, release.manifest)
    assert (found.mean.tolist(), found.covariance.tolist()) == ([1.0], [[0.0]])


def test_a_variance_beyond_all_numbers_is_refused() -> None:
    release = rv.mask(pa.table({"a": [1.0, 2.0], "b": [1e200, -1e200]}), "additive_noise", seed=1)
    with pytest.raises(rv.TableError, match="column b: its variance is too large"):
        rv.correct(release.data, release.manifest)


def test_a_damaged_manifest_is_refused() -> None:
    content = dict(rv.mask(frame(), "additive_noise", seed=1).manifest.content)
    for part in ("columns", "steps"):
        with pytest.raises(rv.ParameterError, match="the manifest is damaged"):
            rv.correct(frame(), {name: given for name, given in content.items() if name != part})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"columns": [1]}, "it does not say what its columns are"),
        ({"columns": [{"name": "A", "kind": None, "masked": True}]}, "it does not say what its columns are"),
        ({"steps": [{"method": "additive_noise", "columns": "A", "parameters": {}}]}, "what its steps were"),
        ({"alpha": "much"}, "the parameters of additive_noise cannot be used"),
        ({"alpha": None}, "the parameters of additive_noise cannot be used"),
    ],
)
def test_a_manifest_that_says_something_else_is_refused(change: dict[str, Any], sentence: str) -> None:
    content = json.loads(rv.mask(frame(), "additive_noise", seed=1).manifest.to_json())
    if "alpha" in change:
        content["steps"][0]["parameters"] = change
    else:
        content |= change
    with pytest.raises(rv.ParameterError, match=f"the manifest is damaged: .*{sentence}"):
        rv.correct(frame(), content)
