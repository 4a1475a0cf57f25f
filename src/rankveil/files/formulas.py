"""Texts in a CSV that a spreadsheet would run as formulas: refused, made harmless, or kept as they are.

A workbook says of each cell that it is a text, a CSV cannot; a survey's answer `=HYPERLINK(...)` would run on the
computer of whoever opens the release in a spreadsheet.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, get_args

from rankveil.errors import FormatError, ParameterError, listing, row_listing, suggestion
from rankveil.files import csv_text, registry

if TYPE_CHECKING:
    import pyarrow as pa

Formulas = Literal["refuse", "neutralise", "keep"]
CHOICES: tuple[Formulas, ...] = get_args(Formulas)

MARK = "'"
"""Before a text it tells a spreadsheet that this is one."""

_BEGINS = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"  # those at the end are as wide as Chinese characters
_NUMBER = r"[-+]?(?:[0-9]+(?:[.,][0-9]*)*|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?(?: ?%)?"
_HARMLESS = rf"^(?:[-+=@\s]*|{_NUMBER}|[-+](?:inf|infinity|nan|Inf|Infinity|NaN))$"
"""Signs alone, as in a cell that says -, and numbers."""


def is_formula(text: str) -> bool:
    """Whether a text begins like a formula and is no number.

    >>> [is_formula(text) for text in ("=1+1", "@SUM(A1)", "-2+3", "-2.5", "+1,5e-3", "-", "a=b")]
    [True, True, True, False, False, False, False]
    """
    return re.search(_BEGINS, text) is not None and re.search(_HARMLESS, text) is None


def check_choice(formulas: str) -> None:
    """Refuse another word than those that say what to do."""
    if formulas not in CHOICES:
        raise ParameterError(f"formulas can be {', '.join(CHOICES)}, not {formulas}{suggestion(formulas, CHOICES)}")


def for_spreadsheets(data: pa.Table, path: str, *, formulas: str = "refuse") -> tuple[pa.Table, tuple[str, ...]]:
    """The table as it may be written to `path`, and notes; only of a CSV anything is refused or changed."""
    check_choice(formulas)
    if registry.ending_of(path) not in csv_text.ENDINGS:
        return data, ()
    names = [name for name in data.column_names if is_formula(name)]
    cells = {at: _which(data.column(at)) for at in range(data.num_columns)}
    found = {at: which for at, which in cells.items() if which is not None}
    if not names and not found:
        return data, ()
    told = [f"the name {name}" for name in names]
    told += [f"column {data.column_names[at]} ({_rows(which)})" for at, which in found.items()]
    what = f"{path}: texts begin like formulas: {listing(told)}"
    if formulas == "refuse":
        raise FormatError(
            f"{what}, and a spreadsheet would run them; write an apostrophe before each with --formulas neutralise, "
            "leave them with --formulas keep, or write .xlsx, where they are texts"
        )
    if formulas == "keep":
        return data, (f"warning: {what}; a spreadsheet that opens the file runs them",)
    for at, which in found.items():
        data = data.set_column(at, data.schema.field(at).name, _marked(data.column(at), which))
    data = data.rename_columns([MARK + name if is_formula(name) else name for name in data.column_names])
    return data, (f"{what}; each was written with an apostrophe before it, so that no spreadsheet runs it",)


def _which(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """In which cells of a column a formula would begin; None when in none."""
    import pyarrow.compute as pc

    if not _may_be_text(column.type):
        return None
    texts = _texts(column)
    begins = pc.match_substring_regex(texts, _BEGINS)
    if not pc.any(begins).as_py():
        return None
    which = pc.and_not(begins, pc.match_substring_regex(texts, _HARMLESS))
    return which if pc.any(which).as_py() else None


def _may_be_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _may_be_text(kind.value_type)
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return column.cast(column.type.value_type if pa.types.is_dictionary(column.type) else column.type).cast(
        pa.large_string()
    )


def _rows(which: pa.ChunkedArray) -> str:
    import pyarrow.compute as pc

    return row_listing(row + 1 for row in pc.indices_nonzero(which.combine_chunks()).to_pylist())


def _marked(column: pa.ChunkedArray, which: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, kind = _texts(column), pa.large_string()
    marked = pc.binary_join_element_wise(pa.scalar(MARK, kind), texts, pa.scalar("", kind))
    return pc.if_else(pc.fill_null(which, False), marked, texts)
