"""Weights in the measures: a record of weight w counts as w equal ones, and ranks are those of the records."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.special import erf

from rankveil.catalogue import EVERY_KIND, NUMBERS, Measure, Value, get_measure, measures
from rankveil.errors import NotApplicableError
from rankveil.measures._records import evenly, mean_interval
from rankveil.seeds import Seed
from rankveil.summaries.pairwise import Together
from rankveil.views import Column, Side, View

Array = NDArray[np.float64]

HERE = {
    "canonical_correlation",
    "ci_overlap",
    "density_loss",
    "difference_variance",
    "distance_linkage",
    "emd",
    "factor_loss",
    "information_loss",
    "interval_disclosure",
    "linkage_entropy",
    "ml_efficacy",
    "permutation_level",
    "power_mean",
    "probabilistic_linkage",
    "probabilistic_loss",
    "rank_linkage",
    "score",
    "spearman_risk",
    "um",
}
"""Modules of measures that know nothing but two tables of numbers or ranks."""

FAMILY = [each for each in measures().values() if each.function.__module__.rpartition(".")[2] in HERE]
WEIGHTED = [each.id for each in FAMILY if each.weighted]
RANKS = [
    "cm1",
    "cm2",
    "cm3",
    "mutual_information",
    "permutation_level",
    "power_mean",
    "power_mean_loss",
    "spearman_risk",
    "um",
]
OF_RECORDS = [
    "distance_linkage",
    "linkage_entropy",
    "permutation_linkage",
    "probabilistic_linkage",
    "rank_linkage",
]
"""Means over original records of what is found for each."""
PIL = [name for name in WEIGHTED if name.startswith("pil_")]
SAMPLED = [*PIL, "pil", "score_pil", "density_loss", "ci_overlap"]
"""Where it also counts how much was observed, which repeated records would feign."""
REPEATED = sorted({*WEIGHTED} - {*OF_RECORDS, *SAMPLED, "interval_disclosure", "score"})
"""What must be the same for weights and for repeated records."""


def seen(x: Array, y: Array, weight_x: Array | None = None, weight_y: Array | None = None) -> View:
    """Two tables side by side."""
    return View(
        Side(np.asfortranarray(x), weight=weight_x),
        Side(np.asfortranarray(y), weight=weight_y),
        names=tuple("ABCDEF"[: x.shape[1]]),
        original=np.arange(len(x)),
        masked=np.arange(len(y)),
        paired=len(x) == len(y),
        seed=Seed.of(0),
    )


def needed(entry: Measure, view: View | Column) -> list[Any]:
    """What a measure asks for."""
    whole = view._view if isinstance(view, Column) else view
    return [run(need, whole).value if need in measures() else getattr(view, need) for need in entry.needs]


def run(name: str, view: View, **given: Any) -> Value:
    """A measure of a view; of one on columns, the mean over them."""
    entry = get_measure(name)
    provided = {"names": view.names, "rng": Seed.of(1).stream(name), "target": 0}
    if entry.per == "table":
        made = entry(*needed(entry, view), **provided, **given)
        return made if isinstance(made, Value) else Value(float(made))
    parts = [entry(*needed(entry, Column(view, j)), **provided, **given) for j in range(len(view.names))]
    values = [part.value if isinstance(part, Value) else part for part in parts]
    return Value(math.fsum(values) / len(values), {"parts": parts})


def outcome(name: str, view: View, **given: Any) -> float | str:
    """The value of a measure, or why there is none."""
    try:
        return run(name, view, **given).value
    except NotApplicableError as why:
        return str(why)


def tables(n: int, m: int, seed: int) -> tuple[Array, Array]:
    """Columns that depend on each other, some values alike, and the same with noise."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, m)) @ rng.normal(size=(m, m))
    x = np.round(np.exp(z / (1 + z.std(axis=0))), 2) + 0.5
    return x, x + np.round(rng.normal(size=(n, m)), 2) / 4


def repeated(view: View) -> View:
    """The same without weights, every record as often as it weighs."""
    sides = [np.repeat(side.values, side.weight.astype(int), axis=0) for side in view.sides.values()]
    return seen(*sides)


