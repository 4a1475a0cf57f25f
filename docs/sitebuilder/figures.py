"""The figures and tables of the theory, computed when the site is built, drawn by the package's own charts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import rankveil as rv
from rankveil.intruder.finding import find_people
from rankveil.linkage import Linker
from rankveil.people.chance import by_chance
from rankveil.ranks import average_ranks
from rankveil.report.chart import Chart, Line, Points
from rankveil.report.figures import permutation_level
from rankveil.seeds import Seed
from rankveil.table import Table
from sitebuilder import chance
from sitebuilder.reference import grid

Array = NDArray[np.float64]

_SHOWN = 300
_PLANS: dict[str, dict[str, Any]] = {
    "additive_noise, alpha = 0.3": {"method": "additive_noise", "alpha": 0.3},
    "rank_swap, p = 10": {"method": "rank_swap", "p": 10},
    "mdav, k = 10": {"method": "mdav", "k": 10},
}


@cache
def _incomes() -> Array:
    """The incomes of those of the made-up people who have one."""
    return np.asarray(rv.datasets.demo()["INCOME"].drop_null().to_numpy(), dtype=np.float64)


@cache
def _masked(name: str) -> Array:
    table = pa.table({"INCOME": _incomes()})
    plan = dict(_PLANS[name])
    return np.asarray(rv.mask(table, plan.pop("method"), seed=1, **plan).data["INCOME"].to_numpy(), dtype=np.float64)


def ranks() -> Chart:
    """Where ranks go."""
    before = average_ranks(_incomes())
    series = [Points(name, before[:_SHOWN].tolist(), average_ranks(_masked(name))[:_SHOWN].tolist()) for name in _PLANS]
    ends = [1.0, float(before.size)]
    return Chart(
        "Three methods that have nothing in common all move ranks",
        "Rank of the original income",
        "Rank of the masked income",
        [*series, Line("not moved", ends, ends, guide=True)],
        note=f"{_SHOWN} of {before.size} made-up people.",
        kind="ranks",
    )


def levels() -> Chart:
    """How far ranks go."""
    before = average_ranks(_incomes())
    moved = {name: np.abs(average_ranks(_masked(name)) - before) for name in _PLANS}
    return permutation_level(moved, n=before.size, title="The same picture for all: how far each record moved")


def remainder() -> Chart:
    """What is left of noise when its permutation is taken out."""
    name = next(iter(_PLANS))
    table = pa.table({"INCOME": _incomes()})
    masked = table.set_column(0, "INCOME", [_masked(name)])
    back = rv.reverse_map(table, masked)["INCOME"].to_numpy()
    ends = [float(back.min()), float(back.max())]
    return Chart(
        "Masked values are almost a permutation of the original ones",
        "Original value of the same rank, z",
        "Masked value, y",
        [
            Points("a record", back[:_SHOWN].tolist(), _masked(name)[:_SHOWN].tolist()),
            Line("y = z", ends, ends, guide=True),
        ],
        note=f"{name}; {_SHOWN} of {back.size} made-up people. What lies off the line is the noise left over.",
        kind="remainder",
        y_from_zero=False,
    )


def _curve(name: str, formula: Callable[..., float], *, n: int, m: int, upto: int, guide: bool = False) -> Line:
    at = list(range(upto + 1))
    return Line(name, at, [formula(d, n=n, m=m) for d in at], guide=guide)


def running_example() -> Chart:
    """The null distribution of the paper's twenty records beside the formulas."""
    null = _null_of_the_paper()
    upto = len(null) - 1
    return Chart(
        "Twenty records: the paper's distribution and the formulas",
        "Distance d in ranks",
        "Share of random records within d",
        [
            Points("all 8000 random records of the paper", list(range(upto + 1)), null, marked=[True] * len(null)),
            _curve("exact, independent attributes", chance.exact, n=20, m=3, upto=upto),
            _curve("mean window", chance.mean_window, n=20, m=3, upto=upto),
            _curve("without edges", chance.without_edges, n=20, m=3, upto=upto),
        ],
        kind="null",
    )


@cache
def _null_of_the_paper() -> list[float]:
    attack = rv.attack(*rv.datasets.running_example())
    shares = attack.to_dict()["chance"]["null"]
    return [float(share) for share in np.cumsum([shares[str(d)] for d in range(len(shares))])]


