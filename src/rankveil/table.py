"""Data in and out of memory: columns, their kinds and roles, missing values.

A `Table` wraps the frame it was given (pandas, polars, pyarrow) and reads its columns as numbers when asked;
what it hands back is the same kind of frame, in the same column order, with every cell that was not masked as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil import categories as categorising
from rankveil import columns as reading
from rankveil import metadata, pruning
from rankveil.categories import Categories
from rankveil.errors import ParameterError, TableError, listing, row_listing
from rankveil.hierarchy import Hierarchy
from rankveil.restoring import in_no_order, put_back
from rankveil.roles import guess_role, named_like_identifier
from rankveil.schema import NAMING_ROLES, UNMASKED_ROLES, Kind, Role, Schema, listed, require_columns

Array = NDArray[np.float64]

_LEFT_OUT = "what is said of the table beside its columns and cells ({}) is left out: it may tell of the original"
HEAVIEST = 1e100
"""The largest weight: the sum of any number of such, and its square, is a number."""


@dataclass(frozen=True)
class Column:
    """What is known of a column without its values."""

    name: str
    kind: Kind
    role: Role
    kind_given: bool
    role_given: bool
    levels: tuple[str, ...]
    missing: int
    why: str
    """Why a column that looks like numbers is not taken as numeric, or the empty text."""
    looks_like_identifier: bool


class Table:
    """A frame whose columns have kinds and roles, and whose numbers can be read and put back."""

    start = 0
    """The row that it begins with, where it is a part of a larger table."""

    def __init__(self, data: Any, *, schema: Schema | None = None, decimal: str = ".") -> None:
        self.frame = _eager(data)
        self.schema = Schema.of(schema)
        self.decimal = decimal
        self.names: tuple[str, ...] = tuple(self.frame.columns)
        self.schema.check(self.names)
        self._values: dict[str, Array] = {}
        self._categories: dict[str, Categories] = {}
        self._cells: dict[str, reading.Cells] = {}

    @classmethod
    def of(cls, data: Any, *, schema: Schema | None = None, decimal: str | None = None) -> Table:
        """`data` itself when it is a Table already, which no other declaration may contradict; otherwise a new one."""
        if not isinstance(data, cls):
            return cls(data, schema=schema, decimal=decimal or ".")
        if schema not in (None, data.schema) or decimal not in (None, data.decimal):
            raise ParameterError("a Table has its own schema and decimal mark; declare them where it is made")
        return data

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def records(self) -> int:
        """How many records there are, those of all parts where it is a part of a larger table."""
        return len(self)

    @property
    def native(self) -> Any:
        """The frame as it was given."""
        return self.frame.to_native()

    @property
    def has_row_labels(self) -> bool:
        """Whether the frame (pandas) has an index that is more than row numbers: it passes through like a column."""
        index = nw.maybe_get_index(self.frame)
        if index is None:
            return False
        row_numbers = self.frame.implementation.to_native_namespace().RangeIndex(len(self))
        return not index.equals(row_numbers)

    def cells(self, name: str) -> reading.Cells:
        """The cells of a column, read once."""
        if name not in self._cells:
            require_columns([name], self.names)
            self._cells[name] = reading.read(
                self.frame.get_column(name),
                name=name,
                missing=self.schema.missing,
                decimal=self.decimal,
                kind=(self.schema.kinds or {}).get(name) or ("nominal" if self._only_grouped(name) else None),
                levels=(self.schema.levels or {}).get(name),
                described=self._described(name),
            )
        return self._cells[name]

    def with_cells(self, cells: Mapping[str, reading.Cells]) -> Table:
        """The same table with some columns read otherwise."""
        made = Table(self.frame.to_native(), schema=self.schema, decimal=self.decimal)
        made._cells = {**self._cells, **cells}
        return made

    def _only_grouped(self, name: str) -> bool:
        """Whether a column was given a hierarchy and no order."""
        return name in self._hierarchies and name not in (self.schema.levels or {})

    def _described(self, name: str) -> metadata.Described | None:
        """What the file of an Arrow table says of a column beyond its values."""
        native = self.native
        return metadata.read(native.schema.field(name)) if isinstance(native, pa.Table) else None

    @cached_property
    def columns(self) -> dict[str, Column]:
        """What is known of every column, by name."""
        return {name: self._describe(name) for name in self.names}

    def _describe(self, name: str) -> Column:
        cells = self.cells(name)
        kind_given, role_given = (self.schema.kinds or {}).get(name), (self.schema.roles or {}).get(name)
        distinct = cells.distinct() if cells.kind != "numeric" else 0  # counting takes as long as masking
        unique_text = cells.kind == "nominal" and cells.is_text and 1 < distinct == len(self) - cells.missing_count
        guess = guess_role(name, cells, distinct=distinct, unique_text=unique_text)
        return Column(
            name=name,
            kind=cells.kind,
            role=cast(Role, role_given or guess),
            kind_given=kind_given is not None or name in (self.schema.levels or {}) or name in self._hierarchies,
            role_given=role_given is not None,
            levels=cells.levels,
            missing=cells.missing_count,
            why=cells.why,
            looks_like_identifier=named_like_identifier(name) or unique_text,
        )

    @property
    def _hierarchies(self) -> Mapping[str, Hierarchy]:
        return self.schema.hierarchies or {}

    def values(self, name: str) -> Array:
        """The column as numbers (places of the categories unless numeric), missing cells as NaN; not to be changed.

        Each NaN carries the number of its missing code, so n/a and an empty cell can be told apart.
        """
        if name not in self._values:
            cells = self.cells(name)
            values = self.codes(name, self.categories(name)) if cells.kind == "nominal" else cells.numbers()
            infinite = np.flatnonzero(np.isinf(values))
            if infinite.size:
                rows = row_listing(infinite + 1 + self.start)
                raise TableError(f"column {name}: infinite values ({rows}); remove or declare them missing")
            values.setflags(write=False)
            self._values[name] = values
        return self._values[name]

    def categories(self, name: str) -> Categories:
        """The categories of a column: its levels, or the labels of a nominal one by marginality; numbers are labels."""
        if name not in self._categories:
            cells = self.cells(name)
            labels, counts = label_counts(cells)
            if cells.kind == "nominal":
                hierarchy = self._hierarchies.get(name)
                if hierarchy is not None:
                    self._refuse_unknown(name, labels, hierarchy)
                made = categorising.nominal(labels, counts, hierarchy)
            else:
                order: Sequence[str] = cells.levels or sorted(labels, key=_as_number)
                found = dict(zip(labels, counts, strict=True))
                made = categorising.ordinal(order, np.array([found.get(label, 0.0) for label in order]))
            self._categories[name] = made
        return self._categories[name]

    def codes(self, name: str, categories: Categories) -> Array:
        """The places of a column's cells among some categories; missing cells are NaN, and so are strangers."""
        found = pc.index_in(self.cells(name).labels(), value_set=pa.array(categories.labels, pa.string()))
        places = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
        codes: Array = np.concatenate((categories.values, [np.nan]))[places]
        missing = self.cells(name).missing
        if missing.any():
            codes[missing] = metadata.numbered_gaps(self.cells(name).gaps[0][missing])
        return codes

    def labels(self, name: str) -> tuple[str, ...]:
        """What the values of a column are places of; nothing for numbers."""
        cells = self.cells(name)
        return self.categories(name).labels if cells.kind == "nominal" else cells.levels

    def _refuse_unknown(self, name: str, labels: Sequence[str], hierarchy: Hierarchy) -> None:
        unknown = hierarchy.missing(labels)
        if unknown:
            more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
            raise TableError(
                f"column {name}: its hierarchy {hierarchy.name} misses {unknown[0]!r}{self._where(name, unknown[0])}"
                f"{more}; add a line for it{hierarchy.suggestion(unknown[0])}"
            )

    def _where(self, name: str, label: str) -> str:
        """The row of a label, in words."""
        found = pc.equal(self.cells(name).labels(), label).fill_null(False)
        return f", which stands in row {np.flatnonzero(found.to_numpy(zero_copy_only=False))[0] + 1}"

    @cached_property
    def weight(self) -> Array | None:
        """The weight of every record, where a column was given that role."""
        named = self.schema.with_role("weight")
        if not named:
            return None
        name = named[0]
        cells = self.cells(name)
        if cells.kind != "numeric" or cells.temporal is not None:
            raise TableError(f"column {name}: a weight is a number; give the column another role")
        values = self.values(name)
        for what, wrong, right in (
            ("missing", np.isnan(values), "0 or more"),
            ("negative", values < 0, "0 or more"),
            ("too large", values > HEAVIEST, f"at most {HEAVIEST:g}"),
        ):
            if wrong.any():
                rows = np.flatnonzero(wrong) + 1 + self.start
                weights = f"a {what} weight" if rows.size == 1 else f"{what} weights"
                raise TableError(f"column {name}: {weights} ({row_listing(rows)}); a weight is {right}")
        if len(values) and not self._any(name):
            raise TableError(f"column {name}: all weights are 0, so no record counts")
        return values

    def _any(self, name: str) -> bool:
        """Whether a column has a number that is not 0."""
        return bool(self.values(name).any())

    @cached_property
    def group(self) -> NDArray[np.int64] | None:
        """The number of each record's group, where a column has that role; a missing one is a group of its own."""
        named = self.schema.with_role("group")
        if not named:
            return None
        encoded = self.cells(named[0]).labels().dictionary_encode()
        codes: NDArray[np.int64] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        alone = np.flatnonzero(codes < 0)
        codes[alone] = len(encoded.dictionary) + np.arange(alone.size)
        return codes

    def usable(self, chosen: Sequence[str] | None = None) -> tuple[str, ...]:
        """The columns to mask or measure: the chosen ones, or all that can be ranked and whose given role allows it."""
        if len(self) == 0:
            raise TableError("the table has no records")
        if chosen is not None:
            chosen = listed(chosen)
            require_columns(chosen, self.names)
            for name in chosen:
                cells = self.cells(name)
                if cells.doubtful or (cells.missing.all() and len(self)):
                    raise TableError(f"column {name}: {cells.why or 'all its cells are missing'}; leave it out")
                if cells.kind == "nominal":
                    cells.labels()  # or an error that says what it holds instead
            return chosen
        names = tuple(name for name in self.names if self._by_default(name))
        if not names:
            if any(self.cells(name).kind != "nominal" for name in self.names):
                raise TableError(
                    f"no usable column: every numeric or ordinal one was given the role {' or '.join(UNMASKED_ROLES)}; "
                    "give one another role or name it with --columns"
                )
            raise TableError(
                "no usable column: no column is numeric or ordinal (see `rankveil inspect`); "
                "name nominal ones with --columns"
            )
        return names

    def _by_default(self, name: str) -> bool:
        if (self.schema.roles or {}).get(name) in UNMASKED_ROLES:
            return False
        cells = self.cells(name)
        if cells.missing.all():
            return False
        named = (self.schema.roles or {}).get(name) in NAMING_ROLES or name in self._hierarchies
        return cells.kind != "nominal" or (named and not cells.doubtful)

    def replaced(
        self,
        values: Mapping[str, Array],
        *,
        order: NDArray[np.intp] | None = None,
        labels: Mapping[str, tuple[str, ...]] | None = None,
        dropped: Iterable[str] = (),
        weights: Mapping[str, Array] | None = None,
        whole: Mapping[str, bool] | None = None,
        everywhere: Callable[[pruning.Used], pruning.Used] = pruning.here,
    ) -> tuple[Any, list[str]]:
        """The frame with masked columns put in (rows first taken in `order`), and notes on types that changed.

        `labels` are what the values of a column are places of, where that is no longer what it was. `weights` are put
        in like masked columns. Labels that no released record has are left out (see `rankveil.pruning`). Where the
        table is a part of another, `whole` says of which columns all numbers are whole, and `everywhere` which labels
        all released records have.
        """
        labels, weights = labels or {}, weights or {}
        frame = self.frame.drop(list(dropped))
        if order is not None:
            # the labels of a pandas index would go with their rows and tell everybody the order
            frame = nw.maybe_reset_index(frame[order.tolist(), :])
        fresh, said = [], dict[str, list[str]]()
        for name, masked in {**values, **weights}.items():
            cells, column = self._beneath(name, masked, order, frame.get_column(name))
            words = labels.get(name, self.labels(name))
            all_whole = None if whole is None else whole.get(name)
            series, note = put_back(cells, column, masked, labels=words, relabelled=name in labels, whole=all_whole)
            fresh.append(series)
            if note and name not in weights:
                said.setdefault(note, []).append(name)
        notes = [f"column{'s' if len(some) > 1 else ''} {listing(some, most=5)}: {note}" for note, some in said.items()]
        frame = frame.with_columns(*fresh) if fresh else frame
        # dictionaries of categories come in the order of the original's records
        told = [name for name in frame.columns if order is not None or name in values]
        frame = frame.with_columns(*(in_no_order(frame.get_column(name)) for name in told)) if told else frame
        if not isinstance(frame.to_native(), pa.Table):
            made = pruning.of_frame(frame)
            if unknown := [str(key) for key in getattr(self.native, "attrs", ())]:
                notes.append(_LEFT_OUT.format(listing(unknown)))
                made = made.copy(deep=False)
                made.attrs = {}
            return made, notes
        made = frame.to_native()
        if unknown := metadata.foreign(self.native.schema):
            notes.append(_LEFT_OUT.format(listing(unknown)))
        changed = {name: words for name, words in labels.items() if self._says_otherwise(name, made, words)}
        kept = {name: self._still_said(name, made, values[name], words, order) for name, words in changed.items()}
        return pruning.of_table(_with_fields_of(made, self.native, described=kept), everywhere), notes

    def _says_otherwise(self, name: str, made: pa.Table, words: tuple[str, ...]) -> bool:
        """Whether what the file says of a column's values is no longer so: labels are hidden, numbers became text."""
        return bool(words) and (not set(self.labels(name)) <= set(words) or self._became_text(name, made))

    def _became_text(self, name: str, made: pa.Table) -> bool:
        return reading.is_number(self.cells(name).cells.type) and not reading.is_number(made.schema.field(name).type)

    def _beneath(
        self, name: str, masked: Array, order: NDArray[np.intp] | None, column: nw.Series[Any]
    ) -> tuple[reading.Cells, nw.Series[Any]]:
        """The cells under masked values; where a missing code came from another record there is a cell with that code.

        `column` is the column in the order of the release.
        """
        cells, numbers = self.cells(name), metadata.gap_numbers(masked)
        own, first = cells.gaps
        rows = np.arange(len(self)) if order is None else order
        moved = (numbers > 0) & (own[rows] != numbers)
        if not moved.any():
            return cells if order is None else cells.taken(order), column
        rows = rows.copy()
        rows[moved] = first[numbers[moved]]
        taken = self.frame.get_column(name)[rows.tolist()]
        index = nw.maybe_get_index(column)
        return cells.taken(rows), taken if index is None else nw.maybe_set_index(taken, index=index)

    def _still_said(
        self, name: str, made: pa.Table, masked: Array, words: tuple[str, ...], order: NDArray[np.intp] | None
    ) -> metadata.Described:
        """What the file says of a column and what is still so where it has other labels: of those that stayed."""
        described, cells = self._described(name) or metadata.Described(), self.cells(name)
        if described == metadata.Described():
            return described
        known = self.categories(name)
        place = {word: code for code, word in enumerate(words)}
        before = self.codes(name, known) if order is None else self.codes(name, known)[order]
        there = ~np.isnan(masked) & ~np.isnan(before)
        codes = masked[there].astype(np.intp)
        same = np.array([place.get(label, -1) for label in known.labels])[before[there].astype(np.intp)] == codes
        others = np.bincount(codes[~same], minlength=len(words))
        stayed = {word for word, many in zip(words, others, strict=True) if word in known.labels and not many}
        gaps = [word for word in cells.gap_words() if word is not None] if self._became_text(name, made) else None
        return metadata.of_labels(described, stayed, gaps=gaps)


