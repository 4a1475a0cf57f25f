"""The compiled search for nearest records: vector passes against numpy, whole searches against a comparison of all."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from rankveil.kernels import lanes, neighbours
from rankveil.kernels.lanes import LANES

Array = NDArray[np.float64]

PASSES = ["squares_to_records", "maxima_to_records", "squares_to_boxes", "maxima_to_boxes"]


def compiled_pass(name: str) -> Any:
    one = getattr(lanes, name)

    @numba.njit
    def run(array, block, q, found, limit):  # type: ignore[no-untyped-def]
        least = one(array, block, q, found)
        return least, lanes.lanes_within(found, limit)

    return run


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("m", [1, 2, 3, 8, 13])
def test_a_vector_pass_is_the_plain_formula(name: str, m: int) -> None:
    rng = np.random.default_rng(m)
    run = compiled_pass(name)
    q = rng.normal(size=m).astype(np.float32)
    if name.endswith("records"):
        array = rng.normal(size=(3, m, LANES)).astype(np.float32)
        array[2, :, -5:] = np.inf  # empty places
        apart = np.abs(array[2] - q[:, None])
    else:
        array = np.sort(rng.normal(size=(3, m, 2, LANES)).astype(np.float32), axis=2)
        array[2, :, 0, -5:], array[2, :, 1, -5:] = np.inf, -np.inf
        low, high = array[2, :, 0], array[2, :, 1]
        apart = np.maximum(np.maximum(low - q[:, None], q[:, None] - high), 0)
    expected = (apart**2).sum(axis=0) if name.startswith("squares") else apart.max(axis=0)
    found = np.empty(LANES, np.float32)
    limit = np.float32(np.median(expected))
    least, within = run(array, 2, q, found, limit)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert least == found.min()
    assert [bool(within >> lane & 1) for lane in range(LANES)] == (found <= limit).tolist()
    assert 0 < within < 2**LANES


def test_arrays_in_another_layout_are_refused() -> None:
    points, found = np.zeros((1, 2, LANES), np.float32), np.zeros(LANES, np.float32)
    with pytest.raises(numba.TypingError, match="contiguous arrays of single precision"):
        compiled_pass(PASSES[0])(points, 0, np.zeros((2, 3), np.float32)[:, 0], found, np.float32(0))
    with pytest.raises(numba.TypingError, match="contiguous arrays of single precision"):
        compiled_pass(PASSES[0])(points, 0, np.zeros(2), found, np.float32(0))


def search(
    points: Array, queries: Array, *, euclidean: bool, upto: Array | None = None, room: int | None = None
) -> tuple[Array, list[list[int]]]:
    """The smallest distance of every query (Euclidean: squared), and the rows at it, as `Linker` asks for them."""
    tree = neighbours.build(points, euclidean=euclidean)
    z = neighbours.seen(tree, queries)
    home = neighbours.homes(tree, z)
    order = np.argsort(home, kind="stable")
    upto = np.full(len(queries), np.inf) if upto is None else upto
    distance, rows = np.empty(len(queries)), [[] for _ in queries]
    groups = np.empty(len(points) * (len(queries) if room is None else room), np.int64)
    while order.size:
        least, number = np.empty(order.size), np.empty(order.size, np.int64)
        done = neighbours.nearest(tree, queries, z, order, home, upto, least, number, groups)
        assert done > 0
        distance[order[:done]] = least[:done]
        found = np.split(groups[: number[:done].sum()], np.cumsum(number[:done])[:-1])
        for query, some in zip(order[:done], found, strict=True):
            rows[query] = sorted(some.tolist())
        order = order[done:]
    return distance, rows


def compare_all(points: Array, queries: Array, *, euclidean: bool) -> tuple[Array, list[list[int]]]:
    """The same in plain double precision, attribute by attribute."""
    apart = np.zeros((len(queries), len(points)))
    for j in range(points.shape[1]):
        one = np.abs(points[None, :, j] - queries[:, None, j])
        apart = apart + one * one if euclidean else np.maximum(apart, one)
    least = apart.min(axis=1)
    return least, [np.flatnonzero(row == low).tolist() for row, low in zip(apart, least, strict=True)]


@st.composite
def clouds(draw: st.DrawFn) -> tuple[Array, Array]:
    """Records and queries of any magnitude, among them ties, copies, constant columns and far-off records."""
    m = draw(st.integers(1, 6))
    size = draw(st.sampled_from([1.0, 1e6, 1e12, 1e-12, 1e-160]))
    values = draw(
        st.sampled_from(
            [
                st.integers(0, 3).map(float),
                st.floats(-1, 1, width=32),
                st.floats(-1, 1),
                st.sampled_from([0.0, 1.0, 1.0 + 2**-40, 1.0 + 2**-52, -1.0, 1e9]),
            ]
        )
    )
    points = draw(hnp.arrays(np.float64, st.tuples(st.integers(1, 80), st.just(m)), elements=values))
    queries = draw(hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.just(m)), elements=values))
    return points * size, queries * size * draw(st.sampled_from([1.0, 1.0, 0.5, 1e20]))


@settings(max_examples=80, deadline=None)
@given(clouds(), st.booleans())
def test_the_search_finds_what_a_comparison_of_all_finds(cloud: tuple[Array, Array], euclidean: bool) -> None:
    points, queries = cloud
    distance, rows = search(points, queries, euclidean=euclidean)
    wanted, all_rows = compare_all(points, queries, euclidean=euclidean)
    assert np.array_equal(distance, wanted)
    assert rows == all_rows


@pytest.mark.parametrize("euclidean", [False, True])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 1023, 1024, 1025, 40_000])
def test_trees_of_every_shape(n: int, euclidean: bool) -> None:
    rng = np.random.default_rng(n)
    points = np.round(rng.normal(size=(n, 4)), 1)
    queries = np.round(rng.normal(size=(50, 4)), 1) + 0.05
    distance, rows = search(points, queries, euclidean=euclidean)
    wanted, all_rows = compare_all(points, queries, euclidean=euclidean)
    assert np.array_equal(distance, wanted)
    assert rows == all_rows


@pytest.mark.parametrize("euclidean", [False, True])
def test_known_distances_change_nothing_even_when_they_are_wrong(euclidean: bool) -> None:
    rng = np.random.default_rng(1)
    points, queries = rng.normal(size=(3000, 5)), rng.normal(size=(300, 5))
    wanted, all_rows = compare_all(points, queries, euclidean=euclidean)
    exact = np.sqrt(wanted) if euclidean else wanted
    for upto in (exact, exact * 1.5, np.zeros(300), exact * (1 - 1e-12)):
        distance, rows = search(points, queries, euclidean=euclidean, upto=upto)
        assert np.array_equal(distance, wanted)
        assert rows == all_rows


def test_a_search_goes_on_when_there_is_no_more_room_for_rows() -> None:
    points = np.array([[0.0], [0.0], [2.0], [2.0], [9.0]])
    queries = np.array([[1.0], [9.0], [1.0], [0.0], [5.5]])
    whole = search(points, queries, euclidean=False)
    assert whole[1] == [[0, 1, 2, 3], [4], [0, 1, 2, 3], [0, 1], [2, 3, 4]]
    assert search(points, queries, euclidean=False, room=1)[1] == whole[1]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_the_lowest_rows_of_several_groups(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
    starts = np.concatenate(([0], np.cumsum(sizes)))
    shuffled = np.array(data.draw(st.permutations(range(starts[-1]))))
    rows = np.concatenate([np.sort(some) for some in np.split(shuffled, starts[1:-1])])
    asked = data.draw(
        st.lists(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=4, unique=True), min_size=1, max_size=5)
    )
    together = [np.sort(np.concatenate([rows[starts[g] : starts[g + 1]] for g in groups])) for groups in asked]
    most = data.draw(st.integers(1, 40))
    shown = np.array([min(most, some.size) for some in together])
    found = np.full(shown.sum(), -1)
    number = np.array([len(groups) for groups in asked])
    neighbours.lowest(rows, starts, number, np.concatenate(asked), shown, found)
    assert found.tolist() == [row for some in together for row in some[:most].tolist()]
