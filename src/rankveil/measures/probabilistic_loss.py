"""Probabilistic information loss: how unlikely a statistic of the release would be in a random sample of the original.

The original is the population and the release a sample of n' records. With t the statistic, and Var(t) what it would be
under simple random sampling,

    pil(t) = 2 P(0 <= N(0,1) <= |t(Y) - t(X)| / sqrt(Var(t)))

(Mateo-Sanz, Domingo-Ferrer and Sebe 2005, expression (1) and section 4.4). Moments are those of standardised columns,
z = (x - mean_x) / sd_x, and divide by the number of records: whatever the columns' units, nothing overflows.

Where Var(t) is 0, all is lost as soon as t has changed, so a change must be told from rounding. A value is known to a
few units in the last place, which is eps (1 + |mean| / sd) in standardised columns; what lies within 4 of these counts
as 0.

Weights weigh the statistics of both tables. How exactly those of the release are known depends on how much was
observed, and weights add nothing to that: n' is then Kish's effective number of records, (sum w)^2 / sum w^2.

>>> import numpy as np, pandas as pd, rankveil as rv
>>> x = pd.DataFrame({"A": np.arange(200.0), "B": np.arange(200.0) ** 2})
>>> schema = rv.Schema(roles={"A": "confidential", "B": "confidential"})
>>> made = rv.audit(x, x + [4.0, 0.0], measures=["pil_mean"], schema=schema)  # 0.98 standard errors
>>> made.values["pil_mean"].details["per_attribute"]
{'A': 0.673, 'B': 0.0}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Value, measure
from rankveil.errors import NotApplicableError, listing
from rankveil.execute import in_threads
from rankveil.measures._densities import ROUNDING, SHARES, Estimate, Extent, Ordered, kernel_density, simple_density
from rankveil.measures.information_loss import in_common
from rankveil.multivariate import FARTHEST
from rankveil.summaries.pairwise import PairMoments, Sample

Flags = NDArray[np.bool_]

_LARGE = 100
"""Records above which statistics are close enough to normal (Kendall et al. 1994, as the paper cites it)."""

_BLURRED = 0.01
"""Standard errors that rounding may hide without a word."""

_EXTREME = 0.95
"""Correlations beyond this, whose sampling distribution is far from normal (Remark 4.1)."""

_WORST = 20

_FACTS: dict[str, Any] = {
    "source": "Mateo-Sanz, Domingo-Ferrer and Sebe 2005",
    "family": "loss",
    "better": "lower",
    "mapping": False,
    "equal": False,
    "weighted": True,
    "emptied": "lost",
}
_BY_COLUMN: dict[str, Any] = {**_FACTS, "records": "by column"}
_BY_PAIR: dict[str, Any] = {**_FACTS, "records": "by pair"}


class _Sample(NamedTuple):
    """How many records the release has for each column or pair of columns, and as how many they count: n'."""

    records: NDArray[np.int64]
    size: Array
    weighted: bool

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> _Sample:
        """Of the columns of the masked table."""
        records, sizes, weighted = zip(*samples, strict=True)
        return cls(np.array(records), np.array(sizes), any(weighted))

    @classmethod
    def of_pairs(cls, y: PairMoments, a: NDArray[np.intp], b: NDArray[np.intp]) -> _Sample:
        """Of pairs of columns of the masked table."""
        return cls(y.records[a, b], y.size[a, b], y.weighted)

    @property
    def details(self) -> dict[str, Any]:
        """For the details of a value."""
        own = {"records": _span(self.records)}
        return {**own, **({"effective_records": _span(self.size)} if self.weighted else {})}

    @property
    def notes(self) -> list[str]:
        """What to say of weights, and of a small sample."""
        said, few = [], int(np.argmin(self.size))
        records, size = int(self.records[few]), float(self.size[few])
        if self.weighted:
            said.append(f"weighted: {records} records count as {size:.4g} of equal weight in the variances")
        if size <= _LARGE:
            has = f"counts as {size:.4g}" if self.weighted else f"has {records}"
            doubt = f"with {_LARGE} or fewer, normal sampling distributions are doubtful"
            said.append(f"the release {has} records: {doubt}")
        return said


