"""What the released columns say about whose they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankveil.intruder.draws import drawn_columns, entering, statement
from rankveil.intruder.shared import SharedColumns
from rankveil.intruder.simulation import Simulated, Simulator
from rankveil.likelihood import (
    CodeTerm,
    Displacement,
    Exchange,
    JointNoise,
    JointScores,
    KeptRanks,
    Noise,
    NoiseTerm,
    Points,
    RankNoise,
    RankTerm,
    Recomputed,
    Records,
    SharedNoise,
    SharedNoiseTerm,
    SignedNoise,
    SignedTerm,
    Statement,
    Term,
    Turned,
    TurnedTerm,
    Unrelated,
    whitened,
)
from rankveil.masking.grid import put
from rankveil.methods.round import decimals_of
from rankveil.plans import Plan, Step
from rankveil.rank_noise import RankNoiseTerm, middle_keys
from rankveil.ranks import average_ranks

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Values = Mapping[str, Array]

_ALIKE = 300
"""The number of the release that shows which columns are the same whatever is drawn; no other has it."""
_NEARLY = 1e-9
"""Numbers that differ by less, relatively, are taken as equal: they were computed in another order."""


class Part(Protocol):
    """The likelihood of some columns, for whatever release of the same original."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""

    def term(self, released: Values) -> Term:
        """The likelihood of links with the records of a release."""


@dataclass(frozen=True, eq=False)
class NoisePart:
    """A column with noise of a stated law."""

    name: str
    x: Array
    noise: Noise
    grid: float = 0.0
    clip: tuple[float, float] = (-np.inf, np.inf)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def term(self, released: Values) -> Term:
        return NoiseTerm(self.x, released[self.name], self.noise, self.grid, self.clip)


@dataclass(frozen=True, eq=False)
class JointPart:
    """Columns with normal noise of a stated covariance."""

    names: tuple[str, ...]
    x: Array
    weights: Array
    """What makes the noise of the columns, and what rounding adds to it, independent and of unit variance."""

    def term(self, released: Values) -> Term:
        return Points(self.x @ self.weights, np.column_stack([released[name] for name in self.names]) @ self.weights)


@dataclass(frozen=True, eq=False)
class RankPart:
    """A column whose values changed places."""

    name: str
    x: Array
    gaps: Array
    bounded: bool = True
    pairs: bool = False
    """Whether values changed places in pairs."""
    reach: int = 0
    """The largest displacement."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def term(self, released: Values) -> Term:
        ordered = np.sort(self.x[~np.isnan(self.x)])
        return RankTerm(
            rank_interval(self.x, ordered), rank_interval(released[self.name], ordered), self.gaps, self.bounded
        )


@dataclass(frozen=True, eq=False)
class RankNoisePart:
    """A column whose values were put back in the order of noisy ranks."""

    name: str
    x: Array
    noise: RankNoise

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def term(self, released: Values) -> Term:
        ordered = np.sort(self.x[~np.isnan(self.x)])
        return RankNoiseTerm(
            rank_interval(self.x, ordered),
            rank_interval(released[self.name], ordered),
            ordered.size,
            self.noise.law,
            self.noise.scale,
        )


@dataclass(frozen=True, eq=False)
class ScoresPart:
    """Columns whose values were put back in the order of shrunk normal scores plus joint normal draws."""

    names: tuple[str, ...]
    x: Array
    said: JointScores
    """Its covariance is that of these columns."""

    def term(self, released: Values) -> Term:
        weights = whitened(self.said.covariance)
        count = len(self.x)
        first, second = np.empty(self.x.shape), np.empty((len(released[self.names[0]]), len(self.names)))
        for j, name in enumerate(self.names):
            first[:, j] = self.said.kept * _ndtri(average_ranks(self.x[:, j]) / (count + 1))
            ends = rank_interval(released[name], np.sort(self.x[:, j]))
            second[:, j] = middle_keys(first[:, j], float(np.sqrt(self.said.covariance[j, j])), ends)
        return Points(first @ weights, second @ weights)


@dataclass(frozen=True, eq=False)
class OwnRanksPart(RankPart):
    """A column whose released values are ranked among themselves, not among the original's."""

    def term(self, released: Values) -> Term:
        y = released[self.name]
        ordered = np.sort(self.x[~np.isnan(self.x)])
        own = np.sort(y[~np.isnan(y)])
        return RankTerm(
            rank_interval(self.x, ordered),
            rank_interval(y, own if own.size == ordered.size else ordered),
            self.gaps,
            self.bounded and own.size == ordered.size,
        )


