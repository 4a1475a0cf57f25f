"""The earth mover's distance: by hand, against a linear program, published values, clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ot import emd2
from scipy.optimize import linear_sum_assignment, linprog
from scipy.spatial.distance import cdist

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError
from rankveil.measures import _transport

emd = get_measure("emd")

SOLD = [f"{who}{what}" for who in ("RES", "COM", "IND", "OTH", "TOT") for what in ("REVENUE", "SALES")]
EIA = ["MONTH", *(name.replace("OTHSALES", "OTHRSALES") for name in SOLD)]


def test_five_records() -> None:
    x = np.array([[0.0, 0.0], [0.0, 4.0], [10.0, 0.0], [10.0, 4.0], [5.0, 2.0]])
    y = x[[4, 2, 0, 3, 1]].copy()
    assert emd(x, y).value == 0.0  # the same records in another order
    y[0] = [8.0, 3.6]  # (5, 2) goes by 0.3 and 0.4 of the ranges 10 and 4
    assert emd(x, y).value == pytest.approx(0.5 / 5)


def test_mass_is_split_when_the_tables_have_different_numbers_of_records() -> None:
    x = np.array([[0.0, 0.0], [1.0, 1.0]])
    y = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])  # a sixth must go the whole diagonal
    assert emd(x, y).value == pytest.approx(2**0.5 / 6)
    assert emd(x[:, :1], y[:, :1]).value == pytest.approx(1 / 6)


def test_a_constant_attribute_counts_only_where_the_masked_table_differs() -> None:
    x = np.array([[0.0, 7.0], [1.0, 7.0]])
    assert emd(x, x).value == 0.0
    made = emd(x, np.array([[0.0, 7.0], [1.0, 9.0]]), names=("A", "B"))
    assert made.value == pytest.approx(1 / 2)
    assert made.notes == ("column B is constant in the original: scaled by both tables",)
    assert emd(x[:, 1:], x[:, 1:]).value == 0.0
    with pytest.raises(NotApplicableError, match="too far"):
        emd(1e-300 * np.arange(3.0)[:, None], 1e300 * np.arange(3.0)[:, None])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 7))
def test_it_is_the_least_cost_of_a_linear_program(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 4, (n, 2)).astype(np.float64), rng.integers(0, 4, (m, 2)).astype(np.float64)
    x = np.vstack([x, [[0.0, 0.0], [4.0, 4.0]]])  # the range, so that a unit is a quarter
    rows = len(x)
    sums = np.vstack([np.kron(np.eye(rows), np.ones(m)), np.kron(np.ones(rows), np.eye(m))])
    shares = np.concatenate([np.full(rows, 1 / rows), np.full(m, 1 / m)])
    least = linprog(cdist(x / 4, y / 4).ravel(), A_eq=sums, b_eq=shares).fun
    assert emd(x, y).value == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_of_equally_many_records_it_is_the_best_assignment(ties: bool) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((300, 4)), rng.random((300, 4)) ** 2
    if ties:
        x, y = np.round(x, 1), np.round(y, 1)
    x[:2] = [[0.0] * 4, [1.0] * 4]  # the range is the unit
    cost = cdist(x, y)
    assert emd(x, y).value == pytest.approx(cost[linear_sum_assignment(cost)].mean(), rel=1e-10)


def test_on_a_line_it_is_the_distance_of_sorted_values() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((20_000, 1)), rng.random((20_000, 1))
    unit = x.max() - x.min()
    made = emd(x, y)
    assert made.value == pytest.approx(np.abs(np.sort(x[:, 0]) - np.sort(y[:, 0])).mean() / unit)
    assert made.details["method"] == "exact"


@pytest.mark.parametrize(
    ("method", "parameters", "ours", "published"),
    [
        ("mdav", {"k": 5}, 0.17, 0.16),
        ("correlated_noise", {"gamma": 1.0}, 0.38, 0.38),
        ("rank_swap", {"p": 20, "scheme": "pairs"}, 0.29, 0.28),
    ],
)
def test_published_values_of_census(
    reference_data: Any, method: str, parameters: dict[str, Any], ours: float, published: float
) -> None:
    # Domingo-Ferrer, Ricci and Soria-Comas 2017, Table 1; random methods: the mean of some seeds
    census = pd.read_csv(reference_data("census"))
    every = {"columns": list(census)}
    found = [
        rv.audit(census, rv.mask(census, method, seed=seed, **parameters, **every).data, measures=["emd"], **every)[
            "emd"
        ]
        for seed in range(1 if method == "mdav" else 4)
    ]
    assert np.mean(found) == pytest.approx(ours, abs=0.012)
    assert np.mean(found) == pytest.approx(published, abs=0.02)


def test_published_value_of_eia(reference_data: Any) -> None:
    # Domingo-Ferrer, Ricci and Soria-Comas 2017, Table 1: 0.040
    eia = pd.read_csv(reference_data("eia"))[EIA]
    made = rv.audit(eia, rv.mask(eia, "mdav", k=5, seed=1, columns=EIA).data, measures=["emd"], columns=EIA)
    assert made["emd"] == pytest.approx(0.0434, abs=0.0005)


def test_clusters_come_near_the_exact_distance_and_bound_it() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 3))
    y = x * 1.5 + 0.3 * rng.normal(size=x.shape)
    exact, near = emd(x, y), emd(x, y, exact=100, clusters=300)
    assert near.value == pytest.approx(exact.value, rel=0.1)
    low, high = near.details["exact_distance_between"]
    assert low <= exact.value <= high
    assert near.details["method"] == "clusters"
    assert max(near.details["clusters"]) <= 300
    assert "approximate" in near.notes[-1]


def test_clusters_of_the_same_records_are_the_same_in_any_order_and_with_any_ties() -> None:
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(200, 3)), 3, axis=0)
    turned = x[rng.permutation(600)]
    assert emd(x, turned, exact=100, clusters=50).value == 0.0
    assert emd(x, turned, exact=100, clusters=1000).value == 0.0  # more than there are different records
    y = x + rng.normal(size=x.shape)
    assert emd(turned, y, exact=100, clusters=50).value == emd(x, y, exact=100, clusters=50).value


def test_as_many_clusters_as_records_are_exact() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 2)), rng.normal(size=(90, 2))
    assert emd(x, y, exact=10, clusters=170).value == pytest.approx(emd(x, y).value, rel=1e-9)


def around(rng: np.random.Generator, what: str) -> tuple[Any, Any]:
    """Two sets of 1,100 and 1,050 points: more ways between them than are all looked at."""
    a = rng.normal(size=(1_100, 3))
    if what == "apart":
        return a, rng.normal(size=(1_050, 3)) + 20.0
    if what == "two places, far":
        return a, rng.normal(size=(1_050, 3)) + 50.0 * rng.integers(0, 2, (1_050, 1))
    if what == "a lattice":
        return np.unique(np.round(a * 4) / 4, axis=0), np.unique(np.round(rng.normal(size=(3_000, 3)) * 3) / 3, axis=0)
    if what == "one far out":
        return a, np.vstack((a[:1_049] + 0.1, [[1e9, 0.0, 0.0]]))
    return a, a[:1_050] + 0.2 * rng.normal(size=(1_050, 3))


@pytest.mark.parametrize(
    ("what", "weighted"),
    [
        ("near", False),
        ("near", True),
        ("a lattice", False),
        ("apart", True),
        ("two places, far", False),
        ("one far out", True),
    ],
)
def test_a_short_list_of_ways_costs_as_little_as_all(what: str, weighted: bool) -> None:
    rng = np.random.default_rng(4)
    a, b = around(rng, what)
    masses = [rng.random(len(side)) if weighted else np.ones(len(side)) for side in (a, b)]
    one, other = (mass / mass.sum() for mass in masses)
    least = emd2(one, other, cdist(a, b), numItermax=10**8)
    assert len(a) * len(b) > _transport._ALL_AT_ONCE
    assert _transport.least_cost(a, one, b, other) == pytest.approx(least, rel=1e-12)
    if what in ("near", "a lattice"):  # the others may be left to the solver on all ways
        assert _transport._on_a_short_list(a, one, b, other) == pytest.approx(least, rel=1e-12)


def test_a_short_list_of_ways_between_the_same_points_costs_nothing() -> None:
    a = np.random.default_rng(0).normal(size=(1_050, 2))
    share = np.full(1_050, 1 / 1_050)
    assert _transport._on_a_short_list(a, share, a[::-1], share) == 0.0
    assert _transport._on_a_short_list(0 * a, share, 0 * a, share) == 0.0
