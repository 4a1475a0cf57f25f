"""One function on every part of a table, and answers to what it asks of all rows.

The function runs on each partition by itself. Where it asks for something that takes all rows (`rankveil.rows`), and
the answer is not known yet, it stops there and leaves what its own rows contribute. When all partitions have stopped,
the answer is put together and the function runs again from its beginning: it does the same up to there, as nothing in
it depends on anything but its rows and the answers, and goes on. Answers that are small travel with the next run; what
is large stays in the scratch folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil import moments
from rankveil.partitions import order as ordering
from rankveil.partitions.exchange import Answered, Sent, brought_together, collect, send
from rankveil.partitions.order import Bring, Keys, Ordered
from rankveil.partitions.scratch import Scratch
from rankveil.rows import Awaited, Draws, P, Places, R, Rows, T, Work

Array = NDArray[np.float64]

BLOCK = 2**20
"""Records that are put in order together, about a hundred bytes of memory each."""


@dataclass(frozen=True)
class Once:
    """Something that is to be made once, by one task, piece by piece."""

    make: Callable[[], Iterable[NDArray[Any]]]


@dataclass(frozen=True)
class Again:
    """What is to be brought to records by their place in an order."""

    order: str
    make: Callable[[int, int], Array]


@dataclass(frozen=True)
class _Here:
    """How many records each partition has."""

    counts: tuple[tuple[int, int], ...]

    def merged(self, other: _Here) -> _Here:
        return _Here(self.counts + other.counts)


@dataclass(frozen=True, eq=False)
class _Tally:
    """How many there are of each code."""

    counts: Places

    def merged(self, other: _Tally) -> _Tally:
        return _Tally(self.counts + other.counts)


@dataclass(frozen=True, eq=False)
class _Sampled:
    """The values of some rows."""

    columns: tuple[Array, ...]
    rows: Places

    def merged(self, other: _Sampled) -> _Sampled:
        both = tuple(np.concatenate(pair) for pair in zip(self.columns, other.columns, strict=True))
        return _Sampled(both, np.concatenate((self.rows, other.rows)))


class PartRows(Rows):
    """The rows of a table in parts, asked from those of one partition."""

    alone = False

    def __init__(
        self, known: Mapping[str, Any], scratch: Scratch, partition: int, start: int, *, name: str = "", block: int
    ) -> None:
        self.start, self.first = start, partition == 0
        self._known, self._scratch, self._partition = known, scratch, partition
        self._name, self._block, self._asked = name, block, 0

    def each(self, function: Callable[[T, Rows], R], items: Mapping[str, T], *, size: int = 0) -> list[R]:
        """What a function makes of each item; what is awaited is asked for all of them together."""
        found, parts, asked = [], dict[str, Any](), self._asked
        self._asked += 1
        for name, item in items.items():
            rows = self._inner(f"{asked}/{name}", self.start)
            try:
                found.append(function(item, rows))
            except Awaited as waiting:
                parts.update(waiting.parts)
        if parts:
            raise Awaited(parts)
        return found

    def _inner(self, name: str, start: int) -> PartRows:
        name = f"{self._name}#{name}"
        return PartRows(self._known, self._scratch, self._partition, start, name=name, block=self._block)

    def with_only(self, here: int) -> PartRows:
        """The rows when so many are left here."""
        return self._inner(f"{self._asked}/left", self._before(here))

    def _before(self, here: int) -> int:
        """How many records the partitions before this one have, which has so many."""
        counts = self.merged(_Here(((self._partition, here),))).counts
        return sum(count for partition, count in counts if partition < self._partition)

    def merged(self, part: P) -> P:
        """What a summary of the rows that are here is for all of them."""
        known: P = self._answer(part)[1]
        return known

    def _answer(self, part: Any) -> tuple[str, Any]:
        """The answer to the next question, and its key; `part` is, or makes, what the rows here contribute."""
        key = _key(f"{self._name}#{self._asked}")
        self._asked += 1
        if key not in self._known:
            raise Awaited({key: part(key) if callable(part) else part})
        return key, self._known[key]

    # ---- numbers ----

    def count(self, here: int) -> int:
        """How many there are in all, of which so many are here."""
        return sum(count for _, count in self.merged(_Here(((self._partition, here),))).counts)

    def summary(self, x: Array) -> moments.Summary:
        """Number, extremes and mean of all values."""
        found: moments.Summary = self._answer(lambda _: moments.Summary.of(x))[1]
        return found

    def sums(self, makes: Sequence[Callable[[], Array]], *, size: int = 0) -> list[float]:
        """The sums of what functions return for the rows that are here."""
        found: moments.Sums = self._answer(lambda _: moments.Sums.of(make() for make in makes))[1]
        return found.rounded

    def tally(self, codes: NDArray[np.intp], size: int) -> Places:
        """How many there are of each code from 0 to size - 1."""
        return self.merged(_Tally(np.bincount(codes, minlength=size))).counts

    # ---- order ----

    def smallest(self, x: Array, place: int) -> float:
        """The value at a place of the order, from 0."""
        unique = np.arange(self.start, self.start + x.size, dtype=np.uint64)
        key, known, _ = self._ordered(Keys.of(x, unique), [])
        return float(self._values(key, known).between(place, place + 1)[0])

    def average_ranks(self, x: Array) -> Array:
        """Ranks from 1 among all values, ties sharing their mean rank; of a table, column by column."""
        if x.ndim == 2:
            columns = {str(j): np.ascontiguousarray(column) for j, column in enumerate(x.T)}
            return np.asfortranarray(self.each(lambda column, rows: rows.average_ranks(column), columns)).T
        unique = np.arange(self.start, self.start + x.size, dtype=np.uint64)
        key, known, block = self._ordered(Keys.of(x, unique), [])
        make = partial(ordering.average_between, self._values(key, known), known.told)
        return self._brought(key, block, make)

    def strict_places(self, x: Array, ties: Draws) -> Places:
        """The place of each value in the order of all values, from 0; ties by their draws."""
        return self._places(Keys.of(x, ties))

    def swapped(self, x: Array, ties: Draws, partner: Callable[[int], Iterable[Places]]) -> Array:
        """Each value replaced by the one at its partner's place in the order of all values."""
        key, known, block = self._ordered(Keys.of(x, ties), [])
        count = int(known.starts[-1])
        partners, _ = self._answer(Once(partial(partner, count)))
        make = partial(ordering.swapped_between, self._values(key, known), self._scratch, _once_file(partners))
        return self._brought(key, block, make)

    def in_order_of(self, x: Array, keys: Array, ties: Draws) -> Array:
        """All values of x, the smallest where the smallest of the keys is, and so on."""
        unique = np.arange(self.start, self.start + x.size, dtype=np.uint64)
        values, known, _ = self._ordered(Keys.of(x, unique), [])
        key, _, block = self._ordered(Keys.of(keys, ties), [])
        return self._brought(key, block, self._values(values, known).between)

    def permuted(self, x: Array, draws: Draws) -> Array:
        """x[i] of all values for i from the row of the smallest draw to that of the largest."""
        key, known, _ = self._ordered(Keys(draws, np.zeros_like(draws)), [x])
        before = self._before(x.size)
        return self._values(key, known).between(before, before + x.size)

    def places(self, draws: Draws) -> Places:
        """The place of each draw in the order of all draws, from 0."""
        return self._places(Keys(draws, np.zeros_like(draws)))

    def _places(self, keys: Keys) -> Places:
        key, known, block = self._ordered(keys, [])
        within = collect(key, known, self._partition, block)[0].astype(np.int64)
        return within + known.starts[block]

    def _ordered(self, keys: Keys, carried: Sequence[Array]) -> tuple[str, Answered, Places]:
        """Put all keys in order: the key of that order, what is known of it, and the blocks of the rows here."""
        sample: ordering.Sample = self._answer(lambda _: ordering.Sample.of(keys))[1]
        splitters = sample.splitters(size=self._block)
        block = ordering.block_of(keys, splitters)
        columns = [keys.codes.view(np.float64), keys.draws.view(np.float64), *carried]
        blocks = splitters.codes.size + 1

        def sent(key: str) -> Sent:
            work = partial(ordering.sort_block, self._scratch, key)
            return send(self._scratch, key, self._partition, block, columns, work, blocks=blocks)

        key, known = self._answer(sent)
        return key, known, block

    def _values(self, key: str, known: Answered) -> Ordered:
        return Ordered(self._scratch, key, known.starts)

    def _brought(self, key: str, block: Places, make: Callable[[int, int], Array]) -> Array:
        """What is made of the places in an order, at the rows here."""
        fresh, known = self._answer(Again(key, make))
        return collect(fresh, known, self._partition, block)[0]

    # ---- records together ----

    def sample(self, columns: Sequence[Array], rows: Places) -> list[Array]:
        """The values of some rows of the whole table, which rise."""
        size = columns[0].size if columns else 0
        first, last = np.searchsorted(rows, [self.start, self.start + size])
        own = rows[first:last] - self.start
        found = self.merged(_Sampled(tuple(column[own] for column in columns), rows[first:last]))
        order = np.argsort(found.rows)
        return [column[order] for column in found.columns]

    def whole(self, columns: Sequence[Array], work: Work) -> tuple[Sequence[Array], Any]:
        """Work on all records at once, in one place."""
        one = np.zeros(columns[0].size if columns else 0, np.int64)
        made, told = self.in_blocks(one, columns, partial(_the_same, work), blocks=1)
        return made, told[0]

    def in_blocks(
        self, block: Places, columns: Sequence[Array], work: Callable[[int], Work], *, blocks: int
    ) -> tuple[list[Array], list[Any]]:
        """Work on blocks of records, each of them whole and in the order of rows."""
        key, known = self._answer(
            lambda key: send(self._scratch, key, self._partition, block, columns, work, blocks=blocks)
        )
        return collect(key, known, self._partition, block), list(known.told)


