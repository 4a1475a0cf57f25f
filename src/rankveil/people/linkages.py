"""Which released records are nearest to the subjects: what an attack is judged by, wherever the tables are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankveil.linkage import Matches
from rankveil.pairs import Pair
from rankveil.people.chance import whole

if TYPE_CHECKING:
    from rankveil.cluster.attacks import Linked

Array = NDArray[np.float64]


class Linkage(Protocol):
    """Which released records are nearest to the subjects: all of them in memory, or some on a cluster."""

    @property
    def pair(self) -> Pair | None:
        """The tables, when they are in memory."""

    @property
    def matches(self) -> Matches:
        """The nearest records of each subject."""

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""

    @property
    def mapping(self) -> str:
        """How records belong together, as far as the protector knows."""

    @property
    def rankings(self) -> Mapping[str, str]:
        """By what the categories of a column are ordered."""

    @property
    def own(self) -> NDArray[np.bool_]:
        """Whether the lowest match of a subject is its own released record."""

    @property
    def of(self) -> int:
        """How many records there are, asked for or not."""

    def mean_distances(self) -> dict[str, float]:
        """The mean distance of the (listed) matches per attribute."""

    def links(self, p_values: Array) -> list[dict[str, Any]]:
        """Subjects with their matches, numbered from 1 as in the files."""

    def matched(self) -> tuple[list[int] | None, list[int] | None]:
        """Released records that several subjects match, and that none does; None where that is not known."""


@dataclass(frozen=True, eq=False)
class PairLinkage:
    """The linkage of two tables in memory."""

    pair: Pair
    matches: Matches

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return self.pair.names

    @property
    def mapping(self) -> str:
        """How records belong together."""
        return self.pair.mapping

    @property
    def rankings(self) -> Mapping[str, str]:
        """By what the categories of a column are ordered."""
        return self.pair.rankings

    @property
    def own(self) -> NDArray[np.bool_]:
        """Whether the lowest match of a record is its own released one."""
        return np.asarray(self.matches.first == np.arange(len(self.matches.count)))

    @property
    def of(self) -> int:
        """How many records there are."""
        return len(self.pair.table)

    def mean_distances(self) -> dict[str, float]:
        """The mean distance of the (listed) matches per attribute: which attributes moved least."""
        rank_x, rank_z = self.pair.table.rank_x, self.pair.table.rank_z
        original = np.repeat(np.arange(len(self.matches.count)), np.diff(self.matches.starts))
        means = np.abs(rank_x[original] - rank_z[self.matches.rows]).mean(axis=0)
        return dict(zip(self.pair.names, means.tolist(), strict=True))

    def links(self, p_values: Array) -> list[dict[str, Any]]:
        """Every original record with its matches, numbered from 1 as in the files."""
        view = self.pair.table
        made = []
        for i, rows in enumerate(self.matches.listed):
            apart = np.abs(view.rank_x[i] - view.rank_z[rows])
            masked = (view.masked[rows] + 1).tolist()
            distance, count = self.matches.distance[i], int(self.matches.count[i])
            made.append(_link(view.original[i], masked, apart, distance, p_values[i], count))
        return made

    def matched(self) -> tuple[list[int], list[int]]:
        """Released records that several original ones match, and that none does, numbered from 1."""
        wanted, masked = self.matches.wanted_by, self.pair.table.masked
        several, none = ((np.sort(masked[which]) + 1).tolist() for which in (wanted > 1, wanted == 0))
        return several, none


@dataclass(frozen=True, eq=False)
class PartsLinkage:
    """The linkage of some subjects, or of all, in tables that are read in parts."""

    found: Linked
    pair: None = None

    @property
    def matches(self) -> Matches:
        """The nearest records of each subject."""
        return self.found.matches

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return self.found.names

    @property
    def mapping(self) -> str:
        """How records belong together."""
        return self.found.mapping

    @property
    def rankings(self) -> Mapping[str, str]:
        """By what the categories of a column are ordered."""
        return self.found.rankings

    @property
    def own(self) -> NDArray[np.bool_]:
        """Whether the lowest match of a subject is its own released record."""
        return self.found.own

    @property
    def of(self) -> int:
        """How many records there are."""
        return self.found.of

    def mean_distances(self) -> dict[str, float]:
        """The mean distance of the (listed) matches per attribute."""
        return dict(zip(self.names, self.found.mean_apart.tolist(), strict=True))

    def links(self, p_values: Array) -> list[dict[str, Any]]:
        """The subjects that are shown with their matches, numbered from 1 as in the files."""
        found, matches = self.found, self.found.matches
        made = []
        for i in found.shown.tolist():
            here = slice(int(matches.starts[i]), int(matches.starts[i + 1]))
            masked = (found.released[here] + 1).tolist()
            distance, count = matches.distance[i], int(matches.count[i])
            made.append(_link(found.subjects[i], masked, found.apart[here], distance, p_values[i], count))
        return made

    def matched(self) -> tuple[list[int] | None, list[int] | None]:
        """Released records that several subjects match, and that none does, when everybody was asked."""
        several, none = self.found.several, self.found.none
        return None if several is None else (several + 1).tolist(), None if none is None else (none + 1).tolist()


def _link(
    original: int, masked: list[int], apart: Array, distance: float, p_value: float, count: int
) -> dict[str, Any]:
    """A subject (its row from 0) with the released records that are listed for it."""
    link: dict[str, Any] = {
        "original": int(original) + 1,
        "masked": masked,
        "d": [[whole(d) for d in row] for row in apart.tolist()],
        "distance": whole(distance),
        "p_value": float(p_value),
    }
    if count > len(masked):
        link["matches"] = count
    return link
