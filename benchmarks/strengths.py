"""How many people the intruder finds at a method's strength, by the number of columns: the table behind the defaults.

    .venv/bin/python benchmarks/strengths.py [--data ../shared/data] [--seeds 2] [--methods rank_swap,copula_swap]
        [--write src/rankveil/strengths.json]

Of Census, EIA, CPS1988 and the demo 1,000 records each, drawn at random (of the demo all that are complete), and the
first m columns of numbers. Every release has a seed of its own and its rows shuffled; the attack knows all originals
and the manifest, and draws from another seed. A figure is the largest over the tables of the mean over the seeds.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd

import rankveil as rv
from rankveil.intruder.finding import find_people
from rankveil.table import Table

RECORDS = 1000
LIMIT = 0.09
GRIDS: dict[str, tuple[str, tuple[float, ...]]] = {
    "rank_swap": ("p", (1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 65.0, 80.0, 100.0)),
    "copula_swap": ("p", (1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.7)),
    "additive_noise": ("alpha", (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)),
    "correlated_noise": ("gamma", (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)),
}
NOBODY = 0.005
"""Once fewer are found in every table, greater strengths are taken to find no more."""


def tables(data: Path) -> dict[str, pd.DataFrame]:
    """The columns of numbers of each table."""
    cps = pd.read_csv(data / "peers" / "rdatasets" / "CPS1988.csv")[["wage", "experience", "education"]]
    eia = pd.read_csv(data / "eia.csv").iloc[:, 5:]
    whole = {"Census": pd.read_csv(data / "census.csv"), "EIA": eia, "CPS1988": cps}
    made = {name: each.sample(RECORDS, random_state=1).reset_index(drop=True) for name, each in whole.items()}
    demo = rv.datasets.demo().to_pandas()[["INCOME", "TAX", "SAVINGS", "AGE", "HOURS"]].dropna()
    return {**made, "demo": demo.reset_index(drop=True)}


def found(table: pd.DataFrame, method: str, parameters: dict[str, float], seed: int) -> float:
    """The share of right bets on one release."""
    release = rv.mask(table, method, seed=seed, **parameters)
    rows = np.random.default_rng(1000 + seed).permutation(len(table))
    made = find_people(
        Table(table),
        Table(release.data.iloc[rows].reset_index(drop=True)),
        manifest=release.manifest.content,
        truth=rows.astype(np.int64),
        seed=500_000 + seed,
        without=("low_bits",),
        calibrate=False,
    )
    return made.share


def main() -> None:
    """Measure, print and write."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=Path(os.environ.get("RANKVEIL_DATA", "../shared/data")))
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--methods", default=",".join(GRIDS))
    options.add_argument("--write", type=Path)
    chosen = options.parse_args()
    known = tables(chosen.data)
    content = {"records": RECORDS, "limit": LIMIT, "tables": list(known), "methods": {}}
    if chosen.write and chosen.write.exists():
        content["methods"] = json.loads(chosen.write.read_text()).get("methods", {})
    for method in chosen.methods.split(","):
        parameter, values = GRIDS[method]
        shares: dict[str, list[float]] = {}
        for m in range(1, 14):
            row: list[float] = []
            for value in values:
                if row and row[-1] < NOBODY:
                    row.append(row[-1])
                    continue
                each = {
                    name: float(
                        np.mean([found(t.iloc[:, :m], method, {parameter: value}, s) for s in range(chosen.seeds)])
                    )
                    for name, t in known.items()
                    if t.shape[1] >= m
                }
                row.append(round(max(each.values()), 4))
                print(method, m, value, {name: round(share, 3) for name, share in each.items()}, flush=True)
            shares[str(m)] = row
            content["methods"][method] = {"parameter": parameter, "values": list(values), "found": shares}
            if chosen.write:
                chosen.write.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
