"""Who is found: the likelihood and all other evidence together, measured where the truth is known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import FileError, ParameterError, TableError, listing
from rankveil.intruder.bets import Bets, bets
from rankveil.intruder.calibration import Calibration, claims, wilson
from rankveil.intruder.certainty import certain_links, links_by_what_is_left
from rankveil.intruder.fitting import fitted_models
from rankveil.intruder.learning import Learned, learned_model
from rankveil.intruder.low_bits import low_bits
from rankveil.intruder.model import Model, Part, stated_model
from rankveil.intruder.nearly import loosen
from rankveil.intruder.shared import SharedColumns
from rankveil.intruder.simulation import Simulated, Simulator, Told, told_by
from rankveil.intruder.structure import NO_LINKS, linked_by_pairs
from rankveil.seeds import Seed
from rankveil.table import Table

Array = NDArray[np.float64]
Places = NDArray[np.int64]
Source = Literal["manifest", "learned", "simulated"]
Published = Mapping[str, Any] | Told
"""What was published of a masking: the content of a manifest, or the plan that it tells."""
Progress = Callable[[int, int], None]

SIMULATED = 6
_UNEXPLAINED = 0.02
"""The share of people without a possible record above which the low bits are taken as those of another machine."""
_REFUTED = 0.05
"""The share of wrong links from which on those that were taken as certain are none."""
_SORTED = 8
"""Records from which on a sorted column is no accident."""
ENOUGH_BETS = 20_000
"""Simulated bets above which no further release is made for calibration."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one kind of evidence alone finds."""

    id: str
    found: float | None
    """The share of people found by it, as far as the truth is known."""
    certain: int
    source: Source | None = None
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For the JSON document."""
        made: dict[str, Any] = {"id": self.id, "found": self.found, "certain": self.certain}
        if self.source is not None:
            made["from"] = self.source
        return {**made, "why": self.why} if self.why else made


@dataclass(frozen=True, eq=False)
class Finding:
    """For every person whom the intruder knows: his best bet, its probability, whether it is certain."""

    person: Places
    """Original rows, from 0."""
    record: Places
    """The released record that he bets on, from 0; -1 where there is none."""
    probability: Array
    candidates: Array
    certain: NDArray[np.bool_]
    right: Array | None
    """The chance that the bet is right (1 / size among equal records); None where the mapping is not known."""
    present: NDArray[np.bool_] | None
    """Which of the people have a released record at all."""
    records: int
    evidence: tuple[Evidence, ...]
    columns: tuple[str, ...]
    people: float
    chosen: bool
    """Whether he knows some of the columns only."""
    calibrated: bool
    learned: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    release: Places | None = None
    """Of several releases that were attacked each alone, the one (from 0) that the record is of."""

    @property
    def count(self) -> int:
        """The people over whom the share is taken: those whom he knows who are in the release."""
        return self.person.size if self.present is None else int(self.present.sum())

    @property
    def found(self) -> float | None:
        """How many people are found; may be fractional, because equal records share a bet."""
        return None if self.right is None else float(self.right.sum())

    @property
    def expected(self) -> float:
        """How many he expects to have found."""
        return float(self.probability.sum())

    @property
    def share(self) -> float:
        """The share of people found: measured where the mapping is known, otherwise what he expects."""
        number = self.expected if self.found is None else self.found
        return number / max(self.count, 1)

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share."""
        return wilson(self.share * self.count, self.count)

    @property
    def guessing(self) -> float:
        """The share that blind guessing finds."""
        return 1 / max(self.records, 1)

    @property
    def claimed(self) -> NDArray[np.bool_]:
        """The links that he can claim at a false discovery rate of 5 % of being right."""
        return claims(self.probability)

    def found_dict(self) -> dict[str, Any]:
        """The item `found` of the JSON document."""
        return {
            "share": self.share,
            "right": self.found,
            "expected": self.expected,
            "of": self.count,
            "interval": list(self.interval),
            "guessing": self.guessing,
        }


