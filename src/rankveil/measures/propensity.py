"""Propensity: can a model tell the masked records from the original ones?

The records of both tables are merged and T = 0 (original) or 1 (masked) is explained by the attributes. Where the
fitted p_i all are near the share c of masked records, the model cannot tell one table from the other.

>>> import numpy as np
>>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
>>> propensity(x, x[::-1], model="linear").value
0.0
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EVERY_KIND, Array, Range, Value, measure
from rankveil.errors import NotApplicableError
from rankveil.execute import in_threads, one_core_algebra
from rankveil.measures._indicators import Design, designed
from rankveil.multivariate import standardised
from rankveil.seeds import Seed, Stream

Rows = NDArray[np.intp]

_RIDGE = 1e-6
"""Half of this times the squared coefficients is taken off the log-likelihood, so that tables which the model tells
apart completely have a solution too; elsewhere it changes nothing that shows."""

_DEPENDENT = 1e-10
"""Terms, or sums of terms, with less than this part of the largest variance add nothing to the others."""

_ROUNDS, _HALVINGS = 200, 30
_CONVERGED = 1e-13
"""Gain of likelihood per record, after which another step would change nothing: Newton's steps square the rest."""
_ROUNDING = 1e-12
"""Of the likelihood per record: what a step may seem to lose near the end."""
_AT_ONCE = 4_096
_CELLS = 30_000_000
"""Terms times records that the regression holds in memory: 240 MB."""
_NORMAL_95 = 1.959963984540054
_FOREST_MOST = 5_000
_FOLDS, _TREES, _SHUFFLES = 5, 50, 5
_MANY = 200
"""Records per coefficient from which on the mean under permutation is its limit, to a few percent."""


