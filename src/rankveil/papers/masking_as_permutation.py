"""masking-as-permutation: Muralidhar and Domingo-Ferrer (2015), Tables 1 and 2 and figures 1 to 3."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankveil.auditing import audit
from rankveil.papers.compare import decimals, lines, printed, replicated, statement
from rankveil.papers.maskings import drawn
from rankveil.papers.result import Paper, PaperTable, Progress, Reproduction, Row
from rankveil.ranks import average_ranks, rank_changes
from rankveil.report.chart import Chart
from rankveil.report.figures import permutation_level
from rankveil.seeds import Seed

Array = NDArray[np.float64]

TABLE_1 = """
1 1 1001 1.091 1.091 1092.361 1 7
2 11 1011 0.907 9.981 917.356 2 1
3 21 1021 1.004 21.077 1024.742 3 4
4 31 1031 1.003 31.088 1033.931 4 5
5 41 1041 1.090 44.676 1134.341 5 10
6 51 1051 1.051 53.601 1104.594 6 8
7 61 1061 0.929 56.677 985.814 7 2
8 71 1071 0.985 69.964 1055.371 8 6
9 81 1081 0.912 73.901 986.258 9 3
10 91 1091 1.015 92.334 1106.988 10 9
"""
"""Observation, data sets 1 and 2, masking value, masked data sets 1 and 2, their ranks."""

TABLE_2 = """
1 1 1 0 10
2 1000 25 980 1020
3 50 25 30 70
"""
"""Attribute, mean, variance, minimum, maximum."""

RECORDS = 1000
ALPHA = math.sqrt(0.1)
"""Noise with 10 % of the variance."""
BETA = 0.1
"""Factors between 0.9 and 1.1."""
REPLICATES = 40
ATTRIBUTES = ("attribute 1", "attribute 2", "attribute 3")

TABLE_1_CAPTION = (
    "The same factors leave the ranks of data set 1 and turn those of data set 2. Products with a printed factor agree "
    "within what its rounding leaves open; the factor of an observation is computed from its values in data set 2."
)
ROUNDED_FACTORS = (
    "Table 1 prints the factors with three digits but multiplied with more: 11 x 0.907 is 9.977, printed is 9.981; the "
    "factor 0.907375 that the second data set gives fits both and is 0.907 in print, and so for every observation"
)
TWO_RANGES = "section 5.1 says that attribute 1 ranges between 0 and 20; Table 2 has 0 to 10"
DISTRIBUTIONS = (
    "the paper does not name its distributions: exponential(1), N(1000, 25) and N(50, 25), with variances 25, fit "
    "Table 2 and are used here"
)


def run(*, data: Path | None = None, progress: Progress | None = None, replicates: int = REPLICATES) -> Reproduction:
    """Table 1 exactly, Table 2 and the figures as `replicates` of a random example."""
    trials = Trials.of(replicates, progress=progress)
    largest = "; ".join(
        f"{method} noise on {ATTRIBUTES[j]} {moved[:, j].min():.0f} to {moved[:, j].max():.0f}"
        for method, moved in (("multiplicative", trials.multiplied), ("additive", trials.added))
        for j in range(3)
    )
    caption = f"{RECORDS} records; means of {replicates} replicates."
    return Reproduction(
        "masking-as-permutation",
        citation=PAPER.citation,
        tables=(
            PaperTable("Table 1", _table_1(), TABLE_1_CAPTION),
            PaperTable("Table 2", _table_2(trials), caption),
            PaperTable("Figure 1", _figure_1(trials), f"Largest rank change by factors in (0.9, 1.1). {caption}"),
            PaperTable("Figure 2", _figure_2(trials), f"Attribute 1, largest rank change. {caption}"),
            PaperTable("Figure 3", _figure_3(trials), f"Attribute 2, largest rank change. {caption}"),
        ),
        figures=trials.charts(),
        remarks=(
            ROUNDED_FACTORS,
            TWO_RANGES,
            DISTRIBUTIONS,
            f"the largest rank changes over {replicates} seeds: {largest}",
        ),
    )


def _table_1() -> list[Row]:
    """Values at the printed digits by the factor that the second data set gives; ranks by the printed factors."""
    words = lines(TABLE_1)
    first, second, factors = (np.array([float(line[column]) for line in words]) for column in (1, 2, 3))
    exact = np.array([float(line[5]) for line in words]) / second
    ranks = average_ranks(np.column_stack((first * factors, second * factors)))
    rows = []
    for i, (number, _, _, factor, small, large, *places) in enumerate(words):
        item = f"observation {number}"
        rows += [
            printed(f"{item}, factor", factor, exact[i]),
            printed(f"{item}, masked data set 1", small, first[i] * exact[i]),
            _by_rounded(f"{item}, masked data set 1 by the printed factor", small, first[i], factor),
            _by_rounded(f"{item}, masked data set 2 by the printed factor", large, second[i], factor),
            printed(f"{item}, ranks in masked data sets 1 and 2", " ".join(places), ranks[i]),
        ]
    return rows


def _by_rounded(item: str, published: str, value: float, factor: str) -> Row:
    """A product with a rounded factor: it agrees within what half a unit of the factor's last digit makes of it."""
    exact = printed(item, published, value * float(factor))
    reach = 0.5 * 10.0 ** -decimals(factor) * value + 0.5 * 10.0 ** -decimals(published)
    ok = abs(value * float(factor) - float(published)) <= reach
    return replace(exact, ok=ok)


