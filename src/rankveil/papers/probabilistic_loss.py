"""probabilistic-loss: Mateo-Sanz, Domingo-Ferrer and Sebé (2005), Tables 2 and 3 and what the text says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankveil.execute import in_workers
from rankveil.measuring import Measuring
from rankveil.papers.census_losses import (
    EXPRESSION_6,
    IDS,
    KERNEL,
    NOTHING,
    Losses,
    correlation,
    measured,
    tasks_of,
)
from rankveil.papers.census_maskings import (
    FILE,
    SEED,
    Masking,
    census,
    maskings,
    microaggregation,
    study_of,
)
from rankveil.papers.compare import lines, printed, replicated, statement
from rankveil.papers.published import probabilistic_loss as paper
from rankveil.papers.result import Paper, PaperTable, Progress, Reproduction, Row
from rankveil.report.chart import Bars, Chart, Points
from rankveil.seeds import Seed
from rankveil.table import Table

Array = NDArray[np.float64]

REPLICATES = 10
DRAWS = 40
ORDERS = 12
"""Replicates of the random maskings in Table 2 and in Table 3; orders of the records in which ties are grouped."""

PARTS = ("PIL(Q)", "PIL(m1)", "PIL(m2)", "PIL(m11)", "PIL(r)")
OF = dict(zip(PARTS, ("quantiles", "means", "variances", "covariances", "correlations"), strict=True)) | {"PIL": "all"}
SPEARMAN_REACH, QUANTILE_REACH, PEARSON_REACH = 0.05, 0.12, 0.1
"""How far correlations over another list of 109 maskings may lie from the printed ones; those of quantiles hang on the
density too, and Pearson's on the few largest values."""
EXACT_REACH = 0.01
"""The same for losses of a masking that draws nothing."""
DENSITY_REACH = 0.15
"""What the choice of a density can explain: the two that are shown are up to 0.12 apart."""

GRID = (
    "the paper does not list its 109 maskings: noise 0.02 to 0.20, distribution distortion, resampling 1 to 3, "
    "microaggregation of 3 to 10 in seven ways, rank swapping 1 to 20 and JPEG of quality 5 to 95 stand for them here, "
    "so correlations cannot be the printed ones to the last digit"
)
DENSITY = (
    "PIL(Q) divides by a density of which the paper does not give all details (how quantiles are taken, what is done "
    "where no record is near); its own column cannot be recovered, and another density gives other values"
)
UNTOLD = "the paper does not tell all of the density that it divides by"
NOT_WITHOUT = (
    "the text says that rescaling microaggregated data does not significantly increase other losses; in the paper's "
    "own Table 3 the loss of covariances of Micmul3 doubles, from 0.1846 to 0.3631"
)


def run(
    *,
    data: Path | None = None,
    progress: Progress | None = None,
    replicates: int = REPLICATES,
    draws: int = DRAWS,
    workers: int | None = None,
) -> Reproduction:
    """Tables 2 and 3 on Census: `replicates` of the random ones of 109 maskings, `draws` of those in Table 3."""
    table = census(data)
    grid, seven = maskings(), methods()
    tasks = [*tasks_of(grid, replicates), *tasks_of(seven, draws)]
    made = in_workers(measured, study_of(table), tasks, workers=workers, progress=progress)
    split = len(tasks_of(grid, replicates))
    losses = Losses.of(grid, made[:split], replicates=replicates)
    chosen = Losses.of(seven, made[split:], replicates=draws)
    ties = tied(table, orders=ORDERS)
    return Reproduction(
        "probabilistic-loss",
        citation=PAPER.citation,
        tables=(
            PaperTable("Table 2", table_2(losses), _caption(losses)),
            PaperTable("Table 3", table_3(chosen, ties), _caption(chosen)),
            PaperTable("Section 5", section_5(chosen), "What the text says of Table 3, PIL(Q) by the simple density."),
            PaperTable("Remark 4.2", [remark_4_2(losses)], "Covariances and correlations over the 109 maskings."),
        ),
        figures={**scatters(losses), "Table 3": bars(chosen)},
        remarks=(GRID, DENSITY),
    )