@measure(
    title="Propensity score",
    source="Woo, Reiter, Oganian and Karr 2009; Snoke, Raab, Nowok, Dibben and Slavkovic 2018",
    family="utility",
    better="lower",
    bounds=(0.0, 0.25),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def propensity(
    x: Array,
    y: Array,
    *,
    model: Annotated[
        Literal["quadratic", "linear", "forest"],
        "logistic regression on attributes, squares and products, or on attributes alone; or cross-fitted trees",
    ] = "quadratic",
    most: Annotated[int, Range(2), "records of a table above which that many are drawn"] = 100_000,
    rng: Stream | None = None,
    names: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
) -> Value:
    """Mean of (p_i - c)^2 over the merged records, p_i the fitted chance that record i is a masked one, c their share.

    0: the model cannot tell the tables apart; c (1 - c), which is 1/4 for tables of the same size: it always can.
    `ratio` is the value over the one `expected` of two samples of one population, by every model: its mean over
    permutations of T, which is 1 for perfect synthetic data too. For the regression with k coefficients and N records
    it is (k - 1) c (1 - c) / (N - 1) and a rest that vanishes with many records: T is permuted and the model fitted
    again where there are fewer than 200 records per coefficient. Below 1: the masked records are nearer to the original
    ones than another sample would be, as they are with little noise. (Snoke et al. take the original as fixed and the
    masked records as draws from its distribution, which gives (1 - c) times that: half, where both have as many.)

    Nominal attributes are indicators of their categories, and products are those of indicators with numbers and with
    indicators of other attributes. Of one with more than 20 categories those with fewer than 10 records, and all but
    the 50 most frequent (fewer where many attributes are nominal: 500 in all), are taken as one, and it is in no
    products; products that would bring the model above 500 terms are left out, the largest first, and so are those of
    two columns of numbers if there would be more than 1,000. Notes say what was.
    Trees take ordinal and nominal attributes by their codes.
    """
    rng = Seed.of(0).stream("propensity") if rng is None else rng
    seen = () if model == "forest" else kinds
    design = designed(x, y, kinds=seen, names=names, used=min(most / max(len(x), len(y)), 1.0))
    terms = design.terms(quadratic=model == "quadratic")
    limit = min(most, _FOREST_MOST if model == "forest" else max(_CELLS // (2 * terms), 2))
    rows_x, rows_y, notes = _drawn(len(x), len(y), limit, rng)
    table = _merged(
        design.x if rows_x is None else design.x[rows_x], design.y if rows_y is None else design.y[rows_y], design
    )
    made = _forest(table, rng) if model == "forest" else _logistic(table, rng, quadratic=model == "quadratic")
    ratio = made.value / made.expected if made.expected > 0 else None
    details: dict[str, Any] = {"model": model, "expected": made.expected, "ratio": ratio, "interval": made.interval}
    details |= {"records": len(table.t), "masked_share": table.share} | made.details
    if design.pooled:
        details["taken_as_one"] = {name: asdict(part) for name, part in design.pooled.items()}
    return Value(made.value, details, (*notes, *design.notes, *made.notes))


def _drawn(n: int, m: int, most: int, rng: Stream) -> tuple[Rows | None, Rows | None, tuple[str, ...]]:
    """The rows of both tables to look at (None: all); the same rows where the tables have as many."""
    if max(n, m) <= most:
        return None, None, ()
    rows_x = np.sort(rng.order(n)[:most]) if n > most else None
    rows_y = rows_x if n == m else (np.sort(rng.order(m)[:most]) if m > most else None)
    return rows_x, rows_y, (f"of tables with {n} and {m} records, at most {most} of each are used, drawn by the seed",)


@dataclass(frozen=True, eq=False)
class _Merged:
    """The records of both tables in units of all of them, and which are masked ones."""

    z: Array
    t: Array
    owner: Rows
    """The attribute that each term is of."""
    design: Design

    @property
    def share(self) -> float:
        """The share of masked records."""
        return float(self.t.mean())


@dataclass(frozen=True, eq=False)
class _Fit:
    value: float
    expected: float
    interval: list[float]
    details: dict[str, Any]
    notes: tuple[str, ...] = ()


def _merged(x: Array, y: Array, design: Design) -> _Merged:
    # each table in the order of its contents, so that the order of its rows does not show in the last digits, which
    # decide about terms that nearly depend on others, nor in the draws
    values, owner = design.expanded(np.asfortranarray(np.vstack([side[np.lexsort(side.T)] for side in (x, y)])))
    z = standardised(values).z
    varies = z.any(axis=0)
    if not varies.any():
        raise NotApplicableError("; ".join(("all columns are constant, and the same in both tables", *design.notes)))
    z = np.ascontiguousarray(z[:, varies])
    return _Merged(z, np.repeat((0.0, 1.0), (len(x), len(y))), owner[varies], design)


# Logistic regression.


@one_core_algebra()
def _logistic(table: _Merged, rng: Stream, *, quadratic: bool) -> _Fit:
    terms, said = _terms(table) if quadratic else (table.z, ())
    q = _design(terms)
    c, (n, size) = table.share, q.shape
    fitted, information = _newton(q, table.t)
    p = _chance(fitted)
    squares = (p - c) ** 2
    value = min(float(squares.mean()), 0.25)
    error = _standard_error(q, table, p, squares, information)
    notes = list(said)
    if np.all((fitted > 0) == (table.t > 0)):
        notes.append("the model tells the tables apart completely")
    if size > n / 10:
        notes.append(f"the model has {size} coefficients for {n} records: it will find differences by chance")
    details = {"coefficients": size, "dependent_terms_left_out": terms.shape[1] + 1 - size, "ridge": _RIDGE}
    details |= {"standard_error": error, "interval_method": "influence function, 95 %"}
    expected, details["permutations"] = _expected(q, table.t, rng)
    return _Fit(value, expected, _interval(value, error), details, tuple(notes))


def _expected(q: Array, t: Array, rng: Stream) -> tuple[float, int]:
    """The mean of the value when T is permuted, and how many permutations were fitted for it.

    The first step towards a fit has the value |Q' (t - c)|^2 / N^2, whose mean is (k - 1) c (1 - c) / (N - 1) exactly;
    so only what the fit adds to that is averaged over permutations, which takes few of them.
    """
    c, (n, size) = float(t.mean()), q.shape
    first = (size - 1) * c * (1 - c) / (n - 1)
    if n >= _MANY * size:
        return first, 0
    added = []
    for _ in range(_SHUFFLES):
        shuffled = t[rng.order(t.size)]
        value = min(float(np.mean((_chance(_newton(q, shuffled)[0]) - c) ** 2)), 0.25)
        added.append(value - float(np.sum((q[:, 1:].T @ (shuffled - c)) ** 2)) / n**2)
    return first + math.fsum(added) / _SHUFFLES, _SHUFFLES


def _terms(table: _Merged) -> tuple[Array, tuple[str, ...]]:
    """The attributes, their squares and pairwise products, and which of those are left out."""
    z, (taken, notes) = table.z, table.design.products
    a, b = np.triu_indices(z.shape[1])
    asked = taken[table.owner[a], table.owner[b]]
    a, b = a[asked], b[asked]
    terms = np.empty((len(z), z.shape[1] + a.size), order="F")
    terms[:, : z.shape[1]] = z
    for k, (i, j) in enumerate(zip(a, b, strict=True), start=z.shape[1]):
        np.multiply(z[:, i], z[:, j], out=terms[:, k])
    return terms, notes


def _design(terms: Array) -> Array:
    """A column of 1, and uncorrelated columns of variance 1 that span the terms around their means."""
    standard = standardised(terms).z  # a square may be constant: that of a column of two values
    values, vectors = np.linalg.eigh(_products(standard, np.ones(len(terms))) / len(terms))
    kept = values > _DEPENDENT * values[-1]
    return np.column_stack((np.ones(len(terms)), standard @ (vectors[:, kept] / np.sqrt(values[kept]))))


def _products(q: Array, weight: Array) -> Array:
    """The weighted sum of q_i q_i', some thousand records at a time: they stay in the cache."""

    def part(start: int) -> Array:
        some = slice(start, start + _AT_ONCE)
        made: Array = (q[some] * weight[some, None]).T @ q[some]
        return made

    total = np.zeros((q.shape[1], q.shape[1]))
    for made in in_threads(part, range(0, len(q), _AT_ONCE), size=q.size):  # added in the order of the records
        total += made
    return total


def _chance(predictor: Array) -> Array:
    """1 / (1 + e^-predictor)."""
    from scipy.special import expit

    found: Array = expit(predictor)
    return found


def _newton(q: Array, t: Array) -> tuple[Array, Array]:
    """The linear predictor of greatest likelihood (less a tiny ridge) and the information there.

    Newton's steps, halved where a whole one would not help.
    """
    ridge = np.full(q.shape[1], _RIDGE)
    ridge[0] = 0.0
    coefficients = np.zeros(q.shape[1])
    coefficients[0] = math.log(t.mean() / (1 - t.mean()))
    sign = 1 - 2 * t

    def loss(tried: Array) -> tuple[float, Array]:
        predictor = q @ tried
        return float(np.logaddexp(0.0, sign * predictor).sum() + (ridge * tried**2).sum() / 2), predictor

    now, predictor = loss(coefficients)
    for _ in range(_ROUNDS):
        p = _chance(predictor)
        information = _products(q, p * (1 - p)) + np.diag(ridge)
        slope = q.T @ (t - p) - ridge * coefficients
        step = np.linalg.lstsq(information, slope, rcond=None)[0]
        before = now
        for halved in range(_HALVINGS):
            now, predictor = loss(coefficients + step / 2**halved)
            if now <= before + _ROUNDING * len(t):
                break
        coefficients = coefficients + step / 2**halved
        if float(slope @ step) <= _CONVERGED * len(t):
            break
    return predictor, information


def _standard_error(q: Array, table: _Merged, p: Array, squares: Array, information: Array) -> float:
    """Of the value, when the records of both tables are independent draws: by what one record more would change.

    That is (p_i - c)^2, and what it does to all others through the coefficients: D' H^-1 q_i (t_i - p_i), with H the
    information and D the slope of the value.
    """
    slope = q.T @ (2 * (p - table.share) * p * (1 - p))
    pull = q @ np.linalg.lstsq(information, slope, rcond=None)[0]
    return _error_of_mean(squares + pull * (table.t - p), table.t)


def _error_of_mean(influence: Array, t: Array) -> float:
    """The standard error of the mean of what each record adds, the sizes of both tables given."""
    parts = [influence[t == side] for side in (0.0, 1.0)]
    return math.sqrt(sum(part.size * float(part.var()) for part in parts)) / t.size


def _interval(value: float, error: float) -> list[float]:
    """95 % around the value, as far as values can be."""
    return [max(value - _NORMAL_95 * error, 0.0), min(value + _NORMAL_95 * error, 0.25)]


# Trees.


def _forest(table: _Merged, rng: Stream) -> _Fit:
    """Trees whose scores for a record come from those that did not see it, nor any record equal to it."""
    order = np.lexsort((table.t, *table.z.T))  # so that the draws belong to the contents, not to the rows
    z, t = table.z[order], table.t[order]
    fresh = np.concatenate(([True], np.any(z[1:] != z[:-1], axis=1)))
    record = np.cumsum(fresh) - 1
    folds = (rng.order(int(record[-1]) + 1) % _FOLDS)[record]
    if np.unique(folds).size < 2:
        raise NotApplicableError("too few different records to fit trees on some and score the others")
    squares = (_scores(z, t, folds, rng) - t.mean()) ** 2
    value = float(squares.mean())
    shuffled = [t[rng.order(t.size)] for _ in range(_SHUFFLES)]
    chance = [float(np.mean((_scores(z, each, folds, rng) - t.mean()) ** 2)) for each in shuffled]
    error = _error_of_mean(squares, t)
    details: dict[str, Any] = {"trees": _TREES, "folds": _FOLDS, "permutations": _SHUFFLES, "standard_error": error}
    details["interval_method"] = "spread of (p - c)^2 over the records with the trees as they are, 95 %"
    return _Fit(value, math.fsum(chance) / _SHUFFLES, _interval(value, error), details)


def _scores(z: Array, t: Array, folds: Rows, rng: Stream) -> Array:
    """Cross-fitted chances: for the records of each fold from trees on the other folds."""
    from sklearn.ensemble import ExtraTreesClassifier

    scores = np.empty(t.size)
    states = rng.integers(_FOLDS, below=2**31)
    for fold in range(_FOLDS):
        out = folds == fold
        if not out.any():
            continue
        seen = t[~out]
        if seen.min() == seen.max():
            scores[out] = seen[0]
            continue
        # leaves of some records, so that the masked twin of an original record does not decide alone
        leaf = max(5, round(math.sqrt(seen.size) / 4))
        trees = ExtraTreesClassifier(
            _TREES, min_samples_leaf=leaf, max_features=None, random_state=int(states[fold]), n_jobs=1
        )
        scores[out] = trees.fit(z[~out], seen).predict_proba(z[out])[:, 1]
    return scores
