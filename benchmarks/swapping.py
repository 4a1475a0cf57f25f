"""Swapping in ranks: who is found, and what becomes of the dependence between columns.

    .venv/bin/python benchmarks/swapping.py [--data ../shared/data] [--seeds 3] [--part census|dependence]

`census`: the first 3, 5 and 8 columns of Census at p = 5, 10, 20 and 30, for rank_swap by normal noise and in pairs and
for copula_swap: the share of people found by an intruder who knows all originals and the manifest, with everything he
has (likelihood, logic, structure, low bits), the share found with certainty, and the largest change of a Spearman
correlation. `dependence`: columns whose dependence is not that of a normal copula (Census, EIA, CPS1988, a mixture of
normal distributions, one of ordered categories), at the strengths at which both methods are found equally often: the
largest change of a Spearman correlation, and the largest total variation between the 5 by 5 tables of quintiles of two
columns before and after. All are means over the seeds; rows are shuffled before the attack.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import rankveil as rv
from rankveil.intruder.finding import find_people
from rankveil.table import Table

WAYS = {
    "rank_swap": ("rank_swap", {}),
    "rank_swap, scheme=pairs": ("rank_swap", {"scheme": "pairs"}),
    "copula_swap": ("copula_swap", {}),
}


def attacked(table: pd.DataFrame, masked: pd.DataFrame, manifest: object, seed: int) -> tuple[float, float]:
    """The shares of people who are found, and who are found with certainty."""
    rows = np.random.default_rng(1000 + seed).permutation(len(table))
    made = find_people(
        Table(table),
        Table(masked.iloc[rows].reset_index(drop=True)),
        manifest=manifest,  # type: ignore[arg-type]
        truth=rows.astype(np.int64),
        seed=500_000 + seed,
        calibrate=False,
    )
    return made.share, float(made.certain.mean())


def spearman(table: pd.DataFrame) -> NDArray[np.float64]:
    """The rank correlations."""
    return table.rank().corr().to_numpy()


def quintiles(table: pd.DataFrame, of: pd.DataFrame) -> float:
    """The largest total variation between two tables of quintiles of the same two columns."""

    def cells(each: pd.DataFrame) -> NDArray[np.int64]:
        return (each.rank(pct=True).to_numpy() * 5 - 1e-9).astype(np.int64)

    first, second = cells(table), cells(of)
    found = [0.0]
    for i, j in combinations(range(table.shape[1]), 2):
        one, other = (np.bincount(5 * each[:, i] + each[:, j], minlength=25) / len(each) for each in (first, second))
        found.append(float(np.abs(one - other).sum() / 2))
    return max(found)


def census(data: Path, seeds: int) -> None:
    """The table of docs/howto/choose-a-method.md."""
    whole = pd.read_csv(data / "census.csv")
    print("| columns | p | method | found | certain | largest change of Spearman |")
    print("|---|---|---|---|---|---|")
    for m in (3, 5, 8):
        table = whole.iloc[:, :m]
        for p in (5, 10, 20, 30):
            for label, (method, more) in WAYS.items():
                made = []
                for seed in range(seeds):
                    release = rv.mask(table, method, p=p, seed=seed, **more)
                    change = np.abs(spearman(table) - spearman(release.data)).max()
                    made.append((*attacked(table, release.data, release.manifest.content, seed), change))
                found, certain, change = np.mean(made, axis=0)
                print(f"| {m} | {p} | `{label}` | {found:.0%} | {certain:.0%} | {change:.3f} |", flush=True)


def mixture(records: int) -> pd.DataFrame:
    """Two groups of people: in one of them columns rise together, in the other against each other."""
    rng = np.random.default_rng(3)
    signs = np.where(rng.random(records) < 0.5, 1.0, -1.0)
    common = rng.normal(size=records)
    columns = [common * signs**j + 0.5 * rng.normal(size=records) + 2 * (signs > 0) * (j > 1) for j in range(4)]
    return pd.DataFrame(np.column_stack(columns), columns=list("ABCD"))


def ordered(data: Path) -> pd.DataFrame:
    """Numbers of the demo in five bands: columns of ordered categories, as whole numbers."""
    demo = rv.datasets.demo().to_pandas()[["AGE", "HOURS", "INCOME", "TAX", "SAVINGS"]].dropna().reset_index(drop=True)
    return (demo.rank(pct=True) * 5 - 1e-9).astype(int)


def dependence(data: Path, seeds: int) -> None:
    """What becomes of dependence at about equal protection."""
    cps = pd.read_csv(data / "peers" / "rdatasets" / "CPS1988.csv")[["wage", "experience", "education"]]
    tables: dict[str, Callable[[], pd.DataFrame]] = {
        "Census, 5 columns": lambda: pd.read_csv(data / "census.csv").iloc[:, :5],
        "Census, 8 columns": lambda: pd.read_csv(data / "census.csv").iloc[:, :8],
        "EIA, 6 columns": lambda: pd.read_csv(data / "eia.csv").iloc[:, 5:11].sample(1000, random_state=1),
        "CPS1988, 3 columns": lambda: cps.sample(1000, random_state=1),
        "mixture, 4 columns": lambda: mixture(1000),
        "ordered, 5 columns": lambda: ordered(data),
    }
    print("| table | method | p | found | largest change of Spearman | largest change of quintile tables |")
    print("|---|---|---|---|---|---|")
    for name, make in tables.items():
        table = make().reset_index(drop=True)
        for method, more in (("rank_swap", {}), ("copula_swap", {}), ("shuffle", {})):
            p = None
            made = []
            for seed in range(seeds):
                release = rv.mask(table, method, seed=seed, **more)
                p = release.manifest["steps"][0]["parameters"].get("p")
                change = np.abs(spearman(table) - spearman(release.data)).max()
                found, _ = attacked(table, release.data, release.manifest.content, seed)
                made.append((found, change, quintiles(table, release.data)))
            found, change, tv = np.mean(made, axis=0)
            strength = "" if p is None else f"{p:g}"
            print(f"| {name} | `{method}` | {strength} | {found:.1%} | {change:.3f} | {tv:.3f} |", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=Path(os.environ.get("RANKVEIL_DATA", "../shared/data")))
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--part", choices=("census", "dependence"), default="census")
    chosen = options.parse_args()
    {"census": census, "dependence": dependence}[chosen.part](chosen.data, chosen.seeds)
