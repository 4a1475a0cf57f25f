"""The key of a release: what its draws come from.

One seed in two releases must share no draw. Of y1 = x + 0.5 e and y2 = x + e the difference 2 y1 - y2 is x: the
two-time pad. So the key depends on all that the release depends on.
"""

from __future__ import annotations

import json
from typing import Any

from rankveil.parameters import REQUIRED
from rankveil.plans import Plan, Step
from rankveil.seeds import Seed
from rankveil.table import Table

_PURPOSE = "rankveil/release/1"
_SHUFFLE = "record_shuffle"


def release_key(seed: Seed, table: Table, plan: Plan, *, fingerprint: str, replicate: int = 0) -> Seed:
    """The key of a release: HMAC-SHA256, under the seed, of the plan, the columns, the original and the replicate.

    A shuffle of all records at the end of the plan does not count, so that a release has the same values before its
    rows are shuffled and after. `table` may stand for a larger one of that fingerprint.

    >>> import pyarrow as pa
    >>> seed, people = Seed.of(7), Table(pa.table({"AGE": [31, 44]}))
    >>> plans = [Plan.of("additive_noise", alpha=alpha) for alpha in (0.5, 1.0, 0.5)]
    >>> keys = [release_key(seed, people, plan, fingerprint="ab").reveal() for plan in plans]
    >>> keys[0] == keys[1], keys[0] == keys[2]
    (False, True)
    """
    steps = plan.steps[:-1] if plan.steps[-1].method == _SHUFFLE else plan.steps
    roles, hierarchies = table.schema.given.roles or {}, table.schema.hierarchies or {}
    told = {
        "steps": [_step(step) for step in steps],
        "columns": [[each.name, each.kind, each.levels, roles.get(each.name)] for each in table.columns.values()],
        "hierarchies": {name: each.rows for name, each in hierarchies.items()},
        "original": fingerprint,
        "replicate": replicate,
    }
    return seed.derived(_PURPOSE, json.dumps(told, sort_keys=True, ensure_ascii=True).encode())


def _step(step: Step) -> dict[str, Any]:
    """A step as data: its defaults count like what was given, and whole numbers like decimals."""
    plain = step.to_dict()
    defaults = {name: each.default for name, each in step.entry.parameters.items() if each.default is not REQUIRED}
    given = Step(step.method, {**defaults, **step.parameters}).to_dict().get("parameters", {})
    return {**plain, "parameters": given}
