"""Equivalence classes: against plain Python, by hand, and where codes no longer fit one number."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil import classes as room
from rankveil.classes import Classes, numbered
from rankveil.errors import ParameterError

CELLS = st.sampled_from([math.nan, 0.0, -0.0, 1.0, 2.5, -3.0, 1e300, math.inf])
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=30)
)


def columns(rows: list[list[float]]) -> dict[str, np.ndarray]:
    return {f"Q{j}": np.array(column) for j, column in enumerate(zip(*rows, strict=True))}


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def agree(a: list[float], b: list[float]) -> bool:
    return all(same(x, y) or math.isnan(x) or math.isnan(y) for x, y in zip(a, b, strict=True))


def test_five_records() -> None:
    ages = np.array([30.0, 30.0, np.nan, np.nan, 41.5])
    sexes = np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    made = Classes.of({"AGE": ages, "SEX": sexes})
    assert made.number.tolist() == [0, 0, 2, 2, 1]  # by age, missing last
    assert made.sizes.tolist() == [2, 1, 2]
    assert made.frequency.tolist() == [2, 2, 2, 2, 1]
    assert made.distribution() == {1: 1, 2: 2}
    assert made.below(2).tolist() == [4]
    assert made.totals(np.array([1.0, 2.0, 4.0, 8.0, 16.0])).tolist() == [3.0, 16.0, 12.0]


def test_five_records_when_missing_agrees_with_everything() -> None:
    # the two of unknown age agree with each other and with the one of 41.5, who has the same sex
    made = Classes.of(
        {"AGE": np.array([30.0, 30.0, np.nan, np.nan, 41.5]), "SEX": np.array([1.0, 1.0, 0.0, 0.0, 0.0])}, missing="any"
    )
    assert made.frequency.tolist() == [2, 2, 3, 3, 3]
    assert made.totals(np.array([1.0, 2.0, 4.0, 8.0, 16.0]))[made.number].tolist() == [3.0, 3.0, 28.0, 28.0, 28.0]


@settings(deadline=None)
@given(TABLES)
def test_classes_are_those_of_plain_python(rows: list[list[float]]) -> None:
    made = Classes.of(columns(rows))
    keys = [tuple("missing" if math.isnan(cell) else cell + 0.0 for cell in row) for row in rows]
    counts = Counter(keys)
    assert made.frequency.tolist() == [counts[key] for key in keys]
    assert len(made) == len(counts)
    assert len({(key, number) for key, number in zip(keys, made.number.tolist(), strict=True)}) == len(counts)


@settings(deadline=None)
@given(TABLES, st.booleans())
def test_missing_agrees_with_everything(rows: list[list[float]], by_pattern: bool) -> None:
    weights = np.arange(1.0, len(rows) + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_PER_PAIR", 0 if by_pattern else 10**9)  # either way of counting
        made = Classes.of(columns(rows), missing="any")
        frequency, totals = made.frequency, made.totals(weights)[made.number]
    for i, row in enumerate(rows):
        like = [j for j, other in enumerate(rows) if agree(row, other)]
        assert frequency[i] == len(like)
        assert totals[i] == pytest.approx(sum(weights[like]))


def test_codes_that_do_not_fit_64_bits_together() -> None:
    # 12 columns of 500 values: 500^12 is far above 2^64
    rng = np.random.default_rng(0)
    table = rng.integers(0, 500, size=(600, 12)) * 0.5
    table[300:] = table[:300]
    table[-1, -1] += 0.25
    made = Classes.of({str(j): table[:, j] for j in range(12)})
    assert made.distribution() == {1: 2, 2: 299}
    assert (made.number[:299] == made.number[300:-1]).all()


def test_the_order_of_records_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    table = {name: np.where(rng.random(200) < 0.1, np.nan, rng.integers(0, 4, 200)) for name in "ABC"}
    order = rng.permutation(200)
    one, other = Classes.of(table), Classes.of({name: column[order] for name, column in table.items()})
    assert np.array_equal(one.number[order], other.number)


def test_without_missing_cells_any_is_own() -> None:
    table = {"A": np.array([1.0, 1.0, 2.0])}
    assert Classes.of(table, missing="any").frequency.tolist() == Classes.of(table).frequency.tolist() == [2, 2, 1]


def test_no_records_and_no_columns() -> None:
    assert len(Classes.of({"A": np.empty(0)})) == 0
    with pytest.raises(ParameterError, match="at least one quasi-identifier"):
        Classes.of({})


def test_the_input_stays_as_it_is() -> None:
    column = np.array([3.0, np.nan, -0.0])
    column.setflags(write=False)
    Classes.of({"A": column}, missing="any").totals(np.ones(3))
    assert numbered(column)[0].tolist() == [1, 2, 0]