def label_counts(cells: reading.Cells) -> tuple[list[str], Array]:
    """The different labels of a column and how many cells each has, missing ones left out."""
    counted = pc.value_counts(cells.labels().drop_null())
    counts: Array = counted.field("counts").to_numpy(zero_copy_only=False).astype(np.float64)
    return counted.field("values").to_pylist(), counts


def _as_number(label: str) -> tuple[float, str]:
    try:
        return float(label.replace(",", ".")), label
    except ValueError:  # a date
        return 0.0, label


def _with_fields_of(made: pa.Table, given: pa.Table, *, described: Mapping[str, metadata.Described]) -> pa.Table:
    """A pyarrow table whose columns have what `given` notes of them, or what is `described` now."""
    fields = []
    for after in made.schema:
        before = given.schema.field(after.name)
        if after.name in described:
            # a library's own words, such as those of an Enum, would tell of labels that are hidden now
            fields.append(metadata.write(after.remove_metadata(), described[after.name]))
        else:
            field = before if before.type == after.type else _described_as(after, before)
            fields.append(field.with_metadata(metadata.only_understood(field.metadata)))
    of_table = metadata.only_understood(made.schema.metadata)
    return pa.Table.from_arrays(made.columns, schema=pa.schema(fields, metadata=of_table))


