"""general-metrics: Domingo-Ferrer, Muralidhar and Bras-Amoros (2021), Table 1 and figures 2 to 5."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankveil.comparison.study import Study
from rankveil.papers.compare import lines
from rankveil.papers.maskings import Job, compared, measured, read
from rankveil.papers.metric_curves import ASKED, WHOLE, Curves, Key, jobs, version
from rankveil.papers.published import general_metrics as paper
from rankveil.papers.result import Paper, PaperTable, Progress, Reproduction
from rankveil.plans import Plan
from rankveil.seeds import Seed
from rankveil.table import Table

Array = NDArray[np.float64]

FILE = "census.csv"
BATCHES = 10
"""Averages of 100 replications, of which the published one should be one more."""
REPLICATES = 40
SEED = 0

NEEDS_CENSUS = (
    f"left out: figures 2 to 5 and the first row of Table 1 need {FILE}; give the folder that holds it with --data"
)
AS_IN_THE_FIRST_ROW = (
    "Table 1's second row prints 0.9913 for CM2 beside 0.9914 for CM1; unrelated tables of 1080 records and 4 "
    "attributes have a CM2 of about exp(-16/1080) = 0.985, as in the first row, and so it comes out"
)
NO_MAPPING = (
    "Table 1: synthetic records belong to no original ones; CM1 and CM2 pair them by row, as the paper does to show "
    "that they mislead, and come to what unrelated tables give"
)
DISTRIBUTION = "Table 1: the paper does not say how its second data set was simulated; normal attributes are used here"
NO_GUARANTEE = (
    "figure 3: the bounds of the noise, 1.5 times the maximum, come from the data, so that no guarantee holds"
)
BY_STANDARD_DEVIATION = "figure 4: the paper's N(0, alpha sigma) is read as a standard deviation of alpha sigma"
SAME_DATA = (
    "figures 4 and 5: the paper names neither their data nor the values of alpha and beta; the Census data with 4 "
    "attributes are used here, in steps of 0.05"
)


def run(
    *,
    data: Path | None = None,
    progress: Progress | None = None,
    sizes: Sequence[int] = paper.SIZES,
    replicates: int = REPLICATES,
    batches: int = BATCHES,
    workers: int | None = None,
) -> Reproduction:
    """The simulated part of Table 1, and everything else where the Census data are there."""
    census = None if data is None or not (data / FILE).is_file() else read(data / FILE, paper.ATTRIBUTES)
    studies = {
        _simulated(i): Study(correlated(i), paper.ATTRIBUTES, seed=Seed.of(i), grid=False) for i in range(batches)
    }
    wanted = {Key("ipso", of): _ipso(of, paper.REPLICATIONS) for of in studies}
    if census is not None:
        studies |= {
            version(m): Study(census, paper.ATTRIBUTES[:m], seed=Seed.of(SEED), grid=False) for m in paper.VERSIONS
        }
        wanted |= jobs(sizes, replicates=replicates)
        wanted[Key("ipso", WHOLE)] = _ipso(WHOLE, paper.REPLICATIONS * batches)
    values = measured(studies, wanted, workers=workers, progress=progress)
    made = Reproduction(
        "general-metrics",
        citation=PAPER.citation,
        tables=(table_1(values, batches=batches),),
        remarks=(NO_MAPPING, DISTRIBUTION, NEEDS_CENSUS),
    )
    if census is None:
        return made
    curves = Curves(values, tuple(sizes), _noise_ratio(studies))
    return Reproduction(
        made.paper,
        citation=made.citation,
        tables=(*made.tables, *curves.tables()),
        figures=curves.charts(),
        remarks=(NO_MAPPING, DISTRIBUTION, NO_GUARANTEE, BY_STANDARD_DEVIATION, SAME_DATA),
    )


def _simulated(number: int) -> str:
    return f"simulated {number + 1}"


def correlated(number: int) -> Table:
    """Four normal attributes that share most of what they are: their correlation is 0.99."""
    import pyarrow as pa

    seed = Seed.of(number)
    common = math.sqrt(paper.CORRELATION) * seed.stream("general-metrics", "common").normal(paper.RECORDS)
    own = math.sqrt(1 - paper.CORRELATION)
    draws = {name: seed.stream("general-metrics", name).normal(paper.RECORDS) for name in paper.ATTRIBUTES}
    return Table(pa.table({name: common + own * each for name, each in draws.items()}))


def _ipso(of: str, replicates: int) -> Job:
    return Job(of, Plan.of("ipso"), (*ASKED, "cm3"), replicates)


def table_1(values: Mapping[Key, Array], *, batches: int) -> PaperTable:
    """Every published average beside averages of as many replications."""
    averages = {"Simulated": np.array([values[Key("ipso", _simulated(i))].mean(axis=0) for i in range(batches)])}
    if Key("ipso", WHOLE) in values:
        census = values[Key("ipso", WHOLE)].reshape(batches, paper.REPLICATIONS, -1)
        averages["Census"] = census.mean(axis=1)
    known = {"Simulated, CM2": ("0.985", AS_IN_THE_FIRST_ROW)}
    rows = []
    for name, *words in lines(paper.TABLE_1):
        for j, (measure, word) in enumerate(zip(paper.MEASURES, words, strict=True)):
            item = f"{name}, {measure}"
            expected, remark = known.get(item, (None, None))
            if name in averages:
                rows.append(compared(item, word, averages[name][:, j], expected=expected, remark=remark))
    caption = (
        f"IPSO: means of {batches} averages of {paper.REPLICATIONS} replications each; simulated data are drawn anew "
        "for each average."
    )
    return PaperTable("Table 1", rows, caption)


def _noise_ratio(studies: Mapping[str, Study]) -> float:
    """The variance of the first attribute's noise with four attributes over that with two, from the same draws."""
    spreads = []
    for m in (2, 4):
        plan = Plan.of("laplace_dp", columns=paper.ATTRIBUTES[:m], epsilon=1.0, bounds="data", fast=True)
        both = studies[version(m)].pair(plan, 0)
        spreads.append(float(np.var(both.y[:, 0] - both.x[:, 0])))
    return spreads[1] / spreads[0]


PAPER = Paper(
    name="general-metrics",
    citation=(
        "J. Domingo-Ferrer, K. Muralidhar and M. Bras-Amoros (2021). General confidentiality and utility metrics for "
        "privacy-preserving data publishing based on the permutation model. IEEE Transactions on Dependable and Secure "
        "Computing 18(5), 2506-2517."
    ),
    run=run,
)
