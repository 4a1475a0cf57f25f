"""Propensity: by hand, against scikit-learn, its level under no difference, and its interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError
from rankveil.measures._indicators import designed
from rankveil.seeds import Seed

propensity = get_measure("propensity")


def test_a_column_of_two_values_by_hand() -> None:
    # of the ones 1 of 4 is masked, of the zeros 3 of 4: fitted chances are just those shares
    x, y = np.array([[1.0], [1.0], [1.0], [0.0]]), np.array([[0.0], [0.0], [0.0], [1.0]])
    for model in ("linear", "quadratic"):  # the square adds nothing
        made = propensity(x, y, model=model)
        assert made.value == pytest.approx(1 / 16, rel=1e-5)
        assert made.details["coefficients"] == 2
        # the fit of two cells is linear, so the mean over permutations of T is (k - 1) c (1 - c) / (N - 1) exactly
        assert made.details["expected"] == pytest.approx(1 / 4 / 7, rel=1e-5)
        assert made.details["ratio"] == pytest.approx(7 / 4, rel=1e-5)


def test_tables_of_different_size_are_compared_with_the_share_of_masked_records() -> None:
    x, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([[0.0], [1.0]])
    made = propensity(x, y)
    assert made.value == pytest.approx(0.0, abs=1e-20)
    assert made.details["masked_share"] == pytest.approx(1 / 3)
    assert made.details["expected"] == pytest.approx(2 / 3 / 3 / 5, rel=1e-4)


def test_tables_that_the_model_tells_apart() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    made = propensity(x, x + 100)
    assert made.value == pytest.approx(0.25, abs=1e-4)
    assert "the model tells the tables apart completely" in made.notes
    assert propensity(x, x).value == pytest.approx(0.0, abs=1e-20)
    assert propensity(x, x[::-1]).value == pytest.approx(0.0, abs=1e-20)
    with pytest.raises(NotApplicableError, match="constant"):
        propensity(np.ones((3, 2)), np.ones((3, 2)))


def test_it_is_what_an_independent_fit_gives() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = 1.2 * rng.normal(size=(400, 3)) + 0.2
    merged, t = np.vstack((x, y)), np.repeat((0, 1), (300, 400))
    for model, degree in (("linear", 1), ("quadratic", 2)):
        terms = StandardScaler().fit_transform(
            PolynomialFeatures(degree, include_bias=False).fit_transform(StandardScaler().fit_transform(merged))
        )
        fit = LogisticRegression(C=1e12, tol=1e-10, max_iter=10_000).fit(terms, t)
        expected = np.mean((fit.predict_proba(terms)[:, 1] - 4 / 7) ** 2)
        assert propensity(x, y, model=model).value == pytest.approx(expected, rel=1e-5)


def test_squares_see_what_means_do_not() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500, 2)), 2 * rng.normal(size=(500, 2))
    assert propensity(x, y, model="linear").details["ratio"] < 5
    assert propensity(x, y).details["ratio"] > 20


def skewed(rng: np.random.Generator, n: int) -> Any:
    """A population whose squares have heavy tails: the limit for many records is far."""
    return np.exp(rng.normal(size=(n, 5)))


@pytest.mark.parametrize(
    ("model", "sizes", "tables"),
    [
        ("linear", (300, 300), 60),
        ("quadratic", (150, 150), 60),
        ("quadratic", (100, 200), 60),
        ("forest", (120, 120), 8),
    ],
)
def test_the_ratio_of_two_samples_of_one_population_is_one(model: str, sizes: tuple[int, int], tables: int) -> None:
    rng = np.random.default_rng(0)
    ratios = []
    for k in range(tables):
        x, y = (skewed(rng, n) for n in sizes)
        made = propensity(x, y, model=model, rng=Seed.of(k).stream("a"))
        assert made.details["permutations"] == 5
        ratios.append(made.details["ratio"])
    error = np.std(ratios, ddof=1) / np.sqrt(tables)
    assert error < 0.15
    # by the mean of five permutations the ratio of trees is a trifle too large: var / 5
    assert abs(np.mean(ratios) - 1) < 4.9 * error
    assert np.mean(ratios) < 1.6 < 2  # two nulls once: 2 and more by the regression


def test_the_ratio_of_perfect_synthetic_data_is_one_by_every_model() -> None:
    # records from the distribution that the original was drawn from; a multivariate normal, as many as there are
    rng = np.random.default_rng(1)
    root = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.3, -0.5, 0.8]])
    by: dict[str, list[float]] = {"linear": [], "quadratic": [], "forest": []}
    for k in range(20):
        x, y = (rng.normal(size=(400, 3)) @ root.T for _ in range(2))
        for model, ratios in by.items():
            if model != "forest" or k < 6:
                ratios.append(propensity(x, y, model=model, rng=Seed.of(k).stream("a")).details["ratio"])
    for ratios in by.values():
        assert abs(np.mean(ratios) - 1) < 4.9 * np.std(ratios, ddof=1) / np.sqrt(len(ratios))
        assert np.mean(ratios) < 1.7


def test_the_level_of_tables_of_many_records() -> None:
    # N pMSE / (c (1 - c)) is about chi-squared with k - 1 degrees; the mean of 100 ratios of 2 degrees leaves these
    # ends once in a million
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(100):
        made = propensity(rng.normal(size=(2000, 2)), rng.normal(size=(2000, 2)), model="linear")
        assert made.details["permutations"] == 0
        ratios.append(made.details["ratio"])
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], 200) / 200
    assert low < np.mean(ratios) < high


def test_the_interval_is_as_wide_as_the_spread_over_samples() -> None:
    rng = np.random.default_rng(0)
    made = [propensity(rng.normal(size=(400, 2)), 0.7 + 1.3 * rng.normal(size=(400, 2))) for _ in range(200)]
    spread = np.std([each.value for each in made])
    assert np.mean([each.details["standard_error"] for each in made]) == pytest.approx(spread, rel=0.25)
    for each in made:
        low, high = each.details["interval"]
        assert 0 <= low <= each.value <= high <= 0.25


def test_dependent_attributes_change_nothing() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 0.3
    twice = [np.column_stack((side, 3 * side[:, 0] - side[:, 1], np.full(200, 4.0))) for side in (x, y)]
    made = propensity(*twice)
    assert made.value == pytest.approx(propensity(x, y).value, rel=1e-6)
    assert made.details["coefficients"] == 6


def test_a_sample_of_large_tables_is_said_and_is_the_same_records_of_both() -> None:
    x = np.random.default_rng(0).normal(size=(500, 2))
    made = propensity(x, x, most=100, rng=Seed.of(1).stream("a"))
    assert made.value == pytest.approx(0.0, abs=1e-20)
    assert made.details["records"] == 200
    assert "at most 100 of each" in made.notes[0]


def test_trees_see_what_no_square_sees() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    kinked = np.sign(rng.normal(size=(400, 2))) * np.where(rng.random((400, 2)) < 0.5, 0.3, np.sqrt(2 - 0.09))
    stream = Seed.of(1).stream
    trees = propensity(x, kinked, model="forest", rng=stream("a"))
    assert trees.details["ratio"] > 5 > 2 > propensity(x, kinked).details["ratio"]
    assert trees.value > 0.02
    alike = propensity(x, rng.normal(size=(400, 2)), model="forest", rng=stream("a"))
    assert 0.5 < alike.details["ratio"] < 2
    assert propensity(x, x[::-1], model="forest", rng=stream("a")).value == 0.0
    again = propensity(rng.permutation(x), rng.permutation(kinked), model="forest", rng=stream("a"))
    assert again.value == trees.value  # whatever the order of the records


# Tables with categories.


def saturated(x: Any, y: Any) -> float:
    """What a model that fits the share of masked records in every cell of the table comes to."""
    merged, t = np.vstack((x, y)), np.repeat((0.0, 1.0), (len(x), len(y)))
    _, cell = np.unique(merged, axis=0, return_inverse=True)
    share = np.bincount(cell.ravel(), weights=t) / np.bincount(cell.ravel())
    return float(np.mean((share[cell.ravel()] - t.mean()) ** 2))


def test_a_nominal_column_by_hand() -> None:
    # of the 0 one of 3 is masked, of the 1 all 2, of the 2 one of 3, and of the 3 one of 2: c = 1/2, N = 10
    x, y = np.array([[0.0], [0.0], [2.0], [2.0], [3.0]]), np.array([[0.0], [1.0], [1.0], [2.0], [3.0]])
    by_hand = (3 * (1 / 6) ** 2 + 2 * (1 / 2) ** 2 + 3 * (1 / 6) ** 2 + 0) / 10
    for model in ("linear", "quadratic"):
        made = propensity(x, y, model=model, kinds=("nominal",))
        assert made.value == pytest.approx(by_hand, rel=1e-5)
        assert made.details["coefficients"] == 4
        assert made.notes == ("the model has 4 coefficients for 10 records: it will find differences by chance",)
    # which number a category has is of no importance, while it is for levels that have an order
    places = np.array([5.0, 0.25, 77.0, -1.0])
    renamed = places[x.astype(int)], places[y.astype(int)]
    assert propensity(*renamed, kinds=("nominal",)).value == pytest.approx(by_hand, rel=1e-5)
    assert propensity(*renamed, kinds=("ordinal",)).value == propensity(*renamed).value != pytest.approx(by_hand)


@pytest.mark.parametrize("sizes", [(2, 2), (3, 4), (5, 1), (2, 6)])
def test_products_of_two_nominal_columns_are_every_cell(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x, y = (np.floor(np.array(sizes) * rng.random((n, 2)) ** power) for n, power in ((500, 1), (400, 1.3)))
    made = propensity(x, y, kinds=("nominal", "nominal"))
    assert made.value == pytest.approx(saturated(x, y), rel=1e-6)
    assert made.details["coefficients"] == sizes[0] * sizes[1]
    alone = propensity(x, y, model="linear", kinds=("nominal", "nominal"))
    assert alone.details["coefficients"] == sum(sizes) - 1
    assert alone.value <= made.value


def test_a_mixed_table_is_what_an_independent_fit_gives() -> None:
    rng = np.random.default_rng(0)
    n, m = 400, 300
    sides = [
        np.column_stack((rng.normal(shift, 1, k), np.floor(4 * rng.random(k) ** power), rng.normal(0, 1 + shift, k)))
        for k, shift, power in ((n, 0, 1), (m, 0.3, 1.4))
    ]
    merged, t = np.vstack(sides), np.repeat((0, 1), (n, m))
    a, b = StandardScaler().fit_transform(merged[:, [0, 2]]).T
    d = [np.where(merged[:, 1] == k, 1.0, 0.0) for k in (1, 2, 3)]
    terms = {
        "linear": [a, b, *d],
        "quadratic": [a, b, *d, a * a, a * b, b * b, *(a * each for each in d), *(b * each for each in d)],
    }
    for model, columns in terms.items():
        scaled = StandardScaler().fit_transform(np.column_stack(columns))
        fit = LogisticRegression(C=1e12, tol=1e-10, max_iter=10_000).fit(scaled, t)
        expected = np.mean((fit.predict_proba(scaled)[:, 1] - m / (n + m)) ** 2)
        made = propensity(*sides, model=model, kinds=("numeric", "nominal", "numeric"))
        assert made.value == pytest.approx(expected, rel=1e-5)
        assert made.details["coefficients"] == len(columns) + 1


def test_a_category_only_in_the_masked_table_tells_its_records_apart() -> None:
    x, y = np.zeros((100, 1)), np.repeat((0.0, 1.0), (60, 40))[:, None]
    made = propensity(x, y, kinds=("nominal",))
    # of the 160 zeros 60 are masked, the 40 others all are
    assert made.value == pytest.approx((160 * (1 / 2 - 60 / 160) ** 2 + 40 / 4) / 200, rel=1e-4)
    with pytest.raises(NotApplicableError, match="constant"):
        propensity(x, x, kinds=("nominal",))
    assert propensity(np.array([[3.0]]), np.array([[4.0]]), kinds=("nominal",)).value == pytest.approx(1 / 4, abs=1e-3)


def test_rare_categories_of_many_are_one_and_that_is_said() -> None:
    # 24 categories of 20 records and 6 of 2 records in each table; the masked table has another 7th for these
    x = np.concatenate((np.repeat(np.arange(24.0), 20), np.repeat(np.arange(24.0, 30.0), 2)))[:, None]
    y = np.where(x < 24, x, 30.0)
    made = propensity(x, y, kinds=("nominal",), names=("JOB",))
    # the 6 and not the 7th, which has 12 records
    assert made.details["taken_as_one"] == {"JOB": {"categories": 6, "of": 31, "records": 12}}
    assert "rare categories are taken as one: 6 of 31 of JOB" in made.notes
    assert made.details["coefficients"] == 26
    assert made.value == pytest.approx(24 / len(x) / 2 / 4, rel=1e-4)


def test_only_the_most_frequent_categories_have_a_term() -> None:
    rng = np.random.default_rng(0)
    x, y = (np.floor(200 * rng.random(20_000) ** 2)[:, None] for _ in range(2))
    made = propensity(x, y, kinds=("nominal",))
    assert made.details["coefficients"] == 51
    assert made.details["taken_as_one"]["1"]["categories"] == 150
    # of many columns fewer categories each, 500 in all
    x, y = (np.floor(30 * rng.random((3_000, 25))) for _ in range(2))
    design = designed(x, y, kinds=("nominal",) * 25, names=())
    assert design.terms(quadratic=False) == 25 * 20 + 1
    assert {part.categories for part in design.pooled.values()} == {10}
    assert design.notes[0].endswith("10 of 30 of 5 and 20 more")


def test_a_column_with_as_many_categories_as_records_is_left_out_and_named() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack((np.arange(300.0), rng.integers(0, 3, 300)))
    made = propensity(x, x[::-1], kinds=("nominal", "nominal"), names=("ID", "SEX"))
    assert made.notes == ("columns are left out, all of whose categories are rare: ID (300 categories)",)
    assert made.details["coefficients"] == 3
    with pytest.raises(NotApplicableError, match=r"all of whose categories are rare: ID \(300 categories\)"):
        propensity(x[:, :1], x[:, :1], kinds=("nominal",), names=("ID",))
    # rare is what few of the records drawn have
    many = np.repeat(np.arange(300.0), 10)[:, None]
    assert propensity(many, many, kinds=("nominal",)).details["coefficients"] == 51
    with pytest.raises(NotApplicableError, match="rare"):
        propensity(many, many, kinds=("nominal",), most=300)


def test_products_that_would_be_too_many_are_left_out_and_that_is_said() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([60, 60, 60, 20, 20, 2])
    x, y = (np.floor(sizes * rng.random((3_000, 6))) for _ in range(2))
    made = propensity(x, y, kinds=("nominal",) * 6, names=tuple("ABCDEF"))
    # alone 3 * 50 + 2 * 19 + 1, D and E with F 2 * 19; D with E would be 19 * 19 more
    assert made.details["coefficients"] == 1 + 189 + 38
    assert made.notes[1:] == (
        "columns of more than 20 categories are in no products: A, B, C",
        "products of 1 of 3 pairs with nominal columns are left out, the largest: with them the model would have more "
        "than 500 terms",
    )
    linear = propensity(x, y, model="linear", kinds=("nominal",) * 6)
    assert linear.details["coefficients"] == 190
    assert len(linear.notes) == 1


def test_the_smallest_products_come_first() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([18, 18, 2, 18])
    x, y = (np.column_stack((rng.normal(size=2_000), np.floor(sizes * rng.random((2_000, 4))))) for _ in range(2))
    design = designed(x, y, kinds=("numeric", *["nominal"] * 4), names=())
    taken, notes = design.products
    # alone 1 + 3 * 17 + 1 and the square, A with all 3 * 17 + 1, D with the others 3 * 17: 157, and one of 17 * 17
    assert design.terms(quadratic=True) == 1 + 157 + 17 * 17
    left_out = [(i, j) for i in range(5) for j in range(i, 5) if not taken[i, j] and i != j]
    assert left_out == [(1, 4), (2, 4)]
    assert "products of 2 of 10 pairs" in notes[0]
    assert not np.diag(taken)[1:].any()
    assert taken[0, 0]


def test_the_level_under_no_difference_with_categories() -> None:
    # both tables are draws from the same shares: about chi-squared with k - 1 degrees; the ends of the mean ratio over
    # 100 tables are left once in a million
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(100):
        x, y = (np.floor(np.array([3, 2]) * rng.random((3_000, 2))) for _ in range(2))
        ratios.append(propensity(x, y, kinds=("nominal", "nominal")).details["ratio"])
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], 500) / 500
    assert low < np.mean(ratios) < high


def test_the_order_of_records_and_of_columns_does_not_matter_with_categories() -> None:
    rng = np.random.default_rng(0)
    x, y = (np.column_stack((rng.normal(size=200), rng.integers(0, 4, (200, 2)))) for _ in range(2))
    kinds = ("numeric", "nominal", "nominal")
    value = propensity(x, y, kinds=kinds).value
    assert propensity(rng.permutation(x), rng.permutation(y), kinds=kinds).value == value
    assert propensity(x[:, ::-1], y[:, ::-1], kinds=kinds[::-1]).value == pytest.approx(value, rel=1e-6)


def test_trees_take_categories_by_their_codes() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, (400, 2)).astype(float), 2.0 * rng.integers(0, 3, (400, 2))
    made = propensity(x, y, model="forest", kinds=("nominal", "nominal"), rng=Seed.of(1).stream("a"))
    assert made.value == propensity(x, y, model="forest", rng=Seed.of(1).stream("a")).value
    assert made.details["ratio"] > 5


def test_microaggregation_has_more_utility_than_noise_on_census(reference_data: Any) -> None:
    # Domingo-Ferrer, Ricci and Soria-Comas 2017, Table 1: 4.28e-4 for mdav and 3.83e-2 for correlated noise, by a
    # regression that the paper does not name; its order stays. Exact sums of attributes, which both methods keep and
    # rank swapping breaks, are terms of the quadratic model: what breaks them is told apart completely
    census = pd.read_csv(reference_data("census"))
    kept, noisy, swapped = (
        rv.audit(
            census,
            rv.mask(census, method, seed=1, columns=list(census), **parameters).data,
            measures=["propensity"],
            columns=list(census),
        )["propensity"]
        for method, parameters in (
            ("mdav", {"k": 5}),
            ("correlated_noise", {"gamma": 1.0}),
            ("rank_swap", {"p": 20}),
        )
    )
    assert kept < noisy < swapped
    assert swapped == pytest.approx(0.25, abs=1e-3)


def test_many_columns_of_numbers_are_squared_but_not_multiplied_with_each_other() -> None:
    x, y = np.random.default_rng(3).normal(size=(2, 6, 500))
    made = propensity(x, y)
    said = "products of two of the 500 columns of numbers are left out: with them the model would have 125750 terms"
    assert said in made.notes
    assert made.details["coefficients"] + made.details["dependent_terms_left_out"] == 1 + 2 * 500
    assert not any("products" in note for note in propensity(x[:, :43], y[:, :43]).notes)
