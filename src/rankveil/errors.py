"""The errors that rankveil raises on purpose.

    RankveilError               whatever a person can put right; its text is one sentence
    ├── FileError               a file cannot be read or written
    │   └── FormatError         ... because of its ending or content
    ├── TableError              a column or a cell is not what was expected
    ├── ParameterError          an unknown name or a value out of range
    ├── PairError               original and masked do not belong together
    ├── ClusterError            a cluster cannot be reached, cannot do the work, or was lost
    └── NotApplicableError      a measure has no meaning for these data, and why

Whatever else is raised is a mistake of rankveil itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What begins a line, commands a terminal, or turns the direction of what follows."""


def one_line(text: str) -> str:
    """The text without anything that would begin a new line or that a terminal would obey.

    >>> one_line("a column named A\\nB")
    'a column named A\\\\nB'
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class RankveilError(Exception):
    """Whatever a person can put right; its text is one sentence, whatever the names of columns hold."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class FileError(RankveilError):
    """A file cannot be read or written."""


class FormatError(FileError):
    """A file's ending or content is not one that can be read."""


class TableError(RankveilError):
    """A column or a cell is not what was expected."""


class ParameterError(RankveilError):
    """An unknown name or a value out of range."""


class PairError(RankveilError):
    """Original and masked do not belong together."""


class ClusterError(RankveilError):
    """A cluster cannot be reached, cannot do the work, or was lost."""


class NotApplicableError(RankveilError):
    """A measure has no meaning for these data; the text says why."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of an error sentence: the nearest known name, or all of them.

    >>> suggestion("alhpa", ["alpha", "sd"])
    '; did you mean alpha?'
    >>> suggestion("zzz", ["alpha", "sd"])
    '; known: alpha, sd'
    """
    names = sorted(known)
    folded = {known_name.lower(): known_name for known_name in names}
    near = get_close_matches(name.lower(), folded, n=1)
    if near:
        return f"; did you mean {folded[near[0]]}?"
    return f"; known: {listing(names, most=30)}" if names else ""


_OF_SCHEMA = ("kinds", "levels", "roles", "missing", "hierarchies")


def refuse_unknown(given: Iterable[str], *, known: Iterable[str] = ()) -> None:
    """An error for arguments besides `schema`, `decimal` and those known; what a schema declares belongs there.

    >>> refuse_unknown(["hierarchy"])
    Traceback (most recent call last):
    rankveil.errors.ParameterError: there is no argument hierarchy; give it as schema=rv.Schema(hierarchies=...)
    """
    names = {"schema", "decimal", *known}
    for name in given:
        if name not in names:
            near = get_close_matches(name, _OF_SCHEMA, n=1)
            there = f"; give it as schema=rv.Schema({near[0]}=...)" if near else suggestion(name, names)
            raise ParameterError(f"there is no argument {name}{there}")


def row_listing(rows: Iterable[object], *, most: int = 5) -> str:
    """Numbers of rows with their word, for an error sentence.

    >>> row_listing([4]), row_listing([12, 40, 77])
    ('row 4', 'rows 12, 40, 77')
    """
    numbers = list(rows)
    return f"{'row' if len(numbers) == 1 else 'rows'} {listing(numbers, most=most)}"


def listing(items: Iterable[object], *, most: int = 5) -> str:
    """A short enumeration for an error sentence.

    >>> listing([12, 40, 77])
    '12, 40, 77'
    >>> listing(range(1, 100), most=3)
    '1, 2, 3 and 96 more'
    """
    texts = [str(item) for item in items]
    if len(texts) <= most:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])} and {len(texts) - most} more"
