"""Decisions as a TOML file that `--roles` reads, for people to correct and to keep beside the data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rankveil.decisions import one_of_each
from rankveil.schema import Decision

_KINDS = {"numbers": "numeric", "ordered": "ordinal", "unordered": "nominal", "text": "nominal"}
"""The words of the file; dates are recognised by themselves."""


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
    for made in one_of_each(decisions):
        said = made.reason[0].lower() + made.reason[1:]
        lines = [f"# {made.action}: {said}", f"[columns.{_key(made.name)}]"]
        if made.name in hierarchies:
            lines.append(f"hierarchy = {_text(hierarchies[made.name])}")
        elif made.kind in _KINDS and not made.undecided:
            lines.append(f"kind = {_text(_KINDS[made.kind])}")
        lines.append(f"role = {_text(made.role)}")
        if made.levels and made.name not in hierarchies:
            lines.append(f"levels = [{', '.join(map(_text, made.levels))}]")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _key(name: str) -> str:
    bare = name and all(sign.isascii() and (sign.isalnum() or sign in "_-") for sign in name)
    return name if bare else _text(name)


def _text(word: str) -> str:
    """A text of TOML, whose escapes are those of JSON and one more."""
    return json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")
