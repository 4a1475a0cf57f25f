"""The intruder's linkage and the whole attack for 100,000 by 100,000 records: seconds and memory.

    .venv/bin/python benchmarks/attack.py [--rows 100000] [--attributes 5]

Linkage is exact; an n-by-n matrix of the distances would take 75 GiB.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import pyarrow as pa

import rankveil as rv
from rankveil.linkage import Linker
from rankveil.ranks import average_ranks


def table(values: np.ndarray) -> pa.Table:
    """A table with columns A0, A1, ..."""
    return pa.table({f"A{j}": values[:, j] for j in range(values.shape[1])})


def main() -> None:
    """Print one line per masking: linkage alone, the attack with its null distribution, peak memory."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--attributes", type=int, default=5)
    given = options.parse_args()
    rng = np.random.default_rng(0)
    n, m = given.rows, given.attributes
    x = np.exp(rng.normal(size=(n, m)) @ rng.normal(size=(m, m)) / np.sqrt(m))
    masked = {
        "noise, alpha 0.1": x + 0.1 * x.std(axis=0) * rng.normal(size=(n, m)),
        "noise, alpha 1": x + x.std(axis=0) * rng.normal(size=(n, m)),
        "independent columns": np.column_stack([rng.permutation(x[:, j]) for j in range(m)]),
        "rounded to 20 values": np.round(x / x.max(axis=0) * 20),
    }
    for name, y in masked.items():
        start = time.perf_counter()
        rank_x, rank_y = average_ranks(x), average_ranks(y)
        ranked = time.perf_counter()
        Linker(rank_y).matches(rank_x)
        linked = time.perf_counter()
        made = rv.attack(table(x), table(y))
        attacked = time.perf_counter()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{name:22s} {n} x {n}, {m} attributes: ranks {ranked - start:5.2f} s, linkage {linked - ranked:5.2f} s, "
            f"whole attack {attacked - linked:5.2f} s, {made.claims} claims, peak memory so far {peak:.2f} GiB"
        )


if __name__ == "__main__":
    main()
