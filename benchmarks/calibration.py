"""Are the intruder's bets right as often as he says? Right bets, expected ones and claims, over many seeds.

    .venv/bin/python benchmarks/calibration.py [--part page] [--only additive] [--seeds 10]
        [--data ../shared/data] [--write FILE]

Every release is made with a seed of its own, its rows are shuffled, and the attack draws from a seed that has nothing
to do with the release's. One line for each masking: means over the seeds of the right bets, of what the intruder
expects, of the links that he claims at 5 % and of those that were wrong. A line is marked `*` where expected and right
differ by more than 5 % and more than three standard errors, or where more than 7 % of the claims are wrong and more
than three standard errors above 5 %. Lines of spec page 7 have the number of right bets that is to be reached.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

import rankveil as rv
from rankveil.intruder.finding import find_people
from rankveil.plans import Plan, Step
from rankveil.table import Table

TOLERANCE = 0.05
CLAIMS = 0.07
PROTOTYPE_SEEDS = 10


@dataclass(frozen=True)
class Case:
    """One masking of one table."""

    label: str
    table: Callable[[Path], pd.DataFrame]
    plan: Plan | Callable[[pd.DataFrame], Plan]
    reached: float | None = None
    """Right bets that the prototype had."""
    seeds: int | None = None
    alone: bool = True
    """Whether the likelihood alone is counted, without pairs of swaps and the low bits of numbers."""


@dataclass(eq=False)
class Result:
    """What the attacks found, a number for each seed."""

    right: list[float] = field(default_factory=list)
    expected: list[float] = field(default_factory=list)
    claims: list[float] = field(default_factory=list)
    wrong: list[float] = field(default_factory=list)
    people: int = 0
    seconds: float = 0.0

    @property
    def off(self) -> bool:
        """Whether expected and right differ by too much."""
        apart = np.subtract(self.expected, self.right)
        error = max(deviation(apart), float(np.sqrt(max(np.mean(self.right), 1.0) / len(self.right))))
        return abs(float(apart.mean())) > max(TOLERANCE * float(np.mean(self.right)), 3 * error)

    @property
    def false(self) -> bool:
        """Whether too many claims are wrong."""
        made = sum(self.claims)
        share = sum(self.wrong) / max(made, 1.0)
        return share > CLAIMS and share - 0.05 > 3 * np.sqrt(0.05 * 0.95 / max(made, 1.0))

    def few(self, reached: float | None) -> bool:
        """Whether fewer are right than the prototype had, by more than two standard errors of the difference.

        The prototype's number is a mean over ten seeds, so it varies too, as much as one of ours over ten seeds would.
        """
        if reached is None:
            return False
        spread = max(
            float(np.std(self.right, ddof=1)) if len(self.right) > 1 else 0.0, float(np.sqrt(min(reached, 10.0)))
        )
        error = spread * float(np.sqrt(1 / len(self.right) + 1 / PROTOTYPE_SEEDS))
        return float(np.mean(self.right)) < reached - 2 * error - 1e-6

    def line(self, case: Case) -> str:
        """A row of the table."""
        marks = "*" * (self.off or self.false or self.few(case.reached))
        wrong = sum(self.wrong) / max(sum(self.claims), 1e-9) if sum(self.claims) else 0.0
        goal = "" if case.reached is None else f"{case.reached:.0f}"
        return (
            f"| {case.label} | {self.people} | {np.mean(self.right):.1f} ± {deviation(self.right):.1f} | "
            f"{np.mean(self.expected):.1f} | {goal} | {np.mean(self.claims):.0f} | {100 * wrong:.1f} % | "
            f"{self.seconds / len(self.right):.1f} | {marks} |"
        )


def deviation(values: Sequence[float]) -> float:
    """The standard error of a mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def run(case: Case, data: Path, seeds: int) -> Result:
    """Mask, shuffle, attack, once for each seed."""
    original = case.table(data)
    steps = case.plan if isinstance(case.plan, Plan) else case.plan(original)
    made = Result()
    for seed in range(case.seeds or seeds):
        release = rv.mask(original, steps, seed=seed)
        order = np.arange(len(release.data)) if release.secret.order is None else release.secret.order
        rows = np.random.default_rng(1000 + seed).permutation(len(release.data))
        begun = time.perf_counter()
        found = find_people(
            Table(original),
            Table(release.data.iloc[rows].reset_index(drop=True)),
            manifest=release.manifest.content,
            truth=order[rows].astype(np.int64),
            without=("structure", "low_bits") if case.alone else (),
            seed=500_000 + seed,
        )
        made.seconds += time.perf_counter() - begun
        assert found.right is not None
        claimed = found.claimed
        made.people = found.count
        made.right.append(float(found.right.sum()))
        made.expected.append(found.expected)
        made.claims.append(float(claimed.sum()))
        made.wrong.append(float(claimed.sum() - found.right[claimed].sum()))
    return made


def census(m: int) -> Callable[[Path], pd.DataFrame]:
    """The first m columns of Census."""
    return lambda data: pd.read_csv(data / "census.csv").iloc[:, :m]


