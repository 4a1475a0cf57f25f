"""Local suppression beside greedy ways: how many cells go, and how long it takes.

    .venv/bin/python benchmarks/suppress.py [--rows 1000,10000,100000] [--columns 6,10] [--k 5]

"greedy" takes from every record that is too few the one cell after which most are like it, in rounds; "one set" takes
the same columns from all of them, and everything from those who still are too few (as ARX); "steps" goes from record to
record until k agree (as sdcMicro, where a missing cell agrees with everything). "bound" is what no way can be below
where a missing cell is a value of its own: what each record would cost were all others free to join it. Seconds are of
processor time, without compiling.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from rankveil.kernels import agreement
from rankveil.suppression import _bits, _numbers, _Search, _sets, _useful_sets, fewest, frequencies

VALUES = (2, 5, 8, 12, 3, 4, 6)


def people(n: int, columns: int) -> Any:
    """Categories that depend on each other."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(n, 2))
    made = []
    for j in range(columns):
        scale = common @ rng.normal(size=2) / 2 + rng.normal(size=n)
        made.append((np.clip((scale + 3) / 6, 0, 0.9999) * VALUES[j % len(VALUES)]).astype(np.int64))
    return np.column_stack(made)


def bound(codes: Any, k: int) -> int:
    """The sum over records of the fewest cells without which k records agree with it."""
    z, weights = _numbers(codes), np.ones(codes.shape[1], dtype=np.int64)
    least = np.full(len(codes), codes.shape[1])
    for mask in _useful_sets(codes, k, weights):
        apart = _bits(np.array([mask]), weights.size)[0]
        _, number, counts = np.unique(
            np.bitwise_xor.reduce(z[:, ~apart], axis=1), return_inverse=True, return_counts=True
        )
        least = np.where(counts[number] >= k, np.minimum(least, apart.sum()), least)
    return int(least.sum())


def steps(codes: Any, k: int) -> int:
    """What the way from record to record takes."""
    bits = (np.int64(1) << np.arange(codes.shape[1])).astype(np.int16)
    absent = _sets(codes < 0).astype(np.int16)
    before = frequencies(codes, np.zeros(codes.shape, dtype=bool), missing="any").copy()
    values = np.ascontiguousarray(codes.T.astype(np.int16))
    weights = np.ones(codes.shape[1], dtype=np.int64)
    state = agreement.State(values, bits, absent, np.zeros_like(absent), absent.copy(), before, weights)
    return int(agreement.protect_stepwise(state, np.arange(len(codes)), k, False, np.iinfo(np.int64).max))


def measured(codes: Any, k: int, missing: Any) -> tuple[int, float]:
    """Cells and seconds; that k is reached is checked here too."""
    start = time.process_time()
    made = fewest(codes, k=k, importance=np.ones(codes.shape[1]), missing=missing)
    worked = time.process_time() - start
    assert frequencies(codes, made.cells, missing=missing).min() >= k
    return int(made.cells.sum()), worked


def main() -> None:
    """Print one line for each table and way to count."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", default="1000,10000,100000")
    options.add_argument("--columns", default="6,10")
    options.add_argument("--k", type=int, default=5)
    asked = options.parse_args()
    for missing in ("own", "any"):
        measured(people(200, 4), 3, missing)  # compiles
    print(f"k = {asked.k}")
    print(f"{'missing':8s}{'rows':>8s}{'columns':>8s}{'too few':>9s}{'cells':>9s}{'seconds':>9s}  others")
    for columns in map(int, asked.columns.split(",")):
        for n in map(int, asked.rows.split(",")):
            codes = people(n, columns)
            nothing = np.zeros(codes.shape, dtype=bool)
            few = int(np.sum(frequencies(codes, nothing, missing="own") < asked.k))
            search = _Search(codes, asked.k, np.ones(columns, dtype=np.int64))
            others = {"greedy": search.cost(search.greedy()), "one set": search.cost(search.one_set())}
            others["bound"] = bound(codes, asked.k)
            for missing, beside in (("own", others), ("any", {"steps": steps(codes, asked.k)})):
                cells, seconds = measured(codes, asked.k, missing)
                told = ", ".join(f"{name} {many} ({cells / max(many, 1):.2f} x)" for name, many in beside.items())
                print(f"{missing:8s}{n:8d}{columns:8d}{few:9d}{cells:9d}{seconds:9.2f}  {told}", flush=True)


if __name__ == "__main__":
    main()
