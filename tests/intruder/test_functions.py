"""Without a manifest: functions of the original's values, other units and suppressed cells find as many as they do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil.intruder.finding import Finding, find_people
from rankveil.table import Table

People = Callable[..., pd.DataFrame]


def _attacked(original: pd.DataFrame, released: pd.DataFrame) -> Finding:
    rows = np.random.default_rng(11).permutation(len(released))
    table = Table(released.iloc[rows].reset_index(drop=True))
    return find_people(Table(original), table, truth=rows.astype(np.int64), seed=3)


def _classes(released: pd.DataFrame) -> int:
    return len(released.drop_duplicates())


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t * 1000,
        lambda t: -t,
        np.log,
        lambda t: (t - t.mean()) / t.std(),
        lambda t: t.rank(),
        lambda t: (t / 1000).round(),
        lambda t: t.clip(upper=t.quantile(0.8), axis=1),
        lambda t: t.assign(A=-t["A"], B=t["B"] / 7),
    ],
    ids=["units", "negated", "logarithms", "standardised", "ranks", "rounded", "top-coded", "some"],
)
def test_functions_of_the_originals_are_read_off(
    function: Callable[[pd.DataFrame], pd.DataFrame], people: People
) -> None:
    table = people(150)
    released = function(table)
    found = _attacked(table, released)
    assert found.found == pytest.approx(_classes(released))
    assert found.certain.sum() > 0
    assert found.right is not None
    assert found.right[found.certain].all()
    assert any("its released values are a function of the original's" in note for note in found.notes)


def test_years_of_dates_beside_a_column_with_two_values() -> None:
    days = pd.date_range("1950-01-01", periods=200, freq="37D").strftime("%Y-%m-%d")
    table = pd.DataFrame({"BORN": days, "SEX": np.where(np.random.default_rng(2).random(200) < 0.5, "f", "m")})
    released = table.assign(BORN=table["BORN"].str[:4])
    found = _attacked(table, released)
    assert found.found == pytest.approx(_classes(released))
    assert found.share > 0.09


def test_order_statistics_alone_are_no_function(people: People) -> None:
    """Noise and shuffled columns have order statistics too: their pairs of values are not the original's."""
    table = people(150)
    rng = np.random.default_rng(5)
    for released in (
        table + 3 * table.std().to_numpy() * rng.normal(size=table.shape),
        table.apply(lambda column: rng.permutation(column.to_numpy())),
        table.iloc[:4] * 2,
    ):
        found = _attacked(table.iloc[: len(released)], released)
        assert not found.certain.any()
        assert not any("function" in note for note in found.notes)


def test_other_units_with_noise_are_linked_by_ranks(people: People) -> None:
    table = people(150)
    noise = 1 + 0.01 * np.random.default_rng(6).normal(size=table.shape)
    assert _attacked(table, table * 1000 * noise).share > 0.9


@pytest.mark.parametrize(("share", "least"), [(0.3, 0.95), (0.7, 0.6)])
def test_what_suppression_left_is_found(share: float, least: float, people: People) -> None:
    table = people(200)
    released = table.mask(np.random.default_rng(7).random(table.shape) < share)
    found = _attacked(table, released)
    assert found.share > least
    left = next(each for each in found.evidence if each.id == "cells_left")
    assert left.certain > 100
    assert found.right is not None
    assert found.right[found.certain].all()
    noisy = released * (1 + 0.05 * np.random.default_rng(8).normal(size=table.shape))
    assert "cells_left" not in [each.id for each in _attacked(table, noisy).evidence]


def test_who_is_unique_in_a_sample_is_certain_for_somebody_who_knows_all() -> None:
    values = np.repeat(np.arange(50.0) * 10, 20)
    table = pd.DataFrame({"A": values, "B": values * 2})
    table.iloc[0] = (5.0, 5.0)
    release = next(
        made
        for made in (rv.mask(table, "sample", share=0.5, seed=seed) for seed in range(20))
        if made.secret.order is not None and 0 in made.secret.order
    )
    attack = rv.attack(table, release, at_most=0.5, draws=10)
    assert (attack.certain, attack.verdict) == (1, "fails")
    assert attack.finding is not None
    assert attack.finding.person[attack.finding.certain].tolist() == [0]
    # of half of the people he cannot say so: somebody else may have the record
    assert rv.attack(table, release, people=0.5, draws=10).certain == 0


def test_wrong_certainties_of_what_was_learned_are_named_and_count_for_nothing(people: People) -> None:
    table = people(200)
    released = table.copy()
    rng = np.random.default_rng(9)
    for name in table:
        released.loc[100:, name] = rng.permutation(released.loc[100:, name].to_numpy())
    found = _attacked(table, released)
    assert found.right is not None
    wrong = int(np.sum(found.right < 1))
    assert wrong > 50
    assert not found.certain.any()
    assert not any(each.certain for each in found.evidence)
    (said,) = [note for note in found.notes if "of the links that he takes as certain are wrong" in note]
    assert int(said.split()[0]) == pytest.approx(wrong, abs=10)
    assert "count for nothing" in said


def test_a_shuffled_column_is_not_certain_by_its_values(people: People) -> None:
    """Alone it looks as if it had been left as it is; who knows whose values they are sees that it was not."""
    table = people(200, ["A"])
    attack = rv.attack(table, rv.mask(table, "permute", seed=3), manifest=None, draws=10)
    assert attack.certain == 0
    assert (attack.found, attack.verdict) == (pytest.approx(1 / 200, abs=0.02), "holds")
    released = rv.mask(table, "permute", seed=3).data
    learned = rv.attack(table, released, draws=10)
    assert (learned.certain, learned.verdict) == (0, "holds")
    assert any("count for nothing" in note for note in learned.notes)