def hundred() -> Chart:
    """A hundred records: formulas and simulation."""
    upto, at, rng = 28, list(range(2, 28, 5)), np.random.default_rng(1)
    seen = [chance.simulated(d, n=100, m=3, tables=3000, rng=rng) for d in at]
    return Chart(
        "A hundred records: the mean window comes within 0.01, the inside alone does not",
        "Distance d in ranks",
        "Probability that a random record finds one within d",
        [
            Points("3000 simulated tables", at, seen, marked=[True] * len(at)),
            _curve("exact", chance.exact, n=100, m=3, upto=upto),
            _curve("mean window", chance.mean_window, n=100, m=3, upto=upto),
            _curve("without edges", chance.without_edges, n=100, m=3, upto=upto),
        ],
        kind="null",
    )


def dependent() -> Chart:
    """What dependence between attributes does to the null distribution."""
    rng, n = np.random.default_rng(1), 1000
    plain = rng.normal(size=(n, 3))
    series = []
    for rho in (0.0, 0.5, 0.9):
        mixed = plain @ np.linalg.cholesky(np.full((3, 3), rho) + (1 - rho) * np.eye(3)).T
        placed = np.column_stack([average_ranks(column) for column in mixed.T])
        found = by_chance(placed, Linker(placed, metric="maximum"), draws=5000, rng=Seed.of(1).stream("site"))
        series.append(Line(f"r = {rho:g}", found.values.tolist(), np.cumsum(found.shares).tolist()))
    at = list(range(0, 301, 10))
    guide = Line("mean window", at, [chance.mean_window(d, n=n, m=3) for d in at], guide=True)
    return Chart(
        "Dependent attributes leave random records farther off",
        "Distance d in ranks",
        "Share of random records within d",
        [*series, guide],
        note="1000 records, 3 normal attributes with correlation r, 5000 random records.",
        kind="null",
    )


def calibration() -> Chart:
    """How often bets are right that the intruder believes with some probability."""
    people = rv.datasets.demo().select(["AGE", "HOURS", "INCOME", "TAX", "SAVINGS"])
    plans: dict[str, dict[str, Any]] = {
        "additive_noise, alpha = 0.1": {"method": "additive_noise", "alpha": 0.1},
        "correlated_noise, gamma = 0.02": {"method": "correlated_noise", "gamma": 0.02},
    }
    series = []
    for name, plan in plans.items():
        release = rv.mask(people, **plan, seed=1)
        found = find_people(
            Table(people),
            Table(release.data),
            manifest=release.manifest.content,
            truth=np.arange(len(people), dtype=np.int64),
            without=("structure", "low_bits"),
        )
        assert found.right is not None
        order = np.argsort(found.probability)
        tenths = [part for part in np.array_split(order, 10) if part.size]
        believed = [float(found.probability[part].mean()) for part in tenths]
        right = [float(found.right[part].mean()) for part in tenths]
        series.append(Points(name, believed, right, marked=[True] * len(tenths)))
    return Chart(
        "Bets are right about as often as the intruder believes",
        "Probability that he gives to his bet, mean of a tenth of the people",
        "Share of these bets that are right",
        [*series, Line("as often as believed", [0.0, 1.0], [0.0, 1.0], guide=True)],
        note=f"One release of {len(people)} made-up people for each plan, five columns of numbers.",
        kind="calibration",
    )


def agreement() -> str:
    """How far each formula is from the exact probability, at the worst distance."""
    rows = []
    for n, m in ((20, 2), (20, 3), (100, 2), (100, 3), (100, 5), (300, 3)):
        at = range(n // 2) if n < 200 else range(0, 50, 5)
        truth = [chance.exact(d, n=n, m=m) for d in at]
        told = [
            f"{max(abs(formula(d, n=n, m=m) - p) for d, p in zip(at, truth, strict=True)):.3f}"
            for formula in (chance.without_edges, chance.mean_window)
        ]
        rows.append((str(n), str(m), *told))
    return grid(("records", "attributes", "without edges", "mean window"), rows)


def running_table() -> str:
    """The paper's twenty records, number by number."""
    rows = [
        (str(d), f"{share:.4f}", *(f"{f(d, n=20, m=3):.4f}" for f in _FORMULAS))
        for d, share in enumerate(_null_of_the_paper())
    ]
    return grid(("d", "the paper's records", "exact", "mean window", "without edges"), rows)


_FORMULAS = (chance.exact, chance.mean_window, chance.without_edges)

FIGURES: dict[str, Callable[[], Chart]] = {
    "ranks": ranks,
    "levels": levels,
    "remainder": remainder,
    "null-twenty": running_example,
    "null-hundred": hundred,
    "null-dependent": dependent,
    "calibration": calibration,
}


def draw(folder: Path) -> None:
    """Write all figures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FIGURES.items():
        make().svg(folder / f"{name}.svg")
