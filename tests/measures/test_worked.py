"""The measures on five records, worked by hand, and the published tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError
from rankveil.ranks import average_ranks
from rankveil.summaries.correlations import spearman
from rankveil.summaries.movements import Distances, Movements

X = np.array([1.0, 2.0, 3.0, 4.0, 5.0])

permutation_level = get_measure("permutation_level")
spearman_risk = get_measure("spearman_risk")
difference_variance = get_measure("difference_variance")


def moved(x: np.ndarray, y: np.ndarray) -> Movements:
    return Movements.of(Distances.of(x, y, records=x.size, times=2))


def test_permutation_level_of_five_records() -> None:
    made = permutation_level(moved(X, np.array([2.0, 1.0, 5.0, 4.0, 3.0])))  # moved 1, 1, 2, 0, 2 of at most 4
    assert made.value == pytest.approx(6 / 5 / 4)
    assert made.details == {"mean": pytest.approx(0.3), "maximum": 0.5}


def test_permutation_level_of_the_published_permutation() -> None:
    # Muralidhar and Domingo-Ferrer 2015, Table 1: moved 6 1 1 1 5 2 5 2 6 1
    made = permutation_level(moved(np.arange(1.0, 11.0), np.array([7.0, 1, 4, 5, 10, 8, 2, 6, 3, 9])))
    assert made.value == pytest.approx(30 / 10 / 9)
    assert made.details["maximum"] == pytest.approx(6 / 9)


def test_permutation_level_of_one_record_and_of_ties() -> None:
    assert permutation_level(moved(np.ones(1), np.ones(1))).value == 0.0
    made = permutation_level(moved(average_ranks(np.array([1.0, 1.0, 3.0])), average_ranks(np.array([1.0, 2.0, 3.0]))))
    assert made.value == pytest.approx((0.5 + 0.5) / 3 / 2)


def test_the_extremes_of_the_permutation_level() -> None:
    n = 101
    ranks = np.arange(1.0, n + 1)
    assert permutation_level(moved(ranks, ranks)).value == 0.0
    assert permutation_level(moved(ranks, ranks[::-1])).details["maximum"] == 1.0


def test_spearman_risk_of_five_records() -> None:
    def risk(x: np.ndarray, z: np.ndarray) -> float:
        return float(spearman_risk(spearman(x[:, None], z[:, None])[0]))

    assert risk(X, np.array([2.0, 1.0, 4.0, 3.0, 5.0])) == 1 - 6 * 4 / (5 * 24)
    assert risk(X, X) == 1.0
    assert risk(X, X[::-1]) == -1.0
    with pytest.raises(NotApplicableError, match="constant"):
        risk(np.full(5, 3.0), np.full(5, 3.0))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=20))
def test_spearman_risk_looks_at_the_reverse_mapped_values(rows: list[tuple[int, int]]) -> None:
    x, y = np.array(rows, dtype=np.float64).T
    original, masked = pa.table({"A": x}), pa.table({"A": y})
    made = rv.audit(original, masked, measures=["spearman_risk"], seed=4, columns=["A"])
    if np.unique(x).size == 1:
        assert "spearman_risk" in made.not_applicable
        return
    z = rv.reverse_map(original, masked, seed=4)["A"].to_numpy().astype(np.float64)
    assert made["spearman_risk"] == pytest.approx(np.corrcoef(stats.rankdata(x), stats.rankdata(z))[0, 1], abs=1e-12)


def test_the_running_example() -> None:
    # Domingo-Ferrer and Muralidhar 2016, section 3.2
    original, masked = rv.datasets.running_example()
    made = rv.audit(original, masked)
    per_attribute = made.values["spearman_risk"].details["per_attribute"]
    assert [round(value, 3) for value in per_attribute.values()] == [0.722, 0.844, 0.776]
    assert made["spearman_risk"] == max(per_attribute.values())


def test_difference_variance_of_five_records() -> None:
    # the differences 1, -1, 1, -1, 0 have variance 4/5, the column has 2
    assert difference_variance(X, X + np.array([1.0, -1.0, 1.0, -1.0, 0.0])) == pytest.approx(0.4)
    assert difference_variance(X, X + 100) == 0.0
    assert difference_variance(X, 2 * X) == pytest.approx(1.0)
    assert difference_variance(X, np.full(5, 9.0)) == pytest.approx(1.0)


@pytest.mark.parametrize("unit", [1e-300, 1e-12, 1e12, 1e300, 3e307])
def test_difference_variance_does_not_depend_on_the_unit(unit: float) -> None:
    y = X[[1, 0, 3, 4, 2]]
    assert difference_variance(unit * X, unit * y) == pytest.approx(difference_variance(X, y), rel=1e-12)


def test_difference_variance_says_when_it_has_no_meaning() -> None:
    with pytest.raises(NotApplicableError, match="constant"):
        difference_variance(np.full(5, 0.1), X)
    for unit in (1e200, 1e300):
        with pytest.raises(NotApplicableError, match="too large"):
            difference_variance(X / unit, X[::-1] * unit)
