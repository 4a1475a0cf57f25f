"""The compiled loops against their plain form: all of it in Python, down to the innermost step."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba.extending import is_jitted

from rankveil import kernels, linkage
from rankveil.classes import Missing
from rankveil.intruder.candidates import nearest
from rankveil.linkage import Linker
from rankveil.suppression import EVERY_SET, fewest

ROOM = kernels.__name__ + "."
MODULES = [each.name for each in pkgutil.iter_modules(kernels.__path__)]
RUN: set[str] = set()
"""The loops that were run in their plain form."""

slow = settings(max_examples=min(settings.default.max_examples // 2, 60))
"""Plain loops take a second or so each."""


def least(apart: Any, found: Any) -> Any:
    found[:] = apart
    return found.min()


def outside(boxes: Any, block: int, q: Any) -> Any:
    low, high = boxes[block, :, 0], boxes[block, :, 1]
    return np.maximum(np.maximum(low - q[:, None], q[:, None] - high), 0)


LANES: dict[str, Callable[..., Any]] = {
    "squares_to_records": lambda points, block, q, found: least(((points[block] - q[:, None]) ** 2).sum(axis=0), found),
    "maxima_to_records": lambda points, block, q, found: least(np.abs(points[block] - q[:, None]).max(axis=0), found),
    "squares_to_boxes": lambda boxes, block, q, found: least((outside(boxes, block, q) ** 2).sum(axis=0), found),
    "maxima_to_boxes": lambda boxes, block, q, found: least(outside(boxes, block, q).max(axis=0), found),
    "lanes_within": lambda found, limit: sum(1 << lane for lane in np.flatnonzero(found <= limit).tolist()),
    "lowest_lane": lambda bits: (bits & -bits).bit_length() - 1,
}
"""Vector instructions have no plain form of their own; `test_neighbours` holds them to the same formulas."""


@cache
def plain(name: str) -> dict[str, Any]:
    """What a module of kernels holds, in its plain form, and so is all that it calls."""
    module = import_module(ROOM + name)
    world = {**vars(module), **(LANES if name == "lanes" else {})}
    for each, one in vars(module).items():
        home = str(getattr(one, "__module__", ""))
        function = one.py_func if is_jitted(one) else one
        if home == module.__name__ and isinstance(function, FunctionType) and name != "lanes":
            world[each] = noted(FunctionType(function.__code__, world, each), f"{name}.{each}")
            world[each].__kwdefaults__ = function.__kwdefaults__
        elif home.startswith(ROOM) and home != module.__name__:
            world[each] = plain(home.removeprefix(ROOM))[each]
    return world


def noted(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(function)
    def run(*given: Any, **named: Any) -> Any:
        RUN.add(name)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # a compiled loop does not warn
            return function(*given, **named)

    return run


def both(work: Callable[[], Any]) -> tuple[Any, Any]:
    """What comes out with the compiled loops, and with the plain ones."""
    compiled = work()
    # All modules are loaded before the first is changed: one loaded later would keep the plain loops it imports.
    worlds = {name: plain(name) for name in MODULES}
    with pytest.MonkeyPatch.context() as patch:
        for name, world in worlds.items():
            module = import_module(ROOM + name)
            for each, one in world.items():
                if is_jitted(getattr(module, each)) or name == "neighbours":
                    patch.setattr(module, each, one)
        return compiled, work()


def links(points: Any, queries: Any, euclidean: bool) -> None:
    def work() -> Any:
        linker = Linker(points, metric="euclidean" if euclidean else "maximum")
        near = linker.distances(queries)
        found = linker.matches(queries, upto=near / 2)  # wrong on purpose: it must not matter
        few = linker.matches(queries, most=3)
        return [near, found.distance, found.count, found.rows, found.wanted_by, few.rows, linker.best(queries)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linkage, "_LARGE", 0)  # tables of any size go to the compiled search
        patch.setattr(linkage, "_PAIRS", 0)
        compiled, in_python = both(work)
    for one, other in zip(compiled, in_python, strict=True):
        assert np.array_equal(one, other)


def groups(z: Any, k: int) -> None:
    def work() -> Any:
        return import_module(ROOM + "mdav").mdav(z, k)

    assert np.array_equal(*both(work))


def tree(x: Any) -> None:
    compiled, in_python = both(lambda: import_module(ROOM + "boxes").build(x, np.arange(len(x))))
    for one, other in zip(compiled, in_python, strict=True):
        assert np.array_equal(one, other)


def candidates(points: Any, queries: Any, k: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankveil.intruder.candidates._COMPILED", 0)  # tables of any size go to the compiled search
        (near, squares), (in_python, also) = both(lambda: nearest(points, queries, k))
    assert np.array_equal(near, in_python)
    assert np.allclose(squares, also, rtol=1e-5)
    apart = np.sort(((points[None] - queries[:, None]) ** 2).sum(axis=2), axis=1)[:, :k]
    assert np.allclose(squares, apart, rtol=1e-4, atol=1e-6)


def cells(codes: Any, k: int) -> None:
    importance = np.linspace(1, 2, codes.shape[1])
    ways: tuple[Missing, ...] = ("own", "any")
    compiled, in_python = both(lambda: [fewest(codes, k=k, importance=importance, missing=way) for way in ways])
    for one, other in zip(compiled, in_python, strict=True):
        assert np.array_equal(one.cells, other.cells)


@given(st.data())
def test_nearest_records(data: st.DataObject) -> None:
    m = data.draw(st.integers(1, 4))
    numbers = data.draw(st.sampled_from([st.integers(0, 3).map(float), st.floats(-1, 1), st.floats(-1e15, 1e15)]))
    points = data.draw(hnp.arrays(float, st.tuples(st.integers(1, 50), st.just(m)), elements=numbers))
    queries = data.draw(hnp.arrays(float, st.tuples(st.integers(1, 4), st.just(m)), elements=numbers))
    links(points, queries, data.draw(st.booleans()))


@slow
@given(
    hnp.arrays(float, st.tuples(st.integers(9, 60), st.integers(1, 4)), elements=st.floats(-1e6, 1e6, width=32)),
    st.integers(2, 9),
)
def test_groups_of_similar_records(z: Any, k: int) -> None:
    groups(z, k)


@slow
@given(hnp.arrays(np.int64, st.tuples(st.integers(3, 10), st.integers(1, 3)), elements=st.integers(-1, 2)))
def test_suppressed_cells(codes: Any) -> None:
    cells(codes, 3)


def test_every_compiled_loop_is_compared() -> None:
    rng = np.random.default_rng(1)
    for euclidean in (False, True):
        links(np.round(rng.normal(size=(1500, 2)), 2), rng.normal(size=(5, 2)), euclidean)
    groups(rng.normal(size=(1200, 2)), 60)
    groups(np.tile([[0.0, 0.0], [1.0, 1.0]], (100, 1)), 7)  # all are as far from the mean
    tree(rng.normal(size=(8200, 1)))  # enough for groups above groups
    candidates(rng.normal(size=(700, 3)), rng.normal(size=(6, 3)), 9)
    cells(rng.integers(0, 3, (40, 3)), 3)
    cells(rng.integers(0, 2, (12, EVERY_SET + 1)), 2)
    loops = {f"{name}.{each}" for name in MODULES for each in jitted(import_module(ROOM + name))}
    assert len(loops) > 50
    assert loops - RUN == set()


def test_after_a_comparison_every_module_has_its_compiled_loops_again() -> None:
    both(lambda: None)
    for name in MODULES:
        module = import_module(ROOM + name)
        for each, one in vars(module).items():
            home = str(getattr(one, "__module__", ""))
            if home.startswith(ROOM) and isinstance(one, FunctionType):
                assert one is vars(import_module(home)).get(each), f"{name}.{each} is not compiled"


def jitted(module: Any) -> list[str]:
    return [each for each, one in vars(module).items() if is_jitted(one) and one.__module__ == module.__name__]
