"""What a plan does to a table, seen at once: each step on all records, or on a stated sample of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import rankveil as rv
from rankveil import dates
from rankveil.deciding import decided_table
from rankveil.errors import NotApplicableError, PairError
from rankveil.moments import mean
from rankveil.report.audits import Marginal
from rankveil.report.chart import Chart
from rankveil.seeds import CommonSeed, Seed
from rankveil.table import Table

MOST = 5000
"""Records on which a plan is tried."""


@dataclass(frozen=True)
class Effect:
    """One attribute before and after the plan."""

    name: str
    mean_before: float | str
    """A date or time as text; not a number where the attribute has no mean."""
    mean_after: float | str
    sd_before: float
    sd_after: float
    levels: tuple[float | None, ...]
    """How far a value moved on average after each step, as a share of the ranks; None where that is not known."""


@dataclass(frozen=True, eq=False)
class Preview:
    """What came out on the sample."""

    records: int
    of: int
    effects: tuple[Effect, ...]
    notes: tuple[str, ...]
    _marginals: Mapping[str, Marginal]

    @property
    def sampled(self) -> bool:
        """Whether not all records were used."""
        return self.records < self.of

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes that the plan masks."""
        return tuple(effect.name for effect in self.effects)

    def marginal(self, name: str) -> Chart:
        """The distribution of an attribute before and after."""
        return self._marginals[name].chart(name)


def preview(table: Table, plan: rv.Plan) -> Preview:
    """Try a plan; the draws are those of a seed for trials, never those of a release."""
    sample = _sample(decided_table(table))
    levels: dict[str, list[float | None]] = {}
    release = None
    for count in range(1, len(plan.steps) + 1):
        release = rv.mask(sample, rv.Plan(plan.steps[:count]), seed=CommonSeed.of(0))
        found = _levels(sample, release)
        for name in release.changed:
            levels.setdefault(name, [0.0] * (count - 1)).append(found.get(name))
    assert release is not None
    masked = _again(release.data, sample)
    names = tuple(release.changed)
    shown = {name: _shown(sample, masked, name) for name in names}
    effects = tuple(Effect(name, *_moments(shown[name]), levels=tuple(levels[name])) for name in names)
    return Preview(len(sample), len(table), effects, _notes(release), shown)


def _sample(table: Table) -> Table:
    if len(table) <= MOST:
        return table
    rows = np.sort(Seed.of(0).stream("preview").order(len(table))[:MOST])
    return _again(table.native.take(rows), table)


def _again(data: Any, like: Table) -> Table:
    return Table(data, schema=like.schema.only(data.column_names), decimal=like.decimal)


def _shown(sample: Table, masked: Table, name: str) -> Marginal:
    """A column before and after: numbers, or labels where one of the two has words."""
    cells = sample.cells(name)
    if any(table.cells(name).kind == "nominal" or table.cells(name).levels for table in (sample, masked)):
        before, after = (np.array(table.cells(name).labels().to_pylist(), dtype=object) for table in (sample, masked))
        return Marginal(before, after, order=cells.levels)
    kind = cells.temporal
    written = None if kind is None else lambda value: str(dates.written(value, kind))
    return Marginal(sample.values(name), masked.values(name), written=written)


def _levels(sample: Table, release: rv.Release) -> dict[str, float]:
    """The permutation level of each attribute; empty where masked records do not derive from original ones."""
    if not release.changed or release.manifest["mapping"] == "none":
        return {}
    names, masked = tuple(release.changed), _again(release.data, sample)
    try:
        return _moved(sample, masked, names, release)
    except PairError:  # no record has all columns any more, after cells were suppressed: then one by one
        found: dict[str, float] = {}
        for name in names:
            with suppress(PairError):
                found |= _moved(sample, masked, (name,), release)
        return found


def _moved(sample: Table, masked: Table, names: tuple[str, ...], release: rv.Release) -> dict[str, float]:
    audit = rv.audit(sample, masked, measures=("permutation_level",), columns=names, secret=release.secret)
    try:
        audit["permutation_level"]
    except NotApplicableError:
        return {}
    return dict(audit.values["permutation_level"].details["per_attribute"])


def _moments(both: Marginal) -> tuple[float | str, float | str, float, float]:
    before, after = both.before, both.after
    if before.dtype == object:  # labels have neither
        return (float("nan"),) * 4
    x, y = before[~np.isnan(before)], after[~np.isnan(after)]
    if not x.size or not y.size:
        return (float("nan"),) * 4
    if both.written is not None:  # a spread in the units of its times would tell people little
        return both.written(mean(x)), both.written(mean(y)), float("nan"), float("nan")
    return mean(x), mean(y), float(np.std(x)), float(np.std(y))


def _notes(release: rv.Release) -> tuple[str, ...]:
    """What the protector should know, but not of the seed, which is only one for trials."""
    return tuple(note for note in release.notes if not note.startswith("the seed has"))
