"""The maximum-knowledge intruder: links original and masked records, and asks whether a match is better than chance."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.auditing import loaded
from rankveil.cluster.places import Parts, place_for
from rankveil.errors import ParameterError, listing
from rankveil.linkage import LISTED, Linker, Matches
from rankveil.measures._records import share_interval
from rankveil.pairing import pair_tables
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

if TYPE_CHECKING:
    from rankveil.cluster.engine import Engine

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

ATTACK_SCHEMA = "rankveil/attack/1"
FDR = 0.05
ALL_SUBSETS = 10
"""Up to this many attributes every subset is tried."""


@dataclass(eq=False)
class Attack:
    """What the intruder found, and what the protector, who knows the mapping, sees in it."""

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
        """The JSON document of `rankveil attack`."""
        several, none = self.linkage.matched()
        content = {
            "schema": ATTACK_SCHEMA,
            "records": self.linkage.of,
            "attributes": list(self.linkage.names),
            "mapping": self.linkage.mapping,
            "rankings": self.linkage.rankings,
            "links": self.links(),
            "counts": self.counts,
            "matched_by_several": several,
            "matched_by_none": none,
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
            "claims_right_by_guessing": by_guessing(self.claims_right, claims=self.claims, records=self.linkage.of),
            "withstands": self.withstands,
            "notes": self.notes,
        }
        if self.subsets is not None:
            content["subsets"] = self.subsets
        if self.pair is None:
            content |= {"subjects": len(self.p_values), "of": self.linkage.of, "interval": self.intervals}
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
    cluster: str | Engine | None = None,
    scratch: str | os.PathLike[str] | None = None,
    memory: str | int | None = None,
    subjects: int | str | None = None,
    resume: bool = False,
    **matching: Any,
) -> Attack:
    """Link every original record to the masked record(s) at the smallest permutation distance, and test the links.

    `links` (pairs of row numbers from 1) judges a linkage computed elsewhere in the same way. `matching` says how the
    tables belong together: columns, key, mapping, secret, seed, and what is declared of the columns.

    Tables may be given by the paths of their files. Parquet ones of any size are attacked in parts by the workers of a
    `cluster` ("local", "local:4", "tcp://host:8786"); those that would not fit in memory are by local ones. Then so
    many `subjects` ("all", or 10,000 unless given) are drawn by the seed, and each is linked with all masked records.
    `scratch`, `memory` and `resume` are as in `audit`.
    """
    check_draws(draws)
    how = {"subsets": subsets or None, "links": links, **matching}
    place, said = place_for(original, masked, cluster, how, done="attacked")
    if place is not None:
        parts = Parts(place, scratch=scratch, memory=memory, subjects=subjects, resume=resume, progress=progress)
        return _in_parts(original, masked, parts, how, draws=draws, said=said)
    original, masked = (loaded(table, schema=matching.get("schema")) for table in (original, masked))
    both = pair_tables(original, masked, **matching)
    made = attack_pair(both, draws=draws, subsets=subsets, links=links, progress=progress)
    made.notes += said
    return made


def _interval(count: int, *, of: int) -> list[float]:
    """The interval of a share, from nothing where nothing was found, and to all where all were."""
    low, high = share_interval(count / of, of=of)
    return [0.0 if count == 0 else low, 1.0 if count == of else high]


def _in_parts(
    original: Any, masked: Any, parts: Parts, how: Mapping[str, Any], *, draws: int, said: Sequence[str]
) -> Attack:
    """The attack on two Parquet tables by the workers of a cluster."""

    def random(records: int, attributes: int, rng: Stream) -> Chance:
        return Chance.of(records, attributes, draws=draws, rng=rng)

    found = parts.link(original, masked, how, random=random, draws=draws)
    null = Distribution.of(found.random, exhaustive=found.exhaustive)
    made = _judged(PartsLinkage(found), null, notes=[*said, *found.notes])
    _add_notes(made)
    return made


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
    made = _judged(PairLinkage(both, matches), null, notes=both.notes)
    if subsets:
        made.subsets = _try_subsets(both, made.mean_distances(), draws=draws, progress=progress)
    _add_notes(made)
    return made


def _judged(linkage: Linkage, null: Distribution, *, notes: Sequence[str]) -> Attack:
    """A linkage against chance."""
    distance = linkage.matches.distance
    p_values = null.at_most(distance)
    return Attack(linkage, p_values, null, Distribution.of(distance), _claimed(p_values), notes=list(notes))


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