def methods() -> tuple[Masking, ...]:
    """The rows of Table 3."""
    known = {each.name: each for each in maskings()}
    plain = [known["Rankswap7"], microaggregation(7, block=3), microaggregation(3, block=0), known["Noise16"]]
    scaled = [Masking(each.family, f"Scal_{each.name}", each.plan.then("rescale")) for each in plain[1:]]
    return (*plain, *scaled)


# Table 2.


def table_2(losses: Losses) -> list[Row]:
    """Pearson's and Spearman's correlations of probabilistic and classical measures."""
    rows = []
    for one, other, pearson, spearman in lines(paper.TABLE_2):
        linear, monotone = (losses.correlations(one, other, ranks=ranks) for ranks in (False, True))
        item, quantiles = f"{one} with {other}", one == "PIL(Q)"
        rows.append(_pearson(f"{item}, Pearson", pearson, linear, one=one, other=other, losses=losses))
        reach = QUANTILE_REACH if quantiles else SPEARMAN_REACH
        remark = _swapping(losses) if quantiles else None
        rows.append(_within(f"{item}, Spearman", spearman, monotone, reach=reach, remark=remark))
        if quantiles:
            by_kernel = losses.correlations(KERNEL, other, ranks=True)
            rows.append(_within(f"{KERNEL}, with {other}, Spearman", spearman, by_kernel, reach=reach))
    return rows


def _within(item: str, published: str, values: Array, *, reach: float, remark: str | None = None) -> Row:
    """The mean of replicates, which agrees when it is near enough; a remark tells of a difference, it excuses none."""
    mean, spread = float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else 0.0
    ok = abs(mean - float(published)) <= reach
    sd = round(spread, 6) if spread > NOTHING else None
    return replace(printed(item, published, mean), ok=ok, sd=sd, remark=remark if ok else None)


def _pearson(item: str, published: str, values: Array, *, one: str, other: str, losses: Losses) -> Row:
    """Pearson's correlation; where it is far off, the one case in the paper's list that would explain it."""
    row = _within(item, published, values, reach=PEARSON_REACH)
    if row.ok:
        return row
    loss, classical = losses.of_measure(one), losses.of_measure(other)
    replicate, case = np.unravel_index(np.argmax(classical), classical.shape)
    needed = far_case(loss[replicate], classical[replicate], wanted=float(published))
    if needed is None:
        return row
    moved = classical[replicate].copy()
    moved[case] = needed
    spearman = correlation(loss[replicate], moved, ranks=True)
    own = classical[:, case]
    remark = (
        f"one case decides Pearson's correlation of {one} with {other}: over the replicates {losses.grid[case].name} "
        f"has {other} from {own.min():.2f} to {own.max():.2f}, and the coefficient goes from {values.max():.3f} to "
        f"{values.min():.3f}; {needed:.2f} would make it {published}, with Spearman's still {spearman:.3f}"
    )
    return replace(row, remark=remark)


def far_case(loss: Array, classical: Array, *, wanted: float, farthest: float = 10.0) -> float | None:
    """How large the largest classical loss must be for Pearson's correlation to fall to the wanted one.

    None when `farthest` times as much is not enough: a list with such a case would be another study.
    """
    moved = classical.copy()
    most = int(np.argmax(classical))

    def at(size: float) -> float:
        moved[most] = size
        return correlation(loss, moved, ranks=False)

    low, high = float(classical[most]), farthest * float(classical[most])
    if not at(high) <= wanted <= at(low):
        return None
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) > wanted else (low, middle)
    return high


def _swapping(losses: Losses) -> str:
    others = float(losses.without("rank swapping").correlations("PIL(Q)", "IL1", ranks=True).mean())
    return (
        "rank swapping keeps every quantile (PIL(Q) is 0) but not the values (IL1): without its cases the coefficient "
        f"is {others:.3f}, so it hangs on how many of them the paper's list has"
    )


# Table 3.


