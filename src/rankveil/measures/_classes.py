"""What measures of equivalence classes share: what they need, what they tell about the classes, which records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array
from rankveil.classes import Classes, Missing
from rankveil.errors import NotApplicableError
from rankveil.measures._records import LISTED
from rankveil.metadata import gap_numbers

Rows = NDArray[np.intp]
Columns = Mapping[str, Array]


def classes_of(quasi: Columns | None, *, missing: Missing = "own") -> Classes:
    """The equivalence classes by the quasi-identifiers, or why there are none."""
    if not quasi:
        raise NotApplicableError(
            "no quasi-identifier was given; name quasi-identifiers with --role COLUMN=quasi-identifier"
        )
    if next(iter(quasi.values())).size == 0:
        raise NotApplicableError("there is no record")
    return Classes.of(quasi, missing=missing)


def checked_confidential(confidential: Columns | None) -> Columns:
    """The confidential columns, or an error that says how to name them."""
    if not confidential:
        raise NotApplicableError(
            "no confidential column was given; name confidential columns with --role COLUMN=confidential"
        )
    return confidential


def told(quasi: Columns, classes: Classes) -> dict[str, Any]:
    """The classes in numbers: by which columns, how many, and how many of each size."""
    return {
        "quasi_identifiers": list(quasi),
        "records": int(classes.number.size),
        "classes": len(classes),
        "sizes": {str(size): count for size, count in classes.distribution().items()},
    }


def listed(rows: Rows) -> list[int]:
    """The first of some records (counted from 0), numbered from 1 as in the file."""
    return [int(row) + 1 for row in rows[:LISTED]]


def missing_notes(columns: Columns, *, how: str, apart: bool = False) -> tuple[str, ...]:
    """How many cells of which columns are missing, and what a missing cell counts as; `apart`: each code by itself."""
    notes = []
    for name, column in columns.items():
        gaps = np.maximum(gap_numbers(column[np.isnan(column)]), 0)
        codes = np.unique(gaps).size
        by_code = f", each of {codes} missing codes by itself" if apart and codes > 1 else ""
        if gaps.size:
            notes.append(f"column {name}: {gaps.size} of {column.size} cells are missing and {how}{by_code}")
    return tuple(notes)


def quasi_notes(quasi: Columns, *, missing: Missing = "own") -> tuple[str, ...]:
    """The notes on missing cells of the quasi-identifiers."""
    if missing == "any":
        return missing_notes(quasi, how="agree with every value, as missing=any says")
    return missing_notes(quasi, how="agree with each other only", apart=True)
