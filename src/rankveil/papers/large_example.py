"""The random example of new-directions: 1000 records, much and little noise, several times over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankveil.pairing import pair_tables
from rankveil.papers.compare import lines, replicated, statement
from rankveil.papers.maskings import drawn
from rankveil.papers.published import new_directions as paper
from rankveil.papers.result import Progress, Row
from rankveil.people.plaintext import PlaintextAttack, plaintext_attack
from rankveil.report.chart import Chart
from rankveil.report.figures import match_distances
from rankveil.seeds import CommonSeed, Seed

Array = NDArray[np.float64]

ATTRIBUTES = ("X1", "X2", "X3")
CENTRE = (100.0, 1000.0, 5000.0)
SPREAD = (10.0, 50.0, 200.0)
NOISE = (5.0, 25.0, 100.0)
SMALL_NOISE = (0.05, 0.25, 1.0)

RECORDS = 1000
DRAWS = 10_000
TEST_LEVEL = 0.05
_RARELY = 0.2
"""By chance about one release in twenty shows a claim at a false discovery rate of 0.05; many more are no chance."""


@dataclass(frozen=True, eq=False)
class Trials:
    """The attacks on every replicate, with much noise and with little."""

    large: tuple[PlaintextAttack, ...]
    small: tuple[PlaintextAttack, ...]

    @classmethod
    def of(cls, replicates: int, *, progress: Progress | None = None) -> Self:
        """Draw, mask and attack; replicate k always is the same."""
        large, small = [], []
        for k in range(replicates):
            original = _original(k)
            large.append(_attacked(original, NOISE, k, "large"))
            small.append(_attacked(original, SMALL_NOISE, k, "small"))
            if progress:
                progress(k + 1, replicates)
        return cls(tuple(large), tuple(small))

    def caption(self, noise: Sequence[float]) -> str:
        """What was simulated."""
        sds = ", ".join(f"{sd:g}" for sd in noise)
        return (
            f"{RECORDS} records, {DRAWS} random ones, normal noise with standard deviations {sds}: "
            f"means of {len(self.large)} replicates."
        )

    def figure_2(self) -> list[Row]:
        """Much noise: matches look like chance."""
        claims = _each(self.large, lambda one: one.claims)
        withstood = float(np.mean(claims == 0))
        apart = _each(self.large, lambda one: one.hellinger)
        ratio = _each(self.large, lambda one: _average(_real(one)) / _average(_random(one)))
        return [
            statement(
                "share of replicates that withstand the attack (a false discovery rate of 0.05 lets some seem to fail)",
                "withstands",
                withstood,
                ok=withstood >= 1 - _RARELY,
            ),
            statement(
                "records that can be claimed, median", "withstands", float(np.median(claims)), ok=np.median(claims) == 0
            ),
            statement(
                "Hellinger distance of X and A",
                "practically indistinguishable",
                round(float(apart.mean()), 4),
                sd=round(float(apart.std(ddof=1)), 4),
                ok=bool(apart.max() < 0.2),
            ),
            statement(
                "mean distance of X over that of A",
                "practically indistinguishable",
                _mean(ratio),
                sd=_sd(ratio),
                ok=bool(np.all(np.abs(ratio - 1) < 0.1)),
            ),
        ]

    def told_apart(self) -> str:
        """How often a test sees the little that even much noise leaves."""
        count = sum(one.ks_p < TEST_LEVEL for one in self.large)
        return (
            "figure 2: practically the same is not the same, since some links are right; the Kolmogorov-Smirnov test "
            f"at {TEST_LEVEL} tells real from random distances in {count} of {len(self.large)} replicates"
        )

    def table_6(self) -> list[Row]:
        """Little noise: the shares of every distance."""
        rows = []
        for distance, real, random in lines(paper.TABLE_6):
            for name, published, shares, size in (
                ("X", real, [_share(_real(one), distance) for one in self.small], RECORDS),
                ("A", random, [_share(_random(one), distance) for one in self.small], DRAWS),
            ):
                rows.append(replicated(f"distance {distance}, {name}", published, np.array(shares), size=size))
        return rows

    def figure_3(self, *, remark: str) -> list[Row]:
        """Little noise: matches are closer than chance, and right."""
        near = _each(self.small, lambda one: np.mean(one.matches.distance < 10))
        far = _each(self.small, lambda one: 1 - _upto(one, 14))
        claimed = _each(self.small, lambda one: one.claims / RECORDS)
        zero = [one.matches.distance == 0 for one in self.small]
        right = [_right(one)[at] for one, at in zip(self.small, zero, strict=True)]
        certain = float(np.mean(np.concatenate(right)))
        correct = _each(self.small, lambda one: np.mean(_right(one)))
        chance = _each(self.small, lambda one: _upto(one, 5))
        return [
            replicated("share of real distances under 10", "0.9990", near, size=RECORDS),
            statement(
                "share of random distances of 15 or more",
                "very little overlap",
                _mean(far),
                sd=_sd(far),
                ok=bool(far.min() >= 0.95),
            ),
            replicated(
                "chance of a distance of at most 5 for a random record", "0.0011", chance, size=DRAWS, remark=remark
            ),
            statement(
                "share of records that can be claimed",
                "fails to withstand the attack",
                _mean(claimed),
                sd=_sd(claimed),
                ok=bool(claimed.min() >= 0.95),
            ),
            statement(
                "share of right links",
                "very likely to be correct",
                _mean(correct),
                sd=_sd(correct),
                ok=bool(correct.min() >= 0.95),
            ),
            statement("share of right links among those at distance 0", "must be correct", certain, ok=certain == 1),
        ]


def distances(made: PlaintextAttack) -> Chart:
    """Observed against random match distances."""
    return match_distances(
        made.matches.distance,
        (made.null.values, made.null.shares),
        n=made.matches.distance.size,
        draws=made.null.draws,
        claims=made.claims,
        withstands=made.withstands,
    )


def _original(k: int) -> Any:
    import pyarrow as pa

    seed = Seed.of(k)
    drawn = zip(ATTRIBUTES, CENTRE, SPREAD, strict=True)
    return pa.table(
        {name: centre + sd * seed.stream("new-directions", name).normal(RECORDS) for name, centre, sd in drawn}
    )


def _attacked(original: Any, noise: Sequence[float], k: int, name: str) -> PlaintextAttack:
    # a seed of its own for each noise: otherwise the small noise would be the large one, shrunk
    seed = CommonSeed.of(f"{name}/{k}".encode())
    sds: dict[str, Any] = {f"sd.{attribute}": sd for attribute, sd in zip(ATTRIBUTES, noise, strict=True)}
    masked = drawn(original, "additive_noise", seed=seed, **sds)
    return plaintext_attack(pair_tables(original, masked, seed=seed), draws=DRAWS)


def _each(attacks: Sequence[PlaintextAttack], function: Callable[[PlaintextAttack], Any]) -> Array:
    return np.array([function(one) for one in attacks], dtype=np.float64)


def _real(one: PlaintextAttack) -> tuple[Array, Array]:
    return one.observed.values, one.observed.shares


def _random(one: PlaintextAttack) -> tuple[Array, Array]:
    return one.null.values, one.null.shares


def _average(distribution: tuple[Array, Array]) -> float:
    values, shares = distribution
    return float(np.dot(values, shares))


def _share(distribution: tuple[Array, Array], distance: str) -> float:
    """The share of a distance as Table 6 lists it: `7`, or `>=15` for all from there on."""
    values, shares = distribution
    at = values >= float(distance[2:]) if distance.startswith(">=") else values == float(distance)
    return float(shares[at].sum())


def _upto(one: PlaintextAttack, distance: float) -> float:
    return float(one.null.shares[one.null.values <= distance].sum())


def _right(one: PlaintextAttack) -> NDArray[np.bool_]:
    right = one.right
    assert right is not None  # these tables are matched row by row
    return right


def _mean(values: Array) -> float:
    return round(float(values.mean()), 6)


def _sd(values: Array) -> float:
    return round(float(values.std(ddof=1)), 6)