def _the_same(work: Work, _: int) -> Work:
    return work


# ---- the parts of a table ----


@dataclass(frozen=True)
class Part:
    """A partition: its number and its first row."""

    number: int
    start: int


@dataclass(frozen=True, eq=False)
class _Done:
    result: Any


@dataclass(frozen=True, eq=False)
class _Waiting:
    parts: Mapping[str, Any]


def together(
    each: Callable[..., list[Any]],
    function: Callable[[Part, Rows], R],
    parts: Sequence[Part],
    *,
    scratch: Scratch,
    block: int = BLOCK,
) -> list[R]:
    """What the function makes of each part, all of them knowing what it asks of all rows."""
    known: dict[str, Any] = {}
    while True:
        made = each(partial(attempt, function, known, scratch, block), parts)
        waiting = [one.parts for one in made if isinstance(one, _Waiting)]
        if not waiting:
            return [one.result for one in made]
        keys = list(waiting[0])
        if len(waiting) < len(made) or any(list(one) != keys for one in waiting):
            raise RuntimeError("the parts of a table do not ask the same questions")
        known |= _put_together(each, scratch, {key: [one[key] for one in waiting] for key in keys}, known)


def attempt(
    function: Callable[[Part, Rows], Any], known: Mapping[str, Any], scratch: Scratch, block: int, part: Part
) -> Any:
    """A task: run the function on a part as far as what is known allows."""
    try:
        return _Done(function(part, PartRows(known, scratch, part.number, part.start, block=block)))
    except Awaited as waiting:
        return _Waiting(waiting.parts)