def find_people(
    original: Table,
    released: Table,
    *,
    manifest: Published | None = None,
    truth: Places | None = None,
    columns: Sequence[str] | None = None,
    knows: Sequence[str] | None = None,
    people: float = 1.0,
    without: Collection[str] = (),
    ordered: bool = False,
    seed: Seed | int = 0,
    calibrate: bool = True,
    progress: Progress | None = None,
) -> Finding:
    """Attack a release with everything that is public.

    `truth` has the original row of every released record (-1 for none); nothing but the count of right bets uses it.
    `columns` is the evidence that there is, `knows` the part of it whose original values he has, `people` the share of
    the people whom he knows, drawn by the seed. `without` names evidence beside the likelihood that is not used
    ("structure", "low_bits", "row_order"), to see what the rest finds. `ordered` says that both tables came from files,
    whose rows have an order that somebody may have kept. Without `calibrate` the bets are the same, and their
    probabilities are those of belief propagation, a little too sure.
    """
    attack = attack_on(
        original,
        released,
        columns=columns,
        knows=knows,
        people=people,
        without=without,
        ordered=ordered,
        seed=seed,
        progress=progress,
        calibrate=calibrate,
    )
    return attack.run(manifest, truth)


def attack_on(
    original: Table,
    released: Table,
    *,
    columns: Sequence[str] | None,
    knows: Sequence[str] | None,
    people: float,
    without: Collection[str],
    ordered: bool,
    seed: Seed | int,
    progress: Progress | None,
    number: int = 0,
    calibrate: bool = True,
) -> Attack:
    """An attack that is ready to be made, its arguments checked."""
    if isinstance(people, bool) or not 0 < people <= 1:
        raise ParameterError(f"people must be a share above 0 and at most 1, not {people!r}")
    for table, what in ((original, "original"), (released, "release")):
        if not len(table):
            raise TableError(f"the {what} has no records, so there is nobody to find")
    shared = SharedColumns.of(original, released, columns)
    if knows is not None:
        unknown = [name for name in knows if name not in shared.names]
        if unknown or not knows:
            given = listing(unknown) or "nothing"
            raise ParameterError(f"knows: {given} is no column of both tables; he can use {listing(shared.names)}")
    strange = set(without) - {"structure", "low_bits", "row_order"}
    if strange:
        raise ParameterError(f"without: {listing(sorted(strange))} is no evidence; structure, low_bits, row_order are")
    seed = Seed.of(seed)
    return Attack(
        shared,
        shared.read(released),
        len(released),
        seed,
        knows,
        people,
        frozenset(without),
        ordered,
        progress,
        Seed(seed.stream("intruder", "release", number).key()),
        calibrate,
    )


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model, the released values it looks at, and releases whose truth is known."""

    model: Model
    values: Mapping[str, Array]
    releases: Sequence[Simulated]
    source: Source
    bits: tuple[Part, ...]


@dataclass(eq=False)
class _State:
    """Bets, to which evidence is added."""

    person: Places
    record: Places
    probability: Array
    candidates: Array
    right: Array | None
    truth: Places | None
    count: int
    certain: NDArray[np.bool_] = field(init=False)
    refuted: int = 0
    """Links that followed from what he believes, and are wrong."""
    _place: Places = field(init=False)

    def __post_init__(self) -> None:
        self.certain = np.zeros(self.person.size, dtype=bool)
        self._place = np.full(self.count, -1, dtype=np.int64)
        self._place[self.person] = np.arange(self.person.size)

    def settle(self, people: Places, links: Places) -> None:
        """Links that are certain."""
        at = self._place[people]
        self.record[at], self.certain[at], self.probability[at], self.candidates[at] = links, True, 1.0, 1.0
        if self.right is not None and self.truth is not None:
            self.right[at] = self.truth[links] == people

    def believed(self, links: tuple[Places, Places]) -> tuple[Places, Places]:
        """The links of some that are certain: the right ones, as far as the truth is known; none where many are wrong.

        What was learned may not be what was done, and a link that is wrong is no certainty, whatever he thinks of it.
        """
        if self.truth is None:
            return links
        right = self.truth[links[1]] == links[0]
        wrong = int(np.sum(~right))
        self.refuted = max(self.refuted, wrong)
        return NO_LINKS if wrong > _REFUTED * right.size else (links[0][right], links[1][right])

    def share(self, right: Array | None) -> float | None:
        """The share of right bets, over the people who are in the release."""
        if right is None or self.truth is None:
            return None
        present = int(np.isin(self.person, self.truth).sum())
        return float(right.sum()) / max(present, 1)


def sorted_column(shared: SharedColumns) -> tuple[str, Places] | None:
    """The column by which the original's rows are sorted, with the most different values, and its runs of ties."""
    original = shared.read(shared.original)
    count = len(shared.original)
    best: tuple[str, Places] | None = None
    for name in shared.names:
        values = original[name]
        if count < _SORTED or np.isnan(values).any():
            continue
        if name not in shared.numeric and shared.comparable(name):
            labels = shared.labels(name)
            ranks = np.argsort(np.argsort(np.array(labels)))
            values = ranks[values.astype(int)].astype(float)
        steps = np.diff(values)
        if not (np.all(steps >= 0) or np.all(steps <= 0)):
            continue
        block = np.concatenate(([0], np.cumsum(steps != 0))).astype(np.int64)
        if block[-1] > (0 if best is None else best[1][-1]):
            best = name, block
    return best


