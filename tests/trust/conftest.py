"""Tables as people have them, and worse: every method, measure and verb takes or refuses them in one sentence."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from rankveil import files
from rankveil.catalogue import Method, Parameter
from rankveil.plans import Plan, Step

NAMES = [
    *"ABCDE", "INCOME", "age", "id", "Weight", "household", "", " ", "a,b", 'say "x"', "two\nlines", "tab\there",
    "Größe", "收入", "e\u0301", "\u202eright to left", "=1+1", "1", "nan", "null", "__proto__", "a.b", "a=b",
    "A:numeric", "x" * 300, "<b>bold</b>", "{{ 7 }}", "../up", "%s", "-o", "row",
]  # fmt: skip

LABELS = [
    "low", "middle", "high", "yes", "no", "", " ", "NA", "n/a", "-9", "0", "1", "1.5", "1,5", "1e3", "0x10", "١٢", "½",
    "∞", "true", "2024-02-30", "2024-02-29", "06.07.2025", "11:34", "Ä", "ä", "a\u0308", "ß", "\u0000", "\ud7ff",
    "\U0001f9ff", "'", '"', ",", ";", "=cmd|' /C calc'!A0", "+1", "@SUM(A1)", "\tx", "\r", "\n",
    "<script>alert(1)</script>", "y" * 500,
]  # fmt: skip

WORDS = ["low", "0", "1.5", "2024-02-29", "", "[1,2)", "nothing such", "nan"]

MAGNITUDES = [1e-300, 1e-12, 1.0, 1e3, 1e12, 1e300]


def _cells(values: st.SearchStrategy[Any], kind: pa.DataType, n: int) -> st.SearchStrategy[pa.Array]:
    """A column of that type: a handful of values, each in many cells or one, and empty cells among them.

    Only the handful is drawn cell by cell, the rest by a number: a table takes a millisecond so.
    """

    def filled(pool: list[Any], gaps: float, seed: int) -> pa.Array:
        rng = np.random.default_rng(seed)
        chosen = rng.integers(0, len(pool), n)
        return pa.array([None if rng.random() < gaps else pool[k] for k in chosen], kind)

    pools = st.lists(values, min_size=1, max_size=6)
    return st.builds(filled, pools, st.sampled_from([0.0, 0.0, 0.0, 0.2, 0.8]), st.integers(0, 999))


def _numbers(n: int) -> st.SearchStrategy[pa.Array]:
    """Numbers spread at random, of one magnitude, around some centre: most columns of real tables."""

    def spread(seed: int, scale: float, centre: float, decimals: int | None) -> pa.Array:
        values = np.random.default_rng(seed).lognormal(size=n) * scale + centre * scale
        return pa.array(values if decimals is None else np.round(values, decimals))

    centres = st.sampled_from([0.0, -1.0, 1e6, 1e15])
    return st.builds(
        spread, st.integers(0, 999), st.sampled_from(MAGNITUDES), centres, st.sampled_from([None, None, 0, 1])
    )


@cache
def _column(n: int) -> st.SearchStrategy[pa.Array]:
    """One column of n cells of any kind."""

    def of(values: st.SearchStrategy[Any], kind: pa.DataType) -> st.SearchStrategy[pa.Array]:
        return _cells(values, kind, n)

    whole = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1), st.integers(2**53 - 2, 2**53 + 2))
    real = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 5e-324, 1.7e308]))
    moments = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
    near = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
    long = datetime.timedelta(days=100_000)
    labels = st.one_of(st.sampled_from(LABELS), st.text(max_size=5))
    return st.one_of(
        *[_numbers(n)] * 6,
        of(real, pa.float64()),
        of(st.floats(), pa.float64()),
        of(whole, pa.int64()),
        of(st.integers(0, 2**64 - 1), pa.uint64()),
        of(st.integers(-128, 127), pa.int8()),
        of(st.floats(width=32), pa.float32()),
        of(st.booleans(), pa.bool_()),
        of(labels, pa.string()),
        of(labels, pa.large_string()),
        of(st.integers(0, 9).map(str), pa.string()),
        of(labels, pa.string()).map(lambda array: array.dictionary_encode()),
        of(st.dates(), pa.date32()),
        of(moments, pa.timestamp("us")),
        of(near, pa.timestamp("ns")),
        of(near, pa.timestamp("s", tz="Europe/Rome")),
        of(st.times(), pa.time64("us")),
        of(st.timedeltas(-long, long), pa.duration("us")),
        of(st.decimals(-1000, 1000, places=2).map(decimal.Decimal), pa.decimal128(10, 2)),
        of(st.binary(max_size=3), pa.binary()),
        of(st.lists(st.integers(0, 3), max_size=2), pa.list_(pa.int64())),
        st.just(pa.nulls(n)),
        st.just(pa.array([1.5] * n, pa.float64())),
        st.just(pa.array(["same"] * n, pa.string())),
    )


@st.composite
def _tables(draw: st.DrawFn, *, most: int = 40, wide: bool = True, plain_names: bool = False) -> pa.Table:
    """A table of up to so many rows, rarely of 500 columns; names may be odd, empty or given twice."""
    n = draw(st.sampled_from([0, *(1, 2, 3) * 2, *range(4, most + 1)]))
    if wide and draw(st.integers(0, 19)) == 0:
        columns: Sequence[pa.Array] = draw(st.lists(_column(n), min_size=1, max_size=4))
        return pa.table([columns[j % len(columns)] for j in range(500)], names=[f"V{j}" for j in range(500)])
    columns = draw(st.lists(_column(n), min_size=0 if draw(st.integers(0, 19)) == 0 else 1, max_size=6))
    if plain_names or draw(st.booleans()):
        return pa.table(columns, names=[f"V{j}" for j in range(len(columns))])
    once = draw(st.integers(0, 9)) > 0
    names = st.lists(st.sampled_from(NAMES), min_size=len(columns), max_size=len(columns), unique=once)
    return pa.table(columns, names=draw(names))


@st.composite
def _released(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    """What somebody may hand in as the release of a table: the table itself, or one that has nothing to do with it."""
    how = draw(st.sampled_from(["same", "order", "order", "other", "other", "fewer", "names", "types", "nothing"]))
    n = table.num_rows
    if how == "same" or not table.num_columns:
        return table
    if how == "order":  # every column in an order of its own
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        return pa.table(
            [column.take(pa.array(rng.permutation(n))) for column in table.columns], names=table.column_names
        )
    if how == "other":  # the same columns, other values of the same type
        drawn = pa.array(np.random.default_rng(draw(st.integers(0, 99))).integers(0, max(n, 1), n))
        numbers = draw(_numbers(n))
        made = [numbers if column.type == pa.float64() else column.take(drawn) for column in table.columns]
        return pa.table(made, names=table.column_names)
    if how == "fewer":
        return table.slice(0, draw(st.integers(0, n)))
    if how == "names":
        return table.rename_columns([f"{name}'" if draw(st.booleans()) else name for name in table.column_names])
    if how == "types":
        return pa.table([draw(_column(n)) for _ in table.columns], names=table.column_names)
    return table.select([])


def _value_of(parameter: Parameter, names: list[str]) -> st.SearchStrategy[Any]:
    """A value that the signature allows, whether or not it fits a table of these columns."""
    none = [st.none()] if parameter.optional else []
    if parameter.choices:
        return st.one_of(*none, st.sampled_from(parameter.choices))
    if parameter.type is bool:
        return st.one_of(*none, st.booleans())
    words = st.sampled_from([*WORDS, *names])
    if parameter.type is tuple:
        return st.one_of(*none, st.lists(words, max_size=3).map(tuple))
    if parameter.type is str:
        return st.one_of(*none, words)
    return st.one_of(*none, _numbers_in(parameter), *([st.sampled_from(["2024-02-29", "11:34"])] * parameter.dated))


def _numbers_in(parameter: Parameter) -> st.SearchStrategy[Any]:
    """Small numbers within the range, both its ends, and numbers as large as there are."""
    low, high = (parameter.range.low, parameter.range.high) if parameter.range else (-math.inf, math.inf)
    above = parameter.range is not None and parameter.range.above
    largest = 2.0**62 if parameter.type is int else 1e308
    low, high = max(low, -largest), min(high, largest)
    if parameter.type is int:
        first, last = math.ceil(low) + (above and low == math.ceil(low)), math.floor(high)
        near = max(first, min(0, last))
        return st.one_of(st.integers(near, min(near + 12, last)), st.integers(first, last), st.just(last))
    ends = st.sampled_from([high, float(np.nextafter(low, math.inf)) if above else low])
    near = max(low, min(0.0, high))
    usual = st.floats(near, min(near + 10.0, high), exclude_min=above and near == low)
    return st.one_of(usual, usual, st.floats(low, high, exclude_min=above), ends)


@st.composite
def _plans(draw: st.DrawFn, method: Method, names: list[str]) -> Plan:
    """The method with drawn parameters, some of them for one column; a post-step after noise or alone."""
    drawn = {
        name: draw(_value_of(parameter, names))
        for name, parameter in method.parameters.items()
        if parameter.required or draw(st.booleans())
    }
    own: dict[str, dict[str, Any]] = {}
    if names and drawn and draw(st.integers(0, 5)) == 5:
        name = draw(st.sampled_from(sorted(drawn)))
        own = {draw(st.sampled_from(names)): {name: draw(_value_of(method.parameters[name], names))}}
    columns = draw(
        st.one_of(st.none(), st.none(), st.lists(st.sampled_from(names or ["A"]), min_size=1, max_size=3, unique=True))
    )
    step = Step(method.id, drawn, own, columns)
    if method.post and draw(st.integers(0, 3)):
        return Plan((Step("additive_noise", {"alpha": 0.5}), step))
    return Plan((step,))


@pytest.fixture(scope="session")
def tables() -> Callable[..., st.SearchStrategy[pa.Table]]:
    """Tables of every kind: `tables(most=40, wide=True, plain_names=False)`."""
    return _tables


@pytest.fixture(scope="session")
def plans() -> Callable[[Method, list[str]], st.SearchStrategy[Plan]]:
    """A method with parameters within their ranges, for a table of these columns: `plans(method, names)`."""
    return _plans


@pytest.fixture(scope="session")
def released() -> Callable[[pa.Table], st.SearchStrategy[pa.Table]]:
    """What may be handed in as the release of a table."""
    return _released


@pytest.fixture(scope="session")
def content() -> Callable[[pa.Table], bytes]:
    """The bytes of a table, to see that it was not changed."""

    def of(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue().to_pybytes()

    return of


FORKING = """
import gc, json, os, resource, select, signal, sys, time
from rankveil.cli import main