def _described_as(after: pa.Field, before: pa.Field) -> pa.Field:
    """A field of another type with what is said of the one before, where numbers are still numbers."""
    numbers = reading.is_number(after.type) and reading.is_number(before.type)
    return after.with_metadata(before.metadata) if numbers and before.metadata else after


def _without_views(data: Any) -> Any:
    """A pyarrow table with plain text for views of text, which Arrow can neither reorder nor choose from."""
    if not isinstance(data, pa.Table) or not any(pa.types.is_string_view(field.type) for field in data.schema):
        return data
    plain = [field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field for field in data.schema]
    return data.cast(pa.schema(plain, metadata=data.schema.metadata))


def _eager(data: Any) -> nw.DataFrame[Any]:
    try:
        frame = nw.from_native(_without_views(data))
    except TypeError:
        raise TableError(f"a table is a pandas, polars or pyarrow one, not {type(data).__name__}") from None
    except Exception as error:  # narwhals' own errors, such as duplicate column names
        names = [str(name) for name in getattr(data, "column_names", getattr(data, "columns", ()))]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise TableError(f"column {listing(twice)} stands more than once; rename all but one") from None
        raise TableError(f"the table cannot be read: {str(error).splitlines()[0]}") from None
    if isinstance(frame, nw.LazyFrame):
        raise TableError("a lazy frame must be collected first: pass frame.collect()")
    if not all(isinstance(name, str) for name in frame.columns):
        raise TableError("column names must be texts: rename the columns with df.columns = df.columns.astype(str)")
    return cast("nw.DataFrame[Any]", frame)
