"""Figures 2 to 5 of general-metrics: UM, CM1 and CM2 of the Census data against the strength of a masking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankveil.papers.compare import printed, statement
from rankveil.papers.maskings import Job
from rankveil.papers.published import general_metrics as paper
from rankveil.papers.result import PaperTable, Row
from rankveil.plans import Plan
from rankveil.report.chart import Chart
from rankveil.report.figures import risk_utility_map, strength_curves

Array = NDArray[np.float64]

MEASURES = paper.MEASURES[:3]
ASKED = tuple(measure.lower() for measure in MEASURES)
"""What figures show: UM, CM1, CM2."""
ALPHAS = tuple(step / 20 for step in range(1, 21))
BETAS = ALPHAS[:-1]
"""0 < alpha <= 1 and 0 <= beta < 1."""
MANY = 100
"""Figure 2 is told up to this k, and beyond it apart: 1080 records then are five groups or fewer."""
SOME = 10.0
"""Figure 3 is told from this epsilon on: below, the noise leaves next to nothing of the data."""
ON_THE_WHOLE = 0.5
"""A measure goes with k when their rank correlation is at least this."""

ON_AVERAGE = (
    "figure 2: for a fixed k, CM2 rises and UM falls with the number of attributes on average over k, not at every k "
    "as the text says of all three measures; CM1 does at every k up to 100"
)
FEW_GROUPS = (
    "figure 2: with k of 200 and more, 1080 records form five groups or fewer, and how the versions with 2, 3 and 4 "
    "attributes compare is chance"
)
NOT_ABOVE = (
    "the text says that the utility of k-anonymity is above 0.9 for all k; with 4 attributes UM is at least 0.88 up to "
    "k = 50, then not monotone and as low as 0.66, 0.77 at k = 100 and 0 at k = 400; up to k = 100 it is above 0.9 "
    "with 2 attributes only"
)
NOT_MONOTONE = "figure 2: utility falls and confidentiality rises with k on the whole, not at every step"
ONLY_NOISE = (
    "figure 3: below epsilon = 10 the noise leaves next to nothing of the data, and the differences between 2, 3 and 4 "
    "attributes are chance: UM is near 0, and CM1 and CM2 are near what unrelated tables give, which is less with more "
    "attributes"
)


class Key(NamedTuple):
    """A masking of a version of the data."""

    method: str
    of: str
    strength: float = 0.0


def version(attributes: int) -> str:
    """The name of the Census data with the first attributes only."""
    return f"{attributes} attributes"


WHOLE = version(max(paper.VERSIONS))


def jobs(sizes: Sequence[int], *, replicates: int) -> dict[Key, Job]:
    """Every masking that the figures show."""
    made: dict[Key, Job] = {}

    def add(method: str, attributes: int, strength: float, **parameters: Any) -> None:
        plan = Plan.of(method, columns=paper.ATTRIBUTES[:attributes], **parameters)
        of = version(attributes)
        made[Key(method, of, strength)] = Job(of, plan, ASKED, replicates)

    for m in paper.VERSIONS:
        for k in sizes:
            add("mdav", m, k, k=k)
        for epsilon in paper.EPSILONS:
            add("laplace_dp", m, epsilon, epsilon=epsilon, bounds="data", fast=True)
    for alpha in ALPHAS:
        add("additive_noise", max(paper.VERSIONS), alpha, alpha=alpha)
    for beta in BETAS:
        add("multiplicative_noise", max(paper.VERSIONS), beta, beta=beta)
    return made


@dataclass(frozen=True, eq=False)
class Curves:
    """What the maskings gave, by version and strength."""

    values: Mapping[Key, Array]
    sizes: tuple[int, ...]
    noise_ratio: float
    """How much larger the variance of Laplace noise is with four attributes than with two."""

    def curve(self, method: str, of: str, measure: str, strengths: Sequence[float]) -> Array:
        """The means of a measure over the replicates, by strength."""
        j = MEASURES.index(measure)
        return np.array([self.values[Key(method, of, each)][:, j].mean() for each in strengths])

    def curves(self, method: str, measure: str, strengths: Sequence[float]) -> Array:
        """The same for every version of the data, a row each."""
        return np.array([self.curve(method, version(m), measure, strengths) for m in paper.VERSIONS])

    def tables(self) -> tuple[PaperTable, ...]:
        """The figures as tables, with what the text says of them."""
        added, multiplied = ("additive_noise", "alpha", ALPHAS), ("multiplicative_noise", "beta", BETAS)
        pairs = "k-anonymity beside differential privacy: shares of all pairs of a k and an epsilon."
        return (
            PaperTable("Figure 2", self._figure_2(), "MDAV microaggregation: the measures with 2, 3 and 4 attributes."),
            PaperTable("Figure 3", self._figure_3(), "Laplace noise: the measures with 2, 3 and 4 attributes, means."),
            PaperTable("Figures 2 and 3", self._section_6_1(), pairs),
            PaperTable("Figure 4", self._noise(*added), f"Additive noise, {WHOLE}, means."),
            PaperTable("Figure 5", self._noise(*multiplied), f"Multiplicative noise, {WHOLE}, means."),
            PaperTable("Figures 4 and 5", self._pronounced(), "Additive beside multiplicative noise, alpha = beta."),
        )

    def _figure_2(self) -> list[Row]:
        usual = np.array(self.sizes) <= MANY
        rows: list[Row] = []
        for measure in MEASURES:
            found = self.curves("mdav", measure, self.sizes)
            average = _by_attributes(f"{measure}, mean over k up to {MANY}", measure, found[:, usual].mean(axis=1))
            excuse = ON_AVERAGE if average.ok and measure != "CM1" else None
            for k, values in zip(self.sizes, found.T, strict=True):
                remark = excuse if k <= MANY else FEW_GROUPS
                rows.append(_by_attributes(f"{measure} at k = {k}", measure, values, remark=remark))
            rows.append(average)
            rows += [_trend(measure, m, self.sizes, each) for m, each in zip(paper.VERSIONS, found, strict=True)]
        return [*rows, *self._above()]

    def _above(self) -> list[Row]:
        """The utility of k-anonymity, which the text sees above 0.9."""
        utility = self.curves("mdav", "UM", self.sizes)
        at = dict(zip(self.sizes, utility[-1].tolist(), strict=True))
        low = min((value for k, value in at.items() if k <= 50), default=1.0)
        known = low >= 0.88 and abs(at.get(MANY, 0.0) - 0.77) < 0.005 and at.get(400, 1.0) < 0.005
        rows = []
        for m, values in zip(paper.VERSIONS, utility, strict=True):
            for first, last in ((2, 50), (51, 100), (101, 500)):
                some = [float(value) for k, value in zip(self.sizes, values, strict=True) if first <= k <= last]
                if some:
                    item = f"lowest UM with {m} attributes, k from {first} to {last}"
                    remark = NOT_ABOVE if known and min(some) <= 0.9 else None
                    rows.append(statement(item, "above 0.9", _digits(min(some)), ok=min(some) > 0.9, remark=remark))
        return rows

    def _figure_3(self) -> list[Row]:
        rows: list[Row] = []
        for measure in MEASURES:
            found = self.curves("laplace_dp", measure, paper.EPSILONS)
            for epsilon, values in zip(paper.EPSILONS, found.T, strict=True):
                drowned = np.all(values < 0.1) if measure == "UM" else np.all(values > 0.95)
                remark = ONLY_NOISE if epsilon < SOME and drowned else None
                rows.append(_by_attributes(f"{measure} at epsilon = {epsilon:g}", measure, values, remark=remark))
            told = [place for place, epsilon in enumerate(paper.EPSILONS) if epsilon >= 1]
            rows += [_with_epsilon(measure, m, each[told]) for m, each in zip(paper.VERSIONS, found, strict=True)]
        ratio = printed("variance of the noise with 4 attributes over that with 2 (footnote 1)", "4", self.noise_ratio)
        return [*rows, ratio]

    def _section_6_1(self) -> list[Row]:
        rows = []
        for measure in MEASURES:
            groups = self.curves("mdav", measure, self.sizes)
            noise = self.curves("laplace_dp", measure, paper.EPSILONS)
            said = "more utility" if measure == "UM" else "less confidentiality"
            for m, ours, theirs in zip(paper.VERSIONS, groups, noise, strict=True):
                apart = ours[:, None] - theirs[None, :]
                share = float(np.mean(apart > 0 if measure == "UM" else apart < 0))
                item = f"{measure} with {m} attributes: k-anonymity has {said}"
                rows.append(statement(item, "for most parameters", _digits(share), ok=share > 0.5))
        return rows

    def _noise(self, method: str, name: str, strengths: Sequence[float]) -> list[Row]:
        """Every strength beside the one before, the first beside no noise."""
        found = np.array([self.curve(method, WHOLE, measure, strengths) for measure in MEASURES])
        before = np.column_stack((np.array([1.0, 0.0, 0.0]), found[:, :-1]))
        return [
            statement(
                f"{name} = {strength:g}: UM, CM1, CM2",
                "less utility and more confidentiality than with less noise",
                [_digits(value) for value in now],
                ok=bool(now[0] < past[0] and now[1] > past[1] and now[2] > past[2]),
            )
            for strength, now, past in zip(strengths, found.T, before.T, strict=True)
        ]

    def _pronounced(self) -> list[Row]:
        rows = []
        for measure in MEASURES:
            added = self.curve("additive_noise", WHOLE, measure, BETAS)
            multiplied = self.curve("multiplicative_noise", WHOLE, measure, BETAS)
            more = added < multiplied if measure == "UM" else added > multiplied
            item = f"{measure}: share of strengths at which additive noise has the larger effect"
            rows.append(statement(item, "more pronounced", _digits(float(np.mean(more))), ok=bool(np.all(more))))
        return rows

    def charts(self) -> dict[str, Chart]:
        """The figures; a figure of three panels is three charts."""
        made = {f"Figure 2 {measure}": self._panel("mdav", "k", measure, self.sizes) for measure in MEASURES}
        made |= {
            f"Figure 3 {measure}": self._panel("laplace_dp", "epsilon", measure, paper.EPSILONS) for measure in MEASURES
        }
        return made | {
            "Figures 2 and 3": self._superposed(),
            "Figure 4": self._together("additive_noise", "alpha", ALPHAS),
            "Figure 5": self._together("multiplicative_noise", "beta", BETAS),
        }

    def _panel(self, method: str, strength: str, measure: str, strengths: Sequence[float]) -> Chart:
        found = self.curves(method, measure, strengths)
        told = np.array(strengths) <= MANY if method == "mdav" else np.array(strengths) >= SOME
        right = sum(_in_order(measure, values) for values in found[:, told].T)
        where = f"k up to {MANY}" if method == "mdav" else f"epsilon from {SOME:g} on"
        does = "falls" if measure == "UM" else "rises"
        return strength_curves(
            {version(m): (strengths, values) for m, values in zip(paper.VERSIONS, found, strict=True)},
            strength=strength,
            measure=measure,
            log_x=True,
            title=f"{measure} {does} with the number of attributes at {right} of {told.sum()} values of {where}",
            note="Census data.",
        )

    def _together(self, method: str, strength: str, strengths: Sequence[float]) -> Chart:
        curves = {measure: (strengths, self.curve(method, WHOLE, measure, strengths)) for measure in MEASURES}
        ends = ", ".join(f"{measure} {values[-1]:.2f}" for measure, (_, values) in curves.items())
        return strength_curves(
            curves,
            strength=strength,
            measure="measure",
            title=f"More noise, less utility and more confidentiality: at {strength} = {strengths[-1]:g} {ends}",
            note=f"Census data with {WHOLE}; means of replicates.",
        )

    def _superposed(self) -> Chart:
        """Figures 2 and 3 in one: utility against confidentiality."""
        both = (
            ("k-anonymity", "mdav", "k", self.sizes),
            ("differential privacy", "laplace_dp", "epsilon", paper.EPSILONS),
        )
        places = [
            (name, *self.values[Key(method, WHOLE, each)].mean(axis=0)[[0, 2]].tolist(), f"{strength} = {each:g}")
            for name, method, strength, strengths in both
            for each in strengths
        ]
        points: dict[str, list[dict[str, Any]]] = {}
        for name, useful, kept, label in places:
            beaten = any(u >= useful and c >= kept and (u, c) != (useful, kept) for _, u, c, _ in places)
            point = {"risk": kept, "utility": useful, "front": not beaten, "label": label}
            points.setdefault(name, []).append(point)
        return risk_utility_map(points, risk="CM2", utility="UM", risk_better="higher", utility_better="higher")


def _by_attributes(item: str, measure: str, values: Array, *, remark: str | None = None) -> Row:
    """A measure with 2, 3 and 4 attributes beside what the text says of their order."""
    ok = _in_order(measure, values)
    said = "falls with the number of attributes" if measure == "UM" else "rises with the number of attributes"
    return statement(item, said, [_digits(value) for value in values], ok=ok, remark=None if ok else remark)


def _in_order(measure: str, values: Array) -> bool:
    steps = np.diff(values)
    return bool(np.all(steps < 0 if measure == "UM" else steps > 0))


def _trend(measure: str, attributes: int, sizes: Sequence[int], values: Array) -> Row:
    """Whether a measure goes with k on the whole."""
    from scipy.stats import spearmanr

    sign = -1.0 if measure == "UM" else 1.0
    found = float(spearmanr(sizes, values).statistic)
    ok = sign * found >= ON_THE_WHOLE
    every = bool(np.all(sign * np.diff(values) >= 0))
    return statement(
        f"{measure} with {attributes} attributes, rank correlation with k",
        "falls as k grows" if measure == "UM" else "rises with k",
        _digits(found),
        ok=ok,
        remark=NOT_MONOTONE if ok and not every else None,
    )


def _with_epsilon(measure: str, attributes: int, values: Array) -> Row:
    sign = 1.0 if measure == "UM" else -1.0
    return statement(
        f"{measure} with {attributes} attributes, epsilon from 1 to 100",
        "rises with epsilon" if measure == "UM" else "falls as epsilon grows",
        [_digits(value) for value in values],
        ok=bool(np.all(sign * np.diff(values) > 0)),
    )


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