@st.composite
def weighted_views(draw: st.DrawFn, *, least: int = 6, most: int = 14, alike: bool = True) -> View:
    """Small tables with whole weights, the same on both sides if asked."""
    n, m, seed = draw(st.integers(least, most)), draw(st.integers(2, 4)), draw(st.integers(0, 10**6))
    whole = st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(lambda each: np.count_nonzero(each) > m + 1)
    weight = np.array(draw(whole), dtype=float)
    return seen(*tables(n, m, seed), weight, weight if alike else np.array(draw(whole), dtype=float))


def uneven(n: int, *, seed: int = 3) -> Array:
    """Weights as surveys have them."""
    return np.random.default_rng(seed).lognormal(3.0, 0.8, n)


# Moments.


@given(weighted_views(alike=False))
def test_moments_are_those_of_repeated_records(view: View) -> None:
    copies = repeated(view)
    for fact in ("mean", "spread", "correlation", "squares", "cubes"):
        for side in "xy":
            found, wanted = getattr(view, f"{fact}_{side}"), getattr(copies, f"{fact}_{side}")
            assert np.allclose(found, wanted, rtol=1e-12, atol=1e-12), fact
    times = view.sides["x"].weight.astype(int)
    assert np.allclose(np.repeat(view.standard_x, times, axis=0), copies.standard_x, rtol=1e-12, atol=1e-12)


@given(weighted_views())
def test_ranks_are_those_of_the_records(view: View) -> None:
    plain = seen(view.x, view.y)
    for fact in ("order_x", "rank_x", "rank_y", "rank_z", "z", "sorted_x"):
        assert np.array_equal(getattr(view, fact), getattr(plain, fact)), fact
    assert np.array_equal(view.rank_basis_x.r, plain.rank_basis_x.r)
    assert np.array_equal(view.rank_canonical.squared, plain.rank_canonical.squared)


def test_weights_of_a_column_are_those_of_the_records() -> None:
    x, y = tables(9, 3, 0)
    weight = uneven(9)
    column = Column(seen(x, y, weight), 2)
    assert column.weight_x is weight
    assert column.weight_y is None
    assert np.array_equal(column.sorted_weight_x, weight[np.argsort(x[:, 2])])


def test_a_record_of_no_weight_may_lie_anywhere() -> None:
    x, y = tables(20, 3, 1)
    weight = np.append(uneven(19), 0.0)
    far = x.copy()
    far[-1] = 1e300, -1e300, 0.0
    for fact in ("mean", "spread", "correlation", "squares", "cubes"):
        near, found = (getattr(Side(values, weight=weight), fact) for values in (x, far))
        assert np.array_equal(near, found), fact
    for name in REPEATED + PIL + ["pil", "density_loss", "ci_overlap"]:
        assert outcome(name, seen(far, y, weight, weight)) == pytest.approx(outcome(name, seen(x, y, weight, weight)))


def test_weights_that_are_all_0_leave_nobody() -> None:
    x, y = tables(5, 2, 0)
    with pytest.raises(NotApplicableError, match="weight above 0"):
        run("il1", seen(x, y, np.zeros(5), np.zeros(5)))
    assert run("permutation_level", seen(x, y, np.zeros(5))).value == run("permutation_level", seen(x, y)).value


# All measures.


@pytest.mark.parametrize("entry", FAMILY, ids=lambda entry: entry.id)
def test_what_says_that_it_is_weighted_is_and_nothing_else(entry: Measure) -> None:
    x, y = tables(40, 3, 5)
    weight = uneven(40)
    plain, found = run(entry.id, seen(x, y)), run(entry.id, seen(x, y, weight, weight))
    assert entry.weighted == (found.value != plain.value)
    if not entry.weighted:
        assert not any("weight" in need for need in entry.needs)
        assert repr(found.details) == repr(plain.details)