@dataclass(frozen=True, eq=False)
class Trials:
    """What each replicate gave, one row each."""

    moments: Array
    """Replicate, attribute, (mean, variance, minimum, maximum)."""
    multiplied: Array
    """Replicate, attribute: the largest rank change by multiplicative noise."""
    added: Array
    """The same by additive noise."""
    curves: dict[str, list[Array]]
    """All rank changes of the first replicate, per method and attribute."""

    @classmethod
    def of(cls, replicates: int, *, progress: Progress | None = None) -> Self:
        """Draw, mask and rank; replicate k always is the same."""
        moments, multiplied, added = [], [], []
        curves: dict[str, list[Array]] = {}
        for k in range(replicates):
            original = _original(k)
            columns = [original[name].to_numpy() for name in ATTRIBUTES]
            moments.append([[x.mean(), x.var(), x.min(), x.max()] for x in columns])
            by_factor = _changes(original, drawn(original, "multiplicative_noise", beta=BETA, seed=Seed.of(k)))
            by_term = _changes(original, drawn(original, "additive_noise", alpha=ALPHA, seed=Seed.of(k)))
            multiplied.append([moved.max() for moved in by_factor])
            added.append([moved.max() for moved in by_term])
            if k == 0:
                curves = {"multiplicative": by_factor, "additive": by_term}
            if progress:
                progress(k + 1, replicates)
        return cls(np.array(moments), np.array(multiplied), np.array(added), curves)

    def charts(self) -> dict[str, Chart]:
        """Figures 1 to 3, of the first replicate."""
        factors, both = self.curves["multiplicative"], self.curves
        made = {"Figure 1": permutation_level(dict(zip(ATTRIBUTES, factors, strict=True)), n=RECORDS)}
        for j, name in enumerate(("Figure 2", "Figure 3")):
            levels = {f"{method} noise, {ATTRIBUTES[j]}": moved[j] for method, moved in both.items()}
            made[name] = permutation_level(levels, n=RECORDS)
        return made


def _original(k: int) -> Any:
    import pyarrow as pa

    streams = [Seed.of(k).stream("masking-as-permutation", name) for name in ATTRIBUTES]
    columns = (
        -np.log(streams[0].random(RECORDS)),
        1000 + 5 * streams[1].normal(RECORDS),
        50 + 5 * streams[2].normal(RECORDS),
    )
    return pa.table(dict(zip(ATTRIBUTES, columns, strict=True)))


def _changes(original: Any, masked: Any) -> list[Array]:
    both = audit(original, masked, measures=["permutation_level"]).pair
    assert both is not None  # an audit made from two tables keeps them
    return [rank_changes(view.rank_x, view.rank_y) for view in both.columns]


def _table_2(trials: Trials) -> list[Row]:
    rows = []
    for j, (number, *words) in enumerate(lines(TABLE_2)):
        for place, name in enumerate(("mean", "variance", "minimum", "maximum")):
            rows.append(replicated(f"attribute {number}, {name}", words[place], trials.moments[:, j, place]))
    return rows


def _figure_1(trials: Trials) -> list[Row]:
    low, high, middle = trials.multiplied.T
    between = bool(np.all((low < middle) & (middle < high)))
    return [
        statement("attribute 1", "no more than 50", _mean(low), sd=_sd(low), ok=_plausible(low, most=50)),
        replicated("attribute 2", "900", high),
        statement("attribute 3", "between attributes 1 and 2", _mean(middle), sd=_sd(middle), ok=between),
    ]


def _figure_2(trials: Trials) -> list[Row]:
    added, multiplied = trials.added[:, 0], trials.multiplied[:, 0]
    ratio = added / multiplied
    return [
        replicated("additive noise", "450", added),
        replicated("multiplicative noise", "50", multiplied),
        statement("additive over multiplicative", "much higher", _mean(ratio), sd=_sd(ratio), ok=bool(ratio.min() > 2)),
    ]


def _figure_3(trials: Trials) -> list[Row]:
    ratio = trials.multiplied[:, 1] / trials.added[:, 1]
    return [
        statement(
            "multiplicative over additive", "much higher", _mean(ratio), sd=_sd(ratio), ok=bool(ratio.min() > 1.5)
        )
    ]


def _plausible(values: Array, *, most: float) -> bool:
    """Whether one more replicate could stay at or below a limit: it lies not four deviations under their mean."""
    return bool(values.mean() - 4 * values.std(ddof=1) <= most)


def _mean(values: Array) -> float:
    return round(float(values.mean()), 2)


def _sd(values: Array) -> float:
    return round(float(values.std(ddof=1)), 2)


PAPER = Paper(
    name="masking-as-permutation",
    citation=(
        "K. Muralidhar and J. Domingo-Ferrer (2015). Microdata masking as permutation. Joint UNECE/Eurostat work "
        "session on statistical data confidentiality, Helsinki."
    ),
    run=run,
)
