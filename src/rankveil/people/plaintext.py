"""The known-plaintext attack of the paper, exactly as published: nearest records in ranks, tested against chance.

It asks whether a match is nearer than a record of independent values would come. That is not whether a link is right:
ties, dependent columns and published parameters break it in both directions. The verdict is in `people.intruder`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.cluster.places import Parts
from rankveil.errors import ParameterError, listing
from rankveil.linkage import LISTED, Linker, Matches
from rankveil.measures._records import share_interval
from rankveil.pairs import Pair
from rankveil.people.chance import (
    DRAWS,
    Chance,
    Distribution,
    Progress,
    by_chance,
    by_guessing,
    check_draws,
    hellinger,
    kolmogorov_smirnov,
)
from rankveil.people.linkages import Linkage, PairLinkage, PartsLinkage
from rankveil.seeds import Stream

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

FDR = 0.05
ALL_SUBSETS = 10
"""Up to this many attributes every subset is tried."""


@dataclass(eq=False)
class PlaintextAttack:
    """The links to the nearest records, and what the protector, who knows the mapping, sees in them."""

    linkage: Linkage
    p_values: Array
    null: Distribution
    observed: Distribution
    claimed: NDArray[np.bool_]
    subsets: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def pair(self) -> Pair | None:
        """The tables, when they are in memory."""
        return self.linkage.pair

    @property
    def matches(self) -> Matches:
        """The nearest released records of each subject."""
        return self.linkage.matches

    @property
    def claims(self) -> int:
        """How many links the intruder can claim at a false discovery rate of 0.05."""
        return int(self.claimed.sum())

    @property
    def right(self) -> NDArray[np.bool_] | None:
        """Which records have their own masked record as their only match; None without a mapping."""
        if self.linkage.mapping == "none":
            return None
        return np.asarray((self.matches.count == 1) & self.linkage.own)

    @property
    def claims_right(self) -> int | None:
        """How many of the claims are right."""
        return None if self.right is None else int((self.right & self.claimed).sum())

    @property
    def counts(self) -> dict[str, int | None]:
        """Records linked to their own masked record alone, to several, to another one."""
        multiple = int((self.matches.count > 1).sum())
        if self.right is None:
            return {"correct": None, "multiple": multiple, "wrong": None}
        correct = int(self.right.sum())
        return {"correct": correct, "multiple": multiple, "wrong": len(self.p_values) - correct - multiple}

    @property
    def withstands(self) -> bool:
        """Whether there is nothing that the intruder can claim, also with the best subset when subsets were tried."""
        return self.claims == 0 and (self.subsets is None or self.subsets["best"]["claims"] == 0)

    @property
    def hellinger(self) -> float:
        """Hellinger distance of the real records' match distances from those of random ones."""
        return hellinger(self.observed, self.null)[0]

    @property
    def ks_p(self) -> float:
        """p-value of the Kolmogorov-Smirnov test of the same."""
        return kolmogorov_smirnov(self.observed, self.null)

    def mean_distances(self) -> dict[str, float]:
        """The mean distance of the (listed) matches per attribute: which attributes moved least."""
        return self.linkage.mean_distances()

    def links(self) -> list[dict[str, Any]]:
        """Subjects with their matches, numbered from 1 as in the files."""
        return self.linkage.links(self.p_values)

    @property
    def intervals(self) -> dict[str, list[float] | None] | None:
        """Where the shares of all records lie (95 %), when some were drawn; None when everybody was asked."""
        n = len(self.p_values)
        if n == self.linkage.of:
            return None
        found = {**self.counts, "claims": self.claims, "claims_right": self.claims_right}
        return {name: None if count is None else _interval(count, of=n) for name, count in found.items()}

    def to_dict(self) -> dict[str, Any]:
        """Its part of the JSON document of `rankveil attack`."""
        several, none = self.linkage.matched()
        content: dict[str, Any] = {
            "rankings": self.linkage.rankings,
            "links": self.links(),
            "counts": self.counts,
            "matched_by_several": several,
            "matched_by_none": none,
            "mean_distance": self.mean_distances(),
            "draws": self.null.draws,
            "exhaustive": self.null.exhaustive,
            "fdr": FDR,
            "chance": {
                "attributes": list(self.linkage.names),
                "null": self.null.to_dict(),
                "observed": self.observed.to_dict(),
                "hellinger": self.hellinger,
                "ks_p": self.ks_p,
                "claims": self.claims,
                "claims_right": self.claims_right,
                "claims_right_by_guessing": by_guessing(self.claims_right, claims=self.claims, records=self.linkage.of),
                "withstands": self.withstands,
            },
        }
        if self.subsets is not None:
            content["subsets"] = self.subsets
        if self.pair is None:
            content |= {"subjects": len(self.p_values), "of": self.linkage.of, "interval": self.intervals}
        return content

    def __repr__(self) -> str:
        most = self.claims if self.subsets is None else max(self.claims, self.subsets["best"]["claims"])
        return f"PlaintextAttack({len(self.p_values)} records, {most} matches nearer than chance)"


