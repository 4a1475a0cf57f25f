"""One-to-one links: beliefs against all matchings, links that follow by logic, and the loops behind both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from rankveil import matchings
from rankveil.intruder import candidates
from rankveil.intruder.candidates import Classes, likely_links, nearest
from rankveil.kernels.beliefs import tell_edges
from rankveil.kernels.implied import surviving
from rankveil.likelihood import Points
from rankveil.matchings import CandidateGraph, forced_links, link_posterior

BETHE = 0.15
"""How far beliefs may be from the truth on complete graphs of up to 5 records, weights of standard deviation 1."""


def graph_of(edges: list[tuple[int, int]], shape: tuple[int, int]) -> CandidateGraph:
    ends = np.array(sorted(edges), dtype=np.int32).reshape(-1, 2)
    one, none = [np.ones(size, dtype=np.int64) for size in shape], [np.full(size, -np.inf) for size in shape]
    return CandidateGraph(ends[:, 0].copy(), ends[:, 1].copy(), *one, *none)


def all_links(edges: list[tuple[int, int]], n: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Every set of edges in which no record has two; rows may be without any."""
    if n == 0:
        yield ()
        return
    for some in all_links(edges, n - 1):
        yield some
        for edge in edges:
            if edge[0] == n - 1 and all(edge[1] != column for _, column in some):
                yield (*some, edge)


def enumerated(
    graph: CandidateGraph, weight: Any, row_unmatched: Any, column_unmatched: Any
) -> tuple[Any, Any, Any] | None:
    """Beliefs, and the probabilities of having no partner, by summing over all matchings; None where there is none."""
    edges = list(zip(graph.rows.tolist(), graph.columns.tolist(), strict=True))
    place = {edge: number for number, edge in enumerate(edges)}
    n, m = graph.row_sizes.size, graph.column_sizes.size
    whole, belief, rows, columns = 0.0, np.zeros(len(edges)), np.zeros(n), np.zeros(m)
    for links in all_links(edges, n):
        used = [place[edge] for edge in links]
        row_free = np.setdiff1d(np.arange(n), graph.rows[used])
        column_free = np.setdiff1d(np.arange(m), graph.columns[used])
        mass = np.exp(weight[used].sum() + row_unmatched[row_free].sum() + column_unmatched[column_free].sum())
        whole += mass
        belief[used] += mass
        rows[row_free] += mass
        columns[column_free] += mass
    return None if whole == 0 else (belief / whole, rows / whole, columns / whole)


@st.composite
def forests(draw: Any) -> CandidateGraph:
    """A graph without cycles between up to 5 and up to 5 records."""
    n, m = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    head = list(range(n + m))

    def top(node: int) -> int:
        return node if head[node] == node else top(head[node])

    edges = []
    for i, j in draw(st.permutations(list(product(range(n), range(m))))):
        if top(i) != top(n + j) and draw(st.integers(0, 3)):
            head[top(i)] = top(n + j)
            edges.append((i, j))
    return graph_of(edges, (n, m))


@given(forests(), st.integers(0, 10**6), st.booleans(), st.booleans())
def test_on_trees_beliefs_are_exact(graph: CandidateGraph, seed: int, rows_may: bool, columns_may: bool) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.normal(scale=2, size=graph.rows.size)
    free = [
        rng.normal(size=size) if may else np.full(size, -np.inf)
        for size, may in ((graph.row_sizes.size, rows_may), (graph.column_sizes.size, columns_may))
    ]
    wanted = enumerated(graph, weight, *free)
    if wanted is None:  # nobody can be linked as the weights ask
        return
    made = link_posterior(graph, weight, row_unmatched=free[0], column_unmatched=free[1])
    # a belief that changes by less than 0.001 ends the sweeps
    assert made.belief == pytest.approx(wanted[0], abs=0.01)
    assert made.unmatched_rows == pytest.approx(wanted[1], abs=0.01)
    assert made.unmatched_columns == pytest.approx(wanted[2], abs=0.01)


