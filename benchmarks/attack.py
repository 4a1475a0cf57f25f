"""The intruder who uses everything: seconds and memory as tables grow, and right links beside other linkages.

    .venv/bin/python benchmarks/attack.py [--rows 10000,100000] [--attributes 10] [--alpha 0.5] [--beside 2000]
        [--write-tables DIR]

Correlated lognormal columns with additive noise. For each size: one search of the nearest records in rank space
(`Linker`), the attack without the calibration of its confidence, and the whole attack, all in the same run. Then, at
`--beside` records, right links and seconds of three linkages: the attack; a dense assignment (scipy) of standardised
values; and Gower's distance with an optimal assignment, which is what sdcMicro's `recordLinkage` computes.
`--write-tables` keeps the two tables of that comparison as CSV files, so that the original program can be run on them.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import rankveil as rv
from rankveil.intruder.finding import find_people
from rankveil.linkage import Linker
from rankveil.ranks import average_ranks
from rankveil.table import Table

Array = NDArray[np.float64]


def people(rows: int, attributes: int) -> pd.DataFrame:
    """Correlated lognormal columns."""
    rng = np.random.default_rng(0)
    values = np.exp(
        rng.normal(size=(rows, attributes)) @ rng.normal(size=(attributes, attributes)) / np.sqrt(attributes)
    )
    return pd.DataFrame(values, columns=[f"A{j}" for j in range(attributes)])


def released(original: pd.DataFrame, alpha: float) -> tuple[pd.DataFrame, rv.Manifest, NDArray[np.int64]]:
    """A release with additive noise, its rows in random order, and the original row of each."""
    made = rv.mask(original, "additive_noise", alpha=alpha, seed=1)
    order = np.random.default_rng(2).permutation(len(original))
    return made.data.iloc[order].reset_index(drop=True), made.manifest, order.astype(np.int64)


def attacked(
    original: pd.DataFrame, release: pd.DataFrame, manifest: rv.Manifest, truth: NDArray[np.int64], *, calibrate: bool
) -> tuple[float, float, float]:
    """Right links, expected ones, and seconds; the likelihood alone, without the last digits of computed numbers."""
    begun = time.perf_counter()
    found = find_people(
        Table(original),
        Table(release),
        manifest=manifest.content,
        truth=truth,
        without=("low_bits",),
        calibrate=calibrate,
    )
    return float(found.found or 0.0), found.expected, time.perf_counter() - begun


def assigned(distance: Array, truth: NDArray[np.int64]) -> int:
    """How many links of the assignment with the least total distance are right."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(distance)
    return int(np.sum(truth[columns] == rows))


def euclidean(x: Array, y: Array) -> Array:
    """Distances of values standardised by the original's mean and standard deviation."""
    from scipy.spatial.distance import cdist

    return cdist(*((each - x.mean(axis=0)) / x.std(axis=0) for each in (x, y)))


def gower(x: Array, y: Array) -> Array:
    """Gower's distances of numbers: absolute differences in units of the range over both tables."""
    from scipy.spatial.distance import cdist

    both = np.vstack([x, y])
    span = both.max(axis=0) - both.min(axis=0)
    return cdist(x / span, y / span, "cityblock") / x.shape[1]


def growth(rows: int, attributes: int, alpha: float) -> str:
    """One line of the first table."""
    original = people(rows, attributes)
    release, manifest, truth = released(original, alpha)
    x, y = (np.column_stack([average_ranks(each[name].to_numpy()) for name in each]) for each in (original, release))
    begun = time.perf_counter()
    Linker(y).matches(x)
    linked = time.perf_counter() - begun
    right, _, bare = attacked(original, release, manifest, truth, calibrate=False)
    _, expected, whole = attacked(original, release, manifest, truth, calibrate=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"| {rows} | {linked:.1f} | {bare:.1f} ({bare / linked:.1f}) | {whole:.1f} ({whole / linked:.1f}) | "
        f"{right:.0f} | {expected:.0f} | {peak:.2f} |"
    )


def beside(rows: int, attributes: int, alpha: float, folder: Path | None) -> list[str]:
    """The second table."""
    original = people(rows, attributes)
    release, manifest, truth = released(original, alpha)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        original.assign(ID=np.arange(rows)).to_csv(folder / "original.csv", index=False)
        release.assign(ID=truth).to_csv(folder / "release.csv", index=False)
    lines = []
    for label, calibrate in (("rankveil, whole attack", True), ("rankveil, without calibration", False)):
        right, _, seconds = attacked(original, release, manifest, truth, calibrate=calibrate)
        lines.append(f"| {label} | {right:.0f} | {seconds:.2f} |")
    x, y = original.to_numpy(), release.to_numpy()
    others: list[tuple[str, Callable[[Array, Array], Array]]] = [
        ("dense assignment, standardised values (scipy)", euclidean),
        ("dense assignment, Gower's distance (as sdcMicro's recordLinkage)", gower),
    ]
    for label, distance in others:
        begun = time.perf_counter()
        right = assigned(distance(x, y), truth)
        lines.append(f"| {label} | {right} | {time.perf_counter() - begun:.2f} |")
    return lines


def main() -> None:
    """Print both tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", default="10000,100000", help="sizes, separated by commas")
    options.add_argument("--attributes", type=int, default=10)
    options.add_argument("--alpha", type=float, default=0.5)
    options.add_argument("--beside", type=int, default=2000, help="records of the comparison with other linkages")
    options.add_argument("--write-tables", type=Path, help="a folder for the two tables of that comparison")
    given = options.parse_args()
    growth(1000, given.attributes, given.alpha)  # compiles, and is not counted
    print("| records | nearest, s | not calibrated, s (ratio) | whole, s (ratio) | right | expected | peak, GiB |")
    print("|---" * 7 + "|")
    for rows in (int(word) for word in given.rows.split(",")):
        print(growth(rows, given.attributes, given.alpha), flush=True)
    print(f"\n| linkage of {given.beside} records | right links | seconds |\n|---|---|---|")
    for line in beside(given.beside, given.attributes, given.alpha, given.write_tables):
        print(line, flush=True)


if __name__ == "__main__":
    main()
