"""Machine learning efficacy: whether a model trained on the release does as well on real records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Range, Value, measure
from rankveil.errors import NotApplicableError
from rankveil.execute import in_threads
from rankveil.linkage import Linker
from rankveil.measures.ci_overlap import stated_target
from rankveil.moments import mean, standard_deviation
from rankveil.multivariate import FARTHEST, standardised
from rankveil.ranks import average_ranks, has_ties
from rankveil.seeds import Stream

Rows = NDArray[np.intp]
Model = Literal["boosting", "linear"]

MOST = 100_000
"""Records of a table that are used at most."""
MOST_CLASSES = 10
_PER_CLASS = 10
"""Records for each class, on average, that make a column of few whole numbers one of classes."""
_LITTLE = 0.05
"""A score below which a ratio to it is mostly chance."""


@measure(
    title="Efficacy of machine learning on the masked data",
    source="Xu, Skoularidou, Cuesta-Infante and Veeramachaneni 2019",
    family="utility",
    better="higher",
    mapping=False,
    equal=False,
)
def ml_efficacy(
    x: Array,
    y: Array,
    paired: bool,
    *,
    model: Annotated[Model, "gradient boosting of trees, or ridge and logistic regression"] = "boosting",
    folds: Annotated[int, Range(2, 20), "parts of the original, each held out once"] = 5,
    rng: Stream,
    target: int | None,
) -> Value:
    """The score of models of the target that are trained on the masked table, as a share of the score of those trained
    on the original, both tested on original records that were held out.

    The score is R^2 = 1 - sum (t - prediction)^2 / sum (t - mean)^2; for classes (at most 10 whole numbers, with 10
    records each on average) it is 2 AUC - 1, each class against the others, weighted by their records. Below 0 counts
    as 0; more than 1 is possible, where masking takes away noise. The original is held out part by part, and with its
    records the masked ones that derive from them, for these tell of their subjects what no model should know. Where it
    is not known which they are, every masked record is held out with the original one nearest to it. What the release
    as a whole took from a held-out record, as in an average over a group, stays in it and can flatter the ratio.
    """
    column = stated_target(x, target)
    if len(x) < 2 * folds:
        raise NotApplicableError(f"{folds} folds need at least {2 * folds} original records")
    real, made = _in_order(x, y, column, paired=bool(paired), rng=rng)
    held = _dealt(len(real), folds, rng)
    classes = _classes(real[:, column])
    task = _Task.of(real, made, column, classes)
    held_made = held if paired else held[Linker(task.real, metric="euclidean").matches(task.made).first]
    notes = _notes(x, y, task, held_made, paired=bool(paired))
    original, masked = task.scores(model, held, held_made, folds)
    if original <= 0:
        raise NotApplicableError("a model trained on the original itself explains nothing of the target")
    if original < _LITTLE:
        notes.append(f"even trained on the original the model explains little ({original:.3f}): the ratio is unsteady")
    details: dict[str, Any] = {
        "score": "R^2" if classes is None else "2 AUC - 1",
        "trained_on_original": original,
        "trained_on_masked": masked,
        "model": model,
        "classes": None if classes is None else len(classes),
        "folds": folds,
        "records": {"original": len(real), "masked": len(made)},
    }
    return Value(max(masked, 0.0) / original, details, tuple(notes))


def _in_order(x: Array, y: Array, column: int, *, paired: bool, rng: Stream) -> tuple[Array, Array]:
    """Both tables sorted by the target and then by the rest, so that the order of the records does not matter."""
    if paired:
        rows = _chosen(_order(x[:, column], x, y), rng)
        return x[rows], y[rows]
    return x[_chosen(_order(x[:, column], x), rng)], y[_chosen(_order(y[:, column], y), rng)]


def _order(first: Array, *tables: Array) -> Rows:
    """The rows by their value in `first`, and where that is the same by those in the tables."""
    order = np.argsort(first)
    return np.lexsort((*(column for table in tables for column in table.T), first)) if has_ties(first, order) else order


def _chosen(order: Rows, rng: Stream) -> Rows:
    """As many as are used, in the same order."""
    return order if order.size <= MOST else order[np.sort(rng.order(order.size)[:MOST])]


def _dealt(n: int, folds: int, rng: Stream) -> Rows:
    """The fold of every record: of so many neighbours in the order of the target, one comes into each by chance."""
    fold = np.empty(n, dtype=np.intp)
    fold[np.lexsort((rng.random(n), np.arange(n) // folds))] = np.arange(n) % folds
    return fold


def _classes(values: Array) -> Array | None:
    """The classes, or None where the values are numbers."""
    found = np.unique(values)
    few = found.size <= min(MOST_CLASSES, values.size // _PER_CLASS)
    return found if few and bool(np.all(found == np.rint(found))) else None


@dataclass(frozen=True, eq=False)
class _Task:
    """What is learnt from what, all in standard deviations of the original."""

    real: Array
    made: Array
    column: int
    known: Array
    """The target of the original records, as numbers or as the position of their class."""
    taught: Array
    """The same of the masked records; what is no class counts as the nearest one."""
    classes: int
    """How many classes there are; 0 of numbers."""

    @classmethod
    def of(cls, real: Array, made: Array, column: int, classes: Array | None) -> _Task:
        units = standardised(real)
        z, other = np.ascontiguousarray(units.z), np.ascontiguousarray(units.applied(made))
        if classes is None:
            return cls(z, other, column, z[:, column], other[:, column], 0)
        between = classes[:-1] / 2 + classes[1:] / 2
        codes = [np.searchsorted(between, side[:, column], side="right").astype(np.float64) for side in (real, made)]
        return cls(z, other, column, codes[0], codes[1], classes.size)

    def scores(self, model: Model, held: Rows, held_made: Rows, folds: int) -> tuple[float, float]:
        """The scores of the original's and of the masked table's models on all held-out original records."""
        features = np.delete(self.real, self.column, axis=1)
        tables = ((features, self.known, held), (np.delete(self.made, self.column, axis=1), self.taught, held_made))
        jobs = [(table, fold) for table in tables for fold in range(folds)]

        def predict(job: tuple[tuple[Array, Array, Rows], int]) -> Array:
            (given, outcome, fold_of), fold = job
            rows = fold_of != fold
            rows = rows if rows.any() else np.ones_like(rows)
            learn = _class_shares if self.classes else _numbers
            return learn(model, given[rows], outcome[rows], features[held == fold], self.classes)

        predicted = in_threads(_alone(predict), jobs, size=features.size * folds)
        return self._score(predicted[:folds], held), self._score(predicted[folds:], held)

    def _score(self, parts: list[Array], held: Rows) -> float:
        predicted = np.empty((len(held), *parts[0].shape[1:]))
        for fold, part in enumerate(parts):
            predicted[held == fold] = part
        if self.classes:
            return _separation(self.known, predicted)
        around = self.known - np.mean(self.known)
        return 1.0 - float(np.sum((self.known - predicted) ** 2)) / float(np.sum(around**2))


def _alone(function: Any) -> Any:
    """The function on one core: models are trained beside each other, and threads within each would wait on others."""
    import sklearn.ensemble  # noqa: F401 - first, because a limit is set for the libraries that are there already
    from threadpoolctl import threadpool_limits

    def run(job: Any) -> Any:
        with threadpool_limits(1, user_api="openmp"):  # this limit is one of the thread, not of the program
            return function(job)

    return run


def _numbers(model: Model, given: Array, outcome: Array, asked: Array, _: int) -> Array:
    """The expected outcome of the records asked for."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge

    centre, width = mean(outcome), standard_deviation(outcome)
    if width == 0:
        return np.full(len(asked), centre)
    taught = (outcome - centre) / width
    if model == "boosting":
        found = HistGradientBoostingRegressor(**_trees(len(given))).fit(given, taught).predict(asked)
    else:
        units = standardised(given)
        found = Ridge(alpha=1.0, solver="cholesky").fit(units.z, taught).predict(units.applied(asked))
    made: Array = np.clip(centre + width * found, -FARTHEST, FARTHEST)
    return made


