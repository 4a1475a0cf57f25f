"""The catalogue: a method or a measure is one function in one file, and its decorator says its facts.

`@method` and `@measure` read the parameters, their types, ranges and defaults from the signature. Discovery lists
the modules of `rankveil.methods` and `rankveil.measures`: a file dropped there is in the catalogue.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Generic, Literal, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import ParameterError, suggestion
from rankveil.likelihood import Statement
from rankveil.parameters import DATED, EACH, REQUIRED, Parameter, Range, read_parameter
from rankveil.rows import HERE, Rows

__all__ = [
    "DATED",
    "EACH",
    "EVERY_KIND",
    "NUMBERS",
    "REQUIRED",
    "Array",
    "Entry",
    "Measure",
    "Method",
    "Outcome",
    "Parameter",
    "Range",
    "Value",
    "get_measure",
    "get_method",
    "measure",
    "measures",
    "method",
    "methods",
]

Array = NDArray[np.float64]

_PROVIDED = ("rng", "attributes", "names", "target", "kinds", "categories", "groups", "temporal", "gaps", "rows")
"""Keyword arguments that people do not set: the stream of draws, how many columns there are, their names, kinds and
categories (None for numbers), the group of each record if there are groups, the type of dates and times, and for a
measure which of the columns (from 0) is the target of the stated use, if any."""

NUMBERS = ("numeric", "ordinal")
EVERY_KIND = ("numeric", "ordinal", "nominal")


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Entry(Generic[F]):
    """What a method and a measure have in common: an id, a function, parameters, facts, a source."""

    id: str
    title: str
    function: F
    source: str
    parameters: Mapping[str, Parameter] = field(init=False)
    needs: tuple[str, ...] = field(init=False)
    """The names of what the function works on, in order."""

    def __post_init__(self) -> None:
        hints = get_type_hints(self.function, include_extras=True)
        signature = inspect.signature(self.function).parameters.values()
        keywords = [p for p in signature if p.kind is p.KEYWORD_ONLY and p.name not in _PROVIDED]
        read = {p.name: read_parameter(p.name, hints[p.name], p.default) for p in keywords}
        needs = tuple(p.name for p in signature if p.kind is not p.KEYWORD_ONLY)
        if "given" in needs:  # the function gets the columns, a plan names them
            hint = Annotated[tuple[str, ...], "columns that are kept as they are and that the masked ones depend on"]
            read["given"] = read_parameter("given", hint, ())
        object.__setattr__(self, "parameters", types.MappingProxyType(read))
        object.__setattr__(self, "needs", needs)

    @property
    def summary(self) -> str:
        """The first paragraph of the function's docstring, or of its module's."""
        module = inspect.getmodule(self.function)
        text = inspect.getdoc(self.function) or (inspect.getdoc(module) if module else "") or self.title
        return " ".join(text.split("\n\n")[0].split())

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name, or an error that suggests the nearest."""
        if name not in self.parameters:
            known = suggestion(name, self.parameters) if self.parameters else "; it has none"
            raise ParameterError(f"{self.id} has no parameter {name}{known}")
        return self.parameters[name]

    def bind(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters with checked values, defaults filled in."""
        for name in given:
            self.parameter(name)
        bound = {}
        for name, parameter in self.parameters.items():
            if name not in given and parameter.required:
                raise ParameterError(f"{self.id} needs {name} ({parameter.expected()}): --set {name}=...")
            value = given.get(name, parameter.default)
            bound[name] = parameter.check(value, owner=self.id) if name in given else value
        return bound


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method returns when the masked values alone do not tell the whole story."""

    values: Array
    counts: Mapping[str, Any] = field(default_factory=dict)
    """How many values were clipped, clamped, suppressed, one number for each column of several: published."""
    notes: tuple[str, ...] = ()
    """For the protector: what was special here."""
    missing: NDArray[np.bool_] | None = None
    """Which cells are missing now, from a method on several columns that changes that; otherwise those that were."""
    gaps: NDArray[np.int64] | None = None
    """The number of the missing code of each cell that is missing now; none where all of them are empty cells."""
    levels: tuple[str, ...] | None = None
    """The labels that the values are codes of, when they are others than before (one column)."""


Correction = Callable[..., tuple[Array, Array]]
ShareCorrection = Callable[..., dict[str, float]]
Guarantee = Callable[[Mapping[str, Mapping[str, Any]], Mapping[str, Mapping[str, int]], Sequence[str]], list[str]]
Caution = Callable[[Mapping[str, Mapping[str, Any]]], list[str]]
Intruder = Callable[..., Statement]
OwnScale = Callable[..., float | None]


@dataclass(frozen=True, eq=False)
class Method(Entry[Callable[..., Any]]):
    """A masking method or post-step with its facts."""

    works_on: Literal["column", "columns", "records", "names"] = "column"
    """One column, several columns together, whole records, or which columns there are."""
    kinds: tuple[str, ...] = ("numeric",)
    """The kinds of columns that it takes; `hierarchy` is a nominal one with a hierarchy, which gives it an order."""
    takes: Literal["values", "labels"] = "values"
    """Whether it works on a column's values, or on its labels whatever they are (numbers too are labels then)."""
    role: str | None = None
    """The role of the columns that it is meant for: without columns named it takes those that were given that role."""
    changes_missing: bool = False
    """Whether it changes which cells are missing."""
    whole_records: bool = False
    """Whether what it suppresses depends on all its columns together, those of groups and those of records."""
    told: tuple[str, ...] = ()
    """Parameters of which one must be set for a column: a step that names no columns takes those for which one is."""
    relabels: bool = False
    """Whether it makes labels of numbers, or other labels than there were."""
    leaves_out: bool = False
    """Whether records are left out."""
    keyed: bool = False
    """Whether all that it draws of a column is a key, which may be the protector's own: the same in every release."""
    by_parts: bool = False
    """Whether it can work on some of the rows at a time: what concerns all of them it asks `rows`."""
    strength: str | None = None
    by_columns: bool = False
    """Whether the strength, where none is given, goes by how many columns are masked: see `rankveil.strengths`."""
    stronger: Literal["higher", "lower"] = "higher"
    instead: tuple[str, ...] = ()
    """Parameters that stand instead of the strength where they are given."""
    mapping: Literal["kept", "reordered", "none"] = "kept"
    marginals: Literal["kept", "changed"] = "changed"
    local: bool = False
    local_with: str | None = None
    """The parameter that makes the method local when it is given."""
    post: bool = False
    transparent: str = "yes"
    from_data: Mapping[str, str] = field(default_factory=dict)
    """Parameters that are taken from the original when left out, and what publishing them would tell."""
    disclosure: Callable[[Mapping[str, Any]], dict[str, str]] | None = None
    """What is taken from the original, where that depends on the parameters otherwise: see `discloses`."""
    locality: Callable[[Mapping[str, Any]], bool] | None = None
    """Whether it is local, where that depends on several parameters: see `local_when`."""
    tells: str = ""
    """What a user of the release can do with the parameters."""
    reproducible_with: str | None = None
    """The parameter that makes a method with randomness of its own repeat itself from the seed."""
    seed_tells: str = ""
    """What who has the secret seed can do with the release; nothing where the draws say nothing of the original."""
    survives: Literal["data-free", "value-wise", "nothing"] = "nothing"
    """Which later steps leave its guarantee standing: those that do not look at the original again, those that map
    equal values to equal values, or none."""
    correction: Correction | None = None
    """From the moments of the release back to those of the original: see `corrects`."""
    share_correction: ShareCorrection | None = None
    """From the shares of categories in the release back to those in the original: see `corrects_shares`."""
    guarantee: Guarantee | None = None
    """What holds for the release whatever the data: see `guarantees`."""
    caution: Caution | None = None
    """What the protector and the readers of the manifest are warned of: see `cautions`."""
    intruder: Intruder | None = None
    """What the step tells somebody who knows the original: see `tells_intruder`."""
    own_scale: OwnScale | None = None
    """The scale of its noise, where the grid of the release must not come from the data: see `scales`."""

    @property
    def accepts(self) -> frozenset[str]:
        """The names of all that its function takes."""
        return frozenset(inspect.signature(self.function).parameters)

    @property
    def random(self) -> bool:
        """Whether it draws: it does when its function takes `rng`."""
        return "rng" in self.accepts

    @property
    def computes(self) -> bool:
        """Whether it draws numbers that the original need not have, which are released on a grid."""
        drawn = self.random and self.marginals == "changed" and self.works_on in ("column", "columns")
        return drawn and "numeric" in self.kinds and not self.relabels

    def __call__(
        self,
        *data: Any,
        rng: Any = None,
        attributes: int = 1,
        kinds: tuple[str, ...] = (),
        categories: Any = None,
        **given: Any,
    ) -> Any:
        """Run on arrays, parameters checked."""
        bound = self.bind(given)
        return self.run(*data, rng=rng, attributes=attributes, bound=bound, kinds=kinds, categories=categories)

    def run(
        self,
        *data: Any,
        rng: Any,
        attributes: int,
        bound: Mapping[str, Any],
        names: tuple[str, ...] = (),
        kinds: tuple[str, ...] = (),
        categories: Any = None,
        groups: Any = None,
        temporal: Any = None,
        gaps: Any = None,
        rows: Rows = HERE,
    ) -> Any:
        """Run on arrays with parameters that were checked already."""
        provided = {"rng": rng, "attributes": attributes, "names": names, "kinds": kinds, "categories": categories}
        provided |= {"groups": groups, "temporal": temporal, "gaps": gaps, "rows": rows}
        wanted = inspect.signature(self.function).parameters
        keywords = {name: value for name, value in {**bound, **provided}.items() if name in wanted}
        return self.function(*data, **{name: value for name, value in keywords.items() if name not in self.needs})

    def guarantees(self, function: Guarantee) -> Guarantee:
        """Decorate `(parameters by column, counts by column, names) -> sentences`: what the step guarantees.

        Parameters and counts are those of all columns of the step; the names are the columns of which it is still true
        in the release.
        """
        object.__setattr__(self, "guarantee", function)
        return function

    def cautions(self, function: Caution) -> Caution:
        """Decorate `(parameters by column) -> sentences`: what is known to undo the step with these parameters."""
        object.__setattr__(self, "caution", function)
        return function

    def tells_intruder(self, function: Intruder) -> Intruder:
        """Decorate `(values, parameters, *, attributes, labels, categories) -> Statement`: what the step tells.

        The values are those that enter the step, of one column with its parameters, or of several with a list of them.
        """
        object.__setattr__(self, "intruder", function)
        return function

    def scales(self, function: OwnScale) -> OwnScale:
        """Decorate `(parameters, *, attributes, temporal) -> scale`: that of its noise, without a look at the data.

        The grid of the release is made of it. 0 stands for numbers that are released as they were drawn, None for the
        grid that the original gives.
        """
        object.__setattr__(self, "own_scale", function)
        return function

    def corrects(self, function: Correction) -> Correction:
        """Decorate `(mean, covariance, per_column_parameters) -> (mean, covariance)` of the original.

        With `attributes` among its keywords it gets the number of columns of the step, released or not. A variance may
        come out below 0.
        """
        object.__setattr__(self, "correction", function)
        return function

    def corrected(
        self, mean: Array, covariance: Array, given: Sequence[Mapping[str, Any]], *, attributes: int
    ) -> tuple[Array, Array]:
        """The moments before the step; `attributes` columns had it, of which some may have been dropped since."""
        assert self.correction is not None
        wanted = "attributes" in inspect.signature(self.correction).parameters
        return self.correction(mean, covariance, given, **({"attributes": attributes} if wanted else {}))

    def corrects_shares(self, function: ShareCorrection) -> ShareCorrection:
        """Decorate `(shares by label, parameters, counts) -> shares by label` of the original column."""
        object.__setattr__(self, "share_correction", function)
        return function

    def discloses(self, function: Callable[[Mapping[str, Any]], dict[str, str]]) -> Any:
        """Decorate `(parameters) -> {what: why}`: what is taken from the original, and what the release tells by it."""
        object.__setattr__(self, "disclosure", function)
        return function

    def local_when(self, function: Callable[[Mapping[str, Any]], bool]) -> Any:
        """Decorate `(parameters) -> bool`: whether each value is masked without a look at the others."""
        object.__setattr__(self, "locality", function)
        return function

    def taken(self, bound: Mapping[str, Any]) -> dict[str, str]:
        """What is taken from the original with these parameters, and what publishing it would tell."""
        if self.disclosure is not None:
            return self.disclosure(bound)
        return {name: why for name, why in self.from_data.items() if bound[name] in (None, "data")}

    def used(self, bound: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that count: not the strength where another one stands instead of it."""
        replaced = any(bound.get(name) is not None for name in self.instead)
        return {name: value for name, value in bound.items() if not (replaced and name == self.strength)}

    def facts(self, bound: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What holds for the method, with these parameters when they are given."""
        local = self.local or bool(self.local_with and bound and bound.get(self.local_with) is not None)
        if self.locality is not None and bound is not None:
            local = self.locality(bound)
        return {
            "works_on": self.works_on,
            "kinds": list(self.kinds),
            "mapping": self.mapping,
            "marginals": self.marginals,
            "random": self.random,
            "reproducible": self.reproducible_with is None or bool(bound and bound.get(self.reproducible_with)),
            "local": local,
            "transparent": self.transparent,
        }

    def describe(self) -> dict[str, Any]:
        """For `rankveil methods --json`."""
        return {
            "id": self.id,
            "title": self.title,
            "summary": self.summary,
            "post_step": self.post,
            "parameters": [parameter.describe() for parameter in self.parameters.values()],
            "strength": self.strength,
            "risk_falls_when_strength_is": self.stronger if self.strength else None,
            **self.facts(),
            "local_with": self.local_with,
            "local_when": inspect.getdoc(self.locality) if self.locality is not None else None,
            "source": self.source,
        }


@dataclass(frozen=True, eq=False)
class Measure(Entry[Callable[..., Any]]):
    """A measure with its facts."""

    family: Literal["confidentiality", "risk", "utility", "loss"] = "risk"
    better: Literal["higher", "lower"] = "higher"
    """Which way is good: for the protector (safer) in a measure of confidentiality or risk, for the user (nearer to the
    original) in one of utility or loss. A measure of risk may be higher where it is safer, as a distance is."""
    bounds: tuple[float, float] = (0.0, math.inf)
    mapping: bool = True
    """Whether it needs to know which masked record derives from which original one."""
    equal: bool = True
    """Whether it needs as many masked records as original ones."""
    pairwise: bool = False
    """Whether it gets all records of both tables, NaN where a value is missing: for each of its numbers it then leaves
    out only the records that lack a value of that number's columns, and says how many it used."""
    kinds: tuple[str, ...] = NUMBERS
    """The kinds of columns that it takes; those of other kinds are left out, and the result says so."""
    weighted: bool = False
    """Whether records count by their weights where there are some."""
    moments: Literal["as numbers", "in days", "left out"] = "as numbers"
    """What it makes of dates and times: numbers in whatever unit they are kept, days where the unit would show in the
    value, or nothing where it divides by values: the 0 of a calendar or of a clock is only agreed."""
    records: Literal["together", "by column", "by pair"] = "together"
    """Where cells are missing: the records that have all columns, or for each column, or for each two columns, those
    that have them. Joint mathematics (distances of records, eigenvalues, regression) needs the first."""
    emptied: Literal["left out", "lost"] = "left out"
    """What a column counts as that is empty in the release, where records are taken by column or by pair."""
    per: Literal["column", "table"] = "table"
    headline: Literal["mean", "max", "min"] = "mean"
    """How the per-attribute values of a `per="column"` measure become one number."""

    @property
    def protects(self) -> bool:
        """Whether it is of the protector: what is better is safer. Otherwise it is of the user."""
        return self.family in ("confidentiality", "risk")

    def within(self, value: float, limit: float) -> bool:
        """Whether a value is as good as a limit asks, or better.

        >>> get_measure("k_anonymity").within(6, 5), get_measure("people_found").within(0.1, 0.09)
        (True, False)
        """
        return value >= limit if self.better == "higher" else value <= limit

    @property
    def aims(self) -> bool:
        """Whether it is about the target of a stated use: it is when its function takes `target`."""
        return "target" in inspect.signature(self.function).parameters

    def __call__(
        self,
        *data: Any,
        rng: Any = None,
        names: tuple[str, ...] = (),
        target: int | None = None,
        kinds: tuple[str, ...] = (),
        categories: tuple[Any, ...] = (),
        **given: Any,
    ) -> Any:
        """Run on arrays, parameters checked."""
        wanted = inspect.signature(self.function).parameters
        provided = {"rng": rng, "names": names, "target": target, "kinds": kinds, "categories": categories}
        provided = {name: value for name, value in provided.items() if name in wanted and name not in self.needs}
        return self.function(*data, **self.bind(given), **provided)

    def describe(self) -> dict[str, Any]:
        """For `rankveil measures --json`."""
        return {
            "id": self.id,
            "title": self.title,
            "summary": self.summary,
            "family": self.family,
            "better": self.better,
            "bounds": [bound if math.isfinite(bound) else None for bound in self.bounds],
            "needs_mapping": self.mapping,
            "needs_equal_numbers": self.equal,
            "kinds": list(self.kinds),
            "weighted": self.weighted,
            "dates_and_times": self.moments,
            "records": "by column" if self.per == "column" else "by pair" if self.pairwise else self.records,
            "per": self.per,
            "headline": self.headline if self.per == "column" else None,
            "parameters": [parameter.describe() for parameter in self.parameters.values()],
            "source": self.source,
        }


@dataclass(frozen=True)
class Used:
    """How many records a number rests on: the fewest and the most of its columns or pairs, of how many there are."""

    fewest: int
    most: int
    of: int
    masked: Used | None = None
    """Of the masked table, where it is looked at by itself and has others."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        more = {} if self.masked is None else {"masked": self.masked.to_dict()}
        return {"used": self.fewest, "most": self.most, "of": self.of, **more}

    def __str__(self) -> str:
        """As it stands beside a number.

        >>> print(Used(25, 25, 5822), Used(7, 7, 7), Used(10, 20, 20), Used(9, 9, 9, Used(4, 4, 5)), sep=" | ")
        25 of 5,822 | 7 | 10 to 20 of 20 | 9; masked 4 of 5
        """
        used = f"{self.fewest:,}" if self.fewest == self.most else f"{self.fewest:,} to {self.most:,}"
        used = used if self.fewest == self.of else f"{used} of {self.of:,}"
        return used if self.masked is None else f"{used}; masked {self.masked}"


def least_used(parts: Sequence[Used]) -> Used | None:
    """The fewest and the most records that several numbers rest on."""
    if not parts:
        return None
    first, second = (
        Used(min(each.fewest for each in some), max(each.most for each in some), max(each.of for each in some))
        for some in (parts, [used.masked or used for used in parts])
    )
    return first if first == second else Used(first.fewest, first.most, first.of, second)


@dataclass(frozen=True, eq=False)
class Value:
    """What a measure returns when there is more to say than one number."""

    value: float
    details: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    used: Used | None = None
    """How many records it rests on."""


def method(**facts: Any) -> Callable[[Callable[..., Any]], Method]:
    """Declare a masking method; its id is the function's name."""
    return lambda function: Method(id=function.__name__.rstrip("_"), function=function, **facts)


def measure(**facts: Any) -> Callable[[Callable[..., Any]], Measure]:
    """Declare a measure; its id is the function's name."""
    return lambda function: Measure(id=function.__name__.rstrip("_"), function=function, **facts)


@cache
def methods() -> Mapping[str, Method]:
    """Every method and post-step in `rankveil.methods`, by id."""
    return _discover("rankveil.methods", Method)


@cache
def measures() -> Mapping[str, Measure]:
    """Every measure in `rankveil.measures`, by id."""
    return _discover("rankveil.measures", Measure)


E_ = TypeVar("E_", Method, Measure)


def _discover(package: str, kind: type[E_]) -> Mapping[str, E_]:
    found: dict[str, E_] = {}
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
        for value in vars(importlib.import_module(f"{package}.{info.name}")).values():
            for thing in value if isinstance(value, tuple) else (value,):  # a family may be made in a loop
                if isinstance(thing, kind) and found.setdefault(thing.id, thing) is not thing:
                    raise TypeError(f"two entries of the catalogue are called {thing.id}")
    return types.MappingProxyType(dict(sorted(found.items())))


def get_method(name: str) -> Method:
    """The method of that id, or an error that suggests the nearest."""
    if name not in methods():
        raise ParameterError(f"there is no method {name}{suggestion(name, methods())}")
    return methods()[name]


def get_measure(name: str) -> Measure:
    """The measure of that id, or an error that suggests the nearest."""
    if name not in measures():
        raise ParameterError(f"there is no measure {name}{suggestion(name, measures())}")
    return measures()[name]