def _span(numbers: NDArray[Any]) -> Any:
    """The number that all have, or the fewest and the most."""
    low, high = numbers.min().item(), numbers.max().item()
    return low if low == high else [low, high]


@measure(title="Probabilistic information loss of means", bounds=(0.0, 1.0), **_BY_COLUMN)
def pil_mean(
    mean_x: Array,
    spread_x: Array,
    mean_y: Array,
    spread_y: Array,
    sample_y: Sequence[Sample],
    *,
    names: tuple[str, ...],
) -> Value:
    """How unlikely each mean would be in a random sample of the original: the mean of pil over the attributes.

        pil = 2 P(0 <= N(0,1) <= |mean(Y) - mean(X)| / sqrt(Var)),  Var = mu_2 / n'

    mu_2 is the variance in the original, n' the number of released records. Where Var is 0, pil is 0 if nothing
    changed, else 1.
    """
    flat = _flat(mean_x, spread_x)
    rounding = np.sum([ROUNDING * np.abs(each) for each in (mean_x, spread_x, mean_y, spread_y)], axis=0)
    with np.errstate(over="ignore"):  # a difference too large for a number is a loss of 1
        change = _beyond(mean_y - mean_x, rounding) / np.where(flat, 1.0, spread_x)
    sample = _Sample.of(sample_y)
    losses = _losses(change, np.where(flat, 0.0, 1.0), sample)
    return _of_attributes(losses, names, sample, notes=_blurred(_known(mean_x, spread_x), names, sample))


@measure(title="Probabilistic information loss of variances", bounds=(0.0, 1.0), **_BY_COLUMN)
def pil_variance(
    mean_x: Array,
    spread_x: Array,
    fourth_x: Array,
    mean_y: Array,
    spread_y: Array,
    sample_y: Sequence[Sample],
    *,
    names: tuple[str, ...],
) -> Value:
    """How unlikely each variance would be in a random sample of the original: the mean of pil over the attributes.

        pil = 2 P(0 <= N(0,1) <= |mu_2(Y) - mu_2(X)| / sqrt(Var)),  Var = (mu_4 - mu_2^2) / n'

    mu_r are central moments of the original, n' the number of released records. Where Var is 0, pil is 0 if nothing
    changed, else 1.
    """
    flat, ratio = _flat(mean_x, spread_x), _ratio(mean_x, spread_x, mean_y, spread_y)
    known_x, known_y = _known(mean_x, spread_x), _known(mean_y, spread_y)
    change = _beyond(ratio**2 - np.where(flat, 0.0, 1.0), known_x + ratio**2 * known_y)
    variance = np.where(flat, 0.0, _beyond(fourth_x - 1.0, known_x * (fourth_x + 1.0)))
    sample = _Sample.of(sample_y)
    losses = _losses(change, variance, sample)
    return _of_attributes(losses, names, sample, notes=_blurred(known_x, names, sample))


@measure(title="Probabilistic information loss of covariances", bounds=(0.0, 1.0), **_BY_PAIR)
def pil_covariance(pairs_x: PairMoments, pairs_y: PairMoments, *, names: tuple[str, ...]) -> Value:
    """How unlikely each covariance would be in a random sample of the original: the mean of pil over the pairs.

        pil = 2 P(0 <= N(0,1) <= |mu_11(Y) - mu_11(X)| / sqrt(Var)),  Var = (mu_22 - mu_11^2) / n'

    mu_rs are central moments of two attributes of the original, n' the number of released records. Where Var is 0,
    pil is 0 if nothing changed, else 1.
    """
    a, b, notes = _pairs(pairs_x, pairs_y)
    x, y = _Both.of(pairs_x, a, b), _Both.of(pairs_y, a, b)
    product = _ratio(x.mean_a, x.spread_a, y.mean_a, y.spread_a) * _ratio(x.mean_b, x.spread_b, y.mean_b, y.spread_b)
    rho = np.where(x.flat, 0.0, x.correlation)  # the product is 0 where a masked column is constant
    change = _beyond(product * y.correlation - rho, x.known + product * y.known)
    second = pairs_x.squares[a, b]
    variance = np.where(x.flat, 0.0, _beyond(second - rho**2, x.known * (second + rho**2)))
    sample = _Sample.of_pairs(pairs_y, a, b)
    notes += _blurred_pairs(pairs_x, names, sample)
    return _of_all_pairs(_losses(change, variance, sample), a, b, sample, names=names, notes=notes)


