"""All rank and moment measures of an audit beside sorting the columns once.

    .venv/bin/python benchmarks/audit.py [--records 1000000] [--columns 10] [--ties] [--each]

Everything but linkage (and what is made of it), propensity and emd; measures of a stated use have no target here. The
yardstick is `numpy.argsort` on the 2 x columns columns, on one core, as people would write it. Seconds on the clock and
of processor time on all cores together; the best of --repeat runs. Every run of the audit starts from the tables,
nothing is kept from the run before.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from rankveil import catalogue
from rankveil.measuring import Measuring
from rankveil.pairs import Pair
from rankveil.seeds import Seed

LEFT_OUT = {
    "rank_linkage",
    "permutation_linkage",
    "distance_linkage",
    "probabilistic_linkage",
    "linkage_entropy",
    "propensity",
    "emd",
    "score",
    "score_pil",
}


def tables(n: int, m: int, *, ties: bool) -> tuple[np.ndarray, np.ndarray]:
    """Correlated lognormal columns, and the same with noise."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, m)) @ rng.normal(size=(m, m))
    x = np.exp(z / z.std(axis=0))
    y = x + 0.3 * x.std(axis=0) * rng.normal(size=(n, m))
    if ties:
        x, y = np.round(x, 1), np.round(y, 1)
    return np.asfortranarray(x), np.asfortranarray(y)


def seconds(function) -> tuple[float, float]:
    """Seconds on the clock, and of processor time on all cores."""
    clock, processor = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - clock, time.process_time() - processor


def main() -> None:
    """Print the ratio, and with --each what every measure adds."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--records", type=int, default=1_000_000)
    options.add_argument("--columns", type=int, default=10)
    options.add_argument("--ties", action="store_true", help="values rounded to one decimal")
    options.add_argument("--each", action="store_true", help="what every measure adds to those before it")
    options.add_argument("--repeat", type=int, default=3)
    given = options.parse_args()
    x, y = tables(given.records, given.columns, ties=given.ties)
    rows = np.arange(given.records)
    names = tuple(f"V{j}" for j in range(given.columns))
    chosen = [name for name in catalogue.measures() if name not in LEFT_OUT]
    small = Pair(names, x[:1000].copy(), y[:1000].copy(), rows[:1000], rows[:1000], "rows", Seed.of(0), [])
    values, without = Measuring(small).all(chosen)  # libraries are loaded
    print(f"{len(values)} measures; not applicable: {', '.join(without) or 'none'}")

    def argsort() -> None:
        for table in (x, y):
            for j in range(given.columns):
                np.argsort(table[:, j])

    def audit() -> None:
        measuring = Measuring(Pair(names, x, y, rows, rows, "rows", Seed.of(0), []))
        for name in chosen:
            clock, processor = seconds(lambda name=name: measuring.all([name]))
            if given.each and processor > 0.02:
                print(f"    {name}: {clock:.2f} s, processor {processor:.2f} s")

    sorting = min(seconds(argsort) for _ in range(given.repeat))
    given.each, each = False, given.each
    measuring = min(seconds(audit) for _ in range(given.repeat))
    print(f"{given.records} x {given.columns}: argsort of {2 * given.columns} columns and all measures")
    print(f"    on the clock {sorting[0]:.2f} s and {measuring[0]:.2f} s: {measuring[0] / sorting[0]:.1f} times")
    print(f"    processor {sorting[1]:.2f} s and {measuring[1]:.2f} s: {measuring[1] / sorting[1]:.1f} times")
    if each:
        given.each = True
        audit()


if __name__ == "__main__":
    main()