@pytest.mark.parametrize("name", WEIGHTED)
def test_equal_weights_are_none(name: str) -> None:
    x, y = tables(150, 3, 6)
    found, plain = run(name, seen(x, y, np.ones(150), np.ones(150))), run(name, seen(x, y))
    # a regression with weights allows for errors of any variance, also where the weights are the same
    assert found.value == pytest.approx(plain.value, rel=0.1 if name == "ci_overlap" else 1e-10)
    json.dumps(found.details, allow_nan=False, default=lambda each: each.details if isinstance(each, Value) else None)


@pytest.mark.parametrize("name", sorted({*WEIGHTED} - {"pil_quantile", "pil", "score_pil"}))
@pytest.mark.parametrize("unit", [1e-290, 1000.0, 1e290])
def test_the_unit_of_the_weights_does_not_matter(name: str, unit: float) -> None:
    x, y = tables(40, 3, 7)
    weight, other = uneven(40), uneven(40, seed=4)
    wanted = run(name, seen(x, y, weight, other)).value
    assert run(name, seen(x, y, unit * weight, unit * other)).value == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("name", WEIGHTED)
def test_the_order_of_the_records_does_not_matter(name: str) -> None:
    x, y = tables(60, 3, 8)
    weight, other, order = uneven(60), uneven(60, seed=4), np.random.default_rng(0).permutation(60)
    wanted = run(name, seen(x, y, weight, other)).value
    assert run(name, seen(x[order], y[order], weight[order], other[order])).value == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("name", REPEATED)
@settings(max_examples=15)
@given(view=weighted_views())
def test_weights_are_repeated_records(name: str, view: View) -> None:
    assert outcome(name, view) == pytest.approx(outcome(name, repeated(view)), rel=1e-7, abs=1e-12)


@settings(max_examples=25)
@given(weighted_views(alike=False))
def test_losses_of_statistics_take_the_weights_of_each_table(view: View) -> None:
    for name in (
        "loss_means_mae",
        "loss_variances_mse",
        "loss_covariances_mae",
        "il5",
        "loss_commonalities_mae",
        "emd",
    ):
        assert outcome(name, view) == pytest.approx(outcome(name, repeated(view)), rel=1e-7, abs=1e-12), name


@pytest.mark.parametrize("name", ["il1", "il1s", "loss_values_mse", "difference_variance"])
def test_side_by_side_the_weight_is_that_of_the_original(name: str) -> None:
    x, y = tables(30, 3, 2)
    weight = uneven(30)
    wanted = run(name, seen(x, y, weight, weight)).value
    assert run(name, seen(x, y, weight, None)).value == wanted
    assert run(name, seen(x, y, weight, uneven(30, seed=9))).value == wanted


# Losses.


def test_mean_variation_of_five_records() -> None:
    x, y = np.array([[1.0], [2.0], [0.0], [4.0], [0.0]]), np.array([[2.0], [2.0], [5.0], [3.0], [1.0]])
    made = run("il1", seen(x, y, np.array([1.0, 3.0, 9.0, 4.0, 0.0])))
    assert made.value == pytest.approx((1 * 1 + 3 * 0 + 4 / 4) / 8, rel=1e-15)  # an original 0 is left out
    assert made.details["zeros_left_out"] == 1  # the other one stands for nobody
    assert any("1 of the 4 original values are 0" in note for note in made.notes)


def test_values_that_count_and_are_all_0() -> None:
    x, y = np.array([[0.0, 0.0], [3.0, 2.0]]), np.array([[1.0, 1.0], [3.0, 2.0]])
    with pytest.raises(NotApplicableError, match="nothing to divide by"):
        run("il1", seen(x, y, np.array([1.0, 0.0])))


@pytest.mark.parametrize("name", ["pil_mean", "pil_variance", "pil_covariance", "pil_correlation"])
@settings(max_examples=25)
@given(view=weighted_views(alike=False))
def test_probabilistic_losses_are_of_weighted_statistics(name: str, view: View) -> None:
    # the statistics are those of repeated records, but these would feign a larger sample: n' is the same on both sides
    copies = repeated(view)
    entry = get_measure(name)
    sides = copies.sides["y"]
    same = {"sample_y": view.sample_y, "pairs_y": Together(sides, view.sample_y[0])}
    found = entry(*needed(entry, view), names=view.names)
    wanted = entry(*(same.get(need, getattr(copies, need)) for need in entry.needs), names=view.names)
    assert found.value == pytest.approx(wanted.value, abs=1e-6)
    assert found.details["effective_records"] == pytest.approx(view.weight_y.sum() ** 2 / np.sum(view.weight_y**2))


