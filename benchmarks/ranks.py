"""Ranking a million rows by ten columns, beside numpy.argsort of the same columns in the same run.

    .venv/bin/python benchmarks/ranks.py [--rows 1000000] [--columns 10] [--repeat 3]

Seconds are of processor time on all cores together. Ranks may cost at most twice numpy's sort; from 20,000 rows on
columns are sorted by their bits, and they cost less than half of it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from rankveil.ranks import average_ranks, reverse_map, strict_ranks
from rankveil.seeds import Seed
from rankveil.sorting import order_of


def best(function: Callable[[], object], *, repeat: int) -> float:
    """The shortest of several runs, in seconds of processor time."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print one line per kind of data and of ranking: seconds, and the ratio to argsort."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--columns", type=int, default=10)
    options.add_argument("--repeat", type=int, default=3)
    given = options.parse_args()
    rng = np.random.default_rng(0)
    shape = (given.rows, given.columns)
    tables = {
        "normal": np.asfortranarray(rng.normal(size=shape)),
        "ties (1000 values)": np.asfortranarray(rng.integers(0, 1000, size=shape).astype(float)),
    }
    stream = Seed.of(0).stream("ties")
    ties = np.column_stack([stream.bits(given.rows) for _ in range(given.columns)])
    columns = range(given.columns)
    order_of(ties[:, 0])  # what is compiled is compiled
    average_ranks(tables["normal"][:, 0])
    print(f"{given.rows} rows by {given.columns} columns, best of {given.repeat}")
    for name, x in tables.items():
        work: dict[str, Callable[[], object]] = {
            "numpy.argsort": lambda x=x: [np.argsort(x[:, j]) for j in columns],
            "sorting by bits": lambda x=x: [order_of(x[:, j]) for j in columns],
            "average_ranks": lambda x=x: average_ranks(x),
            "average_ranks, one column at a time": lambda x=x: [average_ranks(x[:, j]) for j in columns],
            "strict_ranks": lambda x=x: strict_ranks(x, ties=ties),
            "reverse_map": lambda x=x: reverse_map(x, x, rng=Seed.of(0).stream("z")),
        }
        sort = best(work["numpy.argsort"], repeat=given.repeat)
        for what, function in work.items():
            seconds = best(function, repeat=given.repeat)
            print(f"  {name:20s} {what:38s} {seconds:7.3f} s   {seconds / sort:5.2f} x argsort")


if __name__ == "__main__":
    main()
