"""Probabilistic record linkage: how many records an intruder links rightly by weights that are learned without links.

The model is that of Fellegi and Sunter (1969): for a pair of records every attribute agrees or not, independently of
the others, with one probability (m) when the two belong together and another (u) when they do not, and the weight of a
pair is the sum of log(m / u). Numbers seldom agree exactly, and after masking not even nearly, so agreement is a matter
of ranks, which no change of scale disturbs, and of degree, as in Winkler (1990). An attribute is

- `same` when the ranks differ by at most a tenth of p percent of n,
- `close` when they differ by at most p percent of n,
- `apart` otherwise.

m and u are found by expectation and maximisation (Jaro 1989), from m = 0.1 for apart and 0.45 for close and for same,
and u as over all pairs. An intruder who holds both files knows more than that one pair in n is a match: every original
record has exactly one. So the chances of its pairs sum to 1. Without that, the largest group of similar pairs is easily
taken for the matches, because attributes such as incomes and taxes depend on each other and agree together.

Of more than 1,200 subjects, the records of 1,200 serve to learn the weights: an easier task than the intruder's, so the
risk is rather told too large than too small.

>>> import numpy as np
>>> ranks = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 1.0], [4.0, 3.0]])
>>> probabilistic_linkage(ranks, ranks, np.arange(1, 5)).value
1.0
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EVERY_KIND, Array, Range, Value, measure
from rankveil.execute import in_threads
from rankveil.measures._records import evenly, most_exposed, share_interval
from rankveil.moments import average, effective_size
from rankveil.ranks import ranks_within

Rows = NDArray[np.intp]
Whole = NDArray[Any]

_PAIRS = 25_000_000
_AT_LEAST = 500
"""Up to so many pairs all are compared; above, as many originals as make that number, but not fewer than these."""

_LEARNED_FROM = 1_200
"""Subjects whose records, original and masked, serve to learn the weights."""

_MOST_ATTRIBUTES = 32
"""Two bits for each fill a word."""

_BLOCK = 1 << 18
"""Pairs that a thread holds in memory at a time, or those of one original."""

_CACHED = 1 << 15
"""Masked records that are compared in all attributes of a group before the next."""

_DEGREES = ("apart", "close", "same")
_START = (0.1, 0.45, 0.45)
_ROUNDS = 100
_SETTLED = 1e-4
"""The iteration ends when no probability changes by more, or after so many rounds."""

_UNIT = 1 << 20
"""Weights are added as whole numbers of this part, so that equal ones are equal."""


@measure(
    title="Probabilistic record linkage",
    source="Fellegi and Sunter 1969; Jaro 1989; Winkler 1990; Domingo-Ferrer and Torra 2001",
    family="risk",
    better="lower",
    bounds=(0.0, 1.0),
    kinds=EVERY_KIND,
    weighted=True,
)
def probabilistic_linkage(
    rank_x: Array,
    rank_y: Array,
    rows: Rows,
    weight_x: Array | None = None,
    *,
    p: Annotated[float, Range(0, 100), "ranks are close when they differ by at most this percentage of n"] = 5.0,
    names: tuple[str, ...] = (),
) -> Value:
    """Share of the original records whose masked record of the largest Fellegi-Sunter weight is their own.

    A tie of t records counts 1/t. All pairs are compared up to 25 million; above, a sample of the original records with
    all masked ones, and the value has an `interval`. There is no blocking: no pair is left out because it is unlikely.
    With weights it is the share of the subjects that the original records stand for; what is learned does not change.
    """
    n = rank_x.shape[0]
    used, left_out = _attributes(rank_x, names or tuple(str(j + 1) for j in range(rank_x.shape[1])))
    kept = list(used.values())
    pair = _Pair(_halves(rank_x[:, kept]), _halves(rank_y[:, kept]), *_reaches(p, n=n))
    learned_from = evenly(rank_x, _LEARNED_FROM)
    weights, rounds = _learned(pair.of(learned_from, learned_from))
    sample = evenly(rank_x, n if n * n <= _PAIRS else max(_PAIRS // n, _AT_LEAST))
    chance, best = _linked(pair.of(sample), sample, np.rint(weights * _UNIT).astype(np.int32))
    weight = None if weight_x is None else weight_x[sample]
    value = average(chance, weight)
    details: dict[str, Any] = {
        "correct": average(chance == 1, weight),
        "tied": average((chance > 0) & (chance < 1), weight),
        "pairs": sample.size * n,
        "weights": {
            name: dict(zip(_DEGREES, map(float, of), strict=True)) for name, of in zip(used, weights, strict=True)
        },
        "learned_from": int(learned_from.size),
        "rounds": rounds,
        "most_exposed": most_exposed(rows[sample], danger=chance, then=best, value=chance, weight=best / _UNIT),
    }
    notes = []
    if left_out:
        details["left_out"] = left_out
        notes.append(f"{len(left_out)} attributes with the fewest different values are not compared")
    if learned_from.size < n:
        notes.append(f"weights are learned from the records of {learned_from.size} of {n} subjects")
    if sample.size < n:
        interval = share_interval(value, of=effective_size(sample, weight))
        details |= {"originals": int(sample.size), "interval": interval}
        notes.append(f"{sample.size} of {n} original records are linked, each with all masked records")
    return Value(value, details, tuple(notes))


class _Pair(NamedTuple):
    """Original and masked records as twice their ranks, which are whole numbers, and how far is the same and close."""

    x: Whole
    y: Whole
    same: int
    close: int

    def of(self, originals: Rows, masked: Rows | None = None) -> _Pair:
        """Some of the records."""
        return self._replace(x=self.x[originals], y=self.y if masked is None else np.asfortranarray(self.y[masked]))

    def codes(self, some: slice, group: int) -> NDArray[np.uint8]:
        """How well some originals agree with every masked record in four attributes.

        Two bits for each: 0 apart, 1 close, 2 the same; those of the first attribute are the highest.
        """
        made = np.zeros((some.stop - some.start, len(self.y)), dtype=np.uint8)
        for start in range(0, len(self.y), _CACHED):
            part = slice(start, start + _CACHED)
            code = made[:, part]
            for j in range(4 * group, 4 * group + 4):
                code <<= 2
                if j >= self.x.shape[1]:
                    continue
                apart = self.x[some, j, None] - self.y[part, j]
                np.abs(apart, out=apart)
                code += (apart <= self.close).view(np.uint8)
                code += (apart <= self.same).view(np.uint8)
        return made

    @property
    def groups(self) -> range:
        """Attributes go in groups of four, whose codes fill a byte."""
        return range(-(-self.x.shape[1] // 4))

    def blocks(self) -> list[slice]:
        """Originals in parts that are held in memory at a time, with all their pairs."""
        step = max(_BLOCK // len(self.y), 1)
        return [slice(start, min(start + step, len(self.x))) for start in range(0, len(self.x), step)]

    @property
    def size(self) -> int:
        """The number of comparisons."""
        return int(self.x.size * len(self.y))


def _halves(ranks: Array) -> Whole:
    """Twice the average ranks: small whole numbers are quick and exact."""
    small = 2 * ranks.shape[0] <= np.iinfo(np.int16).max
    return np.asfortranarray(np.rint(2 * ranks).astype(np.int16 if small else np.int32))


def _reaches(p: float, *, n: int) -> tuple[int, int]:
    return 2 * ranks_within(p / 10, n=n), 2 * ranks_within(p, n=n)


def _attributes(rank_x: Array, names: tuple[str, ...]) -> tuple[dict[str, int], list[str]]:
    """Which attributes are compared, and which are left out when there are too many."""
    if len(names) <= _MOST_ATTRIBUTES:
        return {name: j for j, name in enumerate(names)}, []
    different = [-np.unique(rank_x[:, j]).size for j in range(len(names))]
    kept = sorted(np.argsort(different, kind="stable")[:_MOST_ATTRIBUTES].tolist())
    return {names[j]: j for j in kept}, [name for j, name in enumerate(names) if j not in set(kept)]


def _learned(pair: _Pair) -> tuple[Array, int]:
    """log(m / u) for each attribute and degree of agreement, by expectation and maximisation; and how many rounds."""
    counts, patterns = _patterns(pair)
    transposed = counts.T.tocsr()
    n, pairs = len(pair.x), len(pair.x) * len(pair.y)
    everywhere = _by_degree(patterns, counts.sum(axis=0))
    m, u = np.tile(_START, (len(patterns), 1)), _probabilities(everywhere, pairs)
    rounds, change = 0, np.inf
    while change >= _SETTLED and rounds < _ROUNDS:
        rounds += 1
        total = _added(np.log(m / u), patterns)
        ratio = np.exp(total - (total.max() + total.min()) / 2)  # the middle: neither it nor its inverse overflows
        # each original has one match: the chances of its pairs sum to 1
        matches = _by_degree(patterns, ratio * (transposed @ (1 / (counts @ ratio))))
        before, m, u = m, _probabilities(matches, n), _probabilities(everywhere - matches, pairs - n)
        change = np.abs(m - before).max()
    return np.log(m / u), rounds


def _patterns(pair: _Pair) -> tuple[Any, Whole]:
    """How often each original meets each pattern of agreement, and the patterns: a row for every attribute.

    Pairs of the same pattern have the same weight, and of many pairs only few patterns are different.
    """
    from scipy.sparse import csr_array

    word = np.uint32 if len(pair.groups) <= 4 else np.uint64

    def block(some: slice) -> tuple[Whole, Rows, Rows]:
        codes = pair.codes(some, 0).astype(word)
        for group in pair.groups[1:]:
            np.left_shift(codes, 8, out=codes)
            np.bitwise_or(codes, pair.codes(some, group), out=codes)
        codes.sort(axis=1)
        new = np.ones(codes.shape, dtype=bool)
        new[:, 1:] = codes[:, 1:] != codes[:, :-1]
        starts = np.flatnonzero(new)
        return codes.ravel()[starts], np.diff(starts, append=codes.size), new.sum(axis=1)

    codes, counts, lengths = map(np.concatenate, zip(*in_threads(block, pair.blocks(), size=pair.size), strict=True))
    different = np.unique(codes)
    ends = np.concatenate(([0], np.cumsum(lengths)))
    table = csr_array((counts.astype(np.float64), np.searchsorted(different, codes), ends))
    places = [word(2 * (4 * len(pair.groups) - 1 - j)) for j in range(pair.x.shape[1])]
    return table, np.stack([((different >> place) & word(3)).astype(np.int64) for place in places])


def _by_degree(patterns: Whole, number: Array) -> Array:
    """How many pairs agree to each degree in each attribute, from the number of pairs of each pattern."""
    return np.stack([np.bincount(degree, number, minlength=len(_DEGREES)) for degree in patterns])


def _probabilities(number: Array, total: int) -> Array:
    """Shares of a total, none of them 0 (half a pair more of each degree): a weight is never infinite."""
    shares: Array = (np.maximum(number, 0.0) + 0.5) / (total + 0.5 * len(_DEGREES))
    return shares


def _added(weights: Array, patterns: Whole) -> Array:
    total = np.zeros(patterns.shape[1])
    for of, degree in zip(weights, patterns, strict=True):
        total += of[degree]
    return total


def _linked(pair: _Pair, own: Rows, weights: NDArray[np.int32]) -> tuple[Array, Array]:
    """For each original the chance to be linked with its own masked record, and the largest weight of its pairs."""
    tables = [_by_code(weights[4 * group : 4 * group + 4]) for group in pair.groups]

    def block(some: slice) -> tuple[Array, Array]:
        total = np.zeros((some.stop - some.start, len(pair.y)), dtype=np.int32)
        for group in pair.groups:
            total += tables[group].take(pair.codes(some, group))
        best = total.max(axis=1)
        tied = np.count_nonzero(total == best[:, None], axis=1)
        right = total[np.arange(len(total)), own[some]] == best
        return right / tied, best.astype(np.float64)

    made = in_threads(block, pair.blocks(), size=pair.size)
    return np.concatenate([chance for chance, _ in made]), np.concatenate([best for _, best in made])


def _by_code(weights: NDArray[np.int32]) -> NDArray[np.int32]:
    """The sum of the weights of up to four attributes for every code that their degrees of agreement can make."""
    table = np.zeros(1, dtype=np.int32)
    for j in range(4):
        four = np.zeros(4, dtype=np.int32)  # no attribute has a fourth degree, and a group may lack attributes
        if j < len(weights):
            four[: len(_DEGREES)] = weights[j]
        table = np.add.outer(table, four).ravel()
    return table
