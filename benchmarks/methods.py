"""Every method on a million rows by ten columns, beside numpy.argsort of the same columns in the same run.

    .venv/bin/python benchmarks/methods.py [--rows 1000000] [--columns 10] [--repeat 3] [--methods rank_swap,shuffle]

"masking" is the method on all columns, "rv.mask" the whole way from a table to a release with its manifest and secret.
Both use all cores; what is compared is processor time, so that neither cores nor other work on the machine count. The
last figure is rv.mask by the clock. Methods whose work grows faster than the table, and noise that is safe against
floating-point attacks, are measured at fewer rows, which stand in their line, and so is argsort there.
Post-steps are measured after the identity, which copies the columns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import rankveil as rv
from rankveil import catalogue, masking
from rankveil.seeds import Seed

GIVEN: dict[str, list[dict[str, Any]]] = {
    "clip": [{"lower": 0.0, "upper": 10.0}],
    "distance_swap": [{"d": 1000, "p": 5}],
    "dp_microaggregation": [
        {"epsilon": 1.0, "lower": 0.0, "upper": 1000.0},
        {"epsilon": 1.0, "lower": 0.0, "upper": 1000.0, "fast": True},
    ],
    "laplace_dp": [
        {"epsilon": 1.0, "lower": 0.0, "upper": 1000.0},
        {"epsilon": 1.0, "lower": 0.0, "upper": 1000.0, "fast": True},
    ],
    "resample": [{"t": 1}, {"t": 10}],
    "shuffle": [{}, {"given": ("C0", "C1")}],
    "ipso": [{}, {"given": ("C0", "C1")}],
}
"""What is given to a method, each for one line; nothing to those that are not named."""

SMALLER = {"dp_microaggregation": 100_000, "laplace_dp": 20_000, "mdav": 100_000, "microhybrid": 100_000}
"""Most rows of a method; with `fast` there is no limit to Laplace noise."""


def best(function: Callable[[], object], *, repeat: int) -> tuple[float, float]:
    """The shortest of several runs, in seconds of processor time and by the clock."""
    times = []
    for _ in range(repeat):
        start, worked = time.perf_counter(), time.process_time()
        function()
        times.append((time.process_time() - worked, time.perf_counter() - start))
    processor, clock = zip(*times, strict=True)
    return min(processor), min(clock)


def table_of(rows: int, columns: int) -> pa.Table:
    """Correlated lognormal columns C0, C1, ..."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=rows)
    return pa.table({f"C{j}": np.exp(0.6 * common + 0.8 * rng.normal(size=rows)) for j in range(columns)})


def measure(entry: catalogue.Method, given: dict[str, Any], *, rows: int, columns: int, repeat: int) -> str:
    """One line: rows, seconds, and the ratios to argsort."""
    if not (entry.id == "laplace_dp" and given.get("fast")):
        rows = min(rows, SMALLER.get(entry.id, rows))
    data = table_of(rows, columns)
    step = rv.Step(entry.id, given)
    plan = rv.Plan((rv.Step("identity"), step) if entry.post else (step,))
    arrays = [data[name].to_numpy() for name in data.column_names]
    table = rv.Table(data)
    seed = Seed.of(0)
    masking.apply(table, plan, seed=seed)  # compiles, and reads the columns
    sort, _ = best(lambda: [np.argsort(x) for x in arrays], repeat=repeat)
    alone, _ = best(lambda: masking.apply(table, plan, seed=seed), repeat=repeat)
    whole, clock = best(lambda: rv.mask(data, plan, seed=0), repeat=repeat)
    called = " ".join(
        [entry.id, *(f"{name}={value}" for name, value in given.items() if name not in ("lower", "upper"))]
    )
    return (
        f"{called:44s} {rows:9d} {sort:8.3f} s {alone:8.3f} s {alone / sort:6.2f} x "
        f"{whole:8.3f} s {whole / sort:6.2f} x {clock:8.3f} s"
    )


def main() -> None:
    """Print one line per method."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--columns", type=int, default=10)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--methods", default=",".join(catalogue.methods()))
    asked = options.parse_args()
    print(f"{asked.columns} columns, best of {asked.repeat}; x = times argsort")
    print(f"{'method':44s} {'rows':>9s} {'argsort':>10s} {'masking':>19s} {'rv.mask':>19s} {'clock':>10s}")
    for name in asked.methods.split(","):
        entry = catalogue.get_method(name)
        for given in GIVEN.get(name, [{}]):
            line = measure(entry, given, rows=asked.rows, columns=asked.columns, repeat=asked.repeat)
            print(line, flush=True)


if __name__ == "__main__":
    main()
