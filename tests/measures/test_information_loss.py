"""Information loss of values, means, variances, covariances and correlations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError
from rankveil.summaries.changes import Changes

A = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
B = np.array([4.0, -2.0, 10.0, 6.0, 2.0])
A_MASKED = np.array([1.0, 3.0, 3.0, 2.0, 6.0])
B_MASKED = np.array([4.0, -2.0, 5.0, 6.0, 2.0])
X, Y = np.column_stack([A, B]), np.column_stack([A_MASKED, B_MASKED])

KINDS = ("mse", "mae", "mv")
QUANTITIES = ("values", "means", "covariances", "variances", "correlations")


def measured(name: str, x: Any = X, y: Any = Y, **matching: Any) -> rv.catalogue.Value:
    """The value of a measure on two arrays whose columns are called A, B, ..."""
    tables = [pa.table({chr(65 + j): column for j, column in enumerate(np.transpose(each))}) for each in (x, y)]
    made = rv.audit(*tables, measures=[name], columns=tables[0].column_names, **matching)
    made[name]  # says why when it does not apply
    return made.values[name]


def by_the_table(quantity: str, kind: str, x: Any, y: Any) -> float:
    """Table 1 of Mateo-Sanz, Domingo-Ferrer and Sebé 2005, word for word."""
    p = x.shape[1]
    above = np.triu_indices(p, 1)
    of = {
        "values": lambda t: t.ravel(),
        "means": lambda t: t.mean(axis=0),
        "covariances": lambda t: np.cov(t, rowvar=False, ddof=0)[above],
        "variances": lambda t: t.var(axis=0),
        "correlations": lambda t: np.corrcoef(t, rowvar=False)[above],
    }[quantity]
    a, b = of(x), of(y)
    return float(np.mean({"mse": (a - b) ** 2, "mae": np.abs(a - b), "mv": np.abs(a - b) / np.abs(a)}[kind]))


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        # A changes by 0, 1, 0, -2, 1 and B by 0, 0, -5, 0, 0
        ("loss_values_mse", (1 + 4 + 1 + 25) / 10),
        ("loss_values_mae", (1 + 2 + 1 + 5) / 10),
        ("loss_values_mv", (1 / 2 + 2 / 4 + 1 / 5 + 5 / 10) / 10),
        # means 3 and 4, then 3 and 3
        ("loss_means_mse", 1 / 2),
        ("loss_means_mae", 1 / 2),
        ("loss_means_mv", (1 / 4) / 2),
        # variances 2 and 80/5 = 16, then 14/5 and 40/5 = 8
        ("loss_variances_mse", (0.8**2 + 8**2) / 2),
        ("loss_variances_mae", (0.8 + 8) / 2),
        ("loss_variances_mv", (0.4 + 0.5) / 2),
        # covariances (0 + 6 + 0 + 2 - 4) / 5 and (-2 + 0 + 0 - 3 - 3) / 5
        ("loss_covariances_mse", 2.4**2),
        ("loss_covariances_mae", 2.4),
        ("loss_covariances_mv", 3.0),
        # correlations 0.8 / sqrt 32 and -1.6 / sqrt 22.4
        ("loss_correlations_mse", (0.8 / 32**0.5 + 1.6 / 22.4**0.5) ** 2),
        ("loss_correlations_mae", 0.8 / 32**0.5 + 1.6 / 22.4**0.5),
        ("loss_correlations_mv", 1 + (1.6 / 22.4**0.5) / (0.8 / 32**0.5)),
        ("il1", 0.17),
        ("il2", 0.125),
        ("il3", 0.45),
        ("il4", 3.0),
        ("il5", 0.8 / 32**0.5 + 1.6 / 22.4**0.5),
        ("il", 100 * (0.17 + 0.125 + 0.45 + 3.0 + 0.8 / 32**0.5 + 1.6 / 22.4**0.5) / 5),
        # mean changes 4/5 and 1, standard deviations sqrt 2 and 4
        ("il1s", (0.8 / 2**0.5 / 2**0.5 + 1 / 4 / 2**0.5) / 2),
        ("correlation_half_mae", (0.8 / 32**0.5 + 1.6 / 22.4**0.5) / 2),
    ],
)
def test_five_records_by_hand(name: str, by_hand: float) -> None:
    assert measured(name).value == pytest.approx(by_hand, rel=1e-12)


def test_details_of_five_records() -> None:
    assert measured("loss_values_mae").details["per_attribute"] == pytest.approx({"A": 0.8, "B": 1.0})
    assert measured("il3").details["per_attribute"] == pytest.approx({"A": 0.4, "B": 0.5})
    assert measured("il1s").details["per_attribute"] == pytest.approx({"A": 0.4, "B": 0.25 / 2**0.5})
    assert measured("il4").details["per_pair"] == [{"a": "A", "b": "B", "value": pytest.approx(3.0)}]
    half, whole = measured("correlation_half_mae"), measured("il5")
    assert half.details["per_pair"][0]["value"] == whole.details["per_pair"][0]["value"] / 2
    assert measured("il").details["parts"] == {f"il{i}": measured(f"il{i}").value for i in range(1, 6)}


def test_arrays_without_names_have_numbered_columns() -> None:
    changes = [Changes.of(X[:, j], Y[:, j], spread=1.0) for j in range(2)]
    assert list(get_measure("il1")(changes).details["per_attribute"]) == ["1", "2"]


tables = arrays(np.float64, (6, 3), elements=st.integers(-40, 40).map(lambda k: k / 4 + 0.05))


@settings(max_examples=40, deadline=None)
@given(tables, tables)
def test_the_formulas_of_the_table(x: Any, y: Any) -> None:
    x, y = x + np.eye(6)[:, :3] * 30, y + np.eye(6)[:, 2::-1] * 20  # so that no column is constant
    names = list("ABC")
    cells = [(quantity, kind) for quantity in QUANTITIES for kind in KINDS]
    asked = [f"loss_{quantity}_{kind}" for quantity, kind in cells]
    made = rv.audit(pd.DataFrame(x, columns=names), pd.DataFrame(y, columns=names), measures=asked)
    for quantity, kind in cells:
        expected = by_the_table(quantity, kind, x, y)
        if kind == "mv" and expected > 1e9:  # an original is 0 but for rounding
            continue
        assert made[f"loss_{quantity}_{kind}"] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_the_published_names_are_cells_of_the_table() -> None:
    cells = {
        "il1": "loss_values_mv",
        "il2": "loss_means_mv",
        "il3": "loss_variances_mv",
        "il4": "loss_covariances_mv",
        "il5": "loss_correlations_mae",
    }
    rng = np.random.default_rng(2)
    x = rng.lognormal(size=(50, 4))
    y = x + rng.normal(size=x.shape)
    for name, cell in cells.items():
        assert measured(name, x, y).value == measured(cell, x, y).value
        for fact in ("family", "better", "bounds", "mapping", "equal", "per"):
            assert getattr(get_measure(name), fact) == getattr(get_measure(cell), fact)


@pytest.mark.parametrize("name", [f"loss_{q}_{k}" for q in QUANTITIES for k in KINDS] + ["il", "il1s"])
def test_nothing_is_lost_where_nothing_was_done(name: str) -> None:
    x = np.random.default_rng(4).lognormal(size=(100, 5), sigma=4)
    assert measured(name, x, x).value == 0.0


def test_original_values_of_zero_are_left_out_of_the_mean_variation_and_counted() -> None:
    x, y = X.copy(), Y.copy()
    x[0, 1] = 0.0
    y[0, 1] = 77.0
    made = measured("il1", x, y)
    assert made.value == pytest.approx((1 / 2 + 2 / 4 + 1 / 5 + 5 / 10) / 9)
    assert made.details["per_attribute"] == pytest.approx({"A": 1.2 / 5, "B": 0.5 / 4})
    assert made.details["zeros_left_out"] == 1
    assert made.notes == ("1 of the 10 original values are 0 and left out",)
    assert measured("loss_values_mae", x, y).value == pytest.approx((4 + 5 + 77) / 10)
    assert measured("loss_values_mae", x, y).notes == ()


def test_a_mean_that_is_zero_but_for_rounding_is_zero() -> None:
    x = np.column_stack([[0.1, 0.2, -0.3], [1.0, 3.0, 5.0]])
    assert x[:, 0].mean() != 0
    made = measured("il2", x, x + 1)
    assert made.value == pytest.approx(1 / 3)
    assert made.details == {"per_attribute": {"B": pytest.approx(1 / 3)}, "zeros_left_out": 1}
    with pytest.raises(NotApplicableError, match="every one of the original means is 0"):
        measured("il2", x[:, :1], x[:, :1] + 1)


def test_a_covariance_of_zero_is_left_out() -> None:
    x = np.array([[-1.1, 1.1, 1.0], [0.1, -2.2, 2.0], [1.0, 1.1, 4.0]])
    x[:, 0] = [-1.1, 0.0, 1.1]  # symmetric beside an even column
    made = measured("il4", x, x * [1, 1, 2])
    assert made.details["zeros_left_out"] == 1
    assert made.value == pytest.approx(1.0)
    assert {(pair["a"], pair["b"]) for pair in made.details["per_pair"]} == {("A", "C"), ("B", "C")}


def test_constant_columns() -> None:
    x, y = np.column_stack([A, np.full(5, 7.0)]), np.column_stack([A, A_MASKED])
    r = np.corrcoef(A, A_MASKED)[0, 1]
    made = measured("il5", x, y)
    assert made.value == pytest.approx(r)  # from 0
    assert made.notes == ("constant in one of the tables, so correlations count as 0: B",)
    assert measured("il3", x, y).details == {"per_attribute": {"A": 0.0}, "zeros_left_out": 1}
    assert measured("loss_variances_mae", x, y).value == pytest.approx(2.8 / 2)
    made = measured("il1s", x, y)
    assert (made.value, made.notes) == (0.0, ("constant in the original and left out: B",))
    with pytest.raises(NotApplicableError, match="every original column is constant"):
        measured("il1s", np.ones((5, 2)), X)


def test_one_column_has_no_pairs() -> None:
    for name in ("il4", "il5", "correlation_half_mae", "loss_covariances_mse", "loss_correlations_mv"):
        with pytest.raises(NotApplicableError, match="only one"):
            measured(name, X[:, :1], Y[:, :1])
    with pytest.raises(NotApplicableError, match=r"il4 does not apply: .*only one"):
        measured("il", X[:, :1], Y[:, :1])


def test_only_the_worst_pairs_are_listed() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 40, 9))
    changes = np.abs(np.corrcoef(x.T) - np.corrcoef(y.T))[np.triu_indices(9, 1)]
    listed = [pair["value"] for pair in measured("il5", x, y).details["per_pair"]]
    assert listed == pytest.approx(sorted(changes, reverse=True)[:20])


@pytest.mark.parametrize("unit", [1e-300, 1e-12, 1e12, 1e300])
@pytest.mark.parametrize("name", ["il1", "il2", "il3", "il4", "il5", "il", "il1s"])
def test_relative_losses_do_not_depend_on_the_unit(name: str, unit: float) -> None:
    assert measured(name, unit * X, unit * Y).value == pytest.approx(measured(name).value, rel=1e-12)
    mixed = np.array([unit, 1.0])
    assert measured(name, mixed * X, mixed * Y).value == pytest.approx(measured(name).value, rel=1e-12)


@pytest.mark.parametrize(("quantity", "power"), [("values", 1), ("means", 1), ("variances", 2), ("covariances", 2)])
def test_absolute_losses_are_in_units_of_the_data_or_say_that_no_number_will_do(quantity: str, power: int) -> None:
    for unit in (1e-300, 1e-70, 1e70, 1e300):
        for kind, squared in (("mae", 1), ("mse", 2)):
            name = f"loss_{quantity}_{kind}"
            exponent = round(np.log10(unit)) * power * squared
            if abs(exponent) <= 300:
                expected = measured(name).value * 10.0**exponent
                assert measured(name, unit * X, unit * Y).value == pytest.approx(expected, rel=1e-9)
            else:
                with pytest.raises(NotApplicableError, match="too large" if unit > 1 else "too small"):
                    measured(name, unit * X, unit * Y)


def test_the_largest_numbers() -> None:
    x, y = np.array([[1.7e308], [1.0], [-1.7e308]]), np.array([[-1.7e308], [1.0], [-1.7e308]])
    assert measured("il1", x, y).value == pytest.approx(2 / 3)
    with pytest.raises(NotApplicableError, match="too large"):
        measured("loss_values_mae", x[:1], y[:1])
    assert measured("loss_values_mae", x, y).value == pytest.approx(1.7e308 * (2 / 3))


def test_a_small_change_beside_large_values_is_not_lost() -> None:
    x, y = np.array([[1e300], [1e-12]]), np.array([[1e300], [3e-12]])
    assert measured("loss_values_mse", x, y).value == pytest.approx(2e-24)
    assert measured("loss_values_mae", x, y).value == pytest.approx(1e-12)
    assert measured("il1", x, y).value == pytest.approx(1.0)


def test_statistics_need_neither_a_mapping_nor_as_many_records() -> None:
    rng = np.random.default_rng(9)
    x, y = rng.normal(10, 3, size=(30, 3)), rng.normal(10, 2, size=(21, 3))
    for quantity in ("means", "covariances", "variances", "correlations"):
        for kind in KINDS:
            made = measured(f"loss_{quantity}_{kind}", x, y, mapping=False).value
            assert made == pytest.approx(by_the_table(quantity, kind, x, y), rel=1e-9)


def test_covariances_too_small_for_a_number_are_left_out() -> None:
    # the columns correlate, but the standard deviation of the first, below the least number, rounds to 0
    tiny = np.where(np.arange(14) % 7 == 6, 5e-324, 0.0)
    x = np.column_stack([tiny, np.arange(14.0), np.arange(14.0) ** 2])
    weight = pa.array(1.0 + np.arange(14))
    pair = [pa.table({"A": x[:, 0], "B": x[:, 1], "C": x[:, 2], "W": weight})] * 2
    schema = rv.Schema(roles={"W": "weight"})
    made = rv.audit(*pair, measures=["loss_covariances_mv"], schema=schema)
    assert made["loss_covariances_mv"] == 0
    assert made.values["loss_covariances_mv"].details["zeros_left_out"] == 2


def test_synthetic_records_are_compared_with_the_nearest_when_asked() -> None:
    y = Y[[3, 1, 0, 2, 4]]
    with pytest.raises(NotApplicableError, match="which masked record"):
        measured("il1", X, y, mapping=False)
    scale = X.std(axis=0)
    nearest = [int(np.argmin((((X - each) / scale) ** 2).sum(axis=1))) for each in y]
    made = measured("il1", X, y, mapping=False, pair="nearest")
    assert made.value == pytest.approx(by_the_table("values", "mv", X[nearest], y))


@pytest.fixture(scope="module")
def census(reference_data: Callable[[str], Path]) -> pd.DataFrame:
    return pd.read_csv(reference_data("census"))


def test_microaggregation_loses_as_much_variance_as_the_values_move(census: pd.DataFrame) -> None:
    # total = between + within sum of squares: Domingo-Ferrer and Mateo-Sanz 2002, section 2
    masked = rv.mask(census, "mdav", k=3, columns=list(census)).data
    made = rv.audit(
        census, masked, measures=["loss_values_mse", "loss_variances_mae", "il2", "il"], columns=list(census)
    )
    assert made["loss_variances_mae"] == pytest.approx(made["loss_values_mse"], rel=1e-9)
    assert made["il2"] < 1e-12


def test_rescaled_microaggregation_loses_no_mean_and_no_variance(census: pd.DataFrame) -> None:
    # Mateo-Sanz, Domingo-Ferrer and Sebé 2005, Table 3: PIL(m1) = PIL(m2) = 0, and PIL(r) is as before
    steps = rv.Plan((rv.Step("mdav", {"k": 3}, {}, list(census)), rv.Step("rescale")))
    plain = rv.audit(
        census, rv.mask(census, "mdav", k=3, columns=list(census)).data, measures=["il5"], columns=list(census)
    )
    made = rv.audit(census, rv.mask(census, steps).data, measures=["il2", "il3", "il5"], columns=list(census))
    assert made["il2"] < 1e-12
    assert made["il3"] < 1e-12
    assert made["il5"] == pytest.approx(plain["il5"], rel=1e-9)


def test_every_cell_of_the_table_on_census(census: pd.DataFrame) -> None:
    masked = rv.mask(census, "mdav", k=3, columns=list(census)).data
    x, y = census.to_numpy(float), masked.to_numpy(float)
    names = [f"loss_{quantity}_{kind}" for quantity in QUANTITIES for kind in KINDS]
    made = rv.audit(census, masked, measures=names, columns=list(census))
    for quantity in QUANTITIES:
        for kind in KINDS:
            expected = by_the_table(quantity, kind, x, y)
            assert made[f"loss_{quantity}_{kind}"] == pytest.approx(expected, rel=1e-9, abs=1e-9), (quantity, kind)
