"""The subject's page: released columns and the check of Algorithms 2 and 3 in one HTML file that sends nothing.

The page loads nothing either. Its Content-Security-Policy allows its own scripts and its style by their hashes and
forbids everything else, so that neither a name in the data nor what the subject types can become a request.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_NARROW = ("i1", "i2", "i4", "f4")
"""Types that take fewer bytes than the eight of a double, the narrowest first."""


@dataclass(frozen=True, eq=False)
class Released:
    """A released column: numbers, or codes of its levels; missing cells are NaN, and one at least is not missing."""

    name: str
    values: Array
    levels: tuple[str, ...] = ()
    ranking: str = ""
    """By what the levels are ordered, in words."""
    nominal: bool = False
    """Whether the levels have no order of their own."""
    others: tuple[str, ...] = ()
    """Categories that were not released and may be hers nevertheless; for them too `apart` must tell."""
    within: tuple[int, ...] = ()
    """For each of the others the place of the level that contains it, as a group or a band, or -1."""
    apart: Array | None = None
    """How far levels and others (rows) are from the levels, where a hierarchy tells; 1 from each other otherwise."""
    clock: tuple[str, str, bool] | None = None
    """For dates and times: date, timestamp or time, the unit (day, s, ms, us, ns) of the numbers, and if in UTC."""
    ends: tuple[str, str] | None = None
    """The first and the last date or time, as text."""
    law: Mapping[str, Any] = field(default_factory=dict)
    """How her own value became the released one, as far as the manifest tells."""
    means: Mapping[str, str] = field(default_factory=dict)
    """What codes among the levels stand for, where the file says it."""

    @property
    def least(self) -> float:
        """The smallest value."""
        return float(np.nanmin(self.values))

    @property
    def span(self) -> str:
        """The smallest and the largest value as a hint, numbers to about six digits.

        >>> Released("AGE", np.array([81.0, 23.0, np.nan])).span
        '23 to 81'
        """
        ends = self.ends or (_shortly(self.least), _shortly(float(np.nanmax(self.values))))
        return " to ".join(dict.fromkeys(ends))

    @property
    def choices(self) -> list[tuple[int, str]]:
        """Levels to choose from with their places: in their order, or by their labels where they have none.

        >>> Released("SEX", np.array([0.0, 1.0]), ("1", "2"), means={"1": "male", "2": "female"}).choices
        [(0, '1 (male)'), (1, '2 (female)')]
        """
        words = (
            f"{each} ({self.means[each]})" if each in self.means else each for each in (*self.levels, *self.others)
        )
        places = list(enumerate(words))
        return sorted(places, key=lambda each: each[1]) if self.nominal else places


def subject_document(
    *, title: str, columns: Sequence[Released], uniform: Sequence[Array], rules: Mapping[str, Any]
) -> str:
    """The page as HTML.

    `uniform` holds for each column the draws on (0, 1) that pick its random values, or nothing where all combinations
    are tried; `rules` what else the check needs: schema, draws, exhaustive, plausible, approximate, decimal, and those
    of the recognition of her record.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    records = columns[0].values.size
    data = {
        **rules,
        "records": records,
        "columns": [_packed(column) for column in columns],
        "uniform": [_text(draws, "f8") for draws in uniform],
    }
    style = _own("subject.css")
    scripts = [_own(f"subject.{part}.js") for part in ("recognition", "check", "page")]
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_own("subject.html.j2")).render(
        title=title,
        policy=_policy(scripts, style),
        records="one record" if records == 1 else f"{records:,} records",
        columns=columns,
        draws=f"{rules['draws']:,}",
        exhaustive=f"{rules['exhaustive']:,}",
        told=rules["recognition"]["told"],
        approximate=rules["approximate"],
        gaps=any(bool(np.isnan(column.values).any()) for column in columns),
        # our own text, and data in which no letter can end the element
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        data=Markup(json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")),
    )


def _own(name: str) -> str:
    # A browser hashes a script after turning CRLF into LF.
    return (files("rankveil.report") / "templates" / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _policy(scripts: Sequence[str], style: str) -> str:
    return (
        f"default-src 'none'; script-src {' '.join(map(_allowed, scripts))}; style-src {_allowed(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _allowed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def _packed(column: Released) -> dict[str, Any]:
    kind = _narrowest(column.values)
    packed: dict[str, Any] = {"name": column.name, "levels": column.levels, "type": kind}
    packed["values"] = _text(column.values, kind)
    packed["law"] = dict(column.law)
    if column.levels:
        packed |= {"ranking": column.ranking, "nominal": column.nominal, "others": column.others}
        packed["within"] = column.within
    if column.apart is not None:  # a few different distances, so their places are shorter
        distances, places = np.unique(column.apart, return_inverse=True)
        kind = _narrowest(places.astype(np.float64))
        packed["apart"] = {"distances": distances.tolist(), "type": kind, "places": _text(places.ravel(), kind)}
    if column.clock is not None:
        packed["clock"] = dict(zip(("kind", "unit", "utc"), column.clock, strict=True))
    return packed


def _narrowest(values: Array) -> str:
    """The shortest type of number that holds every value exactly.

    >>> _narrowest(np.array([1.0, -300.0])), _narrowest(np.array([0.5, np.nan])), _narrowest(np.array([0.1]))
    ('i2', 'f4', 'f8')
    """
    with np.errstate(invalid="ignore", over="ignore"):
        for kind in _NARROW:
            if np.array_equal(values.astype(kind).astype(np.float64), values, equal_nan=kind == "f4"):
                return kind
    return "f8"


def _text(values: NDArray[Any], kind: str) -> str:
    return base64.b64encode(values.astype(f"<{kind}").tobytes()).decode("ascii")


def _shortly(value: float) -> str:
    """A number for a hint: six digits, or all of its whole part.

    >>> _shortly(1996899.854993465), _shortly(0.014536280), _shortly(123.37)
    ('1996900', '0.0145363', '123.37')
    """
    size = math.floor(math.log10(abs(value))) if value else 0
    short = round(value, max(0, 5 - size))
    return str(int(short)) if short.is_integer() and size < 15 else repr(short)
