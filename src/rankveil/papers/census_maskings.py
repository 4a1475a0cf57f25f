"""The Census data masked in 109 ways, over which several studies compare measures.

The papers name the number and some of the cases (Domingo-Ferrer and Torra 2001), not the whole list; this grid has the
methods they describe, with the parameters they use as examples among them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rankveil.comparison.study import Study
from rankveil.errors import FileError
from rankveil.papers.maskings import read
from rankveil.plans import Plan
from rankveil.seeds import Seed
from rankveil.table import Table

FILE = "census.csv"
ATTRIBUTES = (
    *("AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "STATETAX", "TAXINC"),
    *("POTHVAL", "INTVAL", "PEARNVAL", "FICA", "WSALVAL", "ERNVAL"),
)
BY_RANK = "distortion, resampling"
"""The family of methods that draw new values and put them in by rank."""
SEED = 0


class Masking(NamedTuple):
    """One way to mask: its family, its name in the papers' manner, and what is done."""

    family: str
    name: str
    plan: Plan

    @property
    def random(self) -> bool:
        """Whether another replicate would come out differently."""
        return any(step.entry.random for step in self.plan.steps)


def maskings() -> tuple[Masking, ...]:
    """The 109 of them.

    >>> len(maskings()), maskings()[7].name, sum(each.random for each in maskings())
    (109, 'Noise16', 34)
    """
    return (
        *(Masking("noise", f"Noise{p}", Plan.of("additive_noise", alpha=p / 100)) for p in range(2, 21, 2)),
        Masking(BY_RANK, "Distr", Plan.of("distribution_distortion")),
        *(Masking(BY_RANK, f"Resamp{t}", Plan.of("resample", t=t)) for t in (1, 2, 3)),
        *(microaggregation(k, block=block) for block in (1, 2, 3, 4, 0) for k in range(3, 11)),
        *(_in_order(by, name, k) for by, name in (("first_component", "pcp"), ("z_sum", "z")) for k in range(3, 11)),
        *(Masking("rank swapping", f"Rankswap{p}", Plan.of("rank_swap", p=p, scheme="pairs")) for p in range(1, 21)),
        *(Masking("JPEG", f"JPEG{q}", Plan.of("lossy_compression", quality=q)) for q in range(5, 100, 5)),
    )


def microaggregation(k: int, *, block: int) -> Masking:
    """Groups of k by `block` attributes at a time, 0 for all: Mic3mul7, Micmul3."""
    return Masking("microaggregation", f"Mic{block or ''}mul{k}", Plan.of("mdav", k=k, block=block))


def _in_order(by: str, name: str, k: int) -> Masking:
    return Masking("microaggregation", f"Mic{name}{k}", Plan.of("mdav", k=k, by=by))


def census(data: Path | None) -> Table:
    """The 13 attributes of the Census data in that folder."""
    if data is None:
        raise FileError(f"the data of the study are not part of rankveil: give the folder with {FILE} by --data")
    return read(data / FILE, ATTRIBUTES)


def study_of(table: Table, *, target: str | None = None) -> Study:
    """A study of that table with a fixed seed."""
    return Study(table, table.usable(), seed=Seed.of(SEED), target=target, grid=False)