@dataclass(frozen=True, eq=False)
class SignedPart:
    """Columns that all grow or all shrink."""

    names: tuple[str, ...]
    x: Array
    scale: Array
    grid: Array

    def term(self, released: Values) -> Term:
        y = np.column_stack([released[name] for name in self.names])
        return SignedTerm.of(self.x, y, self.scale, grid=self.grid)


@dataclass(frozen=True, eq=False)
class TurnedPart:
    """Columns turned within groups."""

    names: tuple[str, ...]
    x: Array
    group: Codes
    grid: Array

    def term(self, released: Values) -> Term:
        return TurnedTerm(self.group, self.x, np.column_stack([released[name] for name in self.names]), self.grid)


@dataclass(frozen=True, eq=False)
class SharedNoisePart:
    """Columns whose groups got noise as wholes."""

    names: tuple[str, ...]
    said: SharedNoise
    whole: bool = False

    def term(self, released: Values) -> Term:
        said = self.said
        y = np.column_stack([released[name] for name in self.names])
        return SharedNoiseTerm(said.group, said.centre, said.scale, y, self.whole)


@dataclass(frozen=True, eq=False)
class CodePart:
    """A column of categories that are exchanged."""

    name: str
    x: Array
    log_matrix: Array

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def term(self, released: Values) -> Term:
        y = released[self.name]
        size = self.log_matrix.shape[1]
        strange = np.isnan(y) | (y >= size)
        return CodeTerm(self.x, np.where(strange, np.nan, y), self.log_matrix)