def demo(data: Path) -> pd.DataFrame:
    """The demo's people, without their names."""
    return rv.datasets.demo().to_pandas().drop(columns="PERSON")


def demo_numbers(data: Path) -> pd.DataFrame:
    """The numbers of the demo."""
    return demo(data)[["AGE", "HOURS", "INCOME", "TAX", "SAVINGS"]]


def cps(data: Path) -> pd.DataFrame:
    """5,000 records of CPS1988."""
    found = pd.read_csv(data / "peers" / "rdatasets" / "CPS1988.csv")
    return found.sample(5000, random_state=1).reset_index(drop=True)


def plan(*steps: tuple[str, dict[str, object]], columns: Sequence[str] | None = None) -> Plan:
    """A plan of steps on the same columns."""
    return Plan(tuple(Step(method, given, {}, columns) for method, given in steps))


def laplace_400(table: pd.DataFrame) -> Plan:
    """Laplace noise with bounds from 0 to the largest value of each column, for a study."""
    own = {name: {"lower": 0.0, "upper": float(table[name].max())} for name in table}
    return Plan((Step("laplace_dp", {"epsilon": 400.0, "fast": True}, own, list(table)),))


_NUMBERS = ["AGE", "HOURS", "INCOME", "TAX", "SAVINGS"]
_CATEGORIES = ["SEX", "REGION", "SECTOR", "EDUCATION"]
_PRAM = Plan((Step("pram", {"p": 0.3}, {}, _CATEGORIES), Step("additive_noise", {"alpha": 0.5}, {}, _NUMBERS)))


def of_the_page() -> list[Case]:
    """The lines of spec page 7."""
    noise = "additive_noise"
    lines: list[tuple[str, int, Plan, float]] = [
        ("additive 0.1", 3, plan((noise, {"alpha": 0.1})), 804),
        ("additive 0.1", 4, plan((noise, {"alpha": 0.1})), 971),
        ("additive 0.25", 4, plan((noise, {"alpha": 0.25})), 318),
        ("additive 0.25", 6, plan((noise, {"alpha": 0.25})), 654),
        ("additive 0.25", 13, plan((noise, {"alpha": 0.25})), 951),
        ("additive 0.5", 13, plan((noise, {"alpha": 0.5})), 455),
        ("additive 1.0", 13, plan((noise, {"alpha": 1.0})), 128),
        ("correlated 0.1", 13, plan(("correlated_noise", {"gamma": 0.1})), 985),
        ("correlated 0.5", 13, plan(("correlated_noise", {"gamma": 0.5})), 408),
        ("multiplicative 0.3", 4, plan(("multiplicative_noise", {"beta": 0.3})), 357),
        ("noise 0.1, round to 10,000", 4, plan((noise, {"alpha": 0.1}), ("round", {"decimals": -4})), 236),
        ("mdav 5", 13, plan(("mdav", {"k": 5})), 216),
        ("mdav 3 in blocks of 2", 13, plan(("mdav", {"k": 3, "block": 2})), 1080),
        ("shuffle", 13, plan(("shuffle", {})), 1),
        ("ipso", 13, plan(("ipso", {})), 1),
        ("permute", 13, plan(("permute", {})), 1),
    ]
    made = [Case(f"page: {label}, Census {m}", census(m), each, right) for label, m, each, right in lines]
    swap = plan(("rank_swap", {"p": 20.0, "scheme": "pairs"}))
    made.append(Case("page: rank_swap 20 without its pairs, Census 8", census(8), swap, 698))
    made.append(Case("page: laplace epsilon 400 from 0 to the largest, Census 13", census(13), laplace_400, 992))
    made.append(Case("page: PRAM 0.3 + noise 0.5, demo", demo, _PRAM, 308))
    return made


