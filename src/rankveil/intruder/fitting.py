"""Models of columns for which no method states a closed form, fitted to simulated releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankveil.intruder.model import CodePart, OwnRanksPart, Part, Values, rank_interval
from rankveil.intruder.shared import SharedColumns
from rankveil.intruder.simulation import Simulated
from rankveil.likelihood import Points, Term, whitened

Array = NDArray[np.float64]

FEW_LABELS = 200
"""Labels up to which the chances of every exchange are counted."""
_BINS = 30
"""Bins of an original's numbers, where the release has labels instead."""
_MOST_RANKS = 20_000
"""Records up to which a histogram of rank gaps is tried."""


@dataclass(frozen=True, eq=False)
class NormalPart:
    """Columns whose released values are normal around a prediction, in their own units or as normal scores."""

    names: tuple[str, ...]
    predicted: Array
    weights: Array
    scores: bool

    def term(self, released: Values) -> Term:
        y = np.column_stack([released[name] for name in self.names])
        y = np.column_stack([normal_scores(y[:, j]) for j in range(y.shape[1])]) if self.scores else y
        middle = np.nanmean(self.predicted, axis=0)
        return Points(self.predicted @ self.weights, np.where(np.isnan(y), middle, y) @ self.weights)


def normal_scores(values: Array) -> Array:
    """Normal scores of mid-ranks: Phi^-1(rank / (n + 1)); missing cells stay missing."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    there = ~np.isnan(values)
    made = np.full(values.size, np.nan)
    made[there] = ndtri(rankdata(values[there]) / (int(there.sum()) + 1))
    return made


def fitted_models(
    columns: SharedColumns, names: Sequence[str], original: Values, releases: Sequence[Simulated]
) -> dict[str, list[Part]]:
    """Alternatives by name, each a list of parts for all of the columns; the caller tries which is best."""
    categorical = [name for name in names if name not in columns.numeric]
    numeric = [name for name in names if name in columns.numeric]
    counted: list[Part] = [part for name in categorical if (part := _counted(columns, name, original, releases))]
    if not numeric:
        return {"counts": counted} if counted else {}
    made: dict[str, list[Part]] = {}
    for label, scores in (("values", False), ("scores", True)):
        part = _regressed(numeric, original, releases, scores=scores)
        if part is not None:
            made[label] = [*counted, part]
    if len(original[numeric[0]]) <= _MOST_RANKS:
        ranked = [part for name in numeric if (part := _gaps(name, original[name], releases)) is not None]
        if len(ranked) == len(numeric):
            made["ranks"] = [*counted, *ranked]
    return made


def _regressed(names: Sequence[str], original: Values, releases: Sequence[Simulated], *, scores: bool) -> Part | None:
    """Regression on the originals and on the mean of the simulated values of the same record.

    The mean is taken over all releases but the last two, which the regression is fitted to.
    """
    count = len(original[names[0]])

    def seen(values: Array) -> Array:
        return normal_scores(values) if scores else values

    x = np.column_stack([seen(original[name]) for name in names])
    for_mean, to_fit = (releases[:-2], releases[-2:]) if len(releases) > 3 else (releases, releases)
    total, times = np.zeros(x.shape), np.zeros(x.shape)
    for each in for_mean:
        for j, name in enumerate(names):
            y = seen(each.values[name])
            there = ~np.isnan(y)
            total[each.origin[there], j] += y[there]
            times[each.origin[there], j] += 1
    mean = np.where(times > 0, total / np.maximum(times, 1), x)
    filled = [np.where(np.isnan(each), np.nanmean(each, axis=0), each) for each in (x, mean)]
    design = np.column_stack((np.ones(count), *filled))
    # columns scaled, so that the solution does not depend on their units
    scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
    rows = np.concatenate([each.origin for each in to_fit])
    y = np.vstack([np.column_stack([seen(each.values[name]) for name in names]) for each in to_fit])
    complete = ~np.isnan(y).any(axis=1)
    if complete.sum() < 3 * design.shape[1]:
        return None
    slope = np.linalg.lstsq(design[rows[complete]] / scale, y[complete], rcond=1e-10)[0]
    predicted = design / scale @ slope
    apart = y[complete] - predicted[rows[complete]]
    covariance = apart.T @ apart / complete.sum()
    spread = np.nanvar(y, axis=0)
    covariance += np.diag(1e-9 * spread + 1e-300)  # values that are all but repeated
    return NormalPart(tuple(names), predicted, whitened(covariance), scores)


def _gaps(name: str, x: Array, releases: Sequence[Simulated]) -> Part | None:
    """A smoothed histogram of how far ranks go, released values ranked among their own."""
    n = int(np.sum(~np.isnan(x)))
    if n < 20 or any(np.isnan(each.values[name]).any() for each in releases) or n < x.size:
        return None
    gaps = np.zeros(2 * n - 1)
    place = rank_interval(x, np.sort(x)).mean(axis=1)
    for each in releases:
        y = each.values[name]
        if y.size != n:
            return None
        ranks = rank_interval(y, np.sort(y)).mean(axis=1)
        np.add.at(gaps, np.rint(ranks - place[each.origin]).astype(int) + n - 1, 1.0)
    width = max(int(0.02 * np.sqrt(np.average((np.arange(-(n - 1), n)) ** 2.0, weights=gaps))), 1)
    smooth = np.convolve(gaps, np.ones(2 * width + 1), mode="same") / (2 * width + 1)
    smooth += 1e-4 * smooth.sum() / smooth.size
    return OwnRanksPart(name, x, smooth / smooth.sum(), bounded=False)


def _counted(columns: SharedColumns, name: str, original: Values, releases: Sequence[Simulated]) -> Part | None:
    """How often each label (or bin of numbers) becomes each label."""
    labels = len(columns.labels(name))
    if labels == 0 or labels > FEW_LABELS:
        return None
    x = original[name]
    if not columns.comparable(name):
        there = ~np.isnan(x)
        edges = np.unique(np.quantile(x[there], np.linspace(0, 1, _BINS + 1)[1:-1])) if there.any() else np.zeros(0)
        x = np.where(there, np.searchsorted(edges, np.where(there, x, 0.0), side="right"), np.nan).astype(float)
    rows = int(np.nanmax(x, initial=0)) + 1 if not np.isnan(x).all() else 1
    counts = np.full((max(rows, 1), labels), 0.05)
    for each in releases:
        y, before = each.values[name], x[each.origin]
        there = ~np.isnan(y) & ~np.isnan(before)
        np.add.at(counts, (before[there].astype(int), y[there].astype(int)), 1.0)
    return CodePart(name, x, np.log(counts / counts.sum(axis=1, keepdims=True)))