def test_on_small_complete_tables_beliefs_are_near_the_truth() -> None:
    worst, errors = 0.0, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(2, 5)), int(rng.integers(2, 6))
        graph = graph_of(list(product(range(n), range(m))), (n, m))
        weight = rng.normal(size=n * m)
        free = [rng.normal(size=n), rng.normal(size=m)]
        wanted = enumerated(graph, weight, *free)
        assert wanted is not None
        made = link_posterior(graph, weight, row_unmatched=free[0], column_unmatched=free[1])
        assert made.change <= matchings.ENOUGH
        errors += list(np.abs(made.belief - wanted[0]))
        worst = max(worst, *np.abs(made.unmatched_rows - wanted[1]), *np.abs(made.unmatched_columns - wanted[2]))
    assert max(*errors, worst) < BETHE
    assert np.mean(errors) < BETHE / 5


@pytest.mark.parametrize("run", ["plain", "compiled"])
def test_having_no_partner_may_outweigh_all_candidates_by_more_than_a_number_holds(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matchings, "_PLAIN", 100 if run == "plain" else 0)
    graph = graph_of([(0, 0), (1, 0), (1, 1)], (2, 2))
    made = link_posterior(
        graph, np.array([-2000.0, 0.0, 0.0]), row_unmatched=np.array([1000.0, -5.0]), column_unmatched=np.zeros(2)
    )
    assert made.belief[0] == 0
    assert made.unmatched_rows == pytest.approx([1.0, 0.0], abs=0.01)


def test_everybody_has_a_partner_in_square_tables() -> None:
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 6))
        graph = graph_of(list(product(range(n), range(n))), (n, n))
        weight = rng.normal(size=n * n)
        none = np.full(n, -np.inf)
        wanted = enumerated(graph, weight, none, none)
        assert wanted is not None
        made = link_posterior(graph, weight)
        assert made.belief.reshape(n, n).sum(axis=1) == pytest.approx(1, abs=1e-5)
        assert made.belief.reshape(n, n).sum(axis=0) == pytest.approx(1, abs=0.02)
        assert not made.unmatched_rows.any()
        errors += list(np.abs(made.belief - wanted[0]))
    assert max(errors) < 0.4  # two pairs of records that nobody else wants go to 0 or 1
    assert np.mean(errors) < BETHE / 2


def test_pairs_that_are_as_likely_one_way_as_the_other_are_even() -> None:
    """Undamped, such beliefs change for ever, from one way to the other and back."""
    edges = [(0, 0), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (3, 3)]
    made = link_posterior(graph_of(edges, (4, 4)), np.array([7.0, 6.8, 6.8, 6.8, 6.6, 6.6, 6.4, 6.4]))
    assert made.change <= matchings.ENOUGH
    assert made.belief == pytest.approx([1, 0, 0.5, 0.5, 0.5, 0.5, 0, 1], abs=0.06)


@settings(deadline=None)  # the first call compiles
@given(st.integers(0, 10**6), st.booleans())
def test_classes_are_what_their_members_are_one_by_one(seed: int, large: bool) -> None:
    rng = np.random.default_rng(seed)
    n, m = (12, 15) if large else (3, 2)
    row_sizes, column_sizes = rng.integers(1, 4, n), rng.integers(1, 4, m)
    edges = [edge for edge in product(range(n), range(m)) if rng.random() < 0.8]
    weight = rng.normal(size=len(edges))
    free = rng.normal(size=n), rng.normal(size=m)
    tails = rng.normal(size=n) - 2, rng.normal(size=m) - 2
    merged = replace(
        graph_of(edges, (n, m)),
        row_sizes=row_sizes,
        column_sizes=column_sizes,
        row_tail=tails[0],
        column_tail=tails[1],
    )
    of_row, of_column = np.repeat(np.arange(n), row_sizes), np.repeat(np.arange(m), column_sizes)
    place = {edge: number for number, edge in enumerate(edges)}
    single = [
        (i, j) for i, j in product(range(of_row.size), range(of_column.size)) if (of_row[i], of_column[j]) in place
    ]
    at = [place[of_row[i], of_column[j]] for i, j in single]
    split = replace(
        graph_of(single, (of_row.size, of_column.size)), row_tail=tails[0][of_row], column_tail=tails[1][of_column]
    )
    one = link_posterior(merged, weight, row_unmatched=free[0], column_unmatched=free[1])
    many = link_posterior(split, weight[at], row_unmatched=free[0][of_row], column_unmatched=free[1][of_column])
    # a tail is divided by the mean over candidates, which counts classes once and members each: so here it is small
    assert many.belief == pytest.approx(one.belief[at], abs=0.02)
    assert many.unmatched_rows == pytest.approx(one.unmatched_rows[of_row], abs=0.02)
    assert many.unmatched_columns == pytest.approx(one.unmatched_columns[of_column], abs=0.02)


