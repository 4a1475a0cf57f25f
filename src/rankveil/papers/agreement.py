"""agreement: which measures say the same thing, over 109 maskings of the Census data.

General-metrics leaves this for the future: "comparing the results of our metrics with those obtained with the
alternative metrics in the literature", the confidentiality metrics "with the risk estimated via record linkage and the
utility loss metric with the utility for specific data uses". Nothing of it is published, so the rows are findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankveil import catalogue
from rankveil.catalogue import get_measure
from rankveil.comparison.study import Result, Task, measure
from rankveil.execute import in_workers
from rankveil.papers.census_maskings import FILE, Masking, census, maskings, study_of
from rankveil.papers.compare import statement
from rankveil.papers.result import Paper, PaperTable, Progress, Reproduction, Row
from rankveil.ranks import average_ranks
from rankveil.report.chart import Bars, Chart
from rankveil.report.figures import matrix_heat

Array = NDArray[np.float64]

TARGET = "FEDTAX"
"""The stated use: federal income tax explained by the other twelve attributes."""
LINKAGE = ("distance_linkage", "probabilistic_linkage")
"""Linkage success: the share of records that an intruder with all original attributes links to their own."""
USE = "ci_overlap"
SAME = 0.9
"""Measures whose rank correlation is at least this say the same thing."""
LITTLE = 0.5
"""Measures whose rank correlation is below this say different things."""
NOTHING = 1e-9
"""A loss below this part of the largest is rounding and counts as 0 before ranking."""

PROTECTING = ("risk", "confidentiality")
USEFUL = ("utility", "loss")
NAMED = 3
"""How many measures a sentence names."""

ORIENTED = (
    "every measure is turned so that more is better: 1 says that two measures rank the maskings in the same order, "
    "-1 in opposite orders"
)
GROUPS = f"Every two of a group correlate at {SAME} or more; the number is their lowest correlation."


def run(*, data: Path | None = None, progress: Progress | None = None, workers: int | None = None) -> Reproduction:
    """The rank correlations of every measure with linkage success, or with the overlap of confidence intervals."""
    names, twins = distinct(catalogue.measures())
    grid = maskings()
    tasks = [Task(each.plan, 0, names) for each in grid]
    study = study_of(census(data), target=TARGET)
    verdicts = Verdicts.of(grid, names, in_workers(measure, study, tasks, workers=workers, progress=progress))
    risk, use = verdicts.within(PROTECTING), verdicts.within(USEFUL)
    main = use.among([name for name in use.names if not name.startswith("loss_")])
    return Reproduction(
        "agreement",
        citation=PAPER.citation,
        tables=(
            PaperTable("Linkage success", linkage_rows(risk), f"Rank correlations with {' and '.join(LINKAGE)}."),
            PaperTable("Stated use", use_rows(use), f"Rank correlations with {USE}, the regression of {TARGET}."),
            PaperTable("Groups", [*group_rows(risk), *group_rows(use)], GROUPS),
            PaperTable("General-metrics", claims(risk), "What the paper says of its metrics."),
        ),
        figures={
            "Risk": heat(risk, "risk and confidentiality"),
            "Use": heat(main, "utility and loss outside the loss table"),
            "Use and loss table": heat(use, "utility and loss"),
            "Linkage": bars(risk, LINKAGE, title=linkage_title(risk)),
            "Regression": bars(main, (USE,), title=use_title(main)),
        },
        remarks=(ORIENTED, *findings(risk, use), *_twin_remark(twins), *verdicts.remarks()),
    )


def distinct(measures: Mapping[str, catalogue.Measure]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The measures without those that are another one under a second name, and these with the name that is kept."""
    kept: dict[object, str] = {}
    twins = {}
    for name in sorted(measures, key=lambda each: (len(each), each)):
        first = kept.setdefault(measures[name].function, name)
        if first != name:
            twins[name] = first
    return tuple(sorted(kept.values())), dict(sorted(twins.items()))


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What each measure says of each masking, more always being better, and how the measures correlate."""

    names: tuple[str, ...]
    values: Array
    """Masking by measure; NaN where a measure does not apply."""
    correlations: Array
    """Rank correlations over the maskings to which both measures apply; NaN where there is none."""
    without: Mapping[str, tuple[int, str]]
    """Measures that do not apply everywhere: to how many maskings they do not, and why not to the first of them."""

    @classmethod
    def of(cls, grid: Sequence[Masking], names: Sequence[str], results: Sequence[Result]) -> Verdicts:
        """From what was measured of each masking."""
        failed = [f"{each.name}: {made.error}" for each, made in zip(grid, results, strict=True) if made.error]
        if failed:
            raise ArithmeticError(f"a masking of the study failed, {failed[0]}")
        values = np.array([[made.values.get(name, np.nan) for name in names] for made in results], dtype=np.float64)
        without = {}
        for j, name in enumerate(names):
            values[:, j] = turned(values[:, j], name)
            reasons = [made.without[name] for made in results if name in made.without]
            if reasons:
                without[name] = (len(reasons), reasons[0])
        return cls(tuple(names), values, rank_correlations(values), without)

    def within(self, families: Sequence[str]) -> Verdicts:
        """The measures of some families."""
        return self.among([name for name in self.names if get_measure(name).family in families])

    def among(self, names: Sequence[str]) -> Verdicts:
        """Some measures, similar ones side by side, without those that have no correlation at all."""
        there = np.isfinite(np.diag(self.correlations)).tolist()  # one that never varies does not even with itself
        own = [j for j, name in enumerate(self.names) if name in names and there[j]]
        own = [own[place] for place in _side_by_side(self.correlations[np.ix_(own, own)])]
        kept = tuple(self.names[j] for j in own)
        without = {name: why for name, why in self.without.items() if name in kept}
        return Verdicts(kept, self.values[:, own], self.correlations[np.ix_(own, own)], without)

    def between(self, one: str, other: str) -> float:
        """The rank correlation of two measures."""
        return float(self.correlations[self.names.index(one), self.names.index(other)])

    def by_agreement(self, reference: str) -> list[tuple[str, float]]:
        """The other measures and their correlation with this one, the highest first."""
        found = [(name, self.between(name, reference)) for name in self.names if name != reference]
        return sorted((pair for pair in found if np.isfinite(pair[1])), key=lambda pair: -pair[1])

    def groups(self) -> list[tuple[str, ...]]:
        """Measures that say the same thing, every two of them; the largest group first."""
        labels = _labels(self.correlations)
        found = [tuple(np.array(self.names)[labels == label].tolist()) for label in dict.fromkeys(labels.tolist())]
        return sorted((group for group in found if len(group) > 1), key=len, reverse=True)

    def alone(self) -> list[str]:
        """Measures that say what no other says."""
        grouped = {name for group in self.groups() for name in group}
        return [name for name in self.names if name not in grouped]

    def remarks(self) -> Iterator[str]:
        """What does not apply everywhere."""
        for name, (count, why) in self.without.items():
            yield f"{name} does not apply to {count} of {len(self.values)} maskings, left out for it: {why}"


def turned(values: Array, name: str) -> Array:
    """A measure's values with more being better; losses that are only rounding are 0.

    Confidentiality keeps its small values: cm2 is a product of many numbers below 1.
    """
    entry = get_measure(name)
    if entry.family in USEFUL and np.isfinite(values).any():
        values = np.where(np.abs(values) < NOTHING * np.nanmax(np.abs(values)), 0.0, values)
    return values if entry.better == "higher" else -values


def rank_correlations(values: Array) -> Array:
    """Spearman's correlation of every two columns over the rows that both have.

    >>> rank_correlations(np.array([[1.0, 9.0], [2.0, 8.0], [3.0, 1.0], [4.0, np.nan]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    columns = values.shape[1]
    found = np.full((columns, columns), np.nan)
    for a in range(columns):
        for b in range(a, columns):
            both = values[:, [a, b]]
            ranks = average_ranks(both[np.isfinite(both).all(axis=1)])
            if len(ranks) and np.ptp(ranks, axis=0).all():
                rho = np.asarray(np.corrcoef(ranks.T))[0, 1]
                found[a, b] = found[b, a] = round(float(rho), 12)
    return found


def _tree(correlations: Array) -> Array:
    """Measures joined as long as every two correlate; one without a correlation is far from all others."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    apart = 1.0 - np.nan_to_num(correlations, nan=-1.0)
    np.fill_diagonal(apart, 0.0)
    return np.asarray(linkage(squareform(apart), method="complete", optimal_ordering=True))


def _side_by_side(correlations: Array) -> list[int]:
    from scipy.cluster.hierarchy import leaves_list

    if len(correlations) < 2:
        return list(range(len(correlations)))
    return [int(place) for place in leaves_list(_tree(correlations))]


def _labels(correlations: Array) -> NDArray[np.intp]:
    from scipy.cluster.hierarchy import fcluster

    if len(correlations) < 2:
        return np.arange(len(correlations))
    return np.asarray(fcluster(_tree(correlations), 1.0 - SAME, criterion="distance"), dtype=np.intp)


# Tables.


def linkage_rows(risk: Verdicts) -> list[Row]:
    """Each measure of risk or confidentiality with both linkage attacks, the closest to the first one on top."""
    ordered = [name for name, _ in risk.by_agreement(LINKAGE[0])]
    return [_finding(name, [risk.between(name, each) for each in LINKAGE]) for name in ordered]


def use_rows(use: Verdicts) -> list[Row]:
    """Each measure of utility or loss with the stated use, the closest on top."""
    return [_finding(name, rho) for name, rho in use.by_agreement(USE)]


def group_rows(verdicts: Verdicts) -> list[Row]:
    """Measures that say the same thing, with the lowest correlation between two of them."""
    rows = []
    for group in verdicts.groups():
        lowest = min(verdicts.between(a, b) for a in group for b in group)
        rows.append(Row(", ".join(group), None, round(lowest, 3), ok=True, decimals=3))
    return rows


def _finding(item: str, value: float | Sequence[float]) -> Row:
    numbers = tuple(round(each, 3) for each in value) if isinstance(value, Sequence) else round(value, 3)
    return Row(item, None, numbers, ok=True, decimals=3)


def claims(risk: Verdicts) -> list[Row]:
    """What general-metrics says of CM1 and CM2, held against linkage success."""
    return [
        statement(
            f"rank correlations of cm2 and of cm1 with {each}",
            "CM2 is a better metric than CM1",
            [round(risk.between(name, each), 3) for name in ("cm2", "cm1")],
            ok=risk.between("cm2", each) > risk.between("cm1", each),
        )
        for each in LINKAGE
    ]


# Findings, as sentences.


def findings(risk: Verdicts, use: Verdicts) -> list[str]:
    """What the correlations say."""
    said = [linkage_title(risk), *_strangers(risk, LINKAGE[0]), use_title(use), *_strangers(use, USE)]
    for verdicts, what in ((risk, "risk and confidentiality"), (use, "utility and loss")):
        for group in verdicts.groups():
            said.append(f"of {what}, {', '.join(group)} say the same thing")
        if verdicts.alone():
            said.append(f"of {what}, {', '.join(verdicts.alone())} say what no other measure says")
    return said


def linkage_title(risk: Verdicts) -> str:
    """Which measures come closest to linkage success."""
    close = risk.by_agreement(LINKAGE[0])
    rest = [(name, rho) for name, rho in close if name not in LINKAGE]
    return (
        f"{_listed(rest[:NAMED])} come closest to linkage success; the two linkages agree with each other at "
        f"{risk.between(*LINKAGE):.2f}"
    )


def use_title(use: Verdicts) -> str:
    """Which measures come closest to the stated use."""
    return f"{_listed(use.by_agreement(USE)[:NAMED])} come closest to what a regression of {TARGET} keeps ({USE})"


def _strangers(verdicts: Verdicts, reference: str) -> list[str]:
    far = [(name, rho) for name, rho in verdicts.by_agreement(reference) if rho < LITTLE]
    return [f"{_listed(far)} tell little of {reference}, or the opposite"] if far else []


def _listed(pairs: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} ({rho:.2f})" for name, rho in pairs)


def _twin_remark(twins: Mapping[str, str]) -> list[str]:
    if not twins:
        return []
    told = ", ".join(f"{name} is {kept}" for name, kept in twins.items())
    return [f"measures that are another one by definition stand once: {told}"]


# Figures.


def heat(verdicts: Verdicts, what: str) -> Chart:
    """Every two measures, similar ones side by side."""
    grouped = sum(len(group) for group in verdicts.groups())
    count = len(verdicts.groups())
    return matrix_heat(
        verdicts.names,
        verdicts.correlations,
        what="rank correlation",
        signed=True,
        most=1.0,
        title=f"Of {len(verdicts.names)} measures of {what}, {grouped} fall into {count} "
        f"{'group that says' if count == 1 else 'groups that each say'} one thing",
        note=f"Over {len(verdicts.values)} maskings of Census. {ORIENTED[0].upper()}{ORIENTED[1:]}.",
    )


def bars(verdicts: Verdicts, references: Sequence[str], *, title: str) -> Chart:
    """The correlations with a reference, the highest first."""
    names = [name for name, _ in verdicts.by_agreement(references[0]) if name not in references]
    return Chart(
        title=title,
        x_label="Measure",
        y_label="Rank correlation",
        series=[Bars(f"with {each}", names, [verdicts.between(name, each) for name in names]) for each in references],
        note=f"Over {len(verdicts.values)} maskings of Census, one replicate of each; more is better in all measures.",
        kind="agreement",
    )


PAPER = Paper(
    name="agreement",
    citation=(
        "No paper: the study that J. Domingo-Ferrer, K. Muralidhar and M. Bras-Amorós (2021, General confidentiality "
        "and utility metrics for privacy-preserving data publishing based on the permutation model) leave for the "
        "future."
    ),
    run=run,
    needs=(FILE,),
)
