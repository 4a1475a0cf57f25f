"""Decisions as a TOML file that `--roles` reads, for people to correct and to keep beside the data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rankveil.decisions import Decision

_KINDS = {"numbers": "numeric", "ordered": "ordinal", "unordered": "nominal", "text": "nominal"}
"""The words of the file; dates are recognised by themselves."""
_FURTHER = {
    "weight": ("other", "a table has one weight, so this one is kept as it is"),
    "group": ("identifier", "a table has one group, so this one is left out"),
}
"""The role of a second column of a kind of which there is one, and what is said of it."""


def roles_file(decisions: Sequence[Decision], *, missing: Sequence[str], hierarchies: Mapping[str, str]) -> str:
    """The text of the file: what stands for missing cells, and a block for each column with its reason.

    >>> made = Decision("SEX", "unordered", "quasi-identifier", "mask", "Its numbers have no more than two values")
    >>> print(roles_file([made], missing=["-9"], hierarchies={}))
    missing = ["-9"]
    <BLANKLINE>
    # mask: its numbers have no more than two values
    [columns.SEX]
    kind = "nominal"
    role = "quasi-identifier"
    <BLANKLINE>
    """
    gaps = list(dict.fromkeys([*missing, *(word for made in decisions for word in made.missing)]))
    blocks = [f"missing = [{', '.join(map(_text, gaps))}]\n"] if gaps else []
    ones = {role: _the_one(decisions, role) for role in _FURTHER}
    for made in decisions:
        role, said = str(made.role), made.reason[0].lower() + made.reason[1:]
        action = str(made.action)
        if role in ones and made.name != ones[role]:
            further, why = _FURTHER[role]
            action = "keep" if further == "other" else "leave out"
            role, said = further, f"{said}; {why}"
        lines = [f"# {action}: {said}", f"[columns.{_key(made.name)}]"]
        if made.name in hierarchies:
            lines.append(f"hierarchy = {_text(hierarchies[made.name])}")
        elif made.kind in _KINDS and not made.undecided:
            lines.append(f"kind = {_text(_KINDS[made.kind])}")
        lines.append(f"role = {_text(role)}")
        if made.levels and made.name not in hierarchies:
            lines.append(f"levels = [{', '.join(map(_text, made.levels))}]")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _the_one(decisions: Sequence[Decision], role: str) -> str | None:
    """The column that gets a role of which there is one: the first that has more than one value."""
    named = [made for made in decisions if made.role == role]
    return next((made.name for made in named if not made.constant), named[0].name if named else None)


def _key(name: str) -> str:
    bare = name and all(sign.isascii() and (sign.isalnum() or sign in "_-") for sign in name)
    return name if bare else _text(name)


def _text(word: str) -> str:
    """A text of TOML, whose escapes are those of JSON and one more."""
    return json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")
