"""The compiled loops give, bit for bit, what they gave before: with other versions of numpy, numba and Python too.

The draws are given, not made from a seed: bits of SHAKE-256, which are the same wherever there is Python. Loops add,
multiply, divide, take roots and compare in an order that is written down, without fast-math: IEEE 754 leaves no choice
in any of that, so digests of the exact bytes are kept. After a change of results that is meant:

    .venv/bin/python tests/trust/test_golden_kernels.py
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from rankveil import kernels
from rankveil.kernels import (
    Kernel,
    agreement,
    beliefs,
    boxes,
    candidates,
    exact,
    implied,
    mdav,
    neighbours,
    sorting,
    summing,
    suppression,
    swapping,
)
from rankveil.partitions import loops

GOLDEN = Path(__file__).parent / "golden" / "kernels.json"
PARTS = {"boxes.remove", "boxes.select", "boxsearch.distance", "boxsearch.farthest", "boxsearch.nearest"}
"""What only other kernels can call: `mdav` does."""
NAMES = [f"rankveil.kernels.{found.name}" for found in pkgutil.iter_modules(kernels.__path__)]
ROOMS = [loops, *map(importlib.import_module, NAMES)]

Array = NDArray[np.float64]
Case = Callable[[str], Iterator[Any]]


def words(name: str, *shape: int) -> NDArray[np.uint64]:
    """Given bits, 64 in a word."""
    found = hashlib.shake_256(name.encode()).digest(8 * int(np.prod(shape)))
    return np.frombuffer(found, "<u8").astype(np.uint64).reshape(shape)


def draws(name: str, *shape: int) -> Array:
    """Given numbers in (0, 1): 52 bits and a half, exactly."""
    return ((words(name, *shape) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def below(most: int, name: str, *shape: int) -> NDArray[np.int64]:
    """Given whole numbers from 0 on."""
    return (words(name, *shape) % np.uint64(most)).astype(np.int64)


def skewed(name: str, *shape: int) -> Array:
    """Given numbers of many magnitudes and both signs: u - 1/2 over the square of another u."""
    return (draws(name, *shape) - 0.5) / draws(f"{name} again", *shape) ** 2


def digest(made: Iterator[Any]) -> str:
    """The digest of arrays and numbers: their shapes, and their bytes in a form that is the same everywhere."""
    found = hashlib.sha256()
    for each in made:
        array = np.asarray(each)
        form = {"f": f"<f{array.itemsize}", "i": "<i8", "u": "<u8", "b": "<i8"}[array.dtype.kind]
        assert array.dtype.kind != "f" or not np.isnan(array).any(), "the bits of a NaN are anybody's"
        found.update(f"{array.shape}{form}".encode() + np.ascontiguousarray(array, form).tobytes())
    return found.hexdigest()


# The cases: each calls a loop with the types with which the package calls it


def _pair_within(form: str) -> Iterator[Any]:
    for n, reach in ((400, 17), (399, 3), (50, 60)):
        bag, partner = np.full((2, min(n, reach + 1)), -1)
        slot, state = np.full_like(bag, -1), np.zeros(2, np.int64)
        first = 0
        for piece in np.array_split(draws("pair", n), 3):
            yield getattr(swapping.pair_within, form)(piece, first, n, reach, bag, slot, partner, state)
            first += piece.size


def _mix_targets(form: str) -> Iterator[Any]:
    picks, others, turns = draws("picks", 3_600), draws("ways", 3_600), draws("turns", 12)
    for nearest, farthest in ((1, 299), (5, 40)):
        target = (np.arange(300) + np.where(np.arange(300) % 20 < 10, 10, -10)).astype(np.int64)
        owner = np.argsort(target)
        yield getattr(swapping.mix_targets, form)(target, owner, picks, others, turns, nearest, farthest)
        yield target
        yield owner


def _add_exactly(form: str) -> Iterator[Any]:
    # every bit pattern that is a number: subnormal ones, the largest, both signs
    bits = words("exact", 2_000)
    bits = bits[(bits >> np.uint64(52) & np.uint64(2047)) < 2047]
    limbs = np.zeros(exact.LIMBS, np.int64)
    getattr(exact.add_exactly, form)(bits, limbs)
    yield limbs


def _distances(form: str) -> Iterator[Any]:
    x, y = below(900, "ranks", 2, 901).astype(np.float64)
    for times in (1.0, 2.0):
        yield from getattr(summing.distances, form)(x, y, times, 901.0, 10)


def _power_sums(form: str) -> Iterator[Any]:
    values = below(5_000, "powers", 5_003) + 1.0
    for inverse in (False, True):
        yield getattr(summing.power_sums, form)(values, 4, 17.0, inverse)


def _change_sums(form: str) -> Iterator[Any]:
    x, y = skewed("changes", 2, 1_001)
    x[::9], x[5], y[5] = 0.0, 1e308, -1e308
    for unit, spread in ((1.0, 3.0), (1e300, 0.0)):
        yield from getattr(summing.change_sums, form)(x, y, unit, spread, 10)


def _split_digits(form: str) -> Iterator[Any]:
    values = below(2**40, "digits", 301, 2).astype(np.float64)
    made = np.zeros((6, 301))
    getattr(summing.split_digits, form)(values, 2.0, 2.0**40, 3, 2.0**20, made)
    yield made


def _sort_places(form: str) -> Iterator[Any]:
    for codes in (words("sort", 1_500), words("ties", 1_500) % np.uint64(40), words("low", 1_500) >> np.uint64(20)):
        ordered, places = np.empty_like(codes), np.empty(codes.size, np.uint32)
        getattr(sorting.sort_places, form)(codes, ordered, places, np.empty_like(codes), np.empty_like(codes))
        yield from (ordered, places)


def _spread_ranks(form: str) -> Iterator[Any]:
    codes = words("ties", 1_500) % np.uint64(400)
    places = np.argsort(codes, kind="stable").astype(np.uint32)
    ranks = np.empty(codes.size)
    yield getattr(sorting.spread_ranks, form)(codes[places], places, 11, ranks)
    yield ranks


def _codes_and_gaps(form: str) -> Iterator[Any]:
    values = np.concatenate([skewed("codes", 500), [0.0, -0.0, np.inf, -np.inf, np.nan]])
    codes = np.empty(values.size, np.uint64)
    yield getattr(sorting.codes_and_gaps, form)(values, values.view(np.uint64), codes)
    yield codes[:-1]  # what stands for a missing value means nothing


def _sums(form: str) -> Iterator[Any]:
    yield getattr(loops.sums, form)(skewed("sums", 1_003), 3.0)


def _central_sums(form: str) -> Iterator[Any]:
    yield getattr(loops.central_sums, form)(skewed("central", 1_003), 3.0, 0.25, 2.0**-60)


def _mdav(_: str) -> Iterator[Any]:
    x = draws("mdav", 2_500, 3)
    x[:40] = x[40:80]  # equal records
    for k in (3, 10):
        yield mdav.mdav(x, k)


def _build(_: str) -> Iterator[Any]:
    tree = boxes.build(draws("boxes", 700, 3), np.arange(700))
    yield from (tree.rows, tree.x, tree.places, tree.count)


def _nearest(_: str) -> Iterator[Any]:
    x = below(12, "records", 900, 3).astype(np.float64)
    queries = below(25, "queries", 200, 3) / 2
    for euclidean in (True, False):
        tree = neighbours.build(x, euclidean=euclidean)
        z = neighbours.seen(tree, queries)
        home = neighbours.homes(tree, z)
        least, number = np.empty(len(queries)), np.empty(len(queries), np.int64)
        groups = np.empty(len(queries) * len(x), np.int64)
        upto, which = np.full(len(queries), np.inf), np.arange(len(queries))
        yield neighbours.nearest(tree, queries, z, which, home, upto, least, number, groups)
        yield from (least, number)
        ends = np.cumsum(
            number
        )  # a processor may bound boxes a little wider, and find equally near ones in another order
        yield from (np.sort(groups[end - many : end]) for end, many in zip(ends, number, strict=True))


def _lowest(_: str) -> Iterator[Any]:
    rows = np.concatenate([np.sort(part) for part in np.split(np.argsort(words("rows", 600)), 20)])
    number = np.arange(1, 11)
    groups = np.concatenate([np.argsort(words(f"groups {many}", 20))[:many] for many in number])
    shown = 7 * number
    found = np.empty(shown.sum(), np.intp)
    neighbours.lowest(rows, np.arange(0, 601, 30), number, groups, shown, found)
    yield found


def _suppression(_: str) -> Iterator[Any]:
    """Construct classes, ask what sets cover, improve: one loop works on what another has left."""
    codes, weights, k = below(5, "cells", 400, 4), np.array([2, 3, 4, 5]), 3
    cells = words("numbers", 4, 5).view(np.int64)
    z = np.ascontiguousarray(np.where(codes == 4, 0, cells[np.arange(4), codes]))
    absent = ((codes == 4) << np.arange(4)).sum(axis=1)
    worth = np.array([suppression.weight_of(mask, weights) for mask in range(16)])
    masks = np.lexsort((np.arange(16), worth))
    prices = np.array([5, 9, 14, 15, 29, 57, 99])
    state, groups = suppression.begin(z, absent, weights), suppression.no_groups(400, 400)
    lists = suppression.no_lists(400, state.table.size, 400)
    yield from (worth, suppression.covered(state, np.arange(400), masks, k, groups))
    yield suppression.construct(state, np.arange(400), masks, prices, k, False, groups, lists)
    yield from (state.mask, state.cost)
    again = suppression.begin(z, absent, weights)
    suppression.restart(again, state.mask)
    yield suppression.improve(again, np.argsort(z[:, 0]), masks, prices, k, 12, 1, 10**9, groups, lists)
    yield from (again.mask, again.cost)


def _agreement(_: str) -> Iterator[Any]:
    codes, weights = below(6, "agree", 200, 4), np.array([2, 3, 4, 5])
    absent = ((codes == 5) << np.arange(4)).sum(axis=1).astype(np.int16)
    differ = ((codes[:, None] != codes) & (codes[:, None] < 5) & (codes < 5)).any(axis=2)
    values = np.ascontiguousarray(codes.T.astype(np.int16))

    def begin() -> Any:
        bits = (np.int64(1) << np.arange(4)).astype(np.int16)
        frequency = np.count_nonzero(~differ, axis=1)
        return agreement.State(values, bits, absent, np.zeros_like(absent), absent.copy(), frequency, weights)

    order = np.argsort(words("order", 200))
    state = begin()
    agreement.protect(state, order, 5)
    yield from (state.mask, state.frequency)
    yield from (agreement.give_back(state, order[::-1].copy(), 5), state.mask)
    for ahead in (False, True):
        state = begin()
        yield from (agreement.protect_stepwise(state, order, 5, ahead, 10**6), state.mask)
        yield from (agreement.give_back_cells(state, order, 5), state.mask, state.frequency)


def _tell_edges(form: str) -> Iterator[Any]:
    """Two sweeps without a weight outside the graph: exponentials and logarithms are the platform's, not IEEE's."""
    rows, links = 60, 5
    edges, ends = np.arange(rows * links, dtype=np.int32), below(rows, "ends", rows * links).astype(np.int32)
    starts, nothing = np.arange(rows + 1, dtype=np.int64) * links, np.full(rows, -np.inf)
    weight, heard, told = draws("weight", edges.size), draws("heard", edges.size), np.ones(edges.size)
    for sizes in (np.ones(1), 1.0 + below(4, "copies", edges.size)):
        belief, wakes = np.zeros(edges.size, dtype=np.float32), np.zeros(rows, dtype=np.uint8)
        for damped in (False, True):
            waiting = np.ones(rows, dtype=np.uint8)
            getattr(beliefs.tell_edges, form)(
                starts, edges, ends, sizes, weight, heard, told, np.zeros(rows), nothing, nothing, np.zeros(rows),
                np.zeros(rows), belief, waiting, wakes, 1e-3, damped, 0, rows,
            )  # fmt: skip
            yield from (told, belief, wakes)


def _nearest_many(_: str) -> Iterator[Any]:
    tree = neighbours.build(draws("points", 900, 3), euclidean=True)
    near, squares = np.empty((200, 7), dtype=np.int32), np.empty((200, 7), dtype=np.float32)
    candidates.nearest_many(tree, neighbours.seen(tree, draws("queries", 200, 3)), near, squares)
    yield near


def _surviving(form: str) -> Iterator[Any]:
    """Values change places in pairs in three columns, released in another order: the links of all are implied."""
    n, m = 40, 3
    partner = np.empty((n, m), dtype=np.int64)
    for j in range(m):
        order = np.argsort(words(f"pairs {j}", n))
        partner[order[::2], j], partner[order[1::2], j] = order[1::2], order[::2]
    origin = np.argsort(words("released", n))
    where = np.argsort(origin)
    owner, holder = partner[origin], where[partner]
    key, reach, free = np.zeros(n, dtype=np.int64), np.full(m, n), np.full(n, -1)
    low, place = np.tile(np.arange(n)[:, None], (1, m)), np.repeat(owner, 2, axis=1)
    seen_x, seen_y, stack = np.zeros((n, 2), np.int64), np.zeros((n, 2), np.int64), np.zeros((n * m + 2, 2), np.int64)
    for person in range(5):
        yield getattr(implied.surviving, form)(
            np.arange(n), person, owner, holder, key, key, low, low, place, reach, free, free, seen_x, seen_y, stack,
            1000 * person,
        )  # fmt: skip
        yield seen_x


CASES: dict[str, tuple[Case, tuple[str, ...]]] = {
    "swapping.pair_within": (_pair_within, ()),
    "swapping.mix_targets": (_mix_targets, ()),
    "exact.add_exactly": (_add_exactly, ()),
    "summing.distances": (_distances, ()),
    "summing.power_sums": (_power_sums, ()),
    "summing.change_sums": (_change_sums, ()),
    "summing.split_digits": (_split_digits, ()),
    "sorting.sort_places": (_sort_places, ()),
    "sorting.spread_ranks": (_spread_ranks, ()),
    "sorting.codes_and_gaps": (_codes_and_gaps, ()),
    "loops.sums": (_sums, ()),
    "loops.central_sums": (_central_sums, ()),
    "mdav.mdav": (_mdav, ()),
    "boxes.build": (_build, ()),
    "neighbours.nearest": (_nearest, ("neighbours.homes",)),
    "neighbours.lowest": (_lowest, ()),
    "beliefs.tell_edges": (_tell_edges, ()),
    "candidates.nearest_many": (_nearest_many, ()),
    "implied.surviving": (_surviving, ()),
    "suppression.construct": (
        _suppression,
        (
            *("suppression.begin", "suppression.covered", "suppression.improve", "suppression.restart"),
            *("suppression.no_groups", "suppression.no_lists", "suppression.weight_of"),
        ),
    ),
    "agreement.protect": (
        _agreement,
        ("agreement.give_back", "agreement.give_back_cells", "agreement.protect_stepwise"),
    ),
}
"""The loop of each case, and which others it calls."""


def _public() -> dict[str, Any]:
    """Every compiled loop that has a name for others."""
    return {
        f"{room.__name__.rpartition('.')[2]}.{name}": made
        for room in ROOMS
        for name, made in vars(room).items()
        if isinstance(made, Kernel | Dispatcher) and not name.startswith("_") and _home(made) == room.__name__
    }


def _home(made: Any) -> str:
    return str(made.plain.__module__ if isinstance(made, Kernel) else made.py_func.__module__)


def test_every_compiled_loop_has_a_digest() -> None:
    tried = {name for case, (_, others) in CASES.items() for name in (case, *others)}
    assert tried | PARTS == set(_public())
    assert set(json.loads(GOLDEN.read_text())) == set(CASES)


FORMS = [
    (name, form)
    for name in CASES
    for form in (("plain", "compiled") if isinstance(_public()[name], Kernel) else ("compiled",))
]


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_given_draws_give_the_same_bits_as_ever(name: str, form: str, tally: Callable[..., None]) -> None:
    with np.errstate(over="ignore"):  # sums of shifted words overflow on purpose in the plain form
        assert digest(CASES[name][0](form)) == json.loads(GOLDEN.read_text())[name]
    tally("kernels against their golden digests")


if __name__ == "__main__":
    made = {name: digest(case("compiled")) for name, (case, _) in sorted(CASES.items())}
    GOLDEN.write_text(json.dumps(made, indent=1) + "\n")
