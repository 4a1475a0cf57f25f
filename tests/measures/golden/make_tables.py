"""Writes the tables on which pycanon was run, as CSV: `python make_tables.py FOLDER`, in rankveil's environment.

The head of each column says what the column is for: `quasi:AGE`, `confidential:ILLNESS`. Then `make_pycanon.py` reads
them in pycanon's environment. The golden file keeps the tables too, so that no generator has to repeat itself.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankveil import datasets

Table = Mapping[str, Any]


def hospital() -> Table:
    """The inpatients of Machanavajjhala and others (2007), their 3-diverse table: k = 4, l = 3."""
    return {
        "quasi:ZIP": ["1305*"] * 4 + ["1485*"] * 4 + ["1306*"] * 4,
        "quasi:AGE": ["<=40"] * 4 + [">40"] * 4 + ["<=40"] * 4,
        "confidential:CONDITION": [
            *("heart disease", "viral infection", "cancer", "cancer"),
            *("cancer", "heart disease", "viral infection", "viral infection"),
            *("heart disease", "viral infection", "cancer", "cancer"),
        ],
    }


def mixed(rng: np.random.Generator) -> Table:
    """Texts and numbers on both sides, classes of all sizes."""
    n = 150
    return {
        "quasi:REGION": rng.choice(["north", "east", "south"], n),
        "quasi:ROOMS": rng.integers(1, 4, n),
        "confidential:INCOME": np.round(rng.lognormal(10, 0.6, n), -3).astype(int),
        "confidential:ILLNESS": rng.choice(["none", "flu", "cancer", "asthma"], n, p=[0.5, 0.3, 0.1, 0.1]),
    }


def tied(rng: np.random.Generator) -> Table:
    """A quasi-identifier that is not whole, with zeros of both signs; confidential numbers with many ties."""
    n = 120
    return {
        "quasi:SHARE": rng.choice([-0.5, -0.0, 0.0, 0.25], n),
        "confidential:SCORE": rng.choice([-2.5, -2.5, -2.5, 0.0, 0.1, 7.0], n),
        "confidential:DAYS": rng.poisson(1.5, n),
    }


def balanced() -> Table:
    """Every value equally often in every class: entropies of whole l, where rounding decides."""
    rows = [(a, v) for a in (1, 2, 3, 4) for v in ("a", "b", "c", "d", "e", "f", "g") for _ in range(a)]
    return {"quasi:AGE": [row[0] for row in rows], "confidential:ILLNESS": [row[1] for row in rows]}


def skewed(rng: np.random.Generator) -> Table:
    """One value in most records, many rare ones; classes of very different sizes."""
    n = 200
    return {
        "quasi:AGE": np.minimum(rng.geometric(0.4, n), 4),
        "confidential:ILLNESS": [f"i{min(int(k), 9)}" for k in rng.zipf(1.7, n)],
        "confidential:DEBT": np.where(rng.random(n) < 0.6, 0, np.round(rng.pareto(1.2, n), 2)),
    }


def unique(rng: np.random.Generator) -> Table:
    """Some records alone in their class: k = l = 1."""
    n = 60
    return {
        "quasi:AGE": rng.integers(20, 60, n),
        "quasi:SEX": rng.choice(["f", "m"], n),
        "confidential:WAGE": np.round(rng.normal(2500, 400, n), 1),
    }


def one_class(rng: np.random.Generator) -> Table:
    """All records alike in the quasi-identifiers: as diverse as the table, and at no distance from it."""
    n = 40
    return {
        "quasi:REGION": ["all"] * n,
        "confidential:WAGE": rng.integers(1, 9, n),
        "confidential:WORK": rng.choice(["x", "y", "z"], n),
    }


def several(rng: np.random.Generator) -> Table:
    """Four confidential columns, large classes, more values than 2 in each."""
    n = 180
    sex = rng.choice(["f", "m"], n)
    return {
        "quasi:SEX": sex,
        "quasi:ADULT": rng.integers(0, 2, n),
        "confidential:A": rng.integers(0, 12, n),
        "confidential:B": rng.choice(list("pqrst"), n, p=[0.4, 0.3, 0.1, 0.1, 0.1]),
        "confidential:C": np.round(rng.normal(size=n) + (sex == "f"), 2),
        "confidential:D": rng.choice(["yes", "no", "perhaps"], n),
    }


def people() -> Table:
    """400 adults of the generated census with ages in three bands and regions as parts of the country."""
    part = {row[0]: row[2] for row in datasets.census_hierarchies()["REGION"]}
    group = {row[0]: row[1] for row in datasets.census_hierarchies()["OCCUPATION"]}
    counted = datasets.census(1000, seed=1).to_pylist()
    adults = [row for row in counted if row["AGE"] >= 18 and row["OCCUPATION"] and row["INCOME"] is not None][:400]
    return {
        "quasi:AGE": ["18 to 34" if row["AGE"] < 35 else "35 to 54" if row["AGE"] < 55 else "55 on" for row in adults],
        "quasi:SEX": [row["SEX"] for row in adults],
        "quasi:REGION": [part[row["REGION"]] for row in adults],
        "confidential:OCCUPATION": [group[row["OCCUPATION"]] for row in adults],
        "confidential:INCOME": [row["INCOME"] for row in adults],
        "confidential:TAX": [row["TAX"] // 1000 for row in adults],
    }


def main(folder: Path) -> None:
    tables: dict[str, Table] = {"hospital": hospital(), "balanced": balanced(), "census": people()}
    for number, make in enumerate((mixed, tied, skewed, unique, one_class, several), start=1):
        tables[make.__name__] = make(np.random.default_rng(number))
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in tables.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