def _interval(count: int, *, of: int) -> list[float]:
    """The interval of a share, from nothing where nothing was found, and to all where all were."""
    low, high = share_interval(count / of, of=of)
    return [0.0 if count == 0 else low, 1.0 if count == of else high]


def plaintext_in_parts(
    original: Any, masked: Any, parts: Parts, how: Mapping[str, Any], *, draws: int, said: Sequence[str]
) -> PlaintextAttack:
    """The attack on two Parquet tables by the workers of a cluster."""

    def random(records: int, attributes: int, rng: Stream) -> Chance:
        return Chance.of(records, attributes, draws=draws, rng=rng)

    found = parts.link(original, masked, how, random=random, draws=draws)
    null = Distribution.of(found.random, exhaustive=found.exhaustive)
    made = _judged(PartsLinkage(found), null, notes=[*said, *found.notes])
    _add_notes(made)
    return made


def plaintext_attack(
    both: Pair,
    *,
    draws: int = DRAWS,
    subsets: bool = False,
    links: Sequence[tuple[int, int]] | None = None,
    progress: Progress | None = None,
) -> PlaintextAttack:
    """Link every original record to the masked record(s) at the smallest permutation distance, and test the links.

    `links` (pairs of row numbers from 1) judges a linkage computed elsewhere in the same way.
    """
    check_draws(draws)
    view = both.linkable
    linker = Linker(view.rank_z)
    matches = linker.matches(view.rank_x) if links is None else _given(both, links)
    null = by_chance(view.rank_x, linker, draws=draws, rng=both.seed.stream("chance"), progress=progress)
    made = _judged(PairLinkage(both, matches), null, notes=both.notes)
    if subsets:
        made.subsets = _try_subsets(both, made.mean_distances(), draws=draws, progress=progress)
    _add_notes(made)
    return made


def _judged(linkage: Linkage, null: Distribution, *, notes: Sequence[str]) -> PlaintextAttack:
    """A linkage against chance."""
    distance = linkage.matches.distance
    p_values = null.at_most(distance)
    return PlaintextAttack(linkage, p_values, null, Distribution.of(distance), _claimed(p_values), notes=list(notes))


def _claimed(p_values: Array) -> NDArray[np.bool_]:
    """Benjamini and Hochberg (1995): the records whose links stand at the false discovery rate."""
    from scipy.stats import false_discovery_control

    adjusted = false_discovery_control(np.minimum(p_values, 1.0), method="bh")
    return np.asarray(adjusted <= FDR * (1 + 1e-12))