@dataclass(frozen=True, eq=False)
class Ties:
    """Losses of Mic3mul7, plain and rescaled, over orders of the records: ties are grouped in the order of rows."""

    values: Mapping[tuple[str, str], Array]
    different: int
    """How many different records the block with the most ties has."""
    block: tuple[str, ...]

    def told(self, masking: str, name: str) -> str | None:
        """What other orders give, for a loss that depends on them."""
        values = self.values.get((masking, name))
        if values is None or np.ptp(values) < NOTHING:
            return None
        return (
            f"{masking} groups equal records by chance (here the earlier rows), and only {self.different} differ in "
            f"{', '.join(self.block)}: {len(values)} other orders of the records give {name} from {values.min():.4f} "
            f"to {values.max():.4f}"
        )


def tied(table: Table, *, orders: int) -> Ties:
    """Mic3mul7 with the records in other orders."""
    names = table.usable()
    block = names[9:]
    native = table.frame.to_arrow()
    different = native.select(block).group_by(list(block)).aggregate([]).num_rows
    found: dict[tuple[str, str], list[float]] = {}
    wanted = [each for each in methods() if each.name.endswith("Mic3mul7")]
    for k in range(orders):
        order = Seed.of(SEED).stream("probabilistic-loss", "order", k).order(len(table))
        study = study_of(Table(native.take(order)))
        for each in wanted:
            measuring = Measuring(study.pair(each.plan, 0))
            for name in ("PIL(m2)", "PIL(m11)", "PIL(r)"):
                found.setdefault((each.name, name), []).append(measuring.value(IDS[name]).value)
    return Ties({key: np.array(values) for key, values in found.items()}, different, tuple(block))


def table_3(chosen: Losses, ties: Ties) -> list[Row]:
    """Every loss of the seven maskings; that of quantiles by two densities."""
    rows = []
    for words in lines(paper.TABLE_3):
        masking = words[0]
        random = next(each.random for each in chosen.grid if each.name == masking)
        for name, word in zip(PARTS, words[1:], strict=True):
            published = "0.0000" if word == "0" else word  # four digits, as the others of the table
            values = chosen.of_masking(masking, name)
            item = f"{masking}, {name}"
            if name == "PIL(Q)":
                by_kernel = chosen.of_masking(masking, KERNEL)
                rows += [_quantile(f"{item}, simple density", published, values)]
                rows += [_quantile(f"{item}, kernel density", published, by_kernel)]
            elif random:
                rows.append(replicated(item, published, values, remark=_one_draw(item, published, values)))
            else:
                remark = ties.told(masking, name) or _last_digit(published, values)
                rows.append(_within(item, published, values[:1], reach=EXACT_REACH, remark=remark))
    return rows


def _quantile(item: str, published: str, values: Array) -> Row:
    """A loss of quantiles: the same to the last digit, or off by no more than a density can do."""
    row = _within(item, published, values, reach=0.0)
    if row.ok or (row.difference or 0.0) > DENSITY_REACH:
        return row
    return replace(row, remark=UNTOLD)


def _one_draw(item: str, published: str, values: Array) -> str | None:
    """A word on a printed value that is rare among replicates."""
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    if spread < NOTHING:
        return None
    away = (float(published) - float(values.mean())) / spread
    if abs(away) < 2:
        return None
    side = "above" if away > 0 else "below"
    return f"{item}: the paper has one draw, which lies {abs(away):.1f} standard deviations {side} the mean of ours"


def _last_digit(published: str, values: Array) -> str | None:
    if printed("", published, values[:1]).ok:
        return None
    return f"{values[0]:.6f} is printed as {published}: the last digit is one of the paper's arithmetic"


# What the text says.


