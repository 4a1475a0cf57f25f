"""What the protector certifies: (d, v, f)-permuted privacy of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.auditing import decided_original, of_release
from rankveil.errors import ParameterError, listing
from rankveil.pairing import pair_tables, released_table
from rankveil.pairs import Pair
from rankveil.people.chance import whole
from rankveil.people.diversity import CRITERIA, MEANT, Criterion, Diversity
from rankveil.people.subject import choose
from rankveil.ranks import SortedColumn

Array = NDArray[np.float64]

CERTIFY_SCHEMA = "rankveil/certify/1"
F = Literal["mapping", "minimax", "euclidean"]
TRIVIAL = "trivial: every record is within distance 0: this says nothing"
"""What is said of a certificate whose every d is 0."""


@dataclass(eq=False)
class Certificate:
    """Whether a release satisfies (d, v, f)-permuted privacy, and the largest d and v that it does."""

    pair: Pair
    f: F
    criterion: Criterion
    record_d: Array
    """For every complete record and attribute the permutation distance of f(record)."""
    record_v: Array
    """And the diversity of the released values within that distance."""
    d: Array
    v: Array
    failing_rows: NDArray[np.intp]
    largest_d: Array
    largest_v: Array
    notes: list[str]

    @property
    def holds(self) -> bool:
        """Whether every record is as protected as asked."""
        return self.failing_rows.size == 0

    @property
    def trivial(self) -> bool:
        """Whether it says nothing: every d is 0, which any release has."""
        return not np.any(self.d)

    def record(self, row: int) -> dict[str, Any]:
        """Definition 1 for one original record (numbered from 1): its own d, and the diversity v within it."""
        found = np.flatnonzero(self.pair.table.original == row - 1)
        if found.size == 0:
            raise ParameterError(f"there is no complete original record {row}")
        return self._record(int(found[0]))

    def _record(self, i: int) -> dict[str, Any]:
        row = self.pair.table.original[i]
        return {
            "record": int(row) + 1,
            "d": [whole(each) for each in self.record_d[i]],
            "v": _written(self.record_v[i]),
            "ok": bool(row not in self._failing),
        }

    @cached_property
    def _failing(self) -> set[int]:
        return set(self.failing_rows.tolist())

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `rankveil certify`."""
        return {
            "schema": CERTIFY_SCHEMA,
            "holds": self.holds,
            "trivial": self.trivial,
            "records": len(self.pair.table),
            "attributes": list(self.pair.names),
            "mapping": self.pair.mapping,
            "rankings": self.pair.rankings,
            "f": self.f,
            "d": [whole(each) for each in self.d],
            "v": _written(self.v),
            "diversity": self.criterion,
            "failing": (self.failing_rows + 1).tolist(),
            "largest": {"d": [whole(each) for each in self.largest_d], "v": _written(self.largest_v)},
            "each": [self._record(i) for i in range(len(self.pair.table))],
            "notes": self.notes,
        }

    def __repr__(self) -> str:
        verdict = "holds" if self.holds else f"fails for {self.failing_rows.size} records"
        verdict = "trivial" if self.trivial and self.holds else verdict
        return f"Certificate(d={[whole(each) for each in self.d]}, {verdict})"

    def _repr_html_(self) -> str:
        from rankveil.report.notebook import shown

        failing = f"{self.failing_rows.size} of {len(self.pair.table)} records are less protected than asked."
        words = f"Permuted privacy holds for all {len(self.pair.table)} records." if self.holds else failing
        words = f"{TRIVIAL[0].upper()}{TRIVIAL[1:]}." if self.trivial and self.holds else words
        largest = zip(self.pair.names, self.d, self.v, self.largest_d, self.largest_v, strict=True)
        rows = [(name, *(None if each is None else float(each) for each in given)) for name, *given in largest]
        heads = ("attribute", "d asked", "v asked", "largest d", "v there")
        return shown(words, grids=[(f"diversity: {self.criterion}", heads, rows)])


