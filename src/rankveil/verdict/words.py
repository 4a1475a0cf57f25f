"""Shares and columns as a minister would read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def portion(share: float) -> str:
    """A share as a percentage.

    >>> portion(0.31416)
    '31.4 %'
    """
    return f"{100 * share:.3g} %"


def people(share: float) -> str:
    """A share of people in whole persons.

    >>> people(0.31), people(0.924), people(0.0)
    ('About 1 person in 3', 'About 9 people in 10', 'Nobody')
    """
    if share <= 0:
        return "Nobody"
    if share >= 0.9995:
        return "Everybody"
    if share > 0.5:
        tenths = round(10 * share)
        return "Nearly everybody" if tenths == 10 else f"About {tenths} people in 10"
    return f"About 1 person in {round(1 / share):,}"


def knowledge(knows: Mapping[str, Any] | None) -> str:
    """What somebody knows: everything, some columns, some people.

    >>> knowledge({"columns": ["AGE", "SEX"], "chosen": True, "people": 0.1})
    'AGE and SEX of about 10 % of the people'
    """
    if knows is None or (knows.get("people", 1) == 1 and not knows.get("chosen")):
        return "all originals"
    parts = []
    if knows.get("chosen"):
        columns = knows["columns"]
        listed_names = columns[0] if len(columns) == 1 else f"{', '.join(columns[:-1])} and {columns[-1]}"
        parts.append(listed_names if len(columns) <= 5 else f"{len(columns)} of the columns")
    if knows.get("people", 1) != 1:
        parts.append(f"about {portion(knows['people'])} of the people")
    return " of ".join(parts)
