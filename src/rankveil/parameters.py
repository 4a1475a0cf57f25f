"""The parameters of methods and measures: read from a signature, checked, described."""

from __future__ import annotations

import datetime
import inspect
import math
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

from rankveil.errors import ParameterError

REQUIRED = inspect.Parameter.empty

_PART = re.compile(r"(?:[\[(][^\[\](),]*,[^\[\](),]*[\])]|[^,])+")
"""A part of a list in text: commas separate, but not within a band such as [18,30)."""


class _Each:
    """See EACH."""


EACH = _Each()
"""Marks a parameter of a method on several columns that may be another for each: it comes as an array."""


class _Dated:
    """See DATED."""


DATED = _Dated()
"""Marks a number that is a date or time where the column holds those: it comes as text then."""


@dataclass(frozen=True)
class Range:
    """The values that a number may take, ends included unless said otherwise."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    """Whether the low end itself is excluded."""

    def __contains__(self, value: float) -> bool:
        return (self.low < value if self.above else self.low <= value) and value <= self.high

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"{'above' if self.above else 'at least'} {self.low:g}"
        return f"{'above' if self.above else 'from'} {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a method or measure, as its signature declares it."""

    name: str
    type: type
    default: Any
    optional: bool
    range: Range | None
    choices: tuple[str, ...]
    text: str
    each: bool = False
    """Whether a method on several columns takes one for each column."""
    dated: bool = False
    """Whether it may be a date or time instead of a number; whether the column takes that is the method's to say."""

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.default is REQUIRED

    def check(self, value: Any, *, owner: str, column: str | None = None) -> Any:
        """The value in its own type, or an error that says what would be right."""
        where = f"{owner}: {self.name}{f' of column {column}' if column else ''}"
        if value is None or (self.optional and isinstance(value, str) and value.lower() == "none"):
            if self.optional:
                return None
            raise ParameterError(f"{where} must be given ({self.expected()})")
        converted = self._convert(value)
        if converted is None and self.dated:
            converted = _moment(value)
        if (
            converted is None
            or (self.choices and converted not in self.choices)
            or (self.range is not None and converted not in self.range)
        ):
            raise ParameterError(f"{where} must be {self.expected()}, not {value!r}")
        return converted

    def _convert(self, value: Any) -> Any:
        try:
            if self.type is bool:
                words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
                return value if isinstance(value, bool | np.bool_) else words.get(str(value).lower())
            if self.type in (int, float):
                number = float(value)
                if isinstance(value, bool | np.bool_) or not math.isfinite(number):
                    return None
                if self.type is float:
                    return number
                exact = int(value) if str(value).lstrip("+-").isdecimal() else int(number)
                return exact if number == int(number) else None
            if self.type is tuple:
                if isinstance(value, Mapping | bytes):
                    return None
                parts = _PART.findall(value) if isinstance(value, str) else [_plain(part) for part in value]
                return tuple(part.strip() for part in parts if part.strip())
            return str(value) if isinstance(value, str) else None
        except (AttributeError, TypeError, ValueError, OverflowError):
            return None

    def expected(self) -> str:
        """What would be right, in words."""
        if self.choices:
            return " or ".join(self.choices)
        kinds = {int: "a whole number", float: "a number", bool: "true or false", tuple: "a list"}
        kind = kinds.get(self.type, "a text")
        if self.dated:
            kind += " or a date or time such as 2020-05-04"
        return f"{kind} {self.range}" if self.range else kind

    def describe(self) -> dict[str, Any]:
        """For the catalogue's JSON."""
        described: dict[str, Any] = {"name": self.name, "type": self.type.__name__, "text": self.text}
        described["required"] = self.required
        if not self.required:
            described["default"] = self.default
        if self.range:
            ends = [self.range.low, self.range.high]
            described["range"] = [end if math.isfinite(end) else None for end in ends]
            described["above"] = self.range.above
        if self.choices:
            described["choices"] = list(self.choices)
        if self.dated:
            described["dated"] = True
        return described


def _moment(value: Any) -> str | None:
    """A date or time as text: as a person writes it, or as Python and TOML have it."""
    if isinstance(value, str):
        return value.strip() if re.search("[0-9][-./:][0-9]", value) else None
    return str(value) if isinstance(value, datetime.date | datetime.time) else None


def _plain(part: Any) -> str:
    """A part of a list as text: a word, a number, or a date as TOML has it."""
    if isinstance(part, bool) or not isinstance(part, str | int | float | np.number | datetime.date | datetime.time):
        raise TypeError("no part of a list")
    return str(part)


def read_parameter(name: str, hint: Any, default: Any) -> Parameter:
    extras: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        extras = tuple(rest)
    optional = False
    if get_origin(hint) in (Union, types.UnionType):
        optional = type(None) in get_args(hint)
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    if hint is not bool and get_origin(hint) is tuple:
        hint = tuple
    return Parameter(
        name=name,
        type=str if choices else hint,
        default=default,
        optional=optional,
        range=next((extra for extra in extras if isinstance(extra, Range)), None),
        choices=choices,
        each=any(extra is EACH for extra in extras),
        dated=any(extra is DATED for extra in extras),
        text=next((extra for extra in extras if isinstance(extra, str)), ""),
    )