def test_what_lies_outside_the_candidates_takes_its_share() -> None:
    """40 records that are all alike likely, 10 candidates each: every link has a probability of 1 in 40."""
    n, k = 40, 10
    graph = graph_of([(i, (i + j) % n) for i in range(n) for j in range(k)], (n, n))
    graph = replace(graph, row_tail=np.full(n, np.log(n - k)), column_tail=np.full(n, np.log(n - k)))
    for level in (0.0, 300.0, -300.0):  # whatever weights have in common cancels
        made = link_posterior(
            replace(graph, row_tail=graph.row_tail + level, column_tail=graph.column_tail + level),
            np.full(n * k, level),
        )
        assert made.belief == pytest.approx(1 / n, rel=0.05)


def test_a_record_far_from_all_is_not_lost_to_rounding() -> None:
    """Its weights are 1000 below those of everybody else, and differ by 1."""
    graph = graph_of([(0, 0), (0, 1), (1, 2), (1, 3)], (2, 4))
    weight = np.array([0.0, 0.0, -1000.0, -1001.0])
    made = link_posterior(graph, weight, column_unmatched=np.zeros(4))
    assert made.belief == pytest.approx([0.5, 0.5, 1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))], abs=1e-5)


def test_edges_must_be_sorted() -> None:
    with pytest.raises(ValueError, match="sorted by their row"):
        replace(graph_of([(0, 0), (1, 1)], (2, 2)), rows=np.array([1, 0], dtype=np.int32))


@pytest.mark.parametrize("several", [False, True])
def test_beliefs_compiled_are_beliefs_plain(several: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a sweep's results, and the same in slices as in one."""
    rng = np.random.default_rng(0)
    n, m = 30, 25
    edges = [edge for edge in product(range(n), range(m)) if rng.random() < 0.5]
    graph = replace(graph_of(edges, (n, m)), row_tail=rng.normal(size=n), column_tail=rng.normal(size=m))
    if several:
        graph = replace(graph, row_sizes=rng.integers(1, 3, n), column_sizes=rng.integers(1, 3, m))
    weight, free = rng.normal(scale=3, size=len(edges)), (rng.normal(size=n), rng.normal(size=m))
    forms = []
    for plain, threads in ((10**9, 10**9), (0, 10**9), (0, 0)):
        monkeypatch.setattr(matchings, "_PLAIN", plain)
        monkeypatch.setattr(matchings, "_WORTH_THREADS", threads)
        forms.append(link_posterior(graph, weight, row_unmatched=free[0], column_unmatched=free[1]))
    for form in forms[1:]:
        assert form.sweeps == forms[0].sweeps
        assert form.belief == pytest.approx(forms[0].belief, abs=1e-7)
        assert form.unmatched_columns == pytest.approx(forms[0].unmatched_columns, abs=1e-12)
    assert tell_edges.compiled is not tell_edges.plain


# -- candidates


@settings(deadline=None)  # the first call compiles
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 4), st.booleans())
def test_the_nearest_records_are_those_of_a_tree_in_double_precision(seed: int, k: int, m: int, tied: bool) -> None:
    rng = np.random.default_rng(seed)
    points, queries = rng.normal(size=(200, m)), rng.normal(size=(20, m))
    if tied:
        points, queries = points.round(), queries.round()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "_COMPILED", 0)
        near, squares = nearest(points, queries, k)
    wanted = cKDTree(points).query(queries, k=range(1, k + 1))[0] ** 2
    assert squares == pytest.approx(wanted, abs=1e-4)
    apart = np.sum((points[near] - queries[:, None]) ** 2, axis=2)
    assert apart == pytest.approx(wanted, abs=1e-4)
    assert all(np.unique(row).size == k for row in near)