@pytest.mark.parametrize("weight", [[1.0, 1.0, 1.0, 3.0], [0.0, 20.0, 20.0, 20.0], [0.1, 0.2, 0.3, 0.4]])
def test_the_loss_of_a_mean_by_hand(weight: list[float]) -> None:
    x, y, w = np.array([[1.0], [2.0], [3.0], [8.0]]), np.array([[1.0], [2.5], [3.0], [8.5]]), np.array(weight)
    share = w / w.sum()
    before, after = share @ x[:, 0], share @ y[:, 0]
    error = math.sqrt(share @ (x[:, 0] - before) ** 2 * np.sum(share**2))  # 1 / n' is the sum of squared shares
    made = run("pil_mean", seen(x, y, w, w))
    assert made.value == pytest.approx(2 * stats.norm.cdf(abs(after - before) / error) - 1, rel=1e-12)
    assert made.details["records"] == 4
    assert any("4 records count as" in note for note in made.notes)
    assert any("100 or fewer" in note for note in made.notes)


@pytest.mark.parametrize("density", ["simple", "kernel"])
def test_the_loss_of_quantiles_by_hand(density: str) -> None:
    rng = np.random.default_rng(0)
    x, times = np.sort(rng.integers(0, 5000, 300) / 1.0), rng.integers(1, 6, 300)
    y = x + 3.0
    copies, size = np.repeat(x, times), times.sum() ** 2 / np.sum(times**2)
    shares = np.arange(1, 20) / 20
    original, width = np.quantile(copies, shares), x[-1] - x[0]
    if density == "simple":
        inside = [np.sum(np.abs(copies - point) < width / 1000) for point in original]
        height = np.maximum(np.array(inside) / copies.size, 1 / size) / (2 * width / 1000)
    else:
        quartiles = np.quantile(copies, [0.25, 0.75])
        h = 0.9 * min(copies.std(), np.diff(quartiles)[0] / 1.34) * size**-0.2
        height = np.array([np.mean(stats.norm.pdf((copies - point) / h)) / h for point in original])
    losses = erf(3.0 / np.sqrt(2 * shares * (1 - shares) / height**2 / size))
    weight = times.astype(float)
    made = run("pil_quantile", seen(x[:, None], y[:, None], weight, weight), density=density)
    assert list(made.details["per_quantile"].values()) == pytest.approx(losses.tolist(), rel=1e-9)


def test_density_loss_is_that_of_weighted_kernels() -> None:
    x, y = tables(200, 1, 4)
    weights = uneven(200), uneven(200, seed=5)
    grid = np.linspace(min(x.min(), y.min()) - 3, max(x.max(), y.max()) + 3, 40_001)
    heights = []
    for values, weight in zip((x[:, 0], y[:, 0]), weights, strict=True):
        share = weight / weight.sum()
        width = math.sqrt(share @ (values - share @ values) ** 2) * (1 / np.sum(share**2)) ** -0.2
        heights.append(sum(s * stats.norm.pdf(grid, v, width) for s, v in zip(share, values, strict=True)))
    wanted = np.trapezoid(np.abs(heights[0] - heights[1]), grid) / 2
    assert run("density_loss", seen(x, y, *weights)).value == pytest.approx(wanted, abs=1e-5)


def test_emd_carries_weights() -> None:
    x, y = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    # three quarters lie at the origin, then a quarter: a half goes the whole diagonal
    made = run("emd", seen(x, y, np.array([3.0, 1.0]), np.array([2.0, 6.0])))
    assert made.value == pytest.approx(math.sqrt(2) / 2, rel=1e-12)
    line = run("emd", seen(x[:, :1], y[:, :1], np.array([3.0, 1.0]), np.array([2.0, 6.0])))
    assert line.value == pytest.approx(0.5, rel=1e-12)


