"""The subject: how well is my own record protected in what was released?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankveil import dates
from rankveil.categories import Categories
from rankveil.deciding import decided_table
from rankveil.errors import ParameterError, TableError, listing, refuse_unknown
from rankveil.hierarchy import Hierarchy
from rankveil.linkage import Linker
from rankveil.manifest import Manifest, other_table
from rankveil.people.bands import labels_of
from rankveil.people.chance import DRAWS, EXHAUSTIVE, Distribution, Progress, by_chance, check_draws, whole
from rankveil.people.codes import as_coded, labels_by_code, meanings
from rankveil.people.diversity import CRITERIA, MEANT, Diversity
from rankveil.people.laws import Laws
from rankveil.people.recognition import Cells, Recogniser, Recognition, page_rules
from rankveil.ranks import SortedColumn, average_ranks
from rankveil.schema import require_columns
from rankveil.seeds import Seed
from rankveil.table import Table

if TYPE_CHECKING:
    from rankveil.report.subject import Released

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

VERIFY_SCHEMA = "rankveil/verify/1"
PLAUSIBLE = 0.05
"""A match that chance gives with at least this probability is plausible as chance."""
CHANCE = ("chance", "subject")
"""The name of the stream that draws a subject's random records."""
OF_NOMINAL = ("nominal columns are ranked by marginality in the release, not in the original", *MEANT.values())
"""What is said of columns whose categories have no order of their own."""
APPROXIMATE_WITH_GAPS = "the chance check is approximate: the released records that are left out have values too"
"""What is said of a pure permutation some of whose records are not complete."""
PAGE_TITLE = "How well is my record protected?"