def section_5(chosen: Losses) -> list[Row]:
    """Statements on Table 3."""
    means = {each.name: np.mean([chosen.of_masking(each.name, part).mean() for part in PARTS]) for each in chosen.grid}
    best, next_best = sorted(means, key=means.__getitem__)[:2]
    rise = {
        (each, part): float((chosen.of_masking(f"Scal_{each}", part) - chosen.of_masking(each, part)).mean())
        for each in ("Mic3mul7", "Micmul3")
        for part in ("PIL(m1)", "PIL(m11)", "PIL(r)")
    }
    most = max(rise, key=rise.__getitem__)
    gone = max(chosen.of_masking("Scal_Noise16", part).max() for part in ("PIL(m1)", "PIL(m2)"))
    swapped = chosen.of_masking("Rankswap7", "PIL(Q)").max()
    return [
        statement(
            "smallest mean of the five losses",
            "Scal_Mic3mul7",
            f"{best} ({means[best]:.3f}), then {next_best} ({means[next_best]:.3f})",
            ok=best == "Scal_Mic3mul7",
        ),
        statement("Rankswap7 and quantiles", "kept", round(float(swapped), 6), ok=swapped == 0),
        statement("rescaled noise, PIL(m1) and PIL(m2)", "brought to 0", round(float(gone), 6), ok=gone == 0),
        statement(
            "rescaled microaggregation, largest rise of another loss",
            "without significant increase",
            f"{most[0]}, {most[1]}: {rise[most]:+.4f}",
            ok=rise[most] < EXACT_REACH,
            remark=NOT_WITHOUT if most == ("Micmul3", "PIL(m11)") else None,
        ),
    ]


def remark_4_2(losses: Losses) -> Row:
    """Expression (6) is low where the loss of covariances is high."""
    high = losses.of_measure("PIL(m11)")[0] >= 0.75
    low = losses.of_measure(EXPRESSION_6)[0] <= 0.25
    count = int(np.sum(high & low))
    return statement(
        "maskings with PIL(m11) in [0.75, 1] and expression (6) in [0, 0.25]",
        "easily got",
        f"{count} of the {int(high.sum())} with such a PIL(m11)",
        ok=count > 0,
    )


# Figures and captions.


def scatters(losses: Losses) -> dict[str, Chart]:
    """Each probabilistic measure against the classical one of the same statistic; the first replicate."""
    return {f"Table 2 {OF[one]}": _scatter(losses, one, other) for one, other, *_ in lines(paper.TABLE_2)}


def _scatter(losses: Losses, one: str, other: str) -> Chart:
    x, y = losses.of_measure(one)[0], losses.of_measure(other)[0]
    series = []
    for family in dict.fromkeys(each.family for each in losses.grid):
        own = [place for place, each in enumerate(losses.grid) if each.family == family]
        names = [losses.grid[place].name for place in own]
        series.append(Points(family, x[own].tolist(), y[own].tolist(), labels=names))
    linear, monotone = (correlation(x, y, ranks=ranks) for ranks in (False, True))
    return Chart(
        title=f"{one} and {other} rank {len(losses.grid)} maskings alike (Spearman {monotone:.2f}), "
        f"though not on a line (Pearson {linear:.2f})",
        x_label=f"{one}, probabilistic loss of {OF[one]}" if one != "PIL" else "PIL, probabilistic loss",
        y_label=f"{other}, classical loss",
        series=series,
        note=f"Census, {len(losses.grid)} maskings, one replicate of the random ones.",
        kind="probabilistic_loss",
    )


def bars(chosen: Losses) -> Chart:
    """Table 3 as bars."""
    names = [each.name for each in chosen.grid]
    losses = {part: [float(chosen.of_masking(name, part).mean()) for name in names] for part in PARTS}
    means = {name: sum(losses[part][place] for part in PARTS) / len(PARTS) for place, name in enumerate(names)}
    best, worst = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    return Chart(
        title=f"{best} loses least (mean of five losses {means[best]:.2f}), {worst} most ({means[worst]:.2f})",
        x_label="Masking",
        y_label="Probabilistic information loss",
        series=[Bars(f"{part}, {OF[part]}", names, losses[part]) for part in PARTS],
        note=f"Census; PIL(Q) by the simple density; means of {chosen.replicates} replicates of the random maskings.",
        kind="probabilistic_loss",
    )


def _caption(losses: Losses) -> str:
    return f"{len(losses.grid)} maskings of Census; means of {losses.replicates} replicates of those that are random."


PAPER = Paper(
    name="probabilistic-loss",
    citation=(
        "J. M. Mateo-Sanz, J. Domingo-Ferrer and F. Sebé (2005). Probabilistic information loss measures in "
        "confidentiality protection of continuous microdata. Data Mining and Knowledge Discovery 11, 181-193."
    ),
    run=run,
    needs=(FILE,),
)
