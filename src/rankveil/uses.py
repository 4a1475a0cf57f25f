"""What a release is to be used for: regressions by formula, means by group and tables, as data that people write.

>>> uses = Uses.from_toml('''
... [[regression]]
... formula = "INCOME ~ AGE + C(REGION)"
...
... [[means]]
... of = ["INCOME"]
... by = "REGION"
...
... [[table]]
... columns = ["REGION", "SEX"]
... ''')
>>> [str(use) for use in uses.stated]
['INCOME ~ AGE + C(REGION)', 'means of INCOME by REGION', 'table of REGION by SEX']
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankveil.errors import FileError, ParameterError, suggestion

_NAME = r"`[^`]+`|[^\W\d][\w.]*"
_TERM = re.compile(rf"(?P<categories>C\(\s*(?P<of>{_NAME})\s*\))|(?P<name>{_NAME})")
_EXAMPLE = "a formula reads like 'INCOME ~ AGE + C(REGION)', names with other signs than letters in backticks"
_MOST = 3
"""Columns of a table."""


@dataclass(frozen=True)
class Term:
    """A column that explains: a number, or with C(...) the categories that its values are."""

    column: str
    categories: bool = False

    def __str__(self) -> str:
        return f"C({_quoted(self.column)})" if self.categories else _quoted(self.column)


@dataclass(frozen=True)
class Regression:
    """A linear regression by formula."""

    target: str
    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, formula: str) -> Regression:
        """Read `target ~ term + term`.

        >>> Regression.parse("y ~ `size of firm` + C(region)").terms
        (Term(column='size of firm', categories=False), Term(column='region', categories=True))
        """
        target, tilde, right = formula.partition("~")
        found = _TERM.fullmatch(target.strip())
        if not tilde or found is None or found["categories"]:
            raise ParameterError(f"formula {formula!r}: there is no column to explain left of ~; {_EXAMPLE}")
        terms = []
        for text in _split(right):
            made = _TERM.fullmatch(text)
            if made is None:
                raise ParameterError(
                    f"formula {formula!r}: {text!r} is not a column or C(column); {_EXAMPLE} (the intercept is always "
                    "in; products and functions of columns are columns that the tables must have)"
                )
            terms.append(Term(_bare(made["of"] or made["name"]), made["categories"] is not None))
        columns = [_bare(found["name"]), *(term.column for term in terms)]
        twice = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
        if twice:
            raise ParameterError(f"formula {formula!r}: {twice[0]} stands in it twice")
        return cls(columns[0], tuple(terms))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it takes, the target first."""
        return (self.target, *(term.column for term in self.terms))

    def __str__(self) -> str:
        return f"{_quoted(self.target)} ~ {' + '.join(map(str, self.terms))}"


@dataclass(frozen=True)
class Means:
    """Means of columns of numbers, by the groups of a column or over all records."""

    of: tuple[str, ...]
    by: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it takes, the groups last."""
        return self.of if self.by is None else (*self.of, self.by)

    def __str__(self) -> str:
        return f"means of {', '.join(self.of)}" + ("" if self.by is None else f" by {self.by}")


@dataclass(frozen=True)
class Tabulation:
    """A table of one to three columns."""

    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"table of {' by '.join(self.columns)}"


Use = Regression | Means | Tabulation


@dataclass(frozen=True)
class Uses:
    """Everything that a release is to be used for."""

    stated: tuple[Use, ...]

    @classmethod
    def of(cls, given: Any) -> Uses:
        """Uses as they are, as plain data, or by the path of their file."""
        if isinstance(given, Uses):
            return given
        if isinstance(given, Mapping):
            return cls.from_plain(given)
        if isinstance(given, str | os.PathLike):
            try:
                text = Path(given).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                raise FileError(f"{os.fspath(given)}: the file of uses cannot be read: it is not UTF-8 text") from None
            except OSError as error:
                reason = (error.strerror or "the system refused").lower()
                raise FileError(f"{os.fspath(given)}: the file of uses cannot be read: {reason}") from None
            return cls.from_toml(text)
        raise ParameterError(f"uses are a path, a mapping or rv.Uses, not {type(given).__name__}")

    @classmethod
    def from_toml(cls, text: str) -> Uses:
        """Read a file of uses."""
        try:
            plain = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ParameterError(f"the file of uses is not TOML: {error}") from None
        return cls.from_plain(plain)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Uses:
        """Uses from plain data as in the file."""
        _known(plain, tuple(_READ), "a file of uses")
        stated: list[Use] = []
        for kind, read in _READ.items():
            given = plain.get(kind, [])
            blocks = [given] if isinstance(given, Mapping) else given
            if not isinstance(blocks, Sequence) or not all(isinstance(block, Mapping) for block in blocks):
                raise ParameterError(f"each {kind} is a block [[{kind}]]")
            stated += [read(block) for block in blocks]
        if not stated:
            raise ParameterError(f"the file of uses states none; it has blocks {', '.join(f'[[{k}]]' for k in _READ)}")
        return cls(tuple(stated))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that some use takes."""
        return tuple(dict.fromkeys(name for use in self.stated for name in use.columns))


def _regression(block: Mapping[str, Any]) -> Regression:
    _known(block, ("formula",), "[[regression]]")
    if not isinstance(block.get("formula"), str):
        raise ParameterError(f"[[regression]] needs formula; {_EXAMPLE}")
    return Regression.parse(block["formula"])


def _means(block: Mapping[str, Any]) -> Means:
    _known(block, ("of", "by"), "[[means]]")
    of, by = _names(block, "of", "[[means]]"), block.get("by")
    if by is not None and not isinstance(by, str):
        raise ParameterError(f"[[means]]: by is one column, not {by!r}")
    if by in of:
        raise ParameterError(f"[[means]]: {by} cannot be averaged by its own groups")
    return Means(of, by)


def _table(block: Mapping[str, Any]) -> Tabulation:
    _known(block, ("columns",), "[[table]]")
    columns = _names(block, "columns", "[[table]]")
    if len(columns) > _MOST:
        raise ParameterError(f"[[table]]: at most {_MOST} columns, not {len(columns)}")
    return Tabulation(columns)


_READ: dict[str, Any] = {"regression": _regression, "means": _means, "table": _table}


def _names(block: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    given = block.get(key)
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"{where} needs {key}, a list of columns")
    if len(set(names)) < len(names):
        raise ParameterError(f"{where}: a column stands twice in {key}")
    return tuple(names)


def _known(block: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in block:
        if name not in known:
            raise ParameterError(f"{where} has no {name}{suggestion(name, known)}")


def _split(right: str) -> list[str]:
    """The terms between plus signs that stand outside backticks."""
    return [part.strip() for part in re.sub(r"`[^`]*`|\+", _marked, right).split("\0")]


def _marked(found: re.Match[str]) -> str:
    return "\0" if found[0] == "+" else found[0]


def _bare(name: str) -> str:
    return name[1:-1] if name.startswith("`") else name


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d][\w.]*", name) else f"`{name}`"
