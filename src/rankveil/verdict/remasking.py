"""The masking of a manifest as the words of a command, and the same stronger or weaker."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rankveil.catalogue import get_method, methods
from rankveil.errors import ParameterError
from rankveil.strengths import found_at, measured, strength_for
from rankveil.table import Table

_OF_THE_RELEASE = ("record_shuffle", "drop", "pseudonymise")
"""Steps that a release takes by itself."""


@dataclass(frozen=True)
class Masking:
    """A method with its parameters, the columns it masks, and the steps after it."""

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    """None where the command chooses them, as it did."""
    then: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    masked: int = 0
    """How many columns it masks."""

    @property
    def strength(self) -> str:
        """The parameter that is its strength."""
        return get_method(self.method).strength or ""

    @property
    def value(self) -> float:
        """How strong it is."""
        return float(self.parameters[self.strength])

    @property
    def words(self) -> tuple[str, ...]:
        """Of a command line."""
        made = ["--method", self.method]
        if self.parameters:
            made += ["--set", _pairs(self.parameters)]
        if self.columns:
            made += ["--columns", ",".join(self.columns)]
        for name, given in self.then:
            made += ["--then", f"{name}:{_pairs(given)}" if given else name]
        return tuple(made)

    def with_strength(self, value: float) -> Masking:
        """The same with another strength."""
        whole = isinstance(self.parameters[self.strength], int)
        return replace(self, parameters={**self.parameters, self.strength: round(value) if whole else value})


def _pairs(given: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={_written(value)}" for name, value in given.items())


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def masking_of(manifest: Mapping[str, Any] | None) -> Masking | None:
    """What a manifest tells, where a command line can say it; None otherwise."""
    steps = [
        step
        for step in (manifest or {}).get("steps") or ()
        if step.get("method") in methods() and step["method"] not in _OF_THE_RELEASE
    ]
    chosen = steps[:1] + [step for step in steps[1:] if not _by_default(step, steps[0])]
    by_default = len(chosen) < len(steps)
    steps, told = chosen, [_parameters(step) for step in chosen]
    if not steps or get_method(steps[0]["method"]).post or any(given is None for given in told):
        return None
    columns = tuple(steps[0].get("columns") or ())
    for step in steps[1:]:
        entry = get_method(step["method"])
        if not entry.post and tuple(step.get("columns") or ()) != columns:
            return None
    if any(sign in name for name in columns for sign in ",="):
        return None
    then = tuple((step["method"], given or {}) for step, given in zip(steps[1:], told[1:], strict=True))
    own = told[0] or {}
    if steps[0]["method"] == "identity":
        return None
    return Masking(steps[0]["method"], own, () if by_default else columns, then, len(columns))


def _by_default(step: Mapping[str, Any], first: Mapping[str, Any]) -> bool:
    """Whether a step exchanges the categories that the first one does not take, which `mask` adds by itself."""
    told = step["method"] == "pram" and (step.get("parameters") or {}).get("invariant") is True
    return told and not {*(step.get("columns") or ())} & {*(first.get("columns") or ())}


def _parameters(step: Mapping[str, Any]) -> dict[str, Any] | None:
    """The parameters of a step that are not as they are by default; None where a command line cannot say them."""
    entry = get_method(step["method"])
    if any(step.get("per_column", {}).values()):
        return None
    made = {}
    for name, value in (step.get("parameters") or {}).items():
        if name not in entry.parameters:
            return None
        default = entry.parameters[name].default
        if value is None or (value == default and name != entry.strength):
            continue
        if not isinstance(value, bool | int | float | str) or (isinstance(value, str) and set(value) & set(",=")):
            return None
        made[name] = value
    return made


def default_masking(original: Table, columns: Sequence[str]) -> tuple[Masking, float | None]:
    """How to begin: the method for the kinds there are, and the share that is found at its default strength."""
    kinds = [original.cells(name).kind for name in columns if name in original.names]
    swapped = sum(kind in ("numeric", "ordinal") for kind in kinds)
    if not swapped:
        return Masking("pram"), None
    return Masking("copula_swap"), found_at("copula_swap", strength_for("copula_swap", swapped), swapped)


def stronger(masking: Masking, *, columns: int, share: float, limit: float) -> tuple[Masking, float | None] | None:
    """The same as strong as it must be by the table of strengths, or twice as strong; and the share found there."""
    entry = get_method(masking.method)
    if not isinstance(masking.parameters.get(entry.strength or ""), int | float):
        return None
    value = masking.value
    if masking.method in measured().methods and measured().methods[masking.method].parameter == entry.strength:
        wanted = strength_for(masking.method, columns)
        target = wanted if wanted > value else value * max(1.25, min(math.sqrt(share / limit), 2.0))
        highest = measured().methods[masking.method].values[-1]
        if value >= highest:
            return None
        made = masking.with_strength(round(min(target, highest), 1))
        return made, found_at(masking.method, made.value, columns)
    target = value * 2 if entry.stronger == "higher" else value / 2
    if masking.method in ("mdav", "microhybrid"):
        target = max(target, math.ceil(1 / limit))  # one of k is found, at best
    return _allowed(masking, target)


def weaker(masking: Masking, *, columns: int) -> tuple[Masking, float | None] | None:
    """The same at the strength of the table of strengths, where it is stronger than that."""
    known = measured().methods.get(masking.method)
    if known is None or known.parameter not in masking.parameters:
        return None
    wanted = strength_for(masking.method, columns)
    if wanted >= masking.value:
        return None
    return masking.with_strength(wanted), found_at(masking.method, wanted, columns)


def _allowed(masking: Masking, value: float) -> tuple[Masking, None] | None:
    """The strength, if it is in the range of the parameter."""
    made = masking.with_strength(value)
    parameter = get_method(masking.method).parameter(masking.strength)
    try:
        parameter.check(made.parameters[masking.strength], owner=masking.method)
    except ParameterError:
        return None
    return (made, None) if made.value != masking.value else None
