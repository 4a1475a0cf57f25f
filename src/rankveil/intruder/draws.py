"""Which columns of a release depend on draws: those that an intruder does not compute himself, whatever he repeats.

A few repetitions with the same result say little: noise may be weak on its grid, and three records have few orders.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Method
from rankveil.intruder.simulation import Simulator
from rankveil.likelihood import Displacement, JointNoise, Noise, RankNoise, Recomputed, Statement
from rankveil.plans import Step

Array = NDArray[np.float64]

_BY_CELL: dict[str, Callable[[Any], bool]] = {
    "identity": lambda given: True,
    "round": lambda given: given["decimals"] is not None,
    "clip": lambda given: given["lower"] is not None and given["upper"] is not None,
    "recode": lambda given: given["rare"] is None,
    "top_bottom_code": lambda given: (
        not given["top_percent"] and not given["bottom_percent"] and given["replace"] == "limit"
    ),
}
"""Steps that look at no other record, with these parameters."""


def statement(entry: Method, x: Any, parameters: Any, **known: Any) -> Statement:
    """What a method says that it tells an intruder."""
    assert entry.intruder is not None, entry.id
    return entry.intruder(x, parameters, **known)


def entering(everybody: Simulator, name: str, k: int) -> tuple[Array, tuple[str, ...]]:
    """A column as it enters a step, and the labels that its values are places of."""
    applied = everybody.before(0, k)
    table = everybody.table
    values = applied.values[name] if name in applied.values else table.values(name)
    return values, applied.labels.get(name, table.labels(name))


def drawn_columns(
    everybody: Simulator, account: Any, steps: Sequence[Step], *, alike: Collection[str], fewer: bool
) -> frozenset[str]:
    """The columns whose released values may be others with other draws.

    `alike` are those that were the same in all repetitions, `fewer` says that some records were left out.
    """
    drawn: set[str] = set()
    left_out = False
    for k, step in enumerate(steps):
        chosen = account.columns[k]
        if step.entry.works_on == "records":
            left_out |= fewer and step.entry.random
        elif step.entry.works_on == "names":
            continue
        elif step.entry.random:
            if not set(alike) & set(chosen) or not _idle(everybody, step, chosen):
                drawn |= set(chosen)
        else:
            drawn |= {name for name in chosen if left_out and not _by_cell(step, name)}
            if step.entry.works_on == "columns" and drawn & set(chosen):
                drawn |= set(chosen)
    return frozenset(drawn)


def _by_cell(step: Step, name: str) -> bool:
    known = _BY_CELL.get(step.method)
    return known is not None and known(step.bound(name))


def _idle(everybody: Simulator, step: Step, chosen: Sequence[str]) -> bool:
    """Whether a step that draws changes nothing, by what it states."""
    at = next(i for i, other in enumerate(everybody.plan.steps) if other is step)
    columns = [entering(everybody, name, at) for name in chosen]
    if step.entry.works_on == "columns":
        x = np.column_stack([values for values, _ in columns])
        if np.isnan(x).any() and not step.entry.changes_missing:
            return False
        bound = [step.bound(name) for name in chosen]
        return _nothing(statement(step.entry, x, bound, attributes=len(chosen), labels=(), categories=None))
    return all(
        _nothing(
            statement(
                step.entry,
                x[~np.isnan(x)],
                step.bound(name),
                attributes=len(chosen),
                labels=labels,
                categories=None,
            )
        )
        for name, (x, labels) in zip(chosen, columns, strict=True)
    )


def _nothing(said: Statement) -> bool:
    match said:
        case Recomputed():
            return True
        case Noise() | RankNoise():
            return said.scale == 0
        case Displacement():
            return said.most == 0
        case JointNoise():
            return not np.any(np.diag(said.covariance))
        case _:
            return False