@dataclass(frozen=True, eq=False)
class MissingPart:
    """Whether a cell is missing, where that is not the same in every release."""

    name: str
    x: Array
    log_matrix: Array
    """Rows: there, missing in the original; columns: in the release."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def term(self, released: Values) -> Term:
        return CodeTerm(self.x, np.isnan(released[self.name]).astype(float), self.log_matrix)


@dataclass(eq=False)
class Model:
    """Everything that the intruder makes of a release."""

    count: int
    """How many originals there are."""
    keys: dict[str, Array] = field(default_factory=dict)
    """Columns that he computes himself, or that were left as they are: what every original has there."""
    parts: list[Part] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    """Columns that say nothing."""
    notes: list[str] = field(default_factory=list)
    likely: set[str] = field(default_factory=set)
    """Keys that draws may have changed, though they did not in repetitions: nothing is certain by them."""

    @property
    def whole(self) -> bool:
        """Whether groups are linked as wholes: nothing but their noisy centres says anything."""
        return not self.keys and len(self.parts) == 1 and isinstance(self.parts[0], SharedNoisePart)

    @property
    def empty(self) -> bool:
        """Whether nothing says anything."""
        return not self.keys and not self.parts

    def terms(self, released: Values) -> list[Term]:
        """The likelihood of links with the records of a release, key columns left out."""
        if self.whole:
            return [
                replace(part, whole=True).term(released) for part in self.parts if isinstance(part, SharedNoisePart)
            ]
        return [part.term(released) for part in self.parts]

    def key_codes(self, released: Values, count: int, *, sure: bool = False) -> tuple[Codes, Codes]:
        """Group numbers of originals and released records: equal where all key columns are; -1 where nobody's are.

        Only those columns count that no draw can have changed, where they must be `sure`.
        """
        first, second = np.zeros(self.count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        for name, x in self.keys.items():
            if sure and name in self.likely:
                continue
            code_x, code_y = equal_codes(x, released[name])
            size = int(code_x.max(initial=0)) + 2
            lost = (second < 0) | (code_y < 0)
            _, numbers = np.unique(
                np.concatenate((first * size + code_x, np.where(lost, 0, second * size + code_y))), return_inverse=True
            )
            first = numbers[: self.count]
            second = np.where(lost, -1, numbers[self.count :])
        return first, second

    def strangers(self, released: Values) -> dict[str, int]:
        """For each key column, how many released cells no original gives."""
        found = {name: int(np.sum(equal_codes(x, released[name])[1] < 0)) for name, x in self.keys.items()}
        return {name: many for name, many in found.items() if many}


def _ndtri(shares: Array) -> Array:
    from scipy.special import ndtri

    made: Array = ndtri(shares)
    return made


def equal_codes(x: Array, y: Array) -> tuple[Codes, Codes]:
    """Codes of two columns, equal where values are (nearly) equal; missing cells are 0, released strangers -1.

    >>> equal_codes(np.array([1.0, np.nan, 3.0]), np.array([3.0 + 1e-12, 2.0, np.nan]))
    (array([1, 0, 2]), array([ 2, -1,  0]))
    """
    there = np.unique(x[~np.isnan(x)])
    gone_x, gone_y = np.isnan(x), np.isnan(y)
    code_x = np.where(gone_x, 0, np.searchsorted(there, np.where(gone_x, 0.0, x)) + 1)
    if not there.size:
        return code_x, np.where(gone_y, 0, -1)
    place = np.searchsorted(there, np.where(gone_y, 0.0, y))
    low, high = np.maximum(place - 1, 0), np.minimum(place, there.size - 1)
    filled = np.where(gone_y, 0.0, y)
    nearest = np.where(np.abs(filled - there[low]) <= np.abs(there[high] - filled), low, high)
    apart = np.abs(filled - there[nearest])
    same = apart <= _NEARLY * np.abs(there[nearest]) + 1e-15 * float(np.abs(there).max())
    return code_x, np.where(gone_y, 0, np.where(same, nearest + 1, -1))


def rank_interval(values: Array, ordered: Array) -> Array:
    """The first and the last strict rank (from 0) that a value has among others; next to its place if it is not one.

    >>> rank_interval(np.array([2.0, 5.0, np.nan]), np.array([1.0, 2.0, 2.0, 5.0]))
    array([[ 1.,  2.],
           [ 3.,  3.],
           [nan, nan]])
    """
    low = np.searchsorted(ordered, values, side="left").astype(np.float64)
    high = np.searchsorted(ordered, values, side="right") - 1.0
    low = np.minimum(low, max(ordered.size - 1, 0))
    made = np.column_stack((low, np.maximum(low, high)))
    made[np.isnan(values)] = np.nan
    return made


def stated_model(
    columns: SharedColumns, simulator: Simulator, releases: Sequence[Simulated], names: Sequence[str]
) -> tuple[Model, list[str]]:
    """The model of some columns that follows from a manifest, and those for which it gives no closed form."""
    table = columns.original
    count = len(table)
    model = Model(count)
    steps = simulator.plan.steps
    kept = tuple(step for step in steps if step.entry.works_on != "records")
    everybody = Simulator(columns, replace(simulator.told, plan=Plan(kept)), simulator.seed) if kept else None
    # with draws of its own: with those of the only release of a large table everything would seem to be recomputed
    alike = None if everybody is None else everybody.release(_ALIKE)
    original = columns.read(table)
    account = simulator.before(0, len(steps))
    # what was dropped in what the plan makes is no evidence, whatever the table at hand says
    there = [name for name in names if all(name in each.values for each in releases)]
    own = {name: original[name] if alike is None else alike.aligned(name, count) for name in there}
    fixed = {name for name in there if all(_same(each.values[name], own[name][each.origin]) for each in releases)}
    drawn: frozenset[str] = frozenset()
    if everybody is not None:
        fewer = any(len(each) < count for each in releases)
        drawn = drawn_columns(everybody, account, steps, alike=fixed, fewer=fewer)
    open_: list[str] = []
    for name in there:
        if name in fixed - drawn:
            model.keys[name] = own[name]
            continue
        mine = [
            (k, step)
            for k, step in enumerate(steps)
            if name in account.columns[k] and step.entry.works_on in ("column", "columns")
        ]
        made = _stated(columns, everybody, name, mine, account) if everybody is not None else None
        if isinstance(made, OwnRanksPart) and any(len(each) < count for each in releases):
            made = None  # ranks among some of the records are others
        if made is None:
            open_.append(name)
        elif isinstance(made, Unrelated):
            model.silent.append(name)
        else:
            model.parts.append(made)
        if made is not None or name not in fixed:
            _add_missing(model, name, original, releases)
    _join(columns, simulator, everybody, model, open_, account)
    # where cells are missing is evidence of its own, and says nothing of the values that are there
    told = [part for part in model.parts if not isinstance(part, MissingPart)]
    taken = {*model.silent, *(each for part in told for each in part.names)}
    for name in fixed.intersection(open_):
        if name in taken:
            _add_missing(model, name, original, releases)
        else:  # it may be by chance: weak noise changes a cell now and then, and few records have few orders
            model.keys[name] = own[name]
            model.likely.add(name)
    return model, [name for name in open_ if name not in taken and name not in model.keys]


def _same(made: Array, own: Array) -> bool:
    return bool(np.array_equal(made, own, equal_nan=True))


def _statement_of(
    columns: SharedColumns, everybody: Simulator, name: str, step: Step, k: int, chosen: Sequence[str]
) -> Statement:
    """What a step says of a column, with what it knows before the step."""
    x, labels = entering(everybody, name, k)
    categories = columns.original.categories(name) if labels and labels == columns.original.labels(name) else None
    return statement(
        step.entry,
        x[~np.isnan(x)],
        step.bound(name),
        attributes=len(chosen),
        labels=labels,
        categories=categories,
    )


def _stated(
    columns: SharedColumns, everybody: Simulator, name: str, steps: Sequence[tuple[int, Step]], account: Any
) -> Part | Unrelated | None:
    """The closed form of a column: recomputed steps, one that draws, then rounding and clipping at most."""
    places = {id(step): i for i, step in enumerate(everybody.plan.steps)}
    drawn: tuple[int, Step, Statement] | None = None
    told = everybody.grid(name) if name in columns.numeric else 0.0
    rounded, clip = 0.0, (-np.inf, np.inf)
    for k, step in steps:
        at = places[id(step)]
        if step.entry.works_on == "columns" and step.entry.random:
            return None  # together with others
        said = _statement_of(columns, everybody, name, step, at, account.columns[k])
        if isinstance(said, Unrelated):
            return said if k == steps[-1][0] else None
        if isinstance(said, Recomputed):
            if drawn is None:
                continue
            if step.method == "round" and not rounded:
                rounded = _grid(step, columns.original.values(name)) if name in columns.numeric else 0.0
            elif step.method == "clip" and clip == (-np.inf, np.inf) and not rounded and name in columns.numeric:
                clip = _ends(step.bound(name), columns.original.values(name))
            else:
                return None
            continue
        if (
            drawn is not None
            or isinstance(said, Records | JointNoise)
            or not isinstance(said, Noise | Exchange | Displacement | RankNoise | KeptRanks)
        ):
            return None
        drawn = (at, step, said)
    if drawn is None:
        return None
    x, _ = entering(everybody, name, drawn[0])
    said = drawn[2]
    if isinstance(said, Noise):
        low, high = (put(np.array([end]), told)[0] if told and np.isfinite(end) else end for end in clip)
        return NoisePart(name, x, said, max(told, rounded), (low, high)) if name in columns.numeric else None
    if rounded or clip != (-np.inf, np.inf):
        return None
    if isinstance(said, KeptRanks):
        gaps = np.zeros(2 * int(np.sum(~np.isnan(x))) - 1)
        gaps[gaps.size // 2] = 1.0
        return OwnRanksPart(name, x, gaps) if name in columns.numeric else None
    if isinstance(said, Displacement):
        return _displaced(columns, name, x, said)
    if isinstance(said, RankNoise):
        return RankNoisePart(name, x, said) if name in columns.numeric and said.scale > 0 else None
    assert isinstance(said, Exchange)
    return _exchanged(columns, name, x, said, entering(everybody, name, drawn[0])[1])


def _grid(step: Step, original: Array) -> float:
    decimals = step.bound()["decimals"]
    return float(10.0 ** -(decimals_of(original[~np.isnan(original)]) if decimals is None else decimals))


def _ends(bound: Mapping[str, Any], original: Array) -> tuple[float, float]:
    lower, upper = bound["lower"], bound["upper"]
    if isinstance(lower, str) or isinstance(upper, str):
        return (-np.inf, np.inf)
    return (
        float(np.nanmin(original)) if lower is None else float(lower),
        float(np.nanmax(original)) if upper is None else float(upper),
    )


def _displaced(columns: SharedColumns, name: str, x: Array, said: Displacement) -> Part | None:
    """Uniform on the displacements that there can be."""
    if name not in columns.numeric:
        return None
    n = int(np.sum(~np.isnan(x)))
    gaps = np.zeros(2 * n - 1)
    far = np.abs(np.arange(-(n - 1), n))
    gaps[(far >= said.least) & (far <= said.most)] = 1.0
    if said.least <= 1:
        gaps[n - 1] = max(gaps[n - 1], 1e-6)  # one who finds no partner keeps his value
    return RankPart(name, x, gaps / max(float(gaps.sum()), 1e-300), pairs=said.pairs, reach=said.most)


def _exchanged(columns: SharedColumns, name: str, x: Array, said: Exchange, labels: tuple[str, ...]) -> Part | None:
    """The matrix of an exchange in the codes of both tables."""
    if not columns.comparable(name) or name in columns.numeric:
        return None
    known = columns.labels(name)
    place = {label: code for code, label in enumerate(known)}
    wanted = [label for label in (*said.sources, *said.targets) if label not in place]
    size = len(known) + len(wanted)
    place |= {label: len(known) + i for i, label in enumerate(wanted)}
    matrix = np.zeros((size, size))
    rows, targets = [place[label] for label in said.sources], [place[label] for label in said.targets]
    matrix[np.ix_(rows, targets)] = said.matrix
    codes = np.array([place.get(label, 0) for label in labels], dtype=float)
    own = np.where(np.isnan(x), np.nan, codes[np.where(np.isnan(x), 0, x).astype(int)])
    with np.errstate(divide="ignore"):
        return CodePart(name, own, np.log(matrix))


def _add_missing(model: Model, name: str, original: Values, releases: Sequence[Simulated]) -> None:
    """Missing cells as evidence: where they stay as they are a key, otherwise with the chances of becoming one."""
    before = np.isnan(original[name])
    counts = np.zeros((2, 2))
    for each in releases:
        after = np.isnan(each.values[name])
        np.add.at(counts, (before[each.origin].astype(int), after.astype(int)), 1.0)
    if not before.any() and not counts[:, 1].any():
        return
    if counts[0, 1] == 0 and counts[1, 0] == 0:
        model.parts.append(MissingPart(name, before.astype(float), np.log(np.array([[1.0, 1e-300], [1e-300, 1.0]]))))
        return
    shares = (counts + 0.5) / (counts.sum(axis=1, keepdims=True) + 1.0)
    model.parts.append(MissingPart(name, before.astype(float), np.log(shares)))


def _join(
    columns: SharedColumns,
    simulator: Simulator,
    everybody: Simulator | None,
    model: Model,
    open_: Sequence[str],
    account: Any,
) -> None:
    """Columns that got noise together, where nothing else happened to them: added to the model."""
    plan = simulator.plan
    for k, step in enumerate(plan.steps):
        together = account.columns[k]
        if everybody is None or step.entry.works_on != "columns" or not step.entry.random:
            continue
        # what he can repeat may come before, nothing after
        others = {
            name
            for i, other in enumerate(plan.steps)
            if i != k and other.entry.works_on in ("column", "columns") and (i > k or other.entry.random)
            for name in account.columns[i]
        }
        usable = [name for name in together if name in open_ and name in columns.numeric]
        if others & set(together) or not usable:
            continue
        at = next(i for i, other in enumerate(everybody.plan.steps) if other is step)
        x = np.column_stack([entering(everybody, name, at)[0] for name in together])
        if np.isnan(x).any():
            continue
        said = statement(
            step.entry,
            x,
            [step.bound(name) for name in together],
            attributes=x.shape[1],
            labels=(),
            categories=None,
        )
        if isinstance(said, JointNoise):
            usable = _apart(model, usable, together, x, said, everybody)
        if not usable:
            continue
        places = [together.index(name) for name in usable]
        grid = np.array([everybody.grid(name) for name in usable])
        if len(places) < x.shape[1] and isinstance(said, Turned | SharedNoise):
            model.notes.append(f"{step.method}: groups of all columns and people are taken as known, an upper bound")
        if isinstance(said, Unrelated):
            model.silent += usable
        elif isinstance(said, JointNoise):
            weights = whitened(said.covariance[np.ix_(places, places)] + np.diag(grid**2 / 12))
            model.parts.append(JointPart(tuple(usable), x[:, places], weights))
        elif isinstance(said, JointScores):
            some = JointScores(said.kept, said.covariance[np.ix_(places, places)])
            model.parts.append(ScoresPart(tuple(usable), x[:, places], some))
        elif isinstance(said, SignedNoise):
            model.parts.append(SignedPart(tuple(usable), x[:, places], said.scale[places], grid))
        elif isinstance(said, Turned):
            model.parts.append(TurnedPart(tuple(usable), x[:, places], said.group, grid))
        elif isinstance(said, SharedNoise):
            shared = SharedNoise(said.group, said.centre[:, places], said.scale[:, places])
            model.parts.append(SharedNoisePart(tuple(usable), shared))


def _apart(
    model: Model, names: Sequence[str], together: Sequence[str], x: Array, said: JointNoise, everybody: Simulator
) -> list[str]:
    """The columns of joint noise whose grid is finer than their noise; the others are added each by itself.

    Of noise that rounding mostly takes away nothing is left that tells of the other columns.
    """
    left = []
    for name in names:
        j = together.index(name)
        spread, grid = float(np.sqrt(said.covariance[j, j])), everybody.grid(name)
        if 0 < spread < grid:
            model.parts.append(NoisePart(name, x[:, j], Noise("normal", spread), grid))
        else:
            left.append(name)
    return left