def certify(
    original: Any,
    masked: Any,
    *,
    d: float | Sequence[float] | Mapping[str, float] | None = None,
    v: float | Sequence[float] | Mapping[str, float] | None = None,
    diversity: Criterion = "variance",
    f: F | None = None,
    **matching: Any,
) -> Certificate:
    """(d, v, f)-permuted privacy of a release (Definitions 1 and 2); without `d`, the largest that holds.

    `masked` may be what `rv.mask` or `Release.write` returned, with the mapping in its secret. f is the mapping where
    there is one, otherwise the subject's own choice (the record at the smallest maximum rank distance). With the
    mapping, ranks are those among all released values of a column; without it, among the records that are complete in
    all columns, as the subject sees them. `matching` says how the tables belong together, as in `audit`.
    """
    if diversity not in CRITERIA:
        raise ParameterError(f"diversity must be {' or '.join(CRITERIA)}, not {diversity!r}")
    masked, manifest = of_release(masked, None, matching, [])
    declared: dict[str, Any] = {name: matching.pop(name) for name in ("schema", "decimal") if name in matching}
    masked = released_table(masked, **declared)
    how = {"columns": matching.get("columns"), "manifest": manifest, "released": [masked]}
    both = pair_tables(decided_original(original, declared, **how), masked, **matching)
    notes = list(both.notes)
    f = f or ("mapping" if both.mapping != "none" else "minimax")
    if f == "mapping" and both.mapping == "none":
        raise ParameterError("f cannot be the mapping when there is none; choose minimax or euclidean")
    view, m = both.linkable, len(both.names)
    values = _released_values(both) if f == "mapping" else list(view.y.T)
    released = [SortedColumn(values[j], categories=both.categories[j]) for j in range(m)]
    nominal = [name for j, name in enumerate(both.names) if released[j].nominal]
    if nominal and diversity in MEANT:
        notes.append(f"{MEANT[diversity]} ({listing(nominal)})")
    ranks = np.column_stack([column.ranks[column.nearest(view.x[:, j])] for j, column in enumerate(released)])
    if f == "mapping":
        own = [column.ranks[np.searchsorted(column.distinct, view.y[:, j])] for j, column in enumerate(released)]
        record_d = np.abs(np.column_stack(own) - ranks)
        if any(each.size > len(view) for each in values):
            notes.append("ranks are those among all released values of a column, also of records that are not complete")
    else:
        record_d = np.abs(view.rank_y[choose(ranks, view.rank_y, f)] - ranks)
    columns = tuple(Diversity(column) for column in released)
    largest_d = record_d.min(axis=0)
    around = _around(columns, diversity, ranks, largest_d)
    worst = np.max if diversity == "closeness" else np.min
    largest_v = worst(around, axis=0)
    anything = 1.0 if diversity == "closeness" else 0.0
    wanted_d = largest_d if d is None else _per_attribute("d", d, both.names, otherwise=0.0)
    if v is None:
        wanted_v = largest_v if d is None else np.full(m, anything)
    else:
        wanted_v = _per_attribute("v", v, both.names, otherwise=anything)
    diverse = around if np.array_equal(wanted_d, largest_d) else _around(columns, diversity, ranks, wanted_d)
    # a limit computed from the same data must hold for it, also a variance too large for a number
    slack = np.where(np.isfinite(wanted_v), 1e-12 * np.abs(wanted_v), 0.0)
    enough = diverse <= wanted_v + slack if diversity == "closeness" else diverse >= wanted_v - slack
    ok = ((record_d >= wanted_d) & enough).all(axis=1)
    if f != "mapping":
        known = "not known" if both.mapping == "none" else "not used"
        notes.append(f"f is the subject's own ({f}): the mapping is {known}")
    return Certificate(
        pair=both,
        f=f,
        criterion=diversity,
        record_d=record_d,
        record_v=_around(columns, diversity, ranks, record_d),
        d=wanted_d,
        v=wanted_v,
        failing_rows=np.sort(view.original[~ok]),
        largest_d=largest_d,
        largest_v=largest_v,
        notes=notes,
    )


def _released_values(both: Pair) -> list[Array]:
    """All values of each masked column, also those of records that miss others or have no partner."""
    y = both.y if both.everything is None else both.everything[1]
    return [column[~np.isnan(column)] for column in y.T]


def _written(v: Array) -> list[float | None]:
    """Diversities for JSON, which has no infinite numbers: a variance that is too large is none."""
    return [whole(each) if np.isfinite(each) else None for each in v.tolist()]


def _around(columns: Sequence[Diversity], criterion: Criterion, ranks: Array, d: Array) -> Array:
    """For every record and attribute the diversity of the released values within d of its nearest one."""
    reach = np.broadcast_to(d, ranks.shape)
    return np.column_stack([column.of(criterion, ranks[:, j], reach[:, j]) for j, column in enumerate(columns)])


def _per_attribute(
    what: str,
    given: float | Sequence[float] | Mapping[str, float],
    names: Sequence[str],
    *,
    otherwise: float,
) -> Array:
    """One number for every attribute; `otherwise` for those that a mapping leaves out."""
    if isinstance(given, Mapping):
        strangers = [name for name in given if name not in names]
        if strangers:
            raise ParameterError(f"{what}: there is no attribute {listing(strangers)} among {listing(names, most=10)}")
        given = [given.get(name, otherwise) for name in names]
    try:
        values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        raise ParameterError(f"{what} must be numbers of 0 or more, not {given!r}") from None
    if values.size == 1:
        values = np.repeat(values, len(names))
    if values.shape != (len(names),):
        raise ParameterError(f"{what} needs one number for each of the {len(names)} attributes, not {values.size}")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ParameterError(f"{what} must be numbers of 0 or more")
    return values
