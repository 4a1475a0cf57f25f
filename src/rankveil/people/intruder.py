"""The maximum-knowledge intruder: links original and masked records, and asks whether a match is better than chance."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import ParameterError, listing
from rankveil.linkage import LISTED, Linker, Matches
from rankveil.pairing import Pair, pair_tables
from rankveil.people.chance import (
    DRAWS,
    Distribution,
    Progress,
    by_chance,
    check_draws,
    hellinger,
    kolmogorov_smirnov,
    whole,
)

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

ATTACK_SCHEMA = "rankveil/attack/1"
FDR = 0.05
ALL_SUBSETS = 10
"""Up to this many attributes every subset is tried."""


@dataclass(eq=False)
class Attack:
    """What the intruder found, and what the protector, who knows the mapping, sees in it."""

    pair: Pair
    matches: Matches
    p_values: Array
    null: Distribution
    observed: Distribution
    claimed: NDArray[np.bool_]
    subsets: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def claims(self) -> int:
        """How many links the intruder can claim at a false discovery rate of 0.05."""
        return int(self.claimed.sum())

    @property
    def right(self) -> NDArray[np.bool_] | None:
        """Which records have their own masked record as their only match; None without a mapping."""
        if self.pair.mapping == "none":
            return None
        own = self.matches.first == np.arange(len(self.matches.count))
        return np.asarray((self.matches.count == 1) & own)

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
        rank_x, rank_z = self.pair.table.rank_x, self.pair.table.rank_z
        original = np.repeat(np.arange(len(self.matches.count)), np.diff(self.matches.starts))
        means = np.abs(rank_x[original] - rank_z[self.matches.rows]).mean(axis=0)
        return dict(zip(self.pair.names, means.tolist(), strict=True))

    def links(self) -> list[dict[str, Any]]:
        """Every original record with its matches, numbered from 1 as in the files."""
        view = self.pair.table
        made = []
        for i, rows in enumerate(self.matches.listed):
            apart = np.abs(view.rank_x[i] - view.rank_z[rows])
            link: dict[str, Any] = {
                "original": int(view.original[i]) + 1,
                "masked": (view.masked[rows] + 1).tolist(),
                "d": [[whole(d) for d in row] for row in apart.tolist()],
                "distance": whole(self.matches.distance[i]),
                "p_value": float(self.p_values[i]),
            }
            if self.matches.count[i] > rows.size:
                link["matches"] = int(self.matches.count[i])
            made.append(link)
        return made

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `rankveil attack`."""
        wanted = self.matches.wanted_by
        view = self.pair.table
        content = {
            "schema": ATTACK_SCHEMA,
            "records": len(view),
            "attributes": list(self.pair.names),
            "mapping": self.pair.mapping,
            "rankings": self.pair.rankings,
            "links": self.links(),
            "counts": self.counts,
            "matched_by_several": (np.sort(view.masked[wanted > 1]) + 1).tolist(),
            "matched_by_none": (np.sort(view.masked[wanted == 0]) + 1).tolist(),
            "mean_distance": self.mean_distances(),
            "null": self.null.to_dict(),
            "observed": self.observed.to_dict(),
            "draws": self.null.draws,
            "exhaustive": self.null.exhaustive,
            "hellinger": self.hellinger,
            "ks_p": self.ks_p,
            "fdr": FDR,
            "claims": self.claims,
            "claims_right": self.claims_right,
            "withstands": self.withstands,
            "notes": self.notes,
        }
        if self.subsets is not None:
            content["subsets"] = self.subsets
        return content

    def report(self, path: str | os.PathLike[str], *, command: str | None = None, public: bool = False) -> None:
        """Write the attack as one self-contained page, whole or not at all; a public one tells of no single record."""
        from rankveil.files import Staged, check_writable
        from rankveil.report.attacks import attack_page

        check_writable(path, table=False)
        null = (self.null.values, self.null.shares)
        page = attack_page(self.to_dict(), self.matches.distance, null, command=command, public=public)
        with Staged() as staged:
            staged.add(path, lambda file: file.write(page.encode("utf-8")))

    def __repr__(self) -> str:
        most = self.claims if self.subsets is None else max(self.claims, self.subsets["best"]["claims"])
        verdict = "withstands the attack" if self.withstands else f"{most} links can be claimed"
        return f"Attack({len(self.p_values)} records, {verdict})"

    def _repr_html_(self) -> str:
        from rankveil.report import figures
        from rankveil.report.attacks import attack_words
        from rankveil.report.notebook import shown

        content = self.to_dict()
        chart = figures.match_distances(
            self.matches.distance,
            (self.null.values, self.null.shares),
            n=len(self.p_values),
            draws=self.null.draws,
            claims=self.claims,
            withstands=self.claims == 0,
        )
        moved = list(self.mean_distances().items())
        return shown(attack_words(content), charts=[chart], grids=[("", ("attribute", "mean distance"), moved)])