def _trees(n: int) -> dict[str, Any]:
    """Settings of boosting: leaves of 20 records as usual, but of a tenth of a small table, which could not split."""
    return {"early_stopping": False, "random_state": 0, "min_samples_leaf": min(20, max(n // 10, 1))}


def _class_shares(model: Model, given: Array, outcome: Array, asked: Array, classes: int) -> Array:
    """For every record asked for the probability of each class."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    shares = np.zeros((len(asked), classes))
    there = np.unique(outcome).astype(np.intp)
    if there.size == 1:
        shares[:, there] = 1.0
    elif model == "boosting":
        learnt = HistGradientBoostingClassifier(**_trees(len(given))).fit(given, outcome)
        shares[:, there] = learnt.predict_proba(asked)
    else:
        units = standardised(given)
        learnt = LogisticRegression(solver="newton-cholesky").fit(units.z, outcome)
        shares[:, there] = learnt.predict_proba(units.applied(asked))
    return shares


def _separation(known: Array, shares: Array) -> float:
    """2 AUC - 1 of every class against the others, weighted by the records of the classes."""
    total = 0.0
    for code in range(shares.shape[1]):
        own = known == code
        many, others = int(own.sum()), int((~own).sum())
        above = float(np.sum(average_ranks(shares[:, code])[own])) - many * (many + 1) / 2
        total += (2 * above / (many * others) - 1) * many
    return total / known.size


def _notes(x: Array, y: Array, task: _Task, held_made: Rows, *, paired: bool) -> list[str]:
    notes = [
        f"{len(used)} of {len(table)} {what} records are used, drawn by the seed"
        for table, used, what in ((x, task.real, "original"), (y, task.made, "masked"))
        if len(used) < len(table)
    ]
    if not paired:
        notes.append("each masked record is held out together with the original record nearest to it")
    if np.all(held_made == held_made[0]):
        notes.append("all masked records belong to one fold; to test that fold they are used all the same")
    if _different(task.made) < _different(task.real) / 2:
        notes.append(
            "many masked records are the same: where they are averages, they contain held-out records too, "
            "and the ratio is flattered"
        )
    return notes


def _different(table: Array) -> int:
    """How many different records there are."""
    ordered = table[np.lexsort(table.T)]
    return 1 + int(np.sum(np.any(ordered[1:] != ordered[:-1], axis=1)))
