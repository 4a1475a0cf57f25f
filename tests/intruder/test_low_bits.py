"""Low bits: what the last digits of released numbers tell of whose they are, with a grid and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

import rankveil as rv
from rankveil import masking
from rankveil.intruder.finding import Finding, find_people
from rankveil.intruder.low_bits import DRAWS, reached
from rankveil.likelihood import Noise
from rankveil.moments import standard_deviation
from rankveil.plans import Plan
from rankveil.seeds import Seed
from rankveil.table import Table

Array = NDArray[np.float64]
NUMBERS = ["AGE", "HOURS", "INCOME", "TAX", "SAVINGS"]
RECORDS = 250
BY_CHANCE = int(binom.isf(1e-6, RECORDS, 1 / RECORDS))
"""So many right bets a guess has once in a million."""


@pytest.fixture(scope="module")
def numbers(demo: pd.DataFrame) -> pd.DataFrame:
    return demo[NUMBERS].iloc[:RECORDS].reset_index(drop=True)


def released(
    original: pd.DataFrame, method: str, *, grid: bool, **parameters: Any
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A release and its manifest, as it is made now or as it was made before there were grids."""
    release = rv.mask(original, method, seed=7, **parameters)
    content = dict(release.manifest.content)
    if grid:
        return release.data, content
    content["columns"] = [{k: v for k, v in each.items() if k != "grid"} for each in content["columns"]]
    table = Table(original)
    drawn = masking.apply(table, Plan.of(method, **parameters), seed=release.secret.seed, grid=False)
    return table.replaced(drawn.values)[0], content


def right(score: Array) -> int:
    """How many released records the best bet of a matrix of evidence is right about; ties go to anybody."""
    order = np.random.default_rng(1).permutation(len(score))
    return int(np.sum(order[np.argmax(score[order], axis=0)] == np.arange(score.shape[1])))


def evidence(original: pd.DataFrame, data: pd.DataFrame, law: Callable[[Array, Array, str], Array]) -> Array:
    """The sum over the columns of what a law says of every pair of an original and a released record."""
    total = np.zeros((RECORDS, RECORDS))
    for name in NUMBERS:
        x, y = np.repeat(original[name].to_numpy(float), RECORDS), np.tile(data[name].to_numpy(float), RECORDS)
        with np.errstate(all="ignore"):
            made = law(x, y, name)
        total += np.where(np.isnan(x) | np.isnan(y), 0.0, made).reshape(RECORDS, RECORDS)
    return total


def spread(original: pd.DataFrame, name: str) -> float:
    return 5.0 * standard_deviation(original[name].dropna().to_numpy(float))


def test_every_double_that_is_released_without_a_grid_gives_its_original_away(numbers: pd.DataFrame) -> None:
    """The control: the same attack on numbers with all their bits."""
    data, _ = released(numbers, "additive_noise", grid=False, alpha=5.0)
    found = evidence(numbers, data, lambda x, y, name: reached(x, y, Noise("normal", spread(numbers, name))))
    assert right(found) > 0.9 * RECORDS


def test_draws_that_reach_a_number_of_the_grid_tell_nothing(numbers: pd.DataFrame) -> None:
    """Exact doubles, and how many of the 2^52 draws lead from an original to a released multiple of the grid."""
    data, content = released(numbers, "additive_noise", grid=True, alpha=5.0)
    step = {each["name"]: each["grid"] for each in content["columns"]}

    def doubles(x: Array, y: Array, name: str) -> Array:
        return reached(x, y, Noise("normal", spread(numbers, name)))

    def draws(x: Array, y: Array, name: str) -> Array:
        scale, half = spread(numbers, name), step[name] / 2
        low, high = (DRAWS * ndtr((y + end - x) / scale) for end in (-half, half))
        count = np.floor(high - 0.5) - np.floor(low - 0.5)
        assert np.nanmin(count) > 1000, name  # so that a draw more or less is no evidence
        return np.log(count) - np.log(high - low)

    for law in (doubles, draws):
        assert right(evidence(numbers, data, law)) <= BY_CHANCE