def of_the_catalogue() -> list[Case]:
    """Every random method, and chains of steps."""
    noise = "additive_noise"
    methods: list[tuple[str, Plan]] = [
        ("additive 0.1", plan((noise, {"alpha": 0.1}))),
        ("additive 0.5", plan((noise, {"alpha": 0.5}))),
        ("correlated 0.3", plan(("correlated_noise", {"gamma": 0.3}))),
        ("multiplicative 0.2", plan(("multiplicative_noise", {"beta": 0.2}))),
        ("hohne 0.3", plan(("hohne_noise", {"s": 0.3}))),
        ("laplace epsilon 100", plan(("laplace_dp", {"epsilon": 100.0, "bounds": "data", "fast": True}))),
        ("resample 1", plan(("resample", {"t": 1}))),
        ("distribution_distortion", plan(("distribution_distortion", {}))),
        ("microhybrid 10", plan(("microhybrid", {"k": 10}))),
        ("rank_swap 10", plan(("rank_swap", {"p": 10.0}))),
        ("rank_swap 10 in a window", plan(("rank_swap", {"p": 10.0, "scheme": "window"}))),
        ("copula_swap 20", plan(("copula_swap", {"p": 20.0}))),
        ("distance_swap 20", plan(("distance_swap", {"d": 20}))),
        ("shuffle", plan(("shuffle", {}))),
        ("ipso", plan(("ipso", {}))),
        ("permute", plan(("permute", {}))),
        ("mdav 3 + noise 0.1", plan(("mdav", {"k": 3}), (noise, {"alpha": 0.1}))),
        ("noise 0.2 + rescale", plan((noise, {"alpha": 0.2}), ("rescale", {}))),
        ("noise 0.2 + reverse_map", plan((noise, {"alpha": 0.2}), ("reverse_map", {}))),
        ("noise 0.1 + mdav 3", plan((noise, {"alpha": 0.1}), ("mdav", {"k": 3}))),
        ("noise 0.1 + resample 3", plan((noise, {"alpha": 0.1}), ("resample", {"t": 3}))),
    ]
    made = [Case(f"{label}, Census {m}", census(m), each) for m in (3, 6, 13) for label, each in methods]
    made += [
        Case(
            f"dp_microaggregation k 5 epsilon 1e5, Census {m}",
            census(m),
            plan(
                (
                    "dp_microaggregation",
                    {"k": 5, "epsilon": 1e5, "lower": 0.0, "upper": 500_000.0, "fast": True},
                )
            ),
        )
        for m in (3, 6, 13)
    ]
    coded = [
        ("pram 0.3 + noise 0.5", _PRAM),
        ("pram invariant 0.3", Plan((Step("pram", {"p": 0.3, "invariant": True}, {}, _CATEGORIES),))),
        ("randomized_response 0.7", Plan((Step("randomized_response", {"p": 0.7}, {}, _CATEGORIES),))),
        ("missing_swap", Plan((Step("missing_swap", {}, {}, None),))),
        ("pram 0.3, all else released", Plan((Step("pram", {"p": 0.3}, {}, _CATEGORIES),))),
        (
            "noise 0.2, bands of age, sample of half",
            Plan(
                (
                    Step(noise, {"alpha": 0.2}, {}, ["INCOME", "TAX", "SAVINGS"]),
                    Step("recode", {"width": 10.0}, {}, ["AGE", "HOURS"]),
                    Step("sample", {"share": 0.5}, {}, None),
                )
            ),
        ),
        (
            "noise 0.1 on age, then bands",
            Plan((Step(noise, {"alpha": 0.1}, {}, _NUMBERS), Step("recode", {"width": 10.0}, {}, ["AGE", "HOURS"]))),
        ),
        (
            "bands, noise 0.1, rounded",
            Plan(
                (
                    Step("recode", {"width": 10.0}, {}, ["AGE", "HOURS"]),
                    Step(noise, {"alpha": 0.1}, {}, ["INCOME", "TAX", "SAVINGS"]),
                    Step("round", {"decimals": -3}, {}, ["INCOME", "TAX", "SAVINGS"]),
                )
            ),
        ),
    ]
    made += [Case(f"{label}, demo", demo, each) for label, each in coded]
    made += [Case(f"{label}, demo's numbers", demo_numbers, each) for label, each in methods if label != "permute"]
    wage = ["wage", "education", "experience"]
    words = ["ethnicity", "smsa", "region", "parttime"]
    large = [
        ("additive 0.25", Plan((Step(noise, {"alpha": 0.25}, {}, wage),))),
        ("correlated 0.3", Plan((Step("correlated_noise", {"gamma": 0.3}, {}, wage),))),
        ("pram 0.3", Plan((Step("pram", {"p": 0.3}, {}, words),))),
        ("resample 1", Plan((Step("resample", {"t": 1}, {}, wage),))),
        ("rank_swap 10", Plan((Step("rank_swap", {"p": 10.0}, {}, wage),))),
        ("copula_swap 10", Plan((Step("copula_swap", {"p": 10.0}, {}, wage),))),
        ("mdav 3 + noise 0.1", Plan((Step("mdav", {"k": 3}, {}, wage), Step(noise, {"alpha": 0.1}, {}, wage)))),
    ]
    made += [Case(f"{label}, CPS1988", cps, each, seeds=3) for label, each in large]
    return made


_HEAD = "| release | people | right | expected | page 7 | claims | wrong | seconds | |\n" + "|---" * 9 + "|"


def main() -> None:
    """Print the table, and write it where asked."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="", help="cases whose label has these words, separated by commas")
    options.add_argument("--part", choices=("page", "catalogue", "both"), default="both")
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--data", type=Path, default=Path(os.environ.get("RANKVEIL_DATA", "../shared/data")))
    options.add_argument("--write", type=Path, help="a Markdown file for the table")
    given = options.parse_args()
    words = [word for word in given.only.split(",") if word]
    lines = [_HEAD]
    print(_HEAD)
    page = of_the_page() if given.part != "catalogue" else []
    for case in [*page, *(of_the_catalogue() if given.part != "page" else [])]:
        if words and not any(word in case.label for word in words):
            continue
        try:
            line = run(case, given.data, given.seeds).line(case)
        except FileNotFoundError as error:
            line = f"| {case.label} | skipped: {Path(str(error.filename)).name} is not there | | | | | | | |"
        print(line, flush=True)
        lines.append(line)
    if given.write is not None:
        given.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