@dataclass(eq=False)
class Verification:
    """What a subject learns from her own values and the released table alone."""

    names: tuple[str, ...]
    rankings: dict[str, str]
    """By what the categories of a column are ordered, for those that are no numbers."""
    nearest: tuple[Any, ...]
    ranks: Array
    record: int
    records: tuple[int, ...]
    d: Array
    diversity: dict[str, list[float | None]]
    distance: float
    p_value: float
    null: Distribution
    approximate: bool
    f: str
    recognition: Recognition
    notes: list[str]

    @property
    def probability(self) -> float | None:
        """How probable it is that the likeliest record is hers; None where that cannot be told."""
        return self.recognition.probability

    @property
    def plausible(self) -> bool:
        """Whether a match as near as this is plausible as chance."""
        return self.p_value >= PLAUSIBLE

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `rankveil verify`."""
        return {
            "schema": VERIFY_SCHEMA,
            "sentence": self.recognition.sentence,
            "probability": self.recognition.probability,
            "candidates": self.recognition.candidates,
            "likeliest": [row + 1 for row in self.recognition.likeliest],
            "record_probability": self.recognition.of(self.record - 1),
            "attributes": list(self.names),
            "rankings": self.rankings,
            "f": self.f,
            "nearest": list(self.nearest),
            "ranks": [whole(rank) for rank in self.ranks],
            "record": self.record,
            "records": list(self.records),
            "d": [whole(each) for each in self.d],
            "diversity": self.diversity,
            "chance": {
                "distance": whole(self.distance),
                "p_value": self.p_value,
                "plausible": self.plausible,
                "approximate": self.approximate,
                "draws": self.null.draws,
                "exhaustive": self.null.exhaustive,
                "null": self.null.to_dict(),
            },
            "notes": self.notes,
        }

    def __repr__(self) -> str:
        chance = "unknown" if self.probability is None else f"{self.probability:.3g}"
        return f"Verification(record {self.record}, d={[whole(each) for each in self.d]}, probability {chance})"

    def _repr_html_(self) -> str:
        from rankveil.report.notebook import shown

        words = (
            f"{self.recognition.sentence} Released record {self.record} is nearest, {self.distance:g} ranks away; a "
            f"random record comes as near with probability {self.p_value:.3g}."
        )
        rows = list(zip(self.names, self.nearest, self.ranks, self.d, strict=True))
        return shown(words, grids=[("", ("attribute", "nearest released", "its rank", "distance"), rows)])


def verify(
    masked: Any,
    record: Mapping[str, Any],
    *,
    f: str | int = "minimax",
    draws: int = DRAWS,
    seed: Seed | int = 0,
    manifest: Manifest | Mapping[str, Any] | None = None,
    permutation: bool = False,
    progress: Progress | None = None,
    **declared: Any,
) -> Verification:
    """Algorithms 2 and 3 for the columns that the subject gives: her nearest released values, distances, diversity.

    How probable it is that a record is hers follows from the manifest: see `Recognition`. Without one it is told only
    where her values stand in the release as she gave them.
    f is `minimax` (Algorithm 3), `euclidean`, or the number of a released record from 1. Her chance check is exact
    when the release is a pure permutation of the original (as the manifest tells, or `permutation`) and all its records
    have the columns she gives, otherwise approximate.
    Categories without an order are ranked by their marginality in the release, for she does not have the original; with
    a hierarchy she may give one that was not released, and the nearest in meaning stands for it. Where bands or groups
    were released, the one that contains her value stands for it.
    """
    refuse_unknown(declared)
    table = Table.of(masked, **declared)
    if not isinstance(record, Mapping) or not record:
        raise ParameterError("give at least one value by the name of its column, as in --record A=1,B=2")
    check_draws(draws)
    require_columns(record, table.names)
    table = decided_table(table, named=tuple(record), concluded=False, manifest=manifest)
    names = table.usable(tuple(record))
    notes: list[str] = []
    given = {name: _as_released(table, name, as_coded(table, name, record[name], notes), notes) for name in names}
    categories = [_categories(table, name, given[name]) for name in names]
    mine = np.array([_number(table, name, given[name], known) for name, known in zip(names, categories, strict=True)])
    released = np.column_stack([table.values(name) for name in names])
    complete = np.flatnonzero(~np.isnan(released).any(axis=1))
    if complete.size == 0:
        raise TableError("no released record has all the columns that were given")
    if complete.size < len(table):
        notes.append(f"{len(table) - complete.size} released records have missing values there and are left out")
    if manifest is not None and (other := other_table(manifest, table)) is not None:
        notes.append(other)
    laws = laws_of(manifest, table)
    permutation = permutation or (manifest is not None and _as_manifest(manifest).permutes(names))
    cells = [_cells(table, name, laws) for name in names]
    recognition = Recogniser(cells, laws).of(mine.tolist())
    y = released[complete]
    columns = [SortedColumn(y[:, j], categories=known) for j, known in enumerate(categories)]
    nominal = [name for j, name in enumerate(names) if columns[j].nominal]
    notes += [f"{note} ({listing(nominal)})" for note in OF_NOMINAL if nominal]
    where = [column.nearest(mine[j : j + 1]) for j, column in enumerate(columns)]
    target = np.array([column.ranks[at[0]] for column, at in zip(columns, where, strict=True)])
    nearest = tuple(
        _shown(table, name, column.distinct[at[0]]) for name, column, at in zip(names, columns, where, strict=True)
    )
    notes += meanings(table, names, nearest)
    rank_y = average_ranks(y)
    linker = Linker(rank_y)
    row, rows = _match(f, target, rank_y, linker, complete)
    d = np.abs(rank_y[row] - target)
    null = by_chance(rank_y, linker, draws=draws, rng=Seed.of(seed).stream(*CHANCE), progress=progress)
    whole_table = complete.size == len(table)
    if not permutation:
        notes.append("the chance check is approximate: the release is not known to be a pure permutation")
    elif not whole_table:  # which values stand in the records that are left out, masking has changed
        notes.append(APPROXIMATE_WITH_GAPS)
    if not null.exhaustive:
        notes.append(f"chance is a seeded sample of {null.draws} random records")
    return Verification(
        names=names,
        rankings={name: known.ranking for name, known in zip(names, categories, strict=True) if known is not None},
        nearest=nearest,
        ranks=target,
        record=int(complete[row]) + 1,
        records=tuple(int(each) + 1 for each in complete[rows]),
        d=d,
        diversity=_diversity(columns, target, d, notes),
        distance=float(d.max()),
        p_value=float(null.at_most(np.array([d.max()]))[0]),
        null=null,
        approximate=not permutation or not whole_table,
        f=str(f),
        recognition=recognition,
        notes=[*notes, *recognition.notes],
    )


def laws_of(manifest: Manifest | Mapping[str, Any] | None, table: Table) -> Laws | None:
    """What a manifest tells of the columns of a release."""
    return None if manifest is None else Laws(_as_manifest(manifest).content, table)


def _as_manifest(manifest: Manifest | Mapping[str, Any]) -> Manifest:
    return manifest if isinstance(manifest, Manifest) else Manifest(manifest)


def _cells(table: Table, name: str, laws: Laws | None) -> Cells:
    return Cells(name, table.values(name), bool(table.labels(name)), {} if laws is None else laws.law(name))


def subject_page(
    masked: Any,
    *,
    columns: Sequence[str] | None = None,
    title: str | None = None,
    manifest: Manifest | Mapping[str, Any] | None = None,
    permutation: bool = False,
    **declared: Any,
) -> str:
    """The check of `verify` as one HTML page for the subject's own browser, from the released table alone.

    For values given in the order of the page's columns its numbers are those of `verify`: where chance is sampled, the
    page holds the draws of verify's default seed.
    """
    from rankveil.report.subject import subject_document

    refuse_unknown(declared)
    table = Table.of(masked, **declared)
    table = decided_table(table, named=columns or (), concluded=columns is None, manifest=manifest)
    names = table.usable(columns)
    if not names:
        raise ParameterError("no column is named; leave columns out for all that can be ranked")
    for name in names:
        if np.isnan(table.values(name)).all():
            raise TableError(f"column {name}: all its cells are missing; leave it out")
    laws = laws_of(manifest, table)
    permutation = permutation or (manifest is not None and _as_manifest(manifest).permutes(names))
    sampled = len(table) ** len(names) > EXHAUSTIVE
    stream = Seed.of(0).stream(*CHANCE)
    return subject_document(
        title=PAGE_TITLE if title is None else title,
        columns=[replace(_released(table, name), law=_cells(table, name, laws).law) for name in names],
        # a subset of the columns uses the first of them, as verify draws column by column
        uniform=[stream.random(DRAWS) for _ in names] if sampled else [],
        rules={
            "schema": VERIFY_SCHEMA,
            "draws": DRAWS,
            "exhaustive": EXHAUSTIVE,
            "plausible": PLAUSIBLE,
            "approximate": not permutation,
            "decimal": table.decimal,
            "of_nominal": OF_NOMINAL,
            "approximate_with_gaps": APPROXIMATE_WITH_GAPS,
            "recognition": page_rules(laws),
        },
    )


def _released(table: Table, name: str) -> Released:
    """A column for the page, with what its check needs to know of its categories, or of its dates and times."""
    from rankveil.report.subject import Released

    values, levels, moments = table.values(name), table.labels(name), table.cells(name).temporal
    if levels:
        known = table.categories(name)
        tree = known.hierarchy
        others, within = _not_released(table, name, tree)
        apart = None if tree is None else tree.distances([*levels, *others], levels)
        means = labels_by_code(table, name)
        return Released(name, values, levels, known.ranking, not known.ordered, others, within, apart, means=means)
    if moments is None or pa.types.is_duration(moments):
        return Released(name, values)
    ends = tuple(str(dates.written(float(end), moments)) for end in (np.nanmin(values), np.nanmax(values)))
    return Released(name, values, clock=dates.clock(moments), ends=(ends[0], ends[1]))


def _not_released(table: Table, name: str, tree: Hierarchy | None) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Categories of the hierarchy that were not released, and the place of the level that contains each, or -1."""
    levels = {label: place for place, label in enumerate(table.labels(name))}
    found = {
        leaf: labels_of(leaf, tuple(levels), hierarchy=tree, decimal=table.decimal)
        for leaf in ([] if tree is None else tree.leaves)
        if leaf not in levels
    }
    # of those in several bands verify would ask which is meant, so that she chooses the band herself
    placed = {leaf: levels[labels[0]] if labels else -1 for leaf, labels in found.items() if len(labels) < 2}
    return tuple(placed), tuple(placed.values())


