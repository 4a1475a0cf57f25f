"""Information loss of principal components."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError

KINDS = ("mse", "mae", "mv")
QUANTITIES = ("factor_correlations", "commonalities", "factor_scores")


def two(r: float) -> Any:
    """The correlations of two attributes; components (1, 1) / sqrt 2 and (1, -1) / sqrt 2, variances 1 + r, 1 - r."""
    return np.array([[1.0, r], [r, 1.0]])


def measured(name: str, x: Any, y: Any, **given: Any) -> Any:
    return get_measure(name)(x, y, **given)


def error(kind: str, a: float, b: float) -> float:
    return {"mse": (a - b) ** 2, "mae": abs(a - b), "mv": abs(a - b) / abs(a)}[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_two_attributes_by_hand(kind: str) -> None:
    # r = 0.6 becomes 0.2: variances 1.6 and 0.4 (shares 0.8 and 0.2) become 1.2 and 0.8
    x, y = two(0.6), two(0.2)
    by_hand = 0.8 * 2 * error(kind, 0.8**0.5, 0.6**0.5) + 0.2 * 2 * error(kind, 0.2**0.5, 0.4**0.5)
    assert measured(f"loss_factor_correlations_{kind}", x, y).value == pytest.approx(by_hand / 4)
    assert measured(f"loss_commonalities_{kind}", x, y).value == pytest.approx(error(kind, 0.8, 0.6))
    by_hand = 0.8 * 2 * error(kind, 3.2**-0.5, 2.4**-0.5) + 0.2 * 2 * error(kind, 0.8**-0.5, 1.6**-0.5)
    made = measured(f"loss_factor_scores_{kind}", x, y)
    assert made.value == pytest.approx(by_hand / 4)
    assert made.details["per_attribute"] == pytest.approx({"1": by_hand / 4, "2": by_hand / 4})
    assert measured(f"loss_factor_scores_{kind}", x, y, scores="projection").value == pytest.approx(0, abs=1e-12)


def test_components_that_change_places() -> None:
    # r = 0.6 becomes -0.6: the first component is (1, -1) now
    made = measured("loss_factor_correlations_mae", two(0.6), two(-0.6))
    first, second = 0.8**0.5, 0.2**0.5
    assert made.value == pytest.approx((0.8 * 2 * first + 0.2 * 2 * second) / 4)  # one of the two signs turns
    assert measured("loss_commonalities_mae", two(0.6), two(-0.6)).value == pytest.approx(0, abs=1e-12)


def by_the_table(quantity: str, kind: str, x: Any, y: Any, *, components: int = 1) -> float:
    """Table 1 of Mateo-Sanz, Domingo-Ferrer and Sebé 2005, entry by entry, from the records."""
    (l_x, v_x, z_x), (l_y, v_y, z_y) = map(principal, (x, y))
    p = x.shape[1]
    total = 0.0
    if quantity == "commonalities":
        c_x, c_y = (((correlated(z, z @ v)) ** 2)[:, :components].sum(axis=1) for z, v in ((z_x, v_x), (z_y, v_y)))
        return float(np.mean([error(kind, a, b) for a, b in zip(c_x, c_y, strict=True)]))
    for j in range(p):
        sign = 1 if v_x[:, j] @ v_y[:, j] > 0 else -1
        if quantity == "factor_correlations":
            of_x, of_y = correlated(z_x, z_x @ v_x)[:, j], sign * correlated(z_y, z_y @ v_y)[:, j]
        else:
            of_x, of_y = v_x[:, j] / l_x[j] ** 0.5, sign * v_y[:, j] / l_y[j] ** 0.5
        total += l_x[j] / l_x.sum() * sum(error(kind, a, b) for a, b in zip(of_x, of_y, strict=True))
    return float(total / p**2)


def principal(t: Any) -> tuple[Any, Any, Any]:
    z = (t - t.mean(axis=0)) / t.std(axis=0)
    _, sizes, v = np.linalg.svd(z, full_matrices=False)
    return sizes**2 / len(z), v.T, z


def correlated(z: Any, scores: Any) -> Any:
    p = z.shape[1]
    return np.corrcoef(z, scores, rowvar=False)[:p, p:]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_the_formulas_of_the_table(quantity: str, kind: str) -> None:
    rng = np.random.default_rng(12)
    x = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)) * [1.0, 10.0, 0.1, 5.0]
    y = x + rng.normal(size=x.shape) * x.std(axis=0) * 0.4
    name = f"loss_{quantity}_{kind}"
    made = rv.audit(pd.DataFrame(x, columns=list("ABCD")), pd.DataFrame(y, columns=list("ABCD")), measures=[name])
    assert made[name] == pytest.approx(by_the_table(quantity, kind, x, y), rel=1e-9)
    if quantity == "commonalities":
        r_x, r_y = np.corrcoef(x.T), np.corrcoef(y.T)
        for components in (2, 3):
            expected = by_the_table(quantity, kind, x, y, components=components)
            assert measured(name, r_x, r_y, components=components).value == pytest.approx(expected, rel=1e-9)
        assert measured(name, r_x, r_y, components=9).value == pytest.approx(0, abs=1e-12)  # all explain everything


@pytest.mark.parametrize("name", [f"loss_{quantity}_{kind}" for quantity in QUANTITIES for kind in KINDS])
def test_nothing_is_lost_where_nothing_was_done(name: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 3))
    for r in (np.corrcoef(x.T), np.corrcoef(np.column_stack([x, x[:, 0], x.sum(axis=1)]).T), np.eye(4), two(1.0)):
        assert measured(name, r, r.copy()).value == 0.0


@pytest.mark.parametrize("name", [f"loss_{quantity}_{kind}" for quantity in QUANTITIES for kind in KINDS])
def test_components_of_equal_variance_are_compared_in_agreeing_directions(name: str) -> None:
    # the second and the third have variance 1 - r; rounding alone would decide which is which
    r = np.full((3, 3), 0.3) + 0.7 * np.eye(3)
    for nearly in (1e-14 * np.array([[0, 1, -1], [1, 0, 2], [-1, 2, 0]]), 1e-13 * (1 - np.eye(3))):
        assert measured(name, r, r + nearly).value < 1e-9
        assert measured(name, r + nearly, r).value < 1e-9
    assert measured(name, np.eye(3), np.eye(3) + nearly).value < 1e-9


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_components_of_equal_variance_in_one_table_alone(quantity: str) -> None:
    # a small change tells the second from the third, in directions of its own
    r = np.full((3, 3), 0.3) + 0.7 * np.eye(3)
    other = r + 1e-6 * np.array([[0, 1, -1], [1, 0, 2], [-1, 2, 0]])
    assert measured(f"loss_{quantity}_mae", r, other).value < 1e-5
    assert measured(f"loss_{quantity}_mae", other, r).value < 1e-5


def test_attributes_that_depend_on_each_other() -> None:
    made = measured("loss_factor_scores_mv", two(1.0), two(0.5), names=("A", "B"))
    assert made.value == pytest.approx(error("mv", 4**-0.5, 3**-0.5) * 2 / 2)  # the first component alone, of share 1
    assert made.details["zeros_left_out"] == 2
    assert made.notes == ("2 of the 4 original factor score coefficients are 0 and left out",)


def test_constant_attributes_have_no_part_in_the_components() -> None:
    x, y = np.diag([1.0, 0.0]), two(0.0)
    made = measured("loss_commonalities_mae", x, np.diag([1.0, 0.0]) * 0, names=("A", "B"))
    assert made.value == pytest.approx(1 / 2)
    assert made.notes == ("constant in one of the tables, so correlations count as 0: A, B",)
    assert measured("loss_factor_correlations_mae", x, y).value == pytest.approx(0, abs=1e-12)
    with pytest.raises(NotApplicableError, match="every original column is constant"):
        measured("loss_factor_scores_mse", np.zeros((2, 2)), y)


def test_census(reference_data: Callable[[str], Path]) -> None:
    # PTOTVAL is the sum of PEARNVAL and POTHVAL, so that one of the 13 components has no variance
    census = pd.read_csv(reference_data("census"))
    names = [f"loss_{quantity}_{kind}" for quantity in QUANTITIES for kind in KINDS]
    masked = rv.mask(census, "mdav", k=3, columns=list(census)).data
    made = rv.audit(census, masked, measures=names, columns=list(census))
    assert made.values["loss_factor_scores_mv"].details["zeros_left_out"] == 13
    x, y = census.to_numpy(float), masked.to_numpy(float)
    for kind in KINDS:
        expected = by_the_table("commonalities", kind, x, y)
        assert made[f"loss_commonalities_{kind}"] == pytest.approx(expected, rel=1e-9)
    assert made["loss_factor_correlations_mae"] < 0.01 < made["loss_commonalities_mae"]