@measure(title="Probabilistic information loss of correlations", bounds=(0.0, 1.0), **_BY_PAIR)
def pil_correlation(pairs_x: PairMoments, pairs_y: PairMoments, *, names: tuple[str, ...]) -> Value:
    """How unlikely each correlation would be in a random sample of the original: the mean of pil over the pairs.

        pil = 2 P(0 <= N(0,1) <= |rho(Y) - rho(X)| / sqrt(Var)),
        n' Var = mu_22 + rho^2 (mu_40 + mu_04 + 2 mu_22) / 4 - rho (mu_31 + mu_13)

    mu_rs are moments of two standardised attributes of the original, rho their correlation, n' the number of released
    records: the paper's expression multiplied out, so that it holds for a covariance of 0 too. The correlations of a
    constant column count as 0. Where Var is 0, pil is 0 if nothing changed, else 1.
    """
    a, b, notes = _pairs(pairs_x, pairs_y)
    x, y = _Both.of(pairs_x, a, b), _Both.of(pairs_y, a, b)
    rho = np.where(x.flat, 0.0, x.correlation)
    change = _beyond(np.where(y.flat, 0.0, y.correlation) - rho, x.known + y.known)
    second, third = pairs_x.squares[a, b], pairs_x.cubes[a, b] + pairs_x.cubes[b, a]
    plus = second + rho**2 * (pairs_x.fourth[a, b] + pairs_x.fourth[b, a] + 2 * second) / 4
    variance = np.where(x.flat, 0.0, _beyond(plus - rho * third, x.known * (plus + np.abs(rho * third))))
    sample = _Sample.of_pairs(pairs_y, a, b)
    notes += [*_near_one(x.correlation), *_blurred_pairs(pairs_x, names, sample)]
    if x.flat.any() or y.flat.any():
        notes.append("the correlations of a constant column count as 0")
    return _of_all_pairs(_losses(change, variance, sample), a, b, sample, names=names, notes=notes)


@measure(title="Probabilistic information loss of quantiles", bounds=(0.0, 1.0), **_BY_COLUMN)
def pil_quantile(
    sorted_x: Array,
    sorted_y: Array,
    sample_y: Sequence[Sample],
    sorted_weight_x: Array | None = None,
    sorted_weight_y: Array | None = None,
    *,
    density: Annotated[
        Literal["simple", "kernel"],
        "density at a quantile: share of records within a thousandth of the range, or a kernel estimate",
    ] = "simple",
    names: tuple[str, ...],
) -> Value:
    """How unlikely the quantiles from 5 % to 95 % would be in a random sample of the original: the mean of pil.

        pil = 2 P(0 <= N(0,1) <= |Q(Y) - Q(X)| / sqrt(Var)),  Var = q (1 - q) / (n' f(Q)^2)

    Q is the quantile at q = 0.05, 0.10, ..., 0.95, f the density of the original there, and n' the number of released
    records. Where Var is 0, pil is 0 if nothing changed, else 1.

    The simple density is the share of records within range / 1000 of the quantile, divided by the width of that
    interval, and never less than one record's worth. The kernel one is normal, its bandwidth Silverman's
    0.9 min(sd, interquartile range / 1.34) n^(-1/5). With weights, n is the effective number of original records.
    """
    estimate = {"simple": simple_density, "kernel": kernel_density}[density]
    sample = _Sample.of(sample_y)

    def column(j: int) -> tuple[Array, int]:
        x = Ordered.of(sorted_x[:, j], None if sorted_weight_x is None else sorted_weight_x[:, j])
        y = Ordered.of(sorted_y[:, j], None if sorted_weight_y is None else sorted_weight_y[:, j])
        return _quantile_losses(x, y, estimate, _Sample(sample.records[j], sample.size[j], sample.weighted))

    made = in_threads(column, range(sorted_x.shape[1]), size=sorted_x.size)
    losses, lifted = np.array([each for each, _ in made]), sum(count for _, count in made)
    notes = []
    if lifted:
        notes.append(f"the density at {lifted} of {losses.size} quantiles is below one record's worth: raised to that")
    value = _of_attributes(losses.mean(axis=1), names, sample, notes=notes)
    by_share = {f"{100 * q:.0f}%": float(loss) for q, loss in zip(SHARES, losses.mean(axis=0), strict=True)}
    return Value(value.value, {**value.details, "per_quantile": by_share, "one_record": lifted}, value.notes)


