"""The likelihood of values in the order of noisy ranks: what it says is how often it happens, at the edges too."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from rankveil.rank_noise import Law, RankNoiseTerm, farthest, keys_at, middle_keys

Array = NDArray[np.float64]


def shares(n: int, law: Law, scale: float, *, runs: int = 3_000) -> Array:
    """How often the value of rank r' goes to the record of rank r."""
    rng = np.random.default_rng(1)
    made = np.zeros((n, n))
    for _ in range(runs):
        draws = rng.normal(size=n) if law == "normal" else rng.uniform(-1, 1, n)
        made[np.arange(n), np.argsort(np.argsort(np.arange(n) + scale * draws))] += 1 / runs
    return made


def said(term: RankNoiseTerm) -> Array:
    n = len(term.x)
    rows, columns = (each.ravel() for each in np.indices((n, n)))
    made: Array = np.exp(term.weights(rows, columns)).reshape(n, n)
    return made


CASES: list[tuple[int, Law, float]] = [
    (100, "normal", 3.0),
    (100, "normal", 12.0),
    (100, "normal", 58.0),
    (100, "uniform", 20.0),
    (100, "uniform", 70.0),
]


@pytest.mark.parametrize(("n", "law", "scale"), CASES)
def test_what_it_says_is_how_often_it_happens(n: int, law: Law, scale: float) -> None:
    each = np.column_stack((np.arange(n), np.arange(n))).astype(float)
    probability, happened = said(RankNoiseTerm(each, each, n, law, scale)), shares(n, law, scale)
    assert probability.sum(axis=1) == pytest.approx(np.ones(n), abs=0.03)
    # what would be lost by betting on what it says, but for the counting error of as many numbers as there are
    seen = happened > 0
    lost = np.sum(happened[seen] * np.log(happened[seen] / probability[seen])) / n
    assert lost < seen.sum() / n / (2 * 3_000) + 0.012
    assert np.isfinite(np.log(probability[seen])).all()


@pytest.mark.parametrize(("n", "law", "scale"), CASES)
def test_ties_are_intervals(n: int, law: Law, scale: float) -> None:
    first = np.arange(n) // 10 * 10
    each = np.column_stack((first, first + 9)).astype(float)
    probability = said(RankNoiseTerm(each, each, n, law, scale))[::10, ::10] * 10
    happened = shares(n, law, scale).reshape(10, 10, 10, 10).sum(axis=(1, 3)) / 10
    assert np.abs(probability - happened).sum(axis=1).max() < 0.12
    assert probability.sum(axis=1) == pytest.approx(np.ones(10), abs=0.03)


def test_normal_noise_forces_nothing_and_a_window_does() -> None:
    n = 500
    each = np.column_stack((np.arange(n), np.arange(n))).astype(float)
    ends = np.array([0]), np.array([n - 1])
    normal, window = RankNoiseTerm(each, each, n, "normal", 5.0), RankNoiseTerm(each, each, n, "uniform", 5.0)
    assert np.isfinite(normal.weights(*ends)[0])
    assert window.weights(*ends)[0] == -np.inf
    assert (normal.bounded, window.bounded) == (False, True)
    assert np.isfinite(window.weights(np.array([0]), np.array([farthest(5.0)]))[0])
    assert window.weights(np.array([0]), np.array([farthest(5.0) + 1]))[0] == -np.inf


def test_missing_cells_say_nothing() -> None:
    x = np.array([[0.0, 0.0], [np.nan, np.nan]])
    term = RankNoiseTerm(x, x, 2, "normal", 1.0)
    assert term.weights(np.array([1, 0, 1]), np.array([0, 1, 1])).tolist() == [0.0, 0.0, 0.0]
    assert np.isfinite(term.coordinates[0]).all()


def test_keys_are_symmetric_and_rise() -> None:
    for n in (1, 2, 7, 1000):
        keys = keys_at(n, "normal", 0.2 * n)
        assert keys.size == n + 1
        assert np.all(np.diff(keys) > 0)
        assert keys + keys[::-1] == pytest.approx(np.full(n + 1, n - 1.0))


def test_the_mean_key_of_tied_values() -> None:
    rng = np.random.default_rng(2)
    centres = rng.normal(size=400) * 0.8
    keys = np.sort(centres[:, None] + 0.6 * rng.normal(size=(400, 500)), axis=0)
    ranks = np.array([[0.0, 0.0], [150.0, 249.0], [np.nan, np.nan], [399.0, 399.0]])
    made = middle_keys(centres, 0.6, ranks)
    assert made[1] == pytest.approx(keys[150:250].mean(), abs=0.01)
    assert made[[0, 3]] == pytest.approx([keys[0].mean(), keys[399].mean()], abs=0.35)
    assert np.isnan(made[2])


@pytest.mark.parametrize("width", [0.02, 0.3, 0.8])
def test_many_centres_are_gathered_and_say_the_same(width: float) -> None:
    n = 3_000
    centres = np.sqrt(1 - width * width) * ndtri(np.arange(1, n + 1) / (n + 1))
    keys = middle_keys(centres, width, np.column_stack((np.arange(n), np.arange(n))).astype(float))
    nodes = np.linspace(centres[0] - 9 * width, centres[-1] + 9 * width, 4001)
    below = np.array([ndtr((node - centres) / width).sum() for node in nodes])
    assert keys == pytest.approx(np.interp(np.arange(n) + 0.5, below, nodes), abs=2e-4 * width)
