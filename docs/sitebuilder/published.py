"""Which published numbers are about which method and measure, taken from the pages of docs/reproduced."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sitebuilder.outline import ROOT
from sitebuilder.rendering import anchor_of

MOST = 8
"""Numbers shown on one page; the others are where the link leads."""


@dataclass(frozen=True)
class Number:
    """A published value beside the one that rankveil computes."""

    paper: str
    table: str
    item: str
    published: str
    computed: str
    agrees: str

    @property
    def link(self) -> str:
        """To its table, seen from a page of a method or measure."""
        return f"../../reproduced/{self.paper}.html#{anchor_of(self.table)}"


_ABOUT: dict[str, tuple[tuple[str, str, str], ...]] = {
    # id: (paper, table, item), each a regular expression
    "mdav": (
        ("equal-risk", "Table 1", r"^microaggregation"),
        ("probabilistic-loss", "Table 3", r"^(Micmul3|Mic3mul7), "),
    ),
    "rank_swap": (("equal-risk", "Table 1", r"^rank swapping"), ("probabilistic-loss", "Table 3", r"^Rankswap7, ")),
    "correlated_noise": (("equal-risk", "Table 1", r"^correlated noise"),),
    "hohne_noise": (("equal-risk", "Table 1", r"^multiplicative noise"),),
    "multiplicative_noise": (("masking-as-permutation", "Figure", r"^attribute |^multiplicative"),),
    "additive_noise": (
        ("probabilistic-loss", "Table 3", r"^Noise16, "),
        ("masking-as-permutation", "Figure 2", r"^additive noise"),
        ("general-metrics", "Figure 4", r"^alpha = "),
    ),
    "ipso": (("general-metrics", "Table 1", r"^Census"),),
    "laplace_dp": (("general-metrics", "Figure 3", r"^UM at epsilon"),),
    "rescale": (("probabilistic-loss", "Table 3", r"^Scal_"), ("probabilistic-loss", "Section 5", r"rescaled")),
    "reverse_map": (("new-directions", "Table 1", r", Z$"),),
    "spearman_risk": (("new-directions", "Section 2", r"Spearman"),),
    "permutation_level": (("masking-as-permutation", "Figure", r"."),),
    "rank_linkage": (("equal-risk", "Table 1", r": R$"),),
    "emd": (("equal-risk", "Table 1", r": earth mover's distance$"),),
    "propensity": (("equal-risk", "Table 1", r": propensity"),),
    "pil_mean": (("probabilistic-loss", "Table [23]", r"PIL\(m1\)"),),
    "pil_variance": (("probabilistic-loss", "Table [23]", r"PIL\(m2\)"),),
    "pil_covariance": (("probabilistic-loss", "Table [23]", r"PIL\(m11\)"),),
    "pil_correlation": (("probabilistic-loss", "Table [23]", r"PIL\(r\)"),),
    "pil_quantile": (("probabilistic-loss", "Table [23]", r"PIL\(Q\)"),),
    "pil": (("probabilistic-loss", "Table 2", r"^PIL with"),),
    **{f"il{k}": (("probabilistic-loss", "Table 2", rf"IL{k}, "),) for k in range(1, 6)},
    "il": (("probabilistic-loss", "Table 2", r"^PIL with IL,"),),
    **{name: (("general-metrics", "Table 1", rf", {name.upper()}$"),) for name in ("um", "cm1", "cm2", "cm3")},
}


def numbers() -> list[Number]:
    """Every row of every table of published and computed values."""
    found = []
    for page in sorted((ROOT / "docs" / "reproduced").glob("*.md")):
        table = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith("## "):
                table = line.removeprefix("## ")
            cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| ") else []
            if len(cells) == 5 and cells[0] not in ("item", "---"):
                item, published, computed, _, agrees = cells
                found.append(Number(page.stem, table, item, published, computed, agrees))
    return found


def about(name: str, known: list[Number]) -> list[Number]:
    """The published numbers of a method or measure."""
    return [
        number
        for paper, table, item in _ABOUT.get(name, ())
        for number in known
        if number.paper == paper and re.match(table, number.table) and re.search(item, number.item)
    ] + [number for number in known if number.paper == "agreement" and number.item == name]