DEEDS = {"open", "os.rename", "os.remove", "os.link", "os.chmod", "os.truncate", "sqlite3.connect"}
left = [0]

def struck(what, folder):
    if what == "vanish":
        os.rename(folder, folder + "-away")
    else:
        os.kill(os.getpid(), getattr(signal, what))

def strike_at(deed, what, folder):
    # before the given deed that writes in the folder
    left[0] = deed

    def look(event, args):
        if event not in DEEDS or not any(isinstance(arg, int) or str(arg).startswith(folder) for arg in args[:2]):
            return
        if event == "open" and not args[2] & (os.O_WRONLY | os.O_RDWR):
            return
        left[0] -= 1
        if left[0] == 0:
            struck(what, folder)

    sys.addaudithook(look)

def remove_at(time, path):
    # before a file is opened, or something looks into its folder, for the given time
    left, folder = [time], os.path.dirname(os.path.abspath(path))

    def look(event, args):
        opened = event in ("open", "sqlite3.connect") and path in str(args[0])
        if opened or (event in ("os.listdir", "os.scandir") and os.path.abspath(args[0] or ".") == folder):
            left[0] -= 1
            if left[0] == 0:
                os.unlink(path)

    sys.addaudithook(look)

def limit(size=None, space=None, user=None, removed=None):
    if size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    if space is not None:
        with open("/proc/self/statm") as file:
            space += int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    if removed is not None:
        remove_at(*removed)