def attack(
    original: Any,
    masked: Any,
    *,
    draws: int = DRAWS,
    subsets: bool = False,
    links: Sequence[tuple[int, int]] | None = None,
    progress: Progress | None = None,
    **matching: Any,
) -> Attack:
    """Link every original record to the masked record(s) at the smallest permutation distance, and test the links.

    `links` (pairs of row numbers from 1) judges a linkage computed elsewhere in the same way. `matching` says how the
    tables belong together: columns, key, mapping, secret, seed, and what is declared of the columns.
    """
    both = pair_tables(original, masked, **matching)
    return attack_pair(both, draws=draws, subsets=subsets, links=links, progress=progress)


def attack_pair(
    both: Pair,
    *,
    draws: int = DRAWS,
    subsets: bool = False,
    links: Sequence[tuple[int, int]] | None = None,
    progress: Progress | None = None,
) -> Attack:
    """`attack` on tables that are side by side already."""
    check_draws(draws)
    view = both.linkable
    linker = Linker(view.rank_z)
    matches = linker.matches(view.rank_x) if links is None else _given(both, links)
    null = by_chance(view.rank_x, linker, draws=draws, rng=both.seed.stream("chance"), progress=progress)
    p_values = null.at_most(matches.distance)
    made = Attack(
        pair=both,
        matches=matches,
        p_values=p_values,
        null=null,
        observed=Distribution.of(matches.distance),
        claimed=_claimed(p_values),
        notes=list(both.notes),
    )
    if subsets:
        made.subsets = _try_subsets(made, draws=draws, progress=progress)
    _add_notes(made)
    return made


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
        raise ParameterError(f"links {shown} name records that are not in the tables or not complete")
    partners: list[list[int]] = [[] for _ in range(len(view))]
    for a, b in links:
        partners[places[0][a]].append(places[1][b])
    unlinked = [int(view.original[i]) + 1 for i, rows in enumerate(partners) if not rows]
    if unlinked:
        raise ParameterError(f"the links leave out original records {listing(unlinked)}; each needs one")
    listed = [np.unique(np.asarray(rows, dtype=np.intp)) for rows in partners]
    distance = np.array([np.abs(view.rank_x[i] - view.rank_z[rows]).max(axis=1).min() for i, rows in enumerate(listed)])
    rows, count = np.concatenate(listed), np.array([each.size for each in listed])
    starts = np.concatenate(([0], np.cumsum(count)))
    return Matches(distance, count, starts, rows, np.bincount(rows, minlength=len(view)))


def _try_subsets(made: Attack, *, draws: int, progress: Progress | None) -> dict[str, Any]:
    """The stronger attack: link by subsets of attributes, corrected for how many were tried (Bonferroni)."""
    names = made.pair.names
    m = len(names)
    if m <= ALL_SUBSETS:
        tried = [subset for size in range(1, m + 1) for subset in combinations(range(m), size)]
    else:
        means = made.mean_distances()
        order = sorted(range(m), key=lambda j: (means[names[j]], j))
        tried = [tuple(sorted(order[:size])) for size in range(1, m + 1)]
    # fewer draws could never give a p-value that survives the correction
    enough = max(draws, 40 * len(tried))
    results = []
    for number, subset in enumerate(tried, start=1):
        results.append(_attack_subset(made.pair, subset, tried=len(tried), draws=enough))
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
    return {"attributes": [both.names[j] for j in subset], "claims": int(claimed.sum()), "claims_right": right}


def _add_notes(made: Attack) -> None:
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
