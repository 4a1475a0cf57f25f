"""Exact nearest records in rank space beside scipy's k-d tree and faiss's flat index: how many times as fast.

    .venv/bin/python benchmarks/linkage.py [--records 100000] [--attributes 5 10 13] [--metric maximum euclidean]
        [--kind noise permuted microaggregated] [--one-in 10] [--threads 1] [--repeat 2] [--seed 0]

Correlated lognormal data X, and Y made from it: noise of a tenth of the standard deviation, every column permuted on
its own (the hard case: nothing is near), or MDAV in groups of 5 (every masked record five times). Each record of ranks
of X asks for the distance of the nearest record of ranks of Y, or in the second column for all that are as near. Times
hold building and asking. rankveil and faiss, both of which gain from many queries at once, answer all; the k-d tree one
in ten, drawn at random, and its time of asking is multiplied: `--one-in 1` lets it answer all. All run on the same
number of threads. On one thread seconds are processor time, so that other work on the machine counts less; on several
they are taken from the clock. The shortest of some runs counts.

The k-d tree computes in double precision, faiss in single: the share of queries for which it misses the nearest
record is told. It knows no maximum distance, and is compared with when it is installed (pip install faiss-cpu).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree

from rankveil.execute import cores
from rankveil.linkage import Linker
from rankveil.microaggregation import group_means, mdav_groups
from rankveil.ranks import average_ranks

try:
    import faiss
except ImportError:
    faiss = None

KINDS = ["noise", "permuted", "microaggregated"]
METRICS = ["maximum", "euclidean"]


def tables(kind: str, n: int, m: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranks of original and masked data."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=(n, m)) @ rng.normal(size=(m, m)) / np.sqrt(m))
    if kind == "noise":
        y = x + 0.1 * x.std(axis=0) * rng.normal(size=(n, m))
    elif kind == "permuted":
        y = rng.permuted(x, axis=0)
    else:
        y = group_means(x, mdav_groups(x, k=5))
    return np.ascontiguousarray(average_ranks(x)), np.ascontiguousarray(average_ranks(y))


def shortest(function: Callable[[], object], *, repeat: int, threads: int) -> tuple[float, object]:
    """The seconds of the shortest run, and its result."""
    clock = time.process_time if threads == 1 else time.perf_counter
    runs = []
    for _ in range(repeat):
        start = clock()
        result = function()
        runs.append((clock() - start, result))
    return min(runs, key=lambda run: run[0])


def compare(kind: str, m: int, metric: str, given: argparse.Namespace) -> str:
    """One line of the table."""
    x, y = tables(kind, given.records, m, seed=given.seed)
    some = np.random.default_rng(1).choice(len(x), max(len(x) // given.one_in, 1), replace=False)
    times, asked = len(x) / some.size, x[some]
    how = {"repeat": given.repeat, "threads": given.threads}
    p = 2 if metric == "euclidean" else np.inf

    ours, distance = shortest(lambda: Linker(y, metric=metric).distances(x), **how)
    listing, _ = shortest(lambda: Linker(y, metric=metric).matches(x), **how)
    building, tree = shortest(lambda: cKDTree(y), **how)
    asking, (wanted, _) = shortest(lambda: tree.query(asked, p=p, workers=given.threads), **how)
    theirs = building + asking * times
    same = np.allclose(distance[some], wanted, rtol=1e-12, atol=0)
    line = (
        f"{m:3d} {metric:10s}{kind:16s}{ours:8.2f} {listing:8.2f} {theirs:8.2f} {theirs / ours:7.1f}"
        f" {'same' if same else 'DIFFERENT':9s}"
    )
    if faiss is None or metric != "euclidean":
        return line
    flat, rows = shortest(lambda: flat_index(y, x), **how)
    missed = np.mean(np.sqrt(((x - y[rows]) ** 2).sum(axis=1)) > distance * (1 + 1e-12))
    return line + f" {flat:8.2f} {flat / ours:7.1f} {100 * missed:6.2f} %"


def flat_index(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The rows of y nearest to those of x, by faiss."""
    index = faiss.IndexFlatL2(y.shape[1])
    index.add(y.astype(np.float32))
    return index.search(x.astype(np.float32), 1)[1][:, 0]


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--records", type=int, default=100_000)
    options.add_argument("--attributes", type=int, nargs="+", default=[5, 10, 13])
    options.add_argument("--metric", nargs="+", choices=METRICS, default=METRICS)
    options.add_argument("--kind", nargs="+", choices=KINDS, default=KINDS)
    options.add_argument("--one-in", type=int, default=10, help="one query in so many is answered by the k-d tree")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--repeat", type=int, default=2)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
    if cores() != given.threads:
        raise SystemExit(f"rankveil would use {cores()} threads here, not {given.threads}")
    if faiss is None:
        print("faiss is not installed: compared with the k-d tree alone")
    else:
        faiss.omp_set_num_threads(given.threads)
    for metric in METRICS:  # compile, or load from the cache
        small = np.random.default_rng(0).random((20_000, 2))
        Linker(small, metric=metric).matches(small)
    print(f"{given.records} x {given.records} records, {given.threads} thread(s), seconds")
    print(
        "  m metric    masked by       rankveil  matches k-d tree   ratio distances"
        + ("    faiss   ratio   missed" if faiss else "")
    )
    for m in given.attributes:
        for metric in given.metric:
            for kind in given.kind:
                print(compare(kind, m, metric, given), flush=True)


if __name__ == "__main__":
    main()