def _as_released(table: Table, name: str, value: Any, notes: list[str]) -> Any:
    """Her value as the release has it: where bands or groups were released, the one that contains it."""
    labels = table.labels(name)
    if not labels or str(value) in labels:
        return value
    hierarchy = (table.schema.hierarchies or {}).get(name)
    found = labels_of(str(value).strip(), labels, hierarchy=hierarchy, decimal=table.decimal)
    if len(found) > 1:
        raise ParameterError(f"column {name}: {value!r} lies in {listing(found)}; give the one that is meant")
    if found:
        notes.append(f"column {name}: the value given lies in {found[0]}, which was released")
    return found[0] if found else value


def _categories(table: Table, name: str, value: Any) -> Categories | None:
    """What the values of a column are places of, her own too where only its hierarchy knows it; None for numbers."""
    if not table.labels(name):
        return None
    known = table.categories(name)
    if str(value) in known.labels or known.hierarchy is None or str(value) not in known.hierarchy:
        return known
    return known.extended([str(value)])


def _number(table: Table, name: str, value: Any, categories: Categories | None) -> float:
    if categories is not None:
        if str(value) not in categories.labels:
            means = labels_by_code(table, name)
            words = [f"{label} ({means[label]})" if label in means else label for label in categories.labels]
            known = f"among its categories {listing(words, most=10)}"
            if categories.hierarchy is not None:
                known += f", nor in its hierarchy{categories.hierarchy.suggestion(str(value))}"
            raise ParameterError(f"column {name}: {value!r} is not {known}")
        return float(categories.values[categories.labels.index(str(value))])
    moments = table.cells(name).temporal
    if moments is not None:
        moment = dates.parsed(value, moments, layout=table.cells(name).layout)
        if moment is None:
            raise ParameterError(f"column {name}: {value!r} is not a date or time such as {_example(table, name)}")
        return moment
    text = value.replace(",", ".") if isinstance(value, str) and table.decimal == "," else value
    try:
        number = float(text)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ParameterError(f"column {name}: {value!r} is not a number")
    return number