def _given(both: Pair, links: Sequence[tuple[int, int]]) -> Matches:
    """Links that somebody else computed, with their distances."""
    view = both.table
    places = []
    for rows in (view.original, view.masked):
        place = {int(row) + 1: i for i, row in enumerate(rows)}
        places.append(place)
    strangers = [link for link in links if link[0] not in places[0] or link[1] not in places[1]]
    if strangers:
        shown = listing(f"{a}-{b}" for a, b in strangers)
        named = "link {} names" if len(strangers) == 1 else "links {} name"
        raise ParameterError(f"{named.format(shown)} records that are not in the tables or not complete")
    partners: list[list[int]] = [[] for _ in range(len(view))]
    for a, b in links:
        partners[places[0][a]].append(places[1][b])
    unlinked = [int(view.original[i]) + 1 for i, rows in enumerate(partners) if not rows]
    if unlinked:
        records = "record" if len(unlinked) == 1 else "records"
        raise ParameterError(f"the links leave out original {records} {listing(unlinked)}; each needs one")
    listed = [np.unique(np.asarray(rows, dtype=np.intp)) for rows in partners]
    distance = np.array([np.abs(view.rank_x[i] - view.rank_z[rows]).max(axis=1).min() for i, rows in enumerate(listed)])
    rows, count = np.concatenate(listed), np.array([each.size for each in listed])
    starts = np.concatenate(([0], np.cumsum(count)))
    return Matches(distance, count, starts, rows, np.bincount(rows, minlength=len(view)))


def _try_subsets(both: Pair, means: Mapping[str, float], *, draws: int, progress: Progress | None) -> dict[str, Any]:
    """The stronger attack: link by subsets of attributes, corrected for how many were tried (Bonferroni)."""
    names = both.names
    m = len(names)
    if m <= ALL_SUBSETS:
        tried = [subset for size in range(1, m + 1) for subset in combinations(range(m), size)]
    else:
        order = sorted(range(m), key=lambda j: (means[names[j]], j))
        tried = [tuple(sorted(order[:size])) for size in range(1, m + 1)]
    # fewer draws could never give a p-value that survives the correction
    enough = max(draws, 40 * len(tried))
    results = []
    for number, subset in enumerate(tried, start=1):
        results.append(_attack_subset(both, subset, tried=len(tried), draws=enough))
        if progress:
            progress(number, len(tried))
    best = max(results, key=lambda one: (one["claims"], len(one["attributes"])))
    return {"tried": len(tried), "every_subset": m <= ALL_SUBSETS, "draws": enough, "best": best}


def _attack_subset(both: Pair, subset: tuple[int, ...], *, tried: int, draws: int) -> dict[str, Any]:
    view, columns = both.table, list(subset)
    rank_x, rank_z = view.rank_x[:, columns], view.rank_z[:, columns]
    linker = Linker(rank_z)
    distance = linker.distances(rank_x)
    name = ",".join(both.names[j] for j in subset)
    null = by_chance(rank_x, linker, draws=draws, rng=both.seed.stream("chance", "subset", name))
    claimed = _claimed(np.minimum(null.at_most(distance) * tried, 1.0))
    right = None
    if both.mapping != "none":
        found = linker.matches(rank_x[claimed]) if claimed.any() else None
        own = np.flatnonzero(claimed)
        right = 0 if found is None else int(np.sum((found.count == 1) & (found.first == own)))
    claims = int(claimed.sum())
    guessed = by_guessing(right, claims=claims, records=len(view))
    return {
        "attributes": [both.names[j] for j in subset],
        "claims": claims,
        "claims_right": right,
        # the best of all that were tried is shown
        "claims_right_by_guessing": None if guessed is None else min(guessed * tried, 1.0),
    }


def _add_notes(made: PlaintextAttack) -> None:
    n = len(made.p_values)
    if not made.null.exhaustive:
        least = int(np.ceil(n / (FDR * (1 + made.null.draws))))
        made.notes.append(
            f"chance is a seeded sample of {made.null.draws} random records; with that many, fewer than {least} "
            f"exposed records among {n} cannot be told from chance (more: --draws)"
            if least > 1
            else f"chance is a seeded sample of {made.null.draws} random records"
        )
    right = made.claims_right
    if right is not None and right < (1 - FDR) * made.claims:
        made.notes.append(
            f"{right} of {made.claims} claims are right: a claim says that a match is closer than a record of "
            "independent values finds one, which attributes that depend on each other make easy; not that it is right"
        )
    bins = hellinger(made.observed, made.null)[1]
    if bins:
        made.notes.append(f"the Hellinger distance compares the distances in {bins} bins of equal width")
    cut = int((made.matches.count > LISTED).sum())
    if cut and len(made.matches.rows) < made.matches.count.sum():
        made.notes.append(f"{cut} records have more than {LISTED} equally near matches: all counted, {LISTED} listed")