def test_emd_on_clusters_encloses_the_exact_distance() -> None:
    x, y = tables(300, 3, 3)
    view = seen(x, y, uneven(300), uneven(300, seed=5))
    exact, made = run("emd", view).value, run("emd", view, exact=1, clusters=40)
    low, high = made.details["exact_distance_between"]
    assert low <= exact <= high
    assert made.value == pytest.approx(exact, rel=0.5)
    assert exact != pytest.approx(run("emd", seen(x, y)).value, rel=1e-3)
    one = run("emd", view, exact=1, clusters=1)
    scaled = [(values - x.min(axis=0)) / np.ptp(x, axis=0) for values in (x, y)]
    centres = [
        np.average(values, axis=0, weights=w) for values, w in zip(scaled, (view.weight_x, view.weight_y), strict=True)
    ]
    away = [np.linalg.norm(values - centre, axis=1) for values, centre in zip(scaled, centres, strict=True)]
    width = sum(np.average(each, weights=w) for each, w in zip(away, (view.weight_x, view.weight_y), strict=True))
    assert one.value == pytest.approx(np.linalg.norm(centres[0] - centres[1]), rel=1e-9)
    assert one.details["exact_distance_between"] == pytest.approx([0.0, one.value + width], rel=1e-9)
    # as many clusters as records: nothing is lost
    assert run("emd", view, exact=1, clusters=600).value == pytest.approx(exact, rel=1e-9)


# Risk.


@pytest.mark.parametrize("name", OF_RECORDS)
@settings(max_examples=25)
@given(view=weighted_views())
def test_risks_are_weighted_means_over_the_records(name: str, view: View) -> None:
    entry = get_measure(name)
    part = Column(view, 0) if entry.per == "column" else view
    data = dict(zip(entry.needs, needed(entry, part), strict=True))

    def value(weight: Array | None) -> float:
        return float(entry(*{**data, "weight_x": weight}.values(), names=view.names).value)

    each = np.array([value(one) for one in np.eye(len(view))])
    weight = view.weight_x
    assert value(weight) == pytest.approx(np.sum(weight * each) / np.sum(weight), abs=1e-12)
    assert value(None) == pytest.approx(each.mean(), abs=1e-12)


@settings(max_examples=25)
@given(view=weighted_views())
def test_intervals_by_ranks_are_weighted_means_over_the_records(view: View) -> None:
    first = np.clip(np.ceil(np.abs(view.rank_x - view.rank_y) * 100 / len(view)), 1, 11)
    wanted = np.average(11 - first, axis=0, weights=view.weight_x) / 10
    parts = run("interval_disclosure", view).details["parts"]
    assert [part.details["by_rank"] for part in parts] == pytest.approx(wanted.tolist(), abs=1e-12)


def test_intervals_by_deviation_are_those_of_repeated_records() -> None:
    x, y = tables(30, 2, 11)
    weight = np.random.default_rng(0).integers(0, 4, 30).astype(float)
    view = seen(x, x + (y - x) / 20, weight, weight)
    found, wanted = run("interval_disclosure", view), run("interval_disclosure", repeated(view))
    for one, other in zip(found.details["parts"], wanted.details["parts"], strict=True):
        assert 0 < one.details["by_deviation"] < 1
        assert one.details["by_deviation"] == pytest.approx(other.details["by_deviation"], rel=1e-12)


def test_linkage_of_four_records() -> None:
    x, y = np.array([[1.0], [2.0], [3.0], [10.0]]), np.array([[1.1], [3.1], [2.1], [9.0]])
    made = run("distance_linkage", seen(x, y, np.array([5.0, 1.0, 1.0, 3.0])))
    assert made.value == pytest.approx(8 / 10, rel=1e-15)  # the second and the third change places
    assert made.details["correct"] == made.value
    assert made.details["tied"] == 0.0
    linked = run("rank_linkage", seen(x, x[[0, 1, 2, 2]], np.array([5.0, 1.0, 1.0, 3.0])))
    # masked ranks 1, 2, 3.5 and 3.5: half a rank from the third and from the fourth original
    assert linked.value == pytest.approx(4 * math.log(1.5) / 10, rel=1e-15)
    assert linked.details["twins"] == pytest.approx(0.6, rel=1e-15)
    assert linked.details["distance"]["50 %"] == 0.0
    assert linked.details["distance"]["75 %"] == 0.5


