"""Which columns a method masks and which a measure looks at: with none in common there is nothing to compare."""

from __future__ import annotations

from collections.abc import Iterable

from rankveil import catalogue
from rankveil.catalogue import get_measure
from rankveil.comparison.contestant import Contestant
from rankveil.comparison.study import FOUND, Study
from rankveil.comparison.target import Asked
from rankveil.errors import RankveilError, listing

OF_RISK = ("risk", "confidentiality")
"""Families of what `risk` may name."""
OF_UTILITY = ("utility", "loss")
"""Families of what `utility` may name."""


def why_not_applicable(one: Contestant, study: Study, asked: Asked) -> str | None:
    """Why a method has no place in a comparison: what it would be judged by does not see it. None when it has one."""
    try:
        masked = one.masked(study)
    except RankveilError as error:
        return str(error)
    for name in _deciding(asked):
        looked = looked_at(name, study)
        if looked and not set(looked) & set(masked):
            return f"{name} looks at {listing(looked, most=10)}, which {one.method.id} leaves as they are"
    return None


def _deciding(asked: Asked) -> Iterable[str]:
    """What a comparison is searched and ranked by: the target, the risk and the first utility."""
    return dict.fromkeys((asked.measure, asked.risk, *asked.utilities[:1]))


def looked_at(name: str, study: Study) -> tuple[str, ...]:
    """The columns whose masked values a measure depends on; who is found depends on all."""
    if name == FOUND:
        return study.names
    entry, known = get_measure(name), study.base.known[0]
    roles = {"quasi": known.quasi, "confidential": known.confidential}
    of_roles = [columns for role, columns in roles.items() if f"{role}_y" in entry.needs]
    if of_roles:
        return tuple(dict.fromkeys(column for columns in of_roles for column in columns))
    kinds = zip(study.names, study.base.kinds, strict=True)
    own = [column for column, kind in kinds if kind in entry.kinds]
    parts = [need for need in entry.needs if need in catalogue.measures()]
    return tuple(dict.fromkeys([*own, *(column for part in parts for column in looked_at(part, study))]))
