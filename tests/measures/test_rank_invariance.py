"""What every measure that only looks at ranks has in common: it does not see what ranks do not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil import catalogue
from rankveil.catalogue import Measure

OF_RANKS = ("rank_", "order_", "euclidean_ranks", "maximum_ranks")
AND_NO_VALUES = ("rows", "paired", "names")


def looks_at_ranks(entry: Measure) -> bool:
    """Whether all that it works on is made of ranks, or of measures that are."""
    known = catalogue.measures()
    return all(
        looks_at_ranks(known[need]) if need in known else need.startswith(OF_RANKS) or need in AND_NO_VALUES
        for need in entry.needs
    )


# um has the values too, and does not touch them unless asked to.
MEASURES = sorted({entry.id for entry in catalogue.measures().values() if looks_at_ranks(entry)} | {"um"})
# Reverse mapping breaks ties by draws for the rows of the file.
WITHOUT_TIES = [name for name in MEASURES if any(need.endswith("_z") for need in catalogue.measures()[name].needs)]

INCREASING = [np.exp, np.cbrt, lambda x: 7.0 * x - 1e6, lambda x: x**5 + x, lambda x: 1e300 * x]


@st.composite
def pairs(draw: st.DrawFn, *, ties: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """An original and a masked table of three columns, with many ties or none."""
    n = draw(st.integers(8, 20))
    column = st.lists(st.integers(0, 4), min_size=n, max_size=n) if ties else st.permutations(range(n))
    made = [{name: np.array(draw(column), dtype=np.float64) for name in "ABC"} for _ in range(2)]
    return pd.DataFrame(made[0]), pd.DataFrame(made[1])


def measured(measure: str, x: pd.DataFrame, y: pd.DataFrame) -> Any:
    """The value, or the reason why there is none."""
    made = rv.audit(x, y, measures=[measure], columns=list(x))
    return made.not_applicable.get(measure) or made[measure]


def agree(measure: str, first: Any, second: Any) -> None:
    """The same but for rounding: a singular value or an eigenvalue of equal ones has few digits of its own."""
    assert first == (pytest.approx(second, rel=1e-7, abs=1e-9) if isinstance(second, float) else second), measure


def tried(measure: str) -> Any:
    return pairs(ties=False) if measure in WITHOUT_TIES else pairs(ties=True) | pairs(ties=False)


few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_the_measures_of_ranks_are_found() -> None:
    assert {"cm1", "cm2", "cm3", "mutual_information", "permutation_level", "spearman_risk", "um"} <= set(MEASURES)


@pytest.mark.parametrize("measure", MEASURES)
@few
@given(data=st.data())
def test_increasing_transformations_are_not_seen(measure: str, data: st.DataObject) -> None:
    x, y = data.draw(tried(measure))
    changed = [frame.copy() for frame in (x, y)]
    for frame in changed:
        name = data.draw(st.sampled_from("ABC"))
        frame[name] = data.draw(st.sampled_from(INCREASING))(frame[name].to_numpy())
    agree(measure, measured(measure, *changed), measured(measure, x, y))


@pytest.mark.parametrize("measure", MEASURES)
@few
@given(data=st.data())
def test_the_order_of_the_columns_is_not_seen(measure: str, data: st.DataObject) -> None:
    x, y = data.draw(tried(measure))
    names = data.draw(st.permutations("ABC"))
    agree(measure, measured(measure, x[names], y[names]), measured(measure, x, y))


@pytest.mark.parametrize("measure", MEASURES)
@few
@given(data=st.data())
def test_the_order_of_the_records_is_not_seen(measure: str, data: st.DataObject) -> None:
    x, y = data.draw(tried(measure))
    rows = data.draw(st.permutations(range(len(x))))
    agree(measure, measured(measure, x.iloc[rows], y.iloc[rows]), measured(measure, x, y))


@pytest.mark.parametrize("measure", [name for name in MEASURES if not catalogue.measures()[name].mapping])
@few
@given(data=st.data())
def test_without_a_mapping_the_order_of_the_masked_records_alone_is_not_seen(measure: str, data: st.DataObject) -> None:
    x, y = data.draw(tried(measure))
    rows = data.draw(st.permutations(range(len(x))))
    agree(measure, measured(measure, x, y.iloc[rows]), measured(measure, x, y))