def _example(table: Table, name: str) -> Any:
    values = table.values(name)
    return _shown(table, name, float(values[~np.isnan(values)][0]))


def _shown(table: Table, name: str, value: float) -> Any:
    levels, cells = table.labels(name), table.cells(name)
    if levels:
        return levels[int(value)]
    if cells.temporal is not None:
        return dates.written(value, cells.temporal)
    return whole(value) if cells.integral else float(value)


def _match(f: str | int, target: Array, rank_y: Array, linker: Linker, complete: Rows) -> tuple[int, Rows]:
    """The subject's f(x): one released record, and all that are equally good."""
    if f == "minimax":
        return int(linker.best(target[None, :])[0]), linker.matches(target[None, :], most=None).rows
    if f == "euclidean":
        squares = np.sum((rank_y - target) ** 2, axis=1)
        found = np.flatnonzero(squares == squares.min())
        return int(found[0]), found
    if not str(f).removeprefix("-").isdecimal():
        raise ParameterError(f"f must be minimax, euclidean or the number of a released record, not {f!r}")
    wanted = int(f) - 1
    place = np.flatnonzero(complete == wanted)
    if place.size == 0:
        raise ParameterError(f"there is no complete released record {wanted + 1}")
    return int(place[0]), place


def _lowest(rows: Rows, squares: Array) -> int:
    return int(rows[squares == squares.min()].min())


def choose(targets: Array, rank_y: Array, f: str) -> Rows:
    """The subject's f for every record of a table: the released row that each would take as hers."""
    if f == "minimax":
        return Linker(rank_y).best(targets)
    if f == "euclidean":
        from scipy.spatial import cKDTree

        different, rows = np.unique(rank_y, axis=0, return_index=True)
        tree = cKDTree(different)
        near, _ = tree.query(targets, k=1)
        # the lowest row of the equally near, as in `verify`; squares of ranks are exact, their roots are not
        return np.array(
            [
                _lowest(rows[some], np.sum((different[some] - target) ** 2, axis=1))
                for target, some in zip(targets, tree.query_ball_point(targets, near * (1 + 1e-9)), strict=True)
            ],
            dtype=np.intp,
        )
    raise ParameterError(f"f must be mapping, minimax or euclidean, not {f!r}")


def _diversity(columns: list[SortedColumn], target: Array, d: Array, notes: list[str]) -> dict[str, list[float | None]]:
    made: dict[str, list[float | None]] = {}
    for criterion in CRITERIA:
        row: list[float | None] = []
        for j, column in enumerate(columns):
            value = float(Diversity(column).of(criterion, target[j : j + 1], d[j : j + 1])[0])
            if not np.isfinite(value):
                notes.append(f"{criterion}: too large to be written as a number")
            shown = whole(value) if criterion == "distinct" else value
            row.append(shown if np.isfinite(value) else None)
        made[criterion] = row
    return made