def _put_together(
    each: Callable[..., list[Any]],
    scratch: Scratch,
    asked: Mapping[str, Sequence[Any]],
    known: Mapping[str, Any],
) -> dict[str, Any]:
    """The answers from what the parts contributed; what takes tasks of its own is done for all questions together."""
    sent, once, again = (
        {key: parts for key, parts in asked.items() if isinstance(parts[0], kind)} for kind in (Sent, Once, Again)
    )
    found: dict[str, Any] = brought_together(scratch, each, sent) if sent else {}
    if once:
        each(partial(make_once, scratch), [(key, parts[0].make) for key, parts in once.items()])
        found |= dict.fromkeys(once, True)
    if again:
        wanted = [Bring(parts[0].order, key, known[parts[0].order], parts[0].make) for key, parts in again.items()]
        items = [(which, k) for which, one in enumerate(wanted) for k in range(one.known.blocks)]
        each(partial(ordering.again, scratch, wanted), items)
        found |= {one.fresh: replace(one.known, columns=1, told=()) for one in wanted}
    for key, parts in asked.items():
        if key not in found:
            found[key] = reduce(lambda one, other: one.merged(other), parts)
    return found


def make_once(scratch: Scratch, item: tuple[str, Callable[[], Iterable[NDArray[Any]]]]) -> None:
    """A task: make something and leave it in the scratch folder."""
    key, make = item
    scratch.put_pieces(_once_file(key), make())


def _once_file(key: str) -> str:
    return f"once-{key}"


def _key(question: str) -> str:
    """A short name of a question, fit for a file."""
    return hashlib.blake2b(question.encode(), digest_size=8).hexdigest()
