"""The small languages of option values: lists, name=value pairs, numbers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from rankveil.errors import ParameterError


def items(given: Sequence[str] | None, *, option: str) -> list[str]:
    """The parts of comma-separated lists; double quotes keep a comma inside a part.

    >>> items(["A, B", '"C,D"'], option="--columns")
    ['A', 'B', 'C,D']
    """
    found: list[str] = []
    for text in given or ():
        reader = shlex.shlex(text, posix=True)
        reader.whitespace, reader.whitespace_split = ",", True
        reader.quotes, reader.escape, reader.commenters = '"', "", ""
        try:
            found += [part.strip() for part in reader]
        except ValueError:
            raise ParameterError(f'{option}: a double quote (") is opened and never closed') from None
    return [part for part in found if part]


def chosen(given: Sequence[str] | None, *, option: str) -> list[str] | None:
    """The parts of a list that may be left out."""
    return items(given, option=option) if given else None


def pairs(given: Sequence[str] | None, *, option: str, lists: bool = False) -> dict[str, str]:
    """NAME=VALUE pairs in their order; where values may be lists, what has no = continues the one before it.

    >>> pairs(["A=1,B=2", "C=x"], option="--record")
    {'A': '1', 'B': '2', 'C': 'x'}
    >>> pairs(["given=AGE,HOURS,variant=B"], option="--set", lists=True)
    {'given': 'AGE,HOURS', 'variant': 'B'}
    """
    found: dict[str, str] = {}
    last: str | None = None
    for part in items(given, option=option):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if lists and not sign and last is not None:
            found[last] += f",{part}"
            continue
        if not sign or not name:
            raise ParameterError(
                f"{option}: {part} is not of the form NAME=VALUE "
                "(a comma separates pairs; double quotes keep one inside: '\"A=1,5\",B=2')"
            )
        if name in found:
            raise ParameterError(f"{option}: {name} is given twice")
        found[name], last = value, name
    return found


def numbers(given: Sequence[str] | None, *, option: str) -> list[float] | Mapping[str, float] | None:
    """One number for all, one for each attribute, or NAME=number pairs.

    >>> numbers(["4,1,4"], option="--d"), numbers(["A=4"], option="--d")
    ([4.0, 1.0, 4.0], {'A': 4.0})
    """
    parts = items(given, option=option)
    if not parts:
        return None
    if any("=" in part for part in parts):
        return {name: _number(value, option) for name, value in pairs(given, option=option).items()}
    return [_number(part, option) for part in parts]


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{option}: {text} is not a number") from None
