"""One release beside its original: who is found in it, and what decides about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rankveil.catalogue import Value, measures
from rankveil.errors import FileError
from rankveil.intruder.finding import Finding, find_people
from rankveil.intruder.several import find_people_in
from rankveil.manifest import content_of, other_table
from rankveil.pairing import released_table, true_links
from rankveil.pairs import Pair
from rankveil.schema import listed
from rankveil.table import Table
from rankveil.verdict.advice import Advice, advice
from rankveil.verdict.headline import Measured, headline
from rankveil.verdict.item import Item

Settings = Mapping[str, Mapping[str, Any]]


@dataclass(eq=False)
class Case:
    """An original, a release, its manifest, and what somebody knows."""

    original: Table
    released: Table
    told: dict[str, Any]
    """What the intruder is given: the true links to count by, columns, the seed."""
    manifest: Mapping[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    knows: Sequence[str] | None = None
    people: float = 1.0
    another: str | None = None
    """What is said where the release is not the table that the manifest describes."""
    _done: dict[str, Finding] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        original: Any,
        masked: Any,
        manifest: Any,
        *,
        knows: Sequence[str] | None = None,
        people: float = 1.0,
        columns: Sequence[str] | None = None,
        key: str | None = None,
        mapping: bool = True,
        secret: Any = None,
        seed: Any = 0,
        by: str | None = None,
        **declared: Any,
    ) -> Case:
        """What was given of a release; the intruder looks at all columns of both tables unless some are named."""
        first, second = Table.of(original, **declared), released_table(masked, **declared)
        truth, _ = true_links(first, second, key=key, mapping=mapping, secret=secret, notes=[])
        if columns is None and key is not None:
            columns = [name for name in first.names if name in second.names and name != key]
        told: dict[str, Any] = {"truth": truth, "columns": listed(columns) if columns else None, "seed": seed}
        told["calibrate"] = truth is None  # right bets are counted; only what he expects himself needs it
        known = None if knows is None else listed(knows)
        made = cls(first, second, told, knows=known, people=people)
        made.another = other_table(manifest, second)
        try:
            made.manifest = content_of(manifest, records=len(second))
        except FileError as error:
            made.notes.append(f"{error}; what was done was learned from the two tables instead")
        return made

    @property
    def with_scenario(self) -> bool:
        """Whether somebody who knows less was asked for as well."""
        return self.knows is not None or self.people != 1

    def find(self) -> Finding:
        """Whom somebody who knows everything finds."""
        return self._find("worst")

    def scenario(self) -> Finding:
        """Whom somebody finds who knows what was asked for."""
        return self._find("scenario", knows=self.knows, people=self.people)

    def _find(self, what: str, **given: Any) -> Finding:
        if what not in self._done:
            try:
                made = find_people(self.original, self.released, manifest=self.manifest, **self.told, **given)
            except FileError as error:
                made = find_people(self.original, self.released, **self.told, **given)
                said = f"{error}; what was done was learned from the two tables instead"
                made = replace(made, notes=(*made.notes, said))
            self._done[what] = made
        return self._done[what]

    def settings(self, given: Settings | None) -> tuple[Settings | None, list[str]]:
        """With missing cells that agree with any value, where the classes were made so; and what is said of that."""
        any_value = any(
            step.get("method") == "suppress" and (step.get("parameters") or {}).get("missing_is") == "any"
            for step in (self.manifest or {}).get("steps") or ()
        )
        names = [
            name
            for name, entry in measures().items()
            if any_value and "missing" in entry.parameters and "missing" not in (given or {}).get(name, {})
        ]
        if not names:
            return given, []
        made = {**(given or {}), **{name: {**(given or {}).get(name, {}), "missing": "any"} for name in names}}
        return made, [
            "a missing quasi-identifier agrees with any value, as the manifest's suppress counts (missing=any)"
        ]

    def decided(
        self,
        values: Mapping[str, Value],
        not_applicable: Mapping[str, str],
        pair: Pair,
        *,
        found: Callable[[], Finding] | None = None,
    ) -> tuple[list[Item], list[Advice]]:
        """The headline and the advice; who is found only where that was measured."""
        measured = "people_found" in values
        given = Measured(
            values,
            not_applicable,
            pair=pair,
            quasi=tuple(pair.known[1].quasi),
            finding=(found or self.find)() if measured else None,
            scenario=self.scenario() if measured and self.with_scenario else None,
            manifest=self.manifest,
            released=self.released,
            another=self.another is not None,
        )
        items = headline(given)
        return items, advice(items, given, self.original, self.released)


@dataclass(eq=False)
class Together:
    """Several releases of one original in the hands of one person."""

    cases: Sequence[Case]
    key: str | None = None

    @cached_property
    def finding(self) -> Finding:
        """Whom somebody finds who holds all of them and knows everything."""
        first = self.cases[0]
        manifests: list[Mapping[str, Any] | None] = [case.manifest for case in self.cases]
        told: dict[str, Any] = {
            "truths": [case.told["truth"] for case in self.cases],
            "columns": first.told["columns"],
            "seed": first.told["seed"],
            "key": self.key,
        }
        tables = [case.released for case in self.cases]
        try:
            return find_people_in(first.original, tables, manifests=manifests, **told)
        except FileError as error:
            made = find_people_in(first.original, tables, **told)
            said = f"{error}; what was done was learned from the tables instead"
            return replace(made, notes=(*made.notes, said))

    def find(self) -> Finding:
        """The same, to be called."""
        return self.finding
