"""What a comparison found: each method's strength, what it attains there, and the ranking, in data and in words."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankveil.catalogue import get_measure, get_method
from rankveil.comparison.target import EXACT, RISK
from rankveil.errors import ParameterError, listing
from rankveil.plans import Plan
from rankveil.report.look import number

NAMED = {
    "correlation_change": "largest change of a correlation",
    "mean_shift": "largest shift of a mean, in standard deviations,",
    "table_cells": "share of cells of two-way tables within 5 %",
    "loss_correlations_mae": "mean change of a correlation",
    "people_found": "share of people found",
}
"""Measures in the words of a recommendation."""
COMPARE_SCHEMA = "rankveil/compare/1"


@dataclass(frozen=True)
class Spread:
    """A value over replicates."""

    mean: float
    sd: float
    interval: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"mean": self.mean, "sd": self.sd, "interval": list(self.interval)}

    def overlaps(self, other: Spread) -> bool:
        """Whether chance could explain the difference."""
        return self.interval[0] <= other.interval[1] and other.interval[0] <= self.interval[1]


@dataclass(frozen=True)
class Place:
    """A method at one strength: its plan, and what came out."""

    plan: Plan
    parameters: Mapping[str, Any]
    values: Mapping[str, Spread]
    without: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    """What measures said here: what was sampled, approximated or left out."""
    front: bool = False
    """Whether no other place is better in risk and utility."""

    def to_dict(self, utilities: Sequence[str]) -> dict[str, Any]:
        """Plain data, with the utilities apart from other values."""
        made: dict[str, Any] = {"parameters": dict(self.parameters)}
        made["utility"] = {name: self.values[name].to_dict() for name in utilities if name in self.values}
        if self.without:
            made["not_applicable"] = dict(self.without)
        return made


@dataclass
class Contender:
    """A method in a comparison."""

    id: str
    reached: bool
    attained: float | None
    attainable: tuple[float, float] | None
    evaluations: int
    place: Place | None = None
    meets: tuple[float, float] | None = None
    points: Sequence[Place] = ()
    rank: int | None = None
    note: str | None = None
    applicable: bool = True
    """Whether it masks something that the comparison looks at; if not, the note says why."""
    passed_through: Sequence[str] = ()
    """Columns of the comparison that it leaves as they are."""
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For an equal level: strength and level of each attribute."""

    def to_dict(self, comparison: Comparison) -> dict[str, Any]:
        """Plain data."""
        made: dict[str, Any] = {
            "id": self.id,
            "parameters": dict(self.place.parameters) if self.place else {},
            "attained": self.attained,
            "attainable": None if self.attainable is None else list(self.attainable),
            "reached": self.reached,
            "satisfied": self.reached,
            "applicable": self.applicable,
            "passed_through": list(self.passed_through),
            "evaluations": self.evaluations,
            "utility": {},
            "rank": self.rank,
        }
        if self.place is not None:
            made |= self.place.to_dict(comparison.utilities)
            made["front"] = self.place.front
            if comparison.risk in self.place.values:
                made["risk"] = self.place.values[comparison.risk].to_dict()
        if self.meets is not None:
            made["strengths"] = list(self.meets)
        if self.attributes:
            made["attributes"] = {name: dict(given) for name, given in self.attributes.items()}
        if self.points:
            made["points"] = [
                {
                    **point.to_dict(comparison.utilities),
                    "risk": point.values[comparison.risk].to_dict(),
                    "front": point.front,
                }
                for point in self.points
            ]
        if self.note:
            made["note"] = self.note
        return made