def test_shares_and_medians_beside_the_risk_are_weighted_too() -> None:
    x, y = tables(12, 2, 5)
    y[:6] = np.repeat(x[:6:2], 2, axis=0)  # ties
    weight = uneven(12)
    for name in ("distance_linkage", "probabilistic_linkage"):
        made = run(name, seen(x, y, weight))
        listed = {each["record"]: each["value"] for each in made.details["most_exposed"]}  # all of them
        chance = np.array([listed[i] for i in range(1, 13)])
        assert made.details["correct"] == pytest.approx(weight[chance == 1].sum() / weight.sum(), rel=1e-12)
        tied = (chance > 0) & (chance < 1)
        assert tied.any()
        assert made.details["tied"] == pytest.approx(weight[tied].sum() / weight.sum(), rel=1e-12)
    whole = np.arange(12.0) % 4
    made = run("linkage_entropy", seen(x, y, whole))
    listed = {each["record"]: each["value"] for each in made.details["most_exposed"]}
    candidates = np.repeat([listed[i] for i in range(1, 13)], whole.astype(int))
    assert made.details["candidates"]["median"] == pytest.approx(np.median(candidates), rel=1e-12)


@pytest.mark.parametrize("name", ["linkage_entropy", "probabilistic_linkage"])
def test_a_sample_of_the_originals_keeps_their_weights(name: str) -> None:
    n = 5_200  # more than 25 million pairs
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    y = x + 0.01 * rng.normal(size=(n, 2))
    some = (x[:, 0] > x[:, 1]).astype(float)
    plain, first, rest, made = (run(name, seen(x, y, weight)) for weight in (None, some, 1 - some, 1 + 8 * some))
    sample = evenly(seen(x, y).rank_x, plain.details["originals"])
    parts = np.array([np.sum(some[sample]), np.sum(1 - some[sample])])
    each = np.array([first.value, rest.value])
    assert plain.value == pytest.approx(parts @ each / sample.size, rel=1e-12)
    assert made.value == pytest.approx((9 * parts[0] * each[0] + parts[1] * each[1]) / (parts @ [9, 1]), rel=1e-12)
    (low, high), usual = made.details["interval"], plain.details["interval"]
    assert low < made.value < high
    assert high - low > 1.1 * (usual[1] - usual[0])  # records that weigh little tell little


def test_the_interval_of_a_weighted_mean() -> None:
    values, weight = np.random.default_rng(0).normal(size=(2, 50)) ** 2
    share = weight / weight.sum()
    mean = share @ values
    error = math.sqrt(np.sum(share**2 * (values - mean) ** 2) * 50 / 49 * (1 - 50 / 400))
    low, high = mean_interval(values, population=400, weight=weight)
    assert (low + high) / 2 == pytest.approx(mean, rel=1e-12)
    assert (high - low) / 2 == pytest.approx(1.959963984540054 * error, rel=1e-12)
    assert mean_interval(values, population=400, weight=np.full(50, 7.0)) == pytest.approx(
        mean_interval(values, population=400), rel=1e-12
    )


# A stated use.


def survey_regression(table: Array, weight: Array) -> tuple[Array, Array]:
    """Coefficients of the first column on the others and their covariances, as textbooks write them."""
    design = np.column_stack((np.ones(len(table)), table[:, 1:]))
    bread = np.linalg.inv(design.T @ (weight[:, None] * design))
    slopes = bread @ design.T @ (weight * table[:, 0])
    scores = design * (weight * (table[:, 0] - design @ slopes))[:, None]
    n, p = design.shape
    return slopes, bread @ scores.T @ scores @ bread * n / (n - p)


