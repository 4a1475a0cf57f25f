"""Advice on what a column is for, from its name and values; it changes nothing by itself."""

from __future__ import annotations

import re

from rankveil.columns import Cells

_IDENTIFIER = re.compile(r"(?i)^(.*[_\W])?(id|ids|uid|uuid|ssn|nif|name|e?-?mail|phone|passport)([_\W].*)?$")
_IDENTIFIER_ENDING = re.compile(r"[a-z](ID|Id)$|^[A-Z]+ID$|(?i:name)$")
_WEIGHT = re.compile(r"(?i)^(.*[_\W])?(weight|wgt|wt|fnlwgt|afnlwgt|pweight)([_\W].*)?$")
_GROUP = re.compile(r"(?i)^(hh|household|family|cluster|psu)([_\W]?(id|no|number))?$")
_QUASI = re.compile(
    r"(?i)^(.*[_\W])?(age|sex|gender|zip|postcode|region|state|country|birth\w*|race|marital\w*|occupation|education)"
    r"([_\W].*)?$"
)


def named_like_identifier(name: str) -> bool:
    """Whether a column's name says that it identifies people.

    >>> [named_like_identifier(name) for name in ("id", "UTILNAME", "user_id", "INCOME", "paid")]
    [True, True, True, False, False]
    """
    return bool(_IDENTIFIER.match(name) or _IDENTIFIER_ENDING.search(name))


def guess_role(name: str, cells: Cells, *, distinct: int, unique_text: bool) -> str:
    """Advice on a column's role from its name and values; it changes nothing by itself."""
    if _GROUP.match(name):
        return "group"
    if named_like_identifier(name) or unique_text:
        return "identifier"
    if _WEIGHT.match(name):
        return "weight"
    if _QUASI.match(name):
        return "quasi-identifier"
    if cells.kind == "numeric":
        return "confidential"
    return "quasi-identifier" if 1 < distinct <= max(20, len(cells.cells) // 20) else "other"