@dataclass(frozen=True)
class Pick:
    """What is recommended, and what fresh seeds say of it."""

    method: Contender
    confirmed: Mapping[str, Any]
    """`seeds`, on how many of them the limit is `held`, the share of people `found` by an attack with everybody."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        place = self.method.place
        assert place is not None
        return {"id": self.method.id, "parameters": dict(place.parameters), "confirmed": dict(self.confirmed)}


@dataclass(eq=False)
class Comparison:
    """Methods at a limit, at the same risk (or utility, or level), or all over the map."""

    at: Mapping[str, float]
    risk: str
    utilities: tuple[str, ...]
    records: int
    attributes: tuple[str, ...]
    replicates: int
    methods: list[Contender]
    complete: int = 0
    """Records with every value."""
    pick: Pick | None = None
    """What is recommended: it holds on seeds that the search did not see."""
    notes: list[str] = field(default_factory=list)

    @property
    def order(self) -> list[Contender]:
        """The methods that were ranked, the best first (also of those that share a rank), then the others."""
        by = self.ranked_by
        sign = -1.0 if by is not None and get_measure(by).better == "higher" else 1.0

        def place(one: Contender) -> tuple[bool, int, float]:
            known = by is not None and one.place is not None and by in one.place.values
            return one.rank is None, one.rank or 0, sign * one.place.values[by].mean if known else 0.0  # type: ignore[union-attr,index]

        return sorted(self.methods, key=place)

    @property
    def best(self) -> Contender | None:
        """The method to take."""
        ranked = [one for one in self.order if one.rank is not None]
        return ranked[0] if ranked else None

    @property
    def plan(self) -> Plan:
        """The recommended masking, as a plan that `mask` runs."""
        if not self.at:
            raise ParameterError("a map has no one place to take: name it, as in --pick mdav=7")
        if self.best is None or self.best.place is None:
            raise ParameterError("no method reached the target, so there is no plan to write")
        if self.limited is not None and self.pick is None:
            raise ParameterError("no plan was confirmed on fresh seeds, so there is none to write")
        return self.best.place.plan

    @property
    def limited(self) -> str | None:
        """The measure that has a limit; None where methods are made equal, or for a map."""
        return next((RISK if what == "found" else what for what in self.at if what not in EXACT), None)

    @property
    def reached(self) -> bool:
        """Whether some method came to the target, or none was named."""
        return not self.at or self.best is not None

    @property
    def ranked_by(self) -> str | None:
        """The measure that decides: the first utility that applies, or the risk where the target is a utility."""
        if "utility" in self.at or (self.limited is not None and not get_measure(self.limited).protects):
            return self.risk
        there = [one.place.values for one in self.methods if one.place is not None and one.reached]
        return next((name for name in (*self.utilities, self.risk) if any(name in values for values in there)), None)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `rankveil compare`."""
        return {
            "schema": COMPARE_SCHEMA,
            "at": dict(self.at),
            "risk": self.risk,
            "utility": list(self.utilities),
            "records": self.records,
            "attributes": list(self.attributes),
            "replicates": self.replicates,
            "methods": [one.to_dict(self) for one in self.order],
            "pick": None if self.pick is None else self.pick.to_dict(),
            "recommendation": self.recommendation(),
            "notes": list(self.notes),
        }

    def recommendation(self) -> str:
        """Which method, which strength, whom somebody finds in it, and what it gains over the next."""
        best, by = self.best, self.ranked_by
        if not any(one.applicable for one in self.methods):
            return "No method applies to these columns and measures: see why, and choose other methods or columns."
        if not self.at:
            return self._of_the_map()
        if best is None or best.place is None or by is None:
            return self._how_near()
        if self.limited is not None:
            said = [f"Take {_named(best)}: {self._confirmed(best)}; {self._kept(best, by)}."]
        else:
            said = [f"Take {_named(best)}: {self._why(best, by)}."]
            if self.pick is not None and "found" in self.pick.confirmed:
                said.append(_found_in(self.pick.confirmed))
        if best.passed_through:
            said.append(f"It leaves as they are: {listing(best.passed_through, most=10)}.")
        others = [one for one in self.order if one.rank is not None and one is not best]
        if others:
            said.append(self._gain(best, others[0], by))
        return " ".join(said)

    def _how_near(self) -> str:
        """That no method came to the target, and how near each came."""
        near = [f"{_named(one)} {number(one.attained)}" for one in self.methods if one.attained is not None]
        told = f" The nearest of each: {'; '.join(near)}." if near else ""
        if self.limited is None:
            return f"No method reached the target: see which range each can attain, and choose one inside.{told}"
        (what, value), *_ = self.at.items()
        side = "at least" if get_measure(self.limited).better == "higher" else "at most"
        remedy = "Mask more columns, leave columns out, or compare other methods."
        return f"No method reaches {what} of {side} {number(value)}.{told} {remedy}"

    def _confirmed(self, best: Contender) -> str:
        """What fresh seeds say of the first method."""
        given = {} if self.pick is None else self.pick.confirmed
        assert self.limited is not None
        said = []
        if "found" in given:
            said.append(f"{one_in(given['found'])} can be found by somebody who knows all originals and the manifest")
        if self.limited != RISK and "value" in given:
            said.append(f"{self.limited} is {number(given['value'])}")
        if not given:
            return f"{self.limited} {number(best.attained or 0.0)}, not tried on fresh seeds"
        return f"{', '.join(said)}, within the limit on {given['held']} of {given['seeds']} fresh seeds"

    def _kept(self, best: Contender, by: str) -> str:
        """The measure that decides, in words."""
        assert best.place is not None
        return f"{NAMED.get(by, by)} {number(best.place.values[by].mean)}"

    def _of_the_map(self) -> str:
        """Which methods have places that nothing beats."""
        fronts = {one.id: sum(point.front for point in one.points) for one in self.methods}
        total = sum(len(one.points) for one in self.methods)
        named = ", ".join(f"{name} ({count})" for name, count in fronts.items() if count)
        if not named:
            return f"The map has {total} places; without a measure of utility none can be called better."
        return (
            f"The map has {total} places. Not beaten in {self.risk} and {self.utilities[0]} together: {named}; "
            "pick the one whose risk you can bear."
        )

    def _why(self, best: Contender, by: str) -> str:
        value = number(best.place.values[by].mean) if best.place else ""
        how = {"higher": "the highest", "lower": "the lowest"}[get_measure(by).better]
        if len([one for one in self.methods if one.rank is not None]) == 1:
            alone = "it" if len(self.methods) == 1 else "it alone"
            return f"{alone} comes to {self._target(best)}, with {by} {value}"
        return f"at {self._target(best)} it has {how} {by}, {value}"

    def _target(self, best: Contender) -> str:
        (what, value), *_ = self.at.items()
        names = {
            "risk": self.risk,
            "utility": self.utilities[0] if self.utilities else "",
            "level": "permutation level",
        }
        named, attained = names.get(what, what), best.attained
        if attained is None or abs(attained - value) <= 0.02 * abs(value):
            return f"{named} {number(value)}"
        return f"{named} {number(attained)} ({number(value)} was asked for)"

    def _gain(self, best: Contender, other: Contender, by: str) -> str:
        assert best.place is not None
        assert other.place is not None
        if by not in other.place.values:
            return f"{_named(other)} comes to the target too; {by} does not apply to it."
        ours, theirs = best.place.values[by], other.place.values[by]
        if best.rank == other.rank:
            return f"{_named(other)} is as good within chance ({by} {number(theirs.mean)})."
        change = abs(ours.mean - theirs.mean) / abs(theirs.mean) if theirs.mean else None
        told = f", {100 * change:.0f} % {'more' if ours.mean > theirs.mean else 'less'}" if change is not None else ""
        return f"Next is {_named(other)} with {number(theirs.mean)}: the first has{told or ' another value'}.".replace(
            "has,", "has"
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row per method, for tables."""
        made = []
        for one in self.order:
            row: dict[str, Any] = {"rank": one.rank, "method": one.id}
            strength = get_method(one.id).strength
            row["strength"] = _strength(one, strength)
            row["attained"] = one.attained
            for name in dict.fromkeys([self.risk, *self.utilities]):
                row[name] = one.place.values[name].mean if one.place and name in one.place.values else None
            row["reached"], row["evaluations"] = one.reached, one.evaluations
            made.append(row)
        return made

    def to_frame(self) -> Any:
        """A data frame with one row per method: pandas when it is installed, otherwise pyarrow."""
        try:
            import pandas as pd
        except ImportError:
            import pyarrow as pa

            return pa.Table.from_pylist(self.rows())
        return pd.DataFrame(self.rows()).set_index("method")

    def write_plan(self, path: str | os.PathLike[str], plan: Plan | None = None) -> None:
        """Write the recommended plan (or the one that was picked) as TOML, whole or not at all."""
        from rankveil.files import Staged, check_writable

        text = (plan or self.plan).to_toml()
        check_writable(path, table=False)
        with Staged() as staged:
            staged.add(path, lambda file: file.write(text.encode("utf-8")))

    def report(self, path: str | os.PathLike[str], *, command: str | None = None, public: bool = False) -> None:
        """Write the comparison as one self-contained page, whole or not at all."""
        from rankveil.files import Staged, check_writable
        from rankveil.report.comparisons import compare_page

        check_writable(path, table=False)
        page = compare_page(self.to_dict(), command=command, public=public)
        with Staged() as staged:
            staged.add(path, lambda file: file.write(page.encode("utf-8")))

    def __repr__(self) -> str:
        return f"Comparison({self.recommendation()})"

    def _repr_html_(self) -> str:
        from rankveil.report.comparisons import compare_charts, compare_grids
        from rankveil.report.notebook import shown

        content = self.to_dict()
        return shown(content["recommendation"], charts=compare_charts(content), grids=compare_grids(content))


def one_in(share: float) -> str:
    """A share of people in words.

    >>> one_in(0.0714), one_in(0.6), one_in(0.0)
    ('about 1 person in 14', 'about 60 % of the people', 'nobody')
    """
    if share <= 0:
        return "nobody"
    return f"about 1 person in {round(1 / share):,}" if share < 0.5 else f"about {100 * share:.3g} % of the people"


def _found_in(given: Mapping[str, Any]) -> str:
    """Whom somebody finds in a recommended masking."""
    sure = ", some with certainty" if given["certain"] else ""
    return (
        f"Somebody who knows every original record and all that is published finds {100 * given['found']:.3g} % of the "
        f"people in it{sure} (mean of {given['seeds']} fresh seeds)."
    )


def _named(one: Contender) -> str:
    strength = get_method(one.id).strength
    value = _strength(one, strength)
    if isinstance(value, Mapping):
        return f"{one.id} with {strength} of its own for each attribute"
    return f"{one.id} with {strength} = {value:g}" if strength and value is not None else one.id


def _strength(one: Contender, strength: str | None) -> Any:
    if one.place is None or strength is None:
        return None
    value = one.place.parameters.get(strength)
    return float(f"{value:.4g}") if isinstance(value, float) else value