def test_intervals_of_a_weighted_regression_are_those_of_the_formula() -> None:
    x, y = tables(80, 3, 12)
    x[:, 0] += (1 + x[:, 1]) * np.random.default_rng(1).normal(size=80)  # errors of unequal variance
    y[:, 0] = x[:, 0] + 0.1
    weights = uneven(80), uneven(80, seed=5)
    made = run("ci_overlap", seen(x, y, *weights))
    share = weights[0] / weights[0].sum()
    centre = share @ x
    spread = np.sqrt(share @ (x - centre) ** 2)
    reach = stats.t.ppf(0.975, 80 - 3)
    for side, table, weight in (("original", x, weights[0]), ("masked", y, weights[1])):
        slopes, covariance = survey_regression(table, weight)
        for i, name in enumerate("BC", start=1):
            unit = spread[i] / spread[0]
            half = reach * math.sqrt(covariance[i, i])
            wanted = [(slopes[i] - half) * unit, (slopes[i] + half) * unit]
            assert made.details["coefficients"][name][side] == pytest.approx(wanted, rel=1e-9)
        record = np.append(1.0, centre[1:])
        half = reach * math.sqrt(record @ covariance @ record)
        middle = record @ slopes - centre[0]
        wanted = [(middle - half) / spread[0], (middle + half) / spread[0]]
        assert made.details["intercept"][side] == pytest.approx(wanted, rel=1e-9)


def test_a_weighted_regression_on_columns_that_depend_on_each_other() -> None:
    x, _ = tables(60, 4, 13)
    weight = np.append(np.zeros(5), uneven(55))
    x[:, 3] = x[:, 1] + 2 * x[:, 2]
    x[:5, 3] = 0.0  # who stands for nobody does not count
    made = run("ci_overlap", seen(x, x, weight, weight))
    assert made.value == 1.0
    assert made.details["left_out"] in (["B"], ["C"], ["D"])
    masked = x.copy()
    masked[:, 1:] = 3.0
    lost = run("ci_overlap", seen(x, masked, weight, weight))
    assert lost.value == 0.0
    x[5:, 1:] = 7.0
    with pytest.raises(NotApplicableError, match="constant"):
        run("ci_overlap", seen(x, masked, weight, weight))


def test_an_exact_weighted_fit_has_intervals_of_no_length() -> None:
    x, _ = tables(40, 3, 14)
    x[:, 0] = 1 + x[:, 1] - 2 * x[:, 2]
    made = run("ci_overlap", seen(x, x, uneven(40), uneven(40)))
    assert made.value == 1.0
    assert made.details["explained"] == {"original": 1.0, "masked": 1.0}
    low, high = made.details["coefficients"]["B"]["original"]
    assert low == high


# Kinds.


def test_what_looks_at_ranks_alone_takes_nominal_columns() -> None:
    takes = {each.id for each in FAMILY if each.kinds == EVERY_KIND}
    linkage = {"rank_linkage", "permutation_linkage", "probabilistic_linkage", "linkage_entropy"}
    assert takes == {*RANKS, *linkage}
    assert {each.kinds for each in FAMILY if each.id not in takes} == {NUMBERS}
    assert not any(get_measure(name).weighted for name in RANKS)


def test_what_takes_nominal_columns_asks_for_nothing_but_ranks() -> None:
    by_rank = ("rank_", "order_", "euclidean_ranks", "maximum_ranks", "paired", "rows", "weight_")
    for entry in FAMILY:
        if entry.kinds == EVERY_KIND and entry.id != "um":
            assert all(need.startswith(by_rank) for need in entry.needs), entry.id


def test_um_of_values_has_no_meaning_for_nominal_columns() -> None:
    x, y = tables(30, 3, 0)
    kinds = ("numeric", "nominal", "ordinal")
    assert run("um", seen(x, y), kinds=kinds).value == run("um", seen(x, y)).value
    with pytest.raises(NotApplicableError, match="nominal"):
        run("um", seen(x, y), kinds=kinds, basis="values")
    assert run("um", seen(x, y), kinds=("numeric",) * 3, basis="values").value >= 0