def test_what_is_beyond_the_candidates_is_seen_in_a_few() -> None:
    """The sum of exp(-r^2 / 2) over all records that are no candidates, within a factor of 2 for most."""
    rng = np.random.default_rng(0)
    n = 4000
    x = rng.normal(scale=2, size=(n, 4))
    y = x + rng.normal(size=(n, 4))
    everybody = Classes(np.arange(n), np.arange(n), np.ones(n, dtype=np.int64))
    keys = np.zeros(n, dtype=np.int64)
    graph, weight, left, right = likely_links([Points(x, y)], keys, keys, everybody, everybody)
    assert np.array_equal(np.sort(left.first), np.arange(n))
    assert np.array_equal(left.first[left.of], np.arange(n))
    level = weight[0] + np.sum((x[left.first[graph.rows[0]]] - y[right.first[graph.columns[0]]]) ** 2) / 2
    for ends, others, tail, one, two, here, there in (
        (graph.rows, graph.columns, graph.row_tail, x, y, left, right),
        (graph.columns, graph.rows, graph.column_tail, y, x, right, left),
    ):
        errors = []
        for i in rng.choice(n, 60, replace=False):
            mass = np.exp(-np.sum((one[here.first[i]] - two[there.first]) ** 2, axis=1) / 2)
            inside = mass[others[ends == i]].sum()
            if mass.sum() - inside > 0.05 * inside:
                errors.append(tail[i] - level - np.log(mass.sum() - inside))
        assert len(errors) > 20
        assert abs(np.median(errors)) < 0.3
        assert np.quantile(np.abs(errors), 0.8) < np.log(2)


def test_links_lead_to_equal_keys_alone() -> None:
    rng = np.random.default_rng(1)
    n = 300
    x = rng.normal(size=(n, 2))
    keys = rng.integers(0, 5, n)
    released = np.where(np.arange(n) < 3, -1, keys)  # three records that nobody's key explains
    everybody = Classes(np.arange(n), np.arange(n), np.ones(n, dtype=np.int64))
    graph, *_ = likely_links([Points(x, x)], keys, released, everybody, everybody)
    assert np.array_equal(keys[graph.rows], released[graph.columns])
    assert np.array_equal(np.unique(graph.columns), np.arange(3, n))
    number = np.bincount(graph.rows, minlength=n)
    assert number.min() >= min(np.bincount(released[3:]).min(), candidates.CANDIDATES) - 1


# -- links that follow by logic


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(
            st.just(n), st.integers(n, 6), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, 5)), min_size=1)
        )
    ),
    st.booleans(),
)
def test_forced_links_are_those_of_every_matching(drawn: tuple[int, int, set[tuple[int, int]]], may_lack: bool) -> None:
    n, m, given_edges = drawn
    edges = sorted((i, j) for i, j in given_edges if j < m)
    rows, columns = np.array([i for i, _ in edges], dtype=np.int64), np.array([j for _, j in edges], dtype=np.int64)
    made = forced_links(rows, columns, (n, m), rows_may_lack=may_lack)
    possible = [set(links) for links in all_links(edges, n)]
    most = max(len(links) for links in possible)
    if most < n and not may_lack:
        assert made is None
        return
    assert made is not None
    # as many originals as possible have a released record
    wanted = set.intersection(*(links for links in possible if len(links) == most))
    assert set(zip(made[0].tolist(), made[1].tolist(), strict=True)) == wanted


def swapped(n: int, swaps: list[list[tuple[int, int]]]) -> tuple[Any, Any]:
    """`owner` and `holder` when in each column some originals changed values in pairs; released a is original a."""
    owner = np.tile(np.arange(n)[:, None], (1, len(swaps)))
    for j, pairs in enumerate(swaps):
        for i, k in pairs:
            owner[i, j], owner[k, j] = k, i
    return owner, np.argsort(owner, axis=0)


