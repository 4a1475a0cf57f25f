"""What the contract runs over: every method and measure that discovery finds, with every parameter tried.

Nothing here names a method: a new file in `rankveil/methods` or `rankveil/measures` is covered with no other edit.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import rankveil as rv
from rankveil import catalogue
from rankveil.catalogue import Entry, Measure, Method, Parameter
from rankveil.plans import Plan, Step
from rankveil.seeds import CommonSeed

Array = NDArray[np.float64]
Columns = dict[str, Array]

RECORDS = 60


def sample(n: int = RECORDS, *, draw: int = 1) -> Columns:
    """Three columns without ties: about normal (and explained by the next), skewed, and whole numbers."""
    rng = np.random.default_rng(draw)
    skewed = rng.lognormal(0.0, 1.0, n)
    return {
        "A": 50.0 + 5.0 * np.log(skewed) + rng.normal(0.0, 1.5, n),
        "B": skewed,
        "C": rng.permutation(10 * n)[:n].astype(np.float64),
    }


def allowed(parameter: Parameter) -> list[Any]:
    """Values that the signature allows: choices, the ends of the range, some inside it, none where it may be."""
    values: list[Any] = [None] if parameter.optional else []
    if parameter.choices:
        return [*values, *parameter.choices]
    if parameter.type is bool:
        return [*values, False, True]
    if parameter.type not in (int, float):
        return values
    low, high, above = -1000.0, math.inf, False
    if parameter.range is not None:
        low, high, above = max(parameter.range.low, low), parameter.range.high, parameter.range.above
    if above:
        numbers = [low + 1e-6 if parameter.type is float else low + 1, low + 1, low + 2]
    else:
        numbers = [low, low + 1, low + 2]
    many = 200.0 if low >= 0 else 2000.0  # enough to be large, and above 0
    numbers += [high] if math.isfinite(high) else [low + many]
    return [*values, *dict.fromkeys(parameter.type(number) for number in numbers if number <= high)]


def refused(parameter: Parameter) -> list[Any]:
    """Values that the signature forbids: just outside the range, and whatever is of another type."""
    wrong: list[Any] = [] if parameter.optional else [None]
    if parameter.choices:
        return [*wrong, "no-such-choice", 1]
    if parameter.type is bool:
        return [*wrong, "perhaps", 2]
    if parameter.type not in (int, float):
        return [*wrong, 1]
    wrong += ["many", "", [1], math.nan, math.inf, -math.inf, True]
    wrong += [1.5] if parameter.type is int else []
    within = parameter.range
    if within is not None and math.isfinite(within.low):
        just_below = within.low - 1 if parameter.type is int else float(np.nextafter(within.low, -math.inf))
        wrong += [within.low if within.above else just_below, str(just_below), -1e300]
    if within is not None and math.isfinite(within.high):
        wrong += [within.high + 1 if parameter.type is int else float(np.nextafter(within.high, math.inf)), 1e300]
    return wrong


@dataclass(frozen=True)
class Variant:
    """A method with some of its parameters set."""

    method: Method
    given: Mapping[str, Any]

    @property
    def plan(self) -> Plan:
        """The method alone, or a post-step after noise, for it works on what was masked."""
        step = Step(self.method.id, dict(self.given))
        return Plan((Step("additive_noise", {"alpha": 0.5}), step)) if self.method.post else Plan((step,))

    @property
    def facts(self) -> dict[str, Any]:
        """What the method declares for these parameters."""
        return self.method.facts(self.method.bind(self.given))

    def mask(self, columns: Columns, *, seed: int | str = 1) -> rv.Release:
        """The release of these columns, all masked as numbers with the same draws: tables are compared."""
        schema = rv.Schema(kinds=dict.fromkeys(columns, "numeric"), roles=dict.fromkeys(columns, "confidential"))
        return rv.mask(pa.table(columns), self.plan, seed=CommonSeed.of(seed), shuffled=False, schema=schema)

    def run(self, columns: Columns, *, seed: int = 1) -> Columns:
        """The released columns as numbers."""
        return numbers(self.mask(columns, seed=seed).data)

    def __str__(self) -> str:
        return "-".join([self.method.id, *(f"{name}={value}" for name, value in self.given.items())])


def numbers(data: pa.Table) -> Columns:
    """The columns of a table, missing cells as NaN."""
    return {name: data[name].cast(pa.float64()).to_numpy() for name in data.column_names}


def base_of(method: Method) -> Variant:
    """The method with the first allowed values of its required parameters that it can work with.

    Where those alone will not do, parameters that may be left out are tried too. Where a parameter makes the method
    repeat itself from the seed, it is set.
    """
    required = [parameter for parameter in method.parameters.values() if parameter.required]
    may_be_left_out = [parameter for parameter in method.parameters.values() if parameter.optional]
    repeats = {method.reproducible_with: True} if method.reproducible_with else {}
    why: Exception | None = None
    for tried in (required, [*required, *may_be_left_out]):
        for values in itertools.product(*map(allowed, tried)):
            variant = Variant(method, {**repeats, **{p.name: v for p, v in zip(tried, values, strict=True)}})
            try:
                variant.run(sample())
            except rv.ParameterError as error:
                why = error
                continue
            return variant
    raise AssertionError(f"{method.id}: no allowed values of its required parameters work on a plain table ({why})")


def variants_of(method: Method) -> Iterator[Variant]:
    """The base, then every allowed value of every parameter, one at a time, where it fits the others and the table."""
    base = base_of(method)
    yield base
    for parameter in method.parameters.values():
        for value in allowed(parameter):
            variant = Variant(method, {**base.given, parameter.name: value})
            with contextlib.suppress(rv.ParameterError):  # a lower end above the upper one, for example
                variant.run(sample())
                if variant != base:
                    yield variant


def plain(method: Method) -> bool:
    """Whether it makes numbers of numbers, record for record; the others have a contract of their own."""
    return (
        "numeric" in method.kinds
        and method.takes == "values"
        and method.works_on != "names"
        and method.role is None
        and not method.changes_missing
        and not method.relabels
        and not method.leaves_out
    )


def for_categories(method: Method) -> bool:
    """Whether the contract on tables of all kinds is about it, too; a post-step needs another step before it."""
    return not plain(method) or (not method.post and not {"nominal", "hierarchy"}.isdisjoint(method.kinds))


def every_entry() -> list[Entry[Any]]:
    """All methods, then all measures."""
    return [*catalogue.methods().values(), *catalogue.measures().values()]


@cache
def shares() -> dict[str, tuple[list[Any], Callable[[Any], str]]]:
    """What a contract test may ask for by the name of an argument, and what each case is called."""
    methods = [method for method in catalogue.methods().values() if plain(method)]
    measures = list(catalogue.measures().values())
    pairs = [(entry, parameter) for entry in every_entry() for parameter in entry.parameters.values()]
    return {
        "entry": (every_entry(), lambda entry: entry.id),
        "declared": (pairs, lambda pair: f"{pair[0].id}.{pair[1].name}"),
        "measure": (measures, lambda measure: measure.id),
        "other": (list(filter(for_categories, catalogue.methods().values())), lambda method: method.id),
        "base": ([base_of(method) for method in methods], str),
        "variant": ([variant for method in methods for variant in variants_of(method)], str),
    }


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark by which a test says for which of its share it holds."""
    config.addinivalue_line("markers", "only(where): the methods, variants or measures that a contract test is about")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each contract test its share of the catalogue: there is no case that it would have to skip."""
    mark = metafunc.definition.get_closest_marker("only")
    for name, (cases, called) in shares().items():
        if name in metafunc.fixturenames:
            about = [each for each in cases if mark is None or mark.kwargs["where"](each)]
            metafunc.parametrize(name, about, ids=called)


@pytest.fixture
def table() -> Columns:
    """Sixty records, three columns, no ties."""
    return sample()


@pytest.fixture
def large() -> Columns:
    """Enough records for threads and compiled loops."""
    return sample(7_000)


@pytest.fixture(name="allowed")
def allowed_values() -> Any:
    """The function that lists allowed values."""
    return allowed


@pytest.fixture(name="refused")
def refused_values() -> Any:
    """The function that lists forbidden values."""
    return refused


@pytest.fixture
def within() -> Any:
    """Whether the value of a measure lies in its bounds."""

    def check(measure: Measure, value: float) -> bool:
        low, high = measure.bounds
        return math.isfinite(value) and low - 1e-9 <= value <= high + 1e-9

    return check


def _degenerate() -> dict[str, Columns]:
    rng = np.random.default_rng(3)
    spread = rng.normal(size=9)
    few = rng.integers(0, 2, 9).astype(np.float64)
    return {
        "one row": {"A": np.array([3.5]), "B": np.array([-1.0])},
        "two rows": {"A": np.array([3.5, 2.0]), "B": np.array([1.0, 1.0])},
        "three rows": {"A": np.array([3.5, 2.0, 2.5]), "B": np.array([1.0, 1.0, 7.0])},
        "a constant column": {"A": np.full(9, 0.1), "B": spread},
        "all zero": {"A": np.zeros(9)},
        "many ties": {"A": few, "B": 1 - few},
        "duplicate rows": {"A": np.repeat(spread[:3], 3), "B": np.repeat(spread[3:6], 3)},
        "1e12": {"A": 1e12 + spread, "B": 1e12 * spread},
        "1e-12": {"A": 1e-12 * spread, "B": 1.0 + 1e-12 * spread},
        "1e300": {"A": 1e300 * spread, "B": np.abs(spread) * 1e300},
        "the largest numbers": {"A": np.array([1.7e308, -1.7e308, 1.0, 1.6e308, -1.5e308])},
        "the smallest numbers": {"A": np.array([5e-324, 0.0, 1e-323, -5e-324, 1e-310])},
        "large beside small": {"A": np.array([1e300, 1e-300, 1.0, 0.0, -1e300, 1e-12])},
        "one value present": {"A": np.array([np.nan, 2.0, np.nan]), "B": np.array([1.0, 2.0, 3.0])},
    }


@pytest.fixture(params=list(_degenerate()), ids=lambda name: name.replace(" ", "_"))
def degenerate(request: pytest.FixtureRequest) -> Columns:
    """Tables at the edge of what a table can be."""
    return _degenerate()[request.param]