def work(argv, folder, deed, what, limits):
    os.chdir(folder)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", buffering=1, closefd=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    limit(**limits)
    if deed:
        strike_at(deed, what, folder)
    code = 99
    try:
        code = main(argv)
        sys.stdout.flush()
        if deed > left[0] > 0:
            print("deeds:", deed - left[0], file=sys.stderr)
    finally:
        os._exit(code)

def followed(child, streams, after):
    # what a process says, which is killed after a while
    said, end = {stream: b"" for stream in streams}, None if after is None else time.perf_counter() + after
    while streams:
        ready = select.select(streams, [], [], None if end is None else max(end - time.perf_counter(), 0))[0]
        if not ready:
            os.kill(child, signal.SIGKILL)
            end = None
        for stream in ready:
            part = os.read(stream, 1 << 16)
            said[stream] += part
            if not part:
                streams.remove(stream)
                os.close(stream)
    return [part.decode() for part in said.values()]

for argv, folder in json.loads(sys.argv[1]):
    os.chdir(folder)
    sys.stdout, kept = open(os.devnull, "w"), sys.stdout
    main(argv)
    sys.stdout = kept
gc.freeze()  # so that children do not copy everything
for line in sys.stdin:
    argv, folder, after, deed, what, limits = json.loads(line)
    begun = time.perf_counter()
    pipes = [os.pipe(), os.pipe()]
    child = os.fork()
    if not child:
        for number, (_, end) in enumerate(pipes, start=1):
            os.dup2(end, number)
        work(argv, folder, deed, what, limits)
    for _, end in pipes:
        os.close(end)
    said = followed(child, [start for start, _ in pipes], after)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([status, time.perf_counter() - begun, *said]), flush=True)
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (-9: killed), its seconds, and what it said."""

    code: int
    seconds: float
    out: str
    err: str


class Commands:
    """Commands in processes of their own, which have imported everything before they begin; something befalls them."""

    def __init__(self, folder: Path, *warm: list[str]) -> None:
        begin = json.dumps([(argv, str(folder)) for argv in warm])
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKING, begin], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self,
        folder: Path,
        *argv: str | Path,
        after: float | None = None,
        deed: int = 0,
        what: str = "SIGKILL",
        **limits: Any,
    ) -> Ended:
        """Run a command in a folder, to be killed `after` seconds, or struck by `what` before a `deed` in the folder.

        `what` is a signal, or vanish: the folder gets another name. Limits are the `size` of files in bytes, the
        `space` in memory beside what is used, another `user`, and a file to be `removed` when it is opened next.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = [list(map(str, argv)), str(folder), after, deed, what, limits]
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Ended(*json.loads(self._process.stdout.readline()))

    def stop(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Commands that something befalls: a kill, a full disk, a folder that vanishes."""
    folder = tmp_path_factory.mktemp("commands")
    rng = np.random.default_rng(0)
    table = pa.table({"A": rng.integers(0, 99, 50), "B": rng.random(50), "C": rng.random(50)})
    files.save(table, folder / "a.csv")
    outs = ["b.csv", "b.parquet", "b.xlsx", "sqlite:///b.db?table=b"]
    masks = [["mask", "a.csv", "-o", out, "--method", "rank_swap", "--json"] for out in outs]
    compare = ["compare", "a.csv", "--methods", "rank_swap,additive_noise", "--at", "risk=0.3", "--workers", "1"]
    others = [[verb, "a.csv", "b.csv", "--json"] for verb in ("audit", "attack", "certify")]
    made = Commands(folder, *masks, *others, [*compare, "--json", "--utility", "um", "--replicates", "2"])
    yield made
    made.stop()
