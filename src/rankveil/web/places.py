"""The places of a risk-utility map: a method at a strength, its plan, and what came out; also while it fills."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankveil.catalogue import get_measure, get_method
from rankveil.comparison.contestant import Contestant, job_of, place_of
from rankveil.comparison.result import Comparison, Place
from rankveil.comparison.study import Result, Study, columns_compared
from rankveil.comparison.target import Asked
from rankveil.report import figures
from rankveil.report.chart import Chart
from rankveil.report.look import number
from rankveil.seeds import Seed
from rankveil.table import Table


def place_dict(id: str, place: Place, *, risk: str, utilities: Sequence[str], front: bool) -> dict[str, Any]:
    """A place as plain data."""
    strength = get_method(id).strength
    value = place.parameters.get(strength) if strength else None
    told = "own strengths" if isinstance(value, Mapping) else "" if value is None else f"{strength} = {number(value)}"
    first = place.values.get(utilities[0]) if utilities else None
    low, high = first.interval if first is not None else (None, None)
    return {
        "method": id,
        "label": told,
        "risk": place.values[risk].mean if risk in place.values else None,
        "utility": {name: place.values[name].mean for name in utilities if name in place.values},
        "low": low,
        "high": high,
        "front": front,
        "plan": place.plan.to_dict(),
    }


def of_comparison(made: Comparison) -> list[dict[str, Any]]:
    """The places of a comparison that is done."""
    found = []
    for one in made.order:
        places = list(one.points) or ([one.place] if one.place is not None else [])
        for place in places:
            found.append(place_dict(one.id, place, risk=made.risk, utilities=made.utilities, front=place.front))
    return found


@dataclass(frozen=True)
class Filling:
    """A map that fills: what is known of it can be told from the state that a comparison keeps.

    A search depends on nothing but its own results, so asking it again with the results that are there leads to the
    places that are finished.
    """

    study: Study
    contestants: tuple[Contestant, ...]
    asked: Asked

    @classmethod
    def of(
        cls,
        table: Table,
        methods: Sequence[str],
        *,
        risk: str,
        utility: Sequence[str],
        replicates: int,
        points: int,
        parameters: Mapping[str, Mapping[str, Any]],
        columns: Sequence[str] | None,
    ) -> Filling:
        """The same as the comparison is asked for."""
        study = Study(table, columns_compared(table, columns), seed=Seed.of(0))
        contestants = tuple(
            Contestant.of(name, study, fixed=parameters.get(name, {}), replicates=replicates, columns=columns)
            for name in dict.fromkeys(methods)
        )
        return cls(study, contestants, Asked({}, risk, tuple(utility), points=points))

    def places(self, state: Path) -> list[dict[str, Any]]:
        """What is finished so far."""
        results = _results(state)
        found = []
        for one in self.contestants:
            for strength in self._finished(one, results):
                tasks = one.tasks(strength, self.asked.all)
                place = place_of(one, strength, [results[task.key] for task in tasks], self.asked.all)
                if self.asked.risk in place.values:
                    found.append(
                        place_dict(
                            one.method.id, place, risk=self.asked.risk, utilities=self.asked.utilities, front=False
                        )
                    )
        return with_front(found, risk=self.asked.risk, utility=self.asked.utilities)

    def _finished(self, one: Contestant, results: Mapping[str, Result]) -> list[float]:
        job = job_of(one, self.asked, self.study)
        finished: list[float] = []
        try:
            wanted = next(job.search)
            while True:
                ready = {at: [results.get(task.key) for task in job.tasks(at)] for at in wanted}
                there = {at: [each for each in some if each is not None] for at, some in ready.items()}
                whole = [at for at in wanted if len(there[at]) == len(ready[at])]
                finished += whole
                if len(whole) < len(wanted):
                    break
                wanted = job.search.send([job.point(at, there[at]) for at in wanted])
        except StopIteration:
            pass
        return sorted(finished)


def _results(state: Path) -> dict[str, Result]:
    """What a comparison has kept so far; its last line may be half written."""
    try:
        lines = state.read_text(encoding="utf-8").splitlines()[1:]
    except (OSError, UnicodeDecodeError):
        return {}
    found = {}
    for line in lines:
        try:
            entry = json.loads(line)
            found[entry["key"]] = Result(entry["values"], entry["without"], entry["error"])
        except (ValueError, KeyError):
            break
    return found


def with_front(places: list[dict[str, Any]], *, risk: str, utility: Sequence[str]) -> list[dict[str, Any]]:
    """The places, those marked that no other beats in risk and in the first utility."""
    if not utility:
        return places
    signs = [1.0 if get_measure(name).better == "higher" else -1.0 for name in (risk, utility[0])]
    at = [_at(place, utility[0], signs) for place in places]
    for place, own in zip(places, at, strict=True):
        beaten = own is None or any(
            other is not None and other != own and all(a >= b for a, b in zip(other, own, strict=True)) for other in at
        )
        place["front"] = not beaten
    return places


def _at(place: Mapping[str, Any], utility: str, signs: Sequence[float]) -> tuple[float, float] | None:
    if place["risk"] is None or utility not in place["utility"]:
        return None
    return signs[0] * place["risk"], signs[1] * place["utility"][utility]


def chart_of(places: Sequence[Mapping[str, Any]], *, risk: str, utility: Sequence[str]) -> Chart | None:
    """The map, or None while there is nothing on it."""
    points: dict[str, list[dict[str, Any]]] = {}
    for place in places:
        if utility and place["risk"] is not None and utility[0] in place["utility"]:
            known = {name: place[name] for name in ("risk", "label", "low", "high", "front")}
            points.setdefault(place["method"], []).append({**known, "utility": place["utility"][utility[0]]})
    if not points:
        return None
    return figures.risk_utility_map(
        points,
        risk=risk,
        utility=utility[0],
        risk_better=get_measure(risk).better,
        utility_better=get_measure(utility[0]).better,
    )


def numbered(places: Sequence[Mapping[str, Any]], utility: Sequence[str]) -> list[dict[str, Any]]:
    """The places with their number, and which point of which series of the map each is."""
    counts: dict[str, int] = {}
    found = []
    for number_, place in enumerate(places):
        point = None
        if utility and place["risk"] is not None and utility[0] in place["utility"]:
            point = counts.get(place["method"], 0)
            counts[place["method"]] = point + 1
        found.append({**place, "number": number_, "point": point})
    return found