@dataclass(eq=False)
class Attack:
    """One attack: the tables and what the intruder knows."""

    shared: SharedColumns
    values: Mapping[str, Array]
    records: int
    seed: Seed
    knows: Sequence[str] | None
    people: float
    without: frozenset[str]
    ordered: bool
    progress: Progress | None
    draws: Seed
    """For simulated releases: where several releases are attacked, each has draws of its own."""
    calibrate: bool = True
    notes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.shared.original)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that he uses."""
        return self.shared.names if self.knows is None else tuple(n for n in self.shared.names if n in set(self.knows))

    def known(self, number: int) -> Places | None:
        """The people whom he knows in the attack of that number (0 is the real one); None for all."""
        if self.people == 1:
            return None
        some = max(round(self.people * self.count), 1)
        order = self.seed.stream("intruder", "people", number).order(self.count)
        return np.sort(order[:some]).astype(np.int64)

    def run(self, manifest: Published | None, truth: Places | None) -> Finding:
        return self.concluded(self.prepared(manifest), manifest, truth)

    def prepared(self, manifest: Published | None) -> Prepared:
        """The model, releases whose truth is known, and what the low bits say."""
        model, releases, source = self._learned() if manifest is None else self._from_manifest(manifest)
        bits = None
        # with more records than originals a spread that was computed from all of them is not known to the last bit
        if "low_bits" not in self.without and manifest is not None and self.records <= self.count:
            bits = low_bits(model.parts, self.values, releases)
        return Prepared(model, self.values, releases, source, () if bits is None else (bits,))

    def concluded(
        self,
        made: Prepared,
        manifest: Published | None,
        truth: Places | None,
        pairs: Sequence[tuple[Places, Places]] | None = None,
    ) -> Finding:
        """Bets of the whole evidence, and what each kind of it finds alone."""
        known = self.known(0)
        model = made.model
        simple = made.model
        if made.bits:
            model = replace(simple, parts=[*simple.parts, *made.bits], notes=simple.notes)
        best = self._bets(model, made.values, self.records, known)
        calibration, lost = self._calibration(model, made)
        if made.bits and float(np.mean(best.record < 0)) > lost + _UNEXPLAINED:
            model = simple
            self.notes.append("the last bits of the released numbers are not what this machine computes: not used")
            best = self._bets(model, made.values, self.records, known)
            calibration, _ = self._calibration(model, made)
        probability = best.belief if calibration is None else calibration(best.belief)
        right = None if truth is None else best.right(truth)
        state = _State(best.person, best.record.copy(), probability, best.candidates.copy(), right, truth, self.count)
        # the likelihood alone, where low bits are used too
        sure = state.believed(self._sure(simple, made, known))
        alone = state.share(right)
        if model is not simple and truth is not None:
            alone = state.share(self._bets(simple, made.values, self.records, known).right(truth))
        evidence = [Evidence("likelihood", alone, int(sure[0].size), made.source)]
        if model is not simple:
            sure = state.believed(self._sure(model, made, known))
            evidence.append(
                Evidence("low_bits", state.share(right), int(sure[0].size), None, "most doubles cannot be reached")
            )
        state.settle(*sure)
        if isinstance(simple, Learned) and simple.suppressed and known is None and self.records <= self.count:
            links = state.believed(links_by_what_is_left(simple.keys, simple.suppressed, made.values))
            state.settle(*links)
            hits = None if truth is None else state.share((truth[links[1]] == links[0]).astype(float))
            evidence.append(Evidence("cells_left", hits, int(links[0].size), None, "nobody else has the same ones"))
        paired = state.believed(max([self.paired(made)] if pairs is None else pairs, key=lambda links: links[0].size))
        number = int(paired[0].size)
        hits = None if truth is None else state.share((truth[paired[1]] == paired[0]).astype(float))
        evidence.append(Evidence("structure", hits, number, None, "values change places in pairs" if number else ""))
        state.settle(*paired)
        if "row_order" not in self.without:
            evidence += self._row_order(state, manifest, truth)
        present = None
        if state.refuted:
            source = "he learned from the two tables" if manifest is None else "the manifest says"
            self.notes.append(
                f"{state.refuted:,} of the links that he takes as certain are wrong, and count for nothing: "
                f"what {source} is not what was done"
            )
        if truth is not None:
            there = np.zeros(self.count, dtype=bool)
            there[truth[truth >= 0]] = True
            present = there[best.person]
        return Finding(
            person=best.person,
            record=state.record,
            probability=state.probability,
            candidates=state.candidates,
            certain=state.certain,
            right=state.right,
            present=present,
            records=self.records,
            evidence=tuple(evidence),
            columns=self.names,
            people=self.people,
            chosen=self.knows is not None,
            calibrated=calibration is not None,
            learned=simple.learned if isinstance(simple, Learned) else {},
            notes=tuple(dict.fromkeys([*self.shared.notes, *simple.notes, *self.notes])),
        )

    def _sure(self, model: Model, made: Prepared, known: Places | None) -> tuple[Places, Places]:
        gone = max(self.count - self.records, 0)  # of all: whether one of those whom he knows is gone he does not know
        return certain_links(model, made.values, self.records, people=known, left_out=gone)

    def paired(self, made: Prepared) -> tuple[Places, Places]:
        """Links that follow from swaps in pairs."""
        if "structure" in self.without:
            return NO_LINKS
        return linked_by_pairs(self.shared, made.values, made.model, people=self.known(0))

    def _row_order(self, state: _State, manifest: Published | None, truth: Places | None) -> list[Evidence]:
        """The order of the rows, where it was kept and something shows that it was."""
        kept = isinstance(manifest, Mapping) and manifest.get("row_order") == "kept" and self.records == self.count
        rows = np.arange(self.count)
        if kept:
            state.settle(state.person, state.person)
            return [Evidence("row_order", state.share(state.right), state.person.size, None, "the manifest says so")]
        if not self.ordered or truth is None or not np.array_equal(truth, rows):
            return []
        found = sorted_column(self.shared)
        if found is None:
            return []
        name, block = found
        first = np.searchsorted(block, block)
        chance = 1.0 / np.bincount(block)[block]
        better = (chance[state.person] > state.probability) & ~state.certain
        people = state.person[better]
        state.record[better], state.probability[better] = first[people], chance[people]
        state.candidates[better] = 1.0 / chance[people]
        if state.right is not None:
            state.right[better] = chance[people]
        share = float(chance[state.person].mean()) if state.person.size else 0.0
        return [Evidence("row_order", share, 0, None, f"column {name} is sorted by row")]

    def _left_out(self, known: Places | None) -> int:
        """How many of the people he knows are not in the release, as far as the numbers tell."""
        gone = max(self.count - self.records, 0)
        return gone if known is None else round(gone * known.size / self.count)

    def _bets(self, model: Model, values: Mapping[str, Array], records: int, known: Places | None) -> Bets:
        return bets(model, values, records, people=known, left_out=self._left_out(known))

    # -- with a manifest

    def _from_manifest(self, manifest: Published) -> tuple[Model, list[Simulated], Source]:
        told = manifest if isinstance(manifest, Told) else told_by(manifest, self.shared.original)
        self.values = told.unweighed(self.values)
        simulator = Simulator(self.shared, told, self.draws)
        number = releases_for(self.count) if self.calibrate else min(2, releases_for(self.count))
        releases = [self._simulated(simulator, k, number) for k in range(number)]
        model, open_ = stated_model(self.shared, simulator, releases, self.names)
        if self.records <= self.count:
            loosen(model, self.values)
        strange = model.strangers(self.values)
        spare = max(self.records - self.count, 0)  # records of people who are not among the originals
        if strange and max(strange.values()) > spare:
            name, many = max(strange.items(), key=lambda item: item[1])
            raise FileError(
                f"the manifest does not describe this release: column {name} has {many} values that its steps do not "
                "give; name the right manifest, or leave it out with --no-manifest"
            )
        if not open_:
            return model, releases, "manifest"
        fit = [simulator.release(100 + k) for k in range(SIMULATED)]
        original = self.shared.read(self.shared.original)
        alternatives = fitted_models(self.shared, open_, original, fit)
        test = simulator.release(200)
        best, most = [], -1.0
        for parts in alternatives.values():
            tried = Model(model.count, dict(model.keys), [*model.parts, *parts], model.silent, model.notes)
            made = bets(tried, test.values, len(test), left_out=self.count - len(test))
            right = float(made.right(test.origin.astype(np.int64)).sum())
            if right > most:
                best, most = parts, right
        model.parts += best
        return model, releases, "simulated"

    def _simulated(self, simulator: Simulator, number: int, of: int) -> Simulated:
        made = simulator.release(number)
        if self.progress is not None:
            self.progress(number + 1, of + 2)
        return made

    def _calibration(self, model: Model, made: Prepared) -> tuple[Calibration | None, float]:
        """From simulated releases, whose truth is known; and the share of people for whom no record was possible."""
        if not model.parts or not self.calibrate:
            return None, 0.0
        beliefs, right, lost = [], [], []
        for number, each in enumerate(made.releases, start=1):
            values, origin = self._filled(each, made.values, number)
            best = self._bets(model, values, origin.size, self.known(number))
            beliefs.append(best.belief)
            right.append(best.right(origin))
            lost.append(float(np.mean(best.record < 0)) if best.record.size else 0.0)
        return (Calibration.of(beliefs, right) if beliefs else None), float(np.mean(lost)) if lost else 0.0

    def _filled(self, each: Simulated, real: Mapping[str, Array], number: int) -> tuple[Mapping[str, Array], Places]:
        """A simulated release, with records of nobody where the real one has more than there are originals."""
        origin = each.origin.astype(np.int64)
        spare = self.records - self.count
        if spare <= 0:
            return each.values, origin
        drawn = self.seed.stream("intruder", "others", number).order(self.records)[:spare]
        values = {name: np.concatenate((column, real[name][drawn])) for name, column in each.values.items()}
        return values, np.concatenate((origin, np.full(spare, -1, dtype=np.int64)))

    # -- without one

    def _learned(self) -> tuple[Model, list[Simulated], Source]:
        model = learned_model(self.shared, self.values, self.records, self.names)
        releases = [
            model.simulated(self.values, self.draws, k)
            for k in range(releases_for(self.count) if self.calibrate else 0)
        ]
        return model, [each for each in releases if each is not None], "learned"


def releases_for(count: int) -> int:
    """How many simulated releases are made for calibration: 6, and fewer where each has many bets."""
    return max(1, min(SIMULATED, -(-ENOUGH_BETS // max(count, 1))))