@measure(title="Probabilistic information loss", bounds=(0.0, 100.0), **_FACTS)
def pil(
    pil_quantile: float,
    pil_mean: float,
    pil_variance: float,
    pil_covariance: float,
    pil_correlation: float,
) -> Value:
    """100 times the mean of the losses of quantiles, means, variances, covariances and correlations.

        pil = 100 (pil_quantile + pil_mean + pil_variance + pil_covariance + pil_correlation) / 5

    Each is the mean of 2 P(0 <= N(0,1) <= |t(Y) - t(X)| / sqrt(Var t)) over the statistics t of its kind, with the
    variance that t has in a simple random sample of n' records of X, n' the number of records of Y.
    """
    parts = {
        "pil_quantile": pil_quantile,
        "pil_mean": pil_mean,
        "pil_variance": pil_variance,
        "pil_covariance": pil_covariance,
        "pil_correlation": pil_correlation,
    }
    return Value(100 * sum(parts.values()) / len(parts), {"parts": parts})


def _losses(change: Array, variance: Array, sample: _Sample) -> Array:
    """Expression (1) for changes of statistics whose variance is this one divided by the number of records."""
    from scipy.special import erf

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # no variance: any change is a loss of 1
        standard = np.abs(change) * np.sqrt(sample.size / (2 * np.maximum(variance, 0.0)))
    found: Array = np.where(change == 0, 0.0, erf(standard))
    return found


def _beyond(value: Array, rounding: Array) -> Array:
    """The value, or 0 where it is no larger than rounding."""
    found: Array = np.where(np.abs(value) > rounding, value, 0.0)
    return found


def _flat(mean: Array, spread: Array) -> Flags:
    """Which columns are constant up to rounding: group means of 0.1 differ in their last digit."""
    return np.asarray(spread <= ROUNDING * np.abs(mean))


def _known(mean: Array, spread: Array) -> Array:
    """How exactly the standardised columns are known."""
    flat = _flat(mean, spread)
    return ROUNDING * (1.0 + np.where(flat, 0.0, np.abs(mean) / np.where(flat, 1.0, spread)))


def _ratio(mean_x: Array, spread_x: Array, mean_y: Array, spread_y: Array) -> Array:
    """sd_y / sd_x; 0 for a constant masked column, and 1 for another one whose original is constant."""
    flat_x, flat_y = _flat(mean_x, spread_x), _flat(mean_y, spread_y)
    with np.errstate(over="ignore"):
        ratio = np.where(flat_x, 1.0, spread_y / np.where(flat_x, 1.0, spread_x))
    found: Array = np.where(flat_y, 0.0, np.minimum(ratio, FARTHEST))
    return found


def _pairs(x: PairMoments, y: PairMoments) -> tuple[NDArray[np.intp], NDArray[np.intp], list[str]]:
    """The first and the second attribute of each pair, and what is said of pairs that have no records in common."""
    attributes = len(x.correlation)
    if attributes < 2:
        raise NotApplicableError("there is one column only, so no pair of columns")
    a, b = np.triu_indices(attributes, k=1)
    there, notes = in_common(x, y, a, b)
    return a[there], b[there], list(notes)


