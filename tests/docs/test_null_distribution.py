"""The null distribution of the permutation distance: formulas, enumeration, simulation and the attack agree."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sitebuilder import chance

import rankveil as rv
from rankveil.linkage import Linker
from rankveil.people.chance import by_chance
from rankveil.seeds import Seed


@pytest.mark.parametrize(("n", "m", "d"), [(3, 1, 0), (3, 2, 0), (3, 2, 1), (4, 2, 1), (3, 3, 0), (3, 3, 1)])
def test_exact_is_the_share_of_all_tables_and_all_records(n: int, m: int, d: int) -> None:
    orders = list(itertools.permutations(range(n)))
    near = [
        min(max(abs(a[j] - (i if j == 0 else table[j - 1][i])) for j in range(m)) for i in range(n)) <= d
        for table in itertools.product(orders, repeat=m - 1)  # the first attribute may stay in order
        for a in itertools.product(range(n), repeat=m)
    ]
    assert chance.exact(d, n=n, m=m) == pytest.approx(np.mean(near), abs=1e-12)


def test_mean_window_is_the_mean_of_the_windows() -> None:
    for n, d in ((10, 0), (10, 3), (10, 9), (25, 7)):
        assert chance.reach(d, n=n).mean() == pytest.approx(((2 * d + 1) * n - d * (d + 1)) / n)


@pytest.mark.parametrize("d", [2, 4, 6])
@pytest.mark.parametrize("m", [2, 3])
def test_exact_agrees_with_simulation(m: int, d: int) -> None:
    tables, n = 4000, 30
    truth = chance.exact(d, n=n, m=m)
    seen = chance.simulated(d, n=n, m=m, tables=tables, rng=np.random.default_rng([m, d]))
    # 5.3 standard errors: six comparisons fail together once in a million
    assert abs(seen - truth) <= 5.3 * math.sqrt(truth * (1 - truth) / tables)


@pytest.mark.parametrize("d", [5, 10, 20])
def test_the_attack_draws_from_this_distribution(d: int) -> None:
    rng, n, m = np.random.default_rng(d), 200, 3
    shares = []
    for table in range(30):
        ranks = np.column_stack([rng.permutation(n) + 1.0 for _ in range(m)])
        null = by_chance(ranks, Linker(ranks), draws=1000, rng=Seed.of(table + 1).stream("null"))
        shares.append(float(null.shares[null.values <= d].sum()))
    error = np.std(shares, ddof=1) / math.sqrt(len(shares))
    assert abs(np.mean(shares) - chance.exact(d, n=n, m=m)) <= 6.7 * error  # t with 29 degrees, once in a million


@pytest.mark.parametrize(("n", "m", "within"), [(100, 3, 0.010), (100, 2, 0.034), (20, 3, 0.033)])
def test_mean_window_is_as_near_as_the_page_says(n: int, m: int, within: float) -> None:
    errors = [abs(chance.mean_window(d, n=n, m=m) - chance.exact(d, n=n, m=m)) for d in range(n // 2)]
    assert within * 0.9 < max(errors) < within


@pytest.mark.parametrize(("n", "m"), [(20, 2), (20, 3), (60, 2), (60, 3)])
def test_errors_have_the_signs_that_are_derived(n: int, m: int) -> None:
    for d in range(n // 3):
        averaged, mean = chance.averaged(d, n=n, m=m), chance.mean_window(d, n=n, m=m)
        assert averaged <= mean + 1e-12  # Jensen
        assert averaged <= chance.exact(d, n=n, m=m) + 1e-12  # drawing without replacement leaves fewer boxes empty
        assert mean <= chance.without_edges(d, n=n, m=m) + 1e-12  # windows fall off at the edges


@pytest.mark.parametrize(("m", "typical"), [(2, 13), (3, 45), (5, 124), (20, 448)])
def test_half_of_the_random_records_are_within_the_typical_distance(m: int, typical: int) -> None:
    n = 1000
    assert round(n * (1 - math.sqrt(1 - (math.log(2) / n) ** (1 / m)))) == typical
    assert chance.mean_window(typical - 2, n=n, m=m) < 0.5 < chance.mean_window(typical + 2, n=n, m=m)


def test_twenty_records_have_the_published_start() -> None:
    null = rv.attack(*rv.datasets.running_example()).to_dict()["chance"]["null"]
    assert [null["0"], chance.exact(0, n=20, m=3)] == pytest.approx([0.0025, 0.0025])