def surviving_links(
    form: str, owner: Any, holder: Any, person: int, *, keys: Any = None, link: Any = None, reach: int = 99
) -> tuple[tuple[int, int], Any]:
    """How many of all records survive for a person and the first, and the links that the last trial implied."""
    n, m = owner.shape
    key_x, key_y = keys or (np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64))
    known = np.full(n, -1, dtype=np.int64) if link is None else link
    taken = np.full(n, -1, dtype=np.int64)
    taken[known[known >= 0]] = np.flatnonzero(known >= 0)
    ranks = np.tile(np.arange(n)[:, None], (1, m))  # original i has rank i in every column
    places = np.repeat(owner, 2, axis=1)  # and released a the rank of the original whose value it has
    seen_x, seen_y = np.zeros((n, 2), dtype=np.int64), np.zeros((n, 2), dtype=np.int64)
    stack, within = np.empty((n * m + 2, 2), dtype=np.int64), np.full(m, reach, dtype=np.int64)
    run = getattr(surviving, form)
    found, first, epoch = run(
        np.arange(n), person, owner, holder, key_x, key_y, ranks, ranks, places, within, known, taken,
        seen_x, seen_y, stack, 0,
    )  # fmt: skip
    return (int(found), int(first)), np.where(seen_x[:, 0] == epoch, seen_x[:, 1], -1)


@pytest.mark.parametrize("form", ["plain", "compiled"])
def test_what_follows_from_pairs_of_swaps(form: str) -> None:
    """Five people. 0-1 and 2-3 changed values in the first column, 1-2 and 3-4 in the second, nobody in the third.

    If released 1 were person 0, the third column would say that the original with its value, 1, is the released record
    that has 0's, which is 0: so 0 and 1 would each be the other. The first column says the same (0 is 1). But by the
    second, released 1 has 2's value and 0 kept its own: 2 would be 0, which is 1.
    """
    owner, holder = swapped(5, [[(0, 1), (2, 3)], [(1, 2), (3, 4)], []])
    for person in range(5):
        assert surviving_links(form, owner, holder, person)[0] == (1, person)
    _, implied = surviving_links(form, owner, holder, 4)
    assert np.array_equal(implied, np.arange(5)), "the last trial, which is the right one, implies all other links"
    assert surviving_links(form, owner[:, :2], holder[:, :2], 4)[0][0] == 2, "two columns leave other chains open"


@pytest.mark.parametrize("form", ["plain", "compiled"])
def test_links_that_pairs_leave_open(form: str) -> None:
    """Four people and one column with the swaps 0-1 and 2-3: each may be any record, until more is known."""
    owner, holder = swapped(4, [[(0, 1), (2, 3)]])
    assert surviving_links(form, owner, holder, 0)[0] == (2, 0)
    keys = np.array([0, 1, 2, 3]), np.array([0, 1, 2, 3])
    assert surviving_links(form, owner, holder, 0, keys=keys)[0] == (1, 0)
    known = np.array([-1, 1, -1, -1])  # who is 1 is known, and with it who is 0
    assert surviving_links(form, owner, holder, 0, link=known)[0] == (1, 0)
    # released 0 has the value of rank 1, so within a rank of 0 are released 0 and 1; 2 and 3 have those of 3 and 2
    assert surviving_links(form, owner, holder, 0, reach=1)[0] == (2, 0)
    assert surviving_links(form, owner, holder, 0, reach=0)[0] == (1, 1)
    assert surviving_links(form, owner, holder, 0, keys=(keys[0], keys[1] + 4))[0] == (0, -1)


@given(st.integers(2, 6), st.integers(1, 3), st.integers(0, 10**6))
def test_what_some_pairing_explains_survives(n: int, m: int, seed: int) -> None:
    """Every record that a one-to-one link of all gives a person, in which each column changed places in pairs."""
    rng = np.random.default_rng(seed)
    swaps = []
    for _ in range(m):
        order = rng.permutation(n)
        swaps.append([(int(a), int(b)) for a, b in zip(order[::2], order[1::2], strict=False)])
    owner, holder = swapped(n, swaps)
    explained: list[set[int]] = [set() for _ in range(n)]
    for record_of in permutations(range(n)):
        implied = ((owner[a, j], holder[i, j]) for i, a in enumerate(record_of) for j in range(m))
        if all(record_of[other] == place for other, place in implied):
            for i, a in enumerate(record_of):
                explained[i].add(a)
    for person in range(n):
        assert person in explained[person]
        (found, first), _ = surviving_links("plain", owner, holder, person)
        assert found >= min(len(explained[person]), 2)
        assert first <= min(explained[person])
        if found == 1:
            assert first == person