class _Both(NamedTuple):
    """What is known of pairs of columns in one of the tables."""

    mean_a: Array
    mean_b: Array
    spread_a: Array
    spread_b: Array
    correlation: Array

    @classmethod
    def of(cls, pairs: PairMoments, a: NDArray[np.intp], b: NDArray[np.intp]) -> _Both:
        """Of these pairs."""
        ends = (pairs.mean[a, b], pairs.mean[b, a], pairs.spread[a, b], pairs.spread[b, a])
        return cls(*ends, pairs.correlation[a, b])

    @property
    def flat(self) -> Flags:
        """Where one of the columns is constant."""
        return _flat(self.mean_a, self.spread_a) | _flat(self.mean_b, self.spread_b)

    @property
    def known(self) -> Array:
        """How exactly products of two standardised columns are known."""
        found: Array = _known(self.mean_a, self.spread_a) + _known(self.mean_b, self.spread_b)
        return found


def _blurred(known: Array, names: Sequence[str], sample: _Sample) -> list[str]:
    """What to say of columns far from 0 beside their spread, like 1e12 and 1."""
    called = _called(names, len(known))
    columns = [called[j] for j in np.flatnonzero(known * np.sqrt(sample.size) > _BLURRED)]
    if not columns:
        return []
    return [f"{listing(columns)}: so little spread beside the values' size that small changes are lost in rounding"]


def _blurred_pairs(x: PairMoments, names: Sequence[str], sample: _Sample) -> list[str]:
    """The same where columns are taken in pairs."""
    known = np.diag(_known(x.mean, x.spread))
    return _blurred(known, names, _Sample(sample.records, sample.size.max(keepdims=True), sample.weighted))


def _near_one(correlation: Array) -> list[str]:
    """What to say of original correlations near -1 or 1."""
    count = int(np.count_nonzero(np.abs(correlation) > _EXTREME))
    if count == 0:
        return []
    pairs = "1 pair of columns has" if count == 1 else f"{count} pairs of columns have"
    return [f"{pairs} an original correlation near -1 or 1, where the loss of correlation comes out too high"]


def _called(names: Sequence[str], attributes: int) -> list[str]:
    """The columns' names, or their numbers from 1 where arrays were given without names."""
    return list(names) or [str(j + 1) for j in range(attributes)]


def _of_attributes(losses: Array, names: Sequence[str], sample: _Sample, *, notes: Sequence[str] = ()) -> Value:
    """The mean over the attributes, and each of them."""
    each = dict(zip(_called(names, len(losses)), losses.tolist(), strict=True))
    return Value(float(losses.mean()), {"per_attribute": each, **sample.details}, (*sample.notes, *notes))


def _of_all_pairs(
    losses: Array,
    a: NDArray[np.intp],
    b: NDArray[np.intp],
    sample: _Sample,
    *,
    names: Sequence[str],
    notes: Sequence[str] = (),
) -> Value:
    """The mean over the pairs, and those that lost most."""
    called = _called(names, int(b.max()) + 1)
    worst = np.argsort(-losses, kind="stable")[:_WORST]
    each = [{"a": called[a[i]], "b": called[b[i]], "value": float(losses[i])} for i in worst]
    details = {"per_pair": each, "pairs": len(losses), **sample.details}
    return Value(float(losses.mean()), details, (*sample.notes, *notes))


def _quantile_losses(x: Ordered, y: Ordered, estimate: Estimate, sample: _Sample) -> tuple[Array, int]:
    """The loss of each quantile of a column, and for how many the density had to be lifted to one record's worth."""
    original, masked = x.quantiles(), y.quantiles()
    with np.errstate(over="ignore"):
        change = _beyond(masked - original, ROUNDING * np.abs(original) + ROUNDING * np.abs(masked))
    within = Extent(x.column)
    if within.flat:
        return np.where(change == 0, 0.0, 1.0), 0
    density, least = estimate(x, within, original)
    moved = np.where(change == 0, 0.0, within.length(original, masked))
    variance = SHARES * (1 - SHARES) / np.maximum(density, least) ** 2
    return _losses(moved, variance, sample), int(np.count_nonzero(density < least))