@pytest.mark.parametrize("modulus", [2, 5, 10, 100, 256])
def test_last_digits_of_the_release_are_not_those_of_the_original(numbers: pd.DataFrame, modulus: int) -> None:
    data, content = released(numbers, "additive_noise", grid=True, alpha=5.0)
    step = {each["name"]: each["grid"] for each in content["columns"]}

    def digits(x: Array, y: Array, name: str) -> Array:
        return np.mod(np.rint(x / step[name]) - np.rint(y / step[name]), modulus) == 0

    assert right(evidence(numbers, data, digits)) <= BY_CHANCE


def attacked(original: pd.DataFrame, method: str, *, grid: bool, **parameters: Any) -> Finding:
    data, manifest = released(original, method, grid=grid, **parameters)
    rows = np.random.default_rng(3).permutation(RECORDS)
    mixed = Table(data.iloc[rows].reset_index(drop=True))
    return find_people(Table(original), mixed, manifest=manifest, truth=rows, seed=11)


@pytest.mark.parametrize(
    ("method", "parameters"), [("additive_noise", {"alpha": 5.0}), ("multiplicative_noise", {"beta": 0.5})]
)
def test_the_intruder_has_nothing_but_the_likelihood(
    numbers: pd.DataFrame, method: str, parameters: dict[str, Any]
) -> None:
    found = attacked(numbers, method, grid=True, **parameters)
    assert [each.id for each in found.evidence] == ["likelihood", "structure"]
    assert found.share == found.evidence[0].found
    spread = np.sqrt(np.sum(found.probability * (1 - found.probability)))
    assert abs(found.found - found.expected) <= 3 * spread + 2
    assert found.certain.sum() <= (0 if method == "additive_noise" else RECORDS)


def test_a_release_without_a_grid_gives_its_people_away(numbers: pd.DataFrame) -> None:
    """One of an older version or of another program, whose manifest tells of no grid."""
    open_ = attacked(numbers, "additive_noise", grid=False, alpha=5.0)
    assert open_.share >= 0.9
    alone, bits = open_.evidence[:2]
    assert (alone.id, bits.id) == ("likelihood", "low_bits")
    assert bits.found == open_.share
    assert bits.found > 10 * alone.found
    assert open_.right[open_.certain].all()
    assert attacked(numbers, "additive_noise", grid=True, alpha=5.0).share < 0.1


def test_simulated_releases_have_the_grid_of_the_manifest(numbers: pd.DataFrame) -> None:
    from rankveil.intruder.shared import SharedColumns
    from rankveil.intruder.simulation import Simulator, told_by

    data, content = released(numbers, "additive_noise", grid=True, alpha=5.0)
    content["columns"] = [{**each, "grid": 50.0} if each["name"] == "TAX" else each for each in content["columns"]]
    simulator = Simulator(SharedColumns.of(Table(numbers), Table(data)), told_by(content, Table(numbers)), Seed.of(1))
    made = simulator.release(0).values
    assert np.all(made["TAX"] % 50 == 0)
    assert np.all(made["HOURS"] % 1 == 0)
    assert np.any(made["HOURS"] % 50 != 0)
    older, manifest = released(numbers, "additive_noise", grid=False, alpha=5.0)
    simulator = Simulator(SharedColumns.of(Table(numbers), Table(older)), told_by(manifest, Table(numbers)), Seed.of(1))
    assert np.mean(simulator.release(0).values["TAX"] % 1 == 0) < 0.05


def test_a_grid_that_is_no_number_is_refused(numbers: pd.DataFrame) -> None:
    data, content = released(numbers, "additive_noise", grid=True, alpha=5.0)
    content["columns"] = [{**each, "grid": -1} for each in content["columns"]]
    with pytest.raises(rv.RankveilError, match=r"column AGE: the manifest is damaged.*--no-manifest"):
        find_people(Table(numbers), Table(data), manifest=content)
