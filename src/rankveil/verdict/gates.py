"""Gates for pipelines: rules on measures and on the headline that must not come true."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankveil.catalogue import Value, get_measure, measures
from rankveil.errors import ParameterError
from rankveil.verdict.headline import overall
from rankveil.verdict.item import HEADLINE, STATUSES, Item
from rankveil.verdict.utility import utility_measures

_SIGNS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
_LIGHTS = ("red", "amber")


@dataclass(frozen=True)
class Gate:
    """A rule that must not come true, such as `cm2<0.05`, `certain>0` or `red`."""

    rule: str
    measure: str
    """The id of a measure or of a headline number; `status` for the lights."""
    sign: str
    limit: float
    """For the lights the place of the best one that fails, from green (0) to red."""

    @classmethod
    def parse(cls, rule: str) -> Gate:
        """Read `id<number` (or <=, >, >=), `red` or `amber`; `status=red` says the same as `red`."""
        light = re.fullmatch(r"\s*(?:status\s*==?\s*)?(\w+)\s*", rule)
        if light and light[1] in _LIGHTS:
            return cls(rule.strip(), "status", ">=", STATUSES.index(light[1]))
        found = re.fullmatch(r"\s*(\w+)\s*(<=|>=|<|>)\s*([-+.\deE]+)\s*", rule)
        try:
            if not found:
                raise ValueError
            gate = cls(rule.strip(), found[1], found[2], float(found[3]))
        except ValueError:
            raise ParameterError(f"a gate reads like 'cm2<0.05' or 'red', not {rule!r}") from None
        if gate.measure not in HEADLINE:
            get_measure(gate.measure)
        return gate

    @property
    def needs(self) -> tuple[str, ...]:
        """The measures without which it cannot be judged."""
        parts = HEADLINE if self.measure == "status" else (self.measure,)
        made: list[str] = []
        for part in parts:
            if part == "certain":
                made.append("people_found")
            elif part == "worst_utility":
                made += utility_measures()
            elif part in measures():
                made.append(part)
        return tuple(dict.fromkeys(made))

    def judge(self, value: float | None) -> dict[str, Any]:
        """Whether the rule stayed untrue; a measure that does not apply cannot vouch for anything, so it fails."""
        ok = value is not None and not _SIGNS[self.sign](value, self.limit)
        shown = value if value is None or self.measure != "status" else STATUSES[int(value)]
        return {"rule": self.rule, "value": shown, "ok": ok}


def judged(rules: Sequence[Gate], values: Mapping[str, Value], items: Sequence[Item]) -> list[dict[str, Any]]:
    """Every gate beside what it is about; the headline's number where it has one."""
    known: dict[str, float | None] = {name: value.value for name, value in values.items()}
    known |= {item.id: item.value for item in items if item.value is not None}
    if items:
        known["status"] = STATUSES.index(overall(items))
    return [rule.judge(known.get(rule.measure)) for rule in rules]
