"""What a file says of its columns beyond their values, and the format of a release cannot hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankveil.errors import listing

if TYPE_CHECKING:
    import pyarrow as pa

    from rankveil.metadata import Described

_FORGETS_LETTERS = (".csv", ".tsv", ".txt", ".xlsx", "sqlite://")
"""Formats in which a missing cell is empty; other databases keep a number that is none, with its letter in its bits."""


def left_behind_notes(data: pa.Table, out: str) -> list[str]:
    """Notes on the labels and missing codes that are not in a text file, a workbook or a database."""
    from rankveil import metadata
    from rankveil.files import csv_text, registry, shown

    ending = registry.ending_of(out)
    if registry.database(out) is None and ending not in (*csv_text.ENDINGS, registry.WORKBOOK_ENDING):
        return []
    said = metadata.described_columns(data.schema)
    lost = {
        "labels": [name for name, each in said.items() if each.label],
        "labels of values": [name for name, each in said.items() if each.value_labels],
        "levels of measurement": [name for name, each in said.items() if each.level],
        "letters of missing cells": _lettered(data) if ending in _FORGETS_LETTERS else [],
    }
    told = [f"{what} ({listing(names)})" for what, names in lost.items() if names]
    whole = metadata.read_table(data.schema)
    sheet = whole.program == "excel" or ending == registry.WORKBOOK_ENDING  # the label is the name of the sheet
    if whole.notes or (whole.label and not sheet):
        told.append("label and notes of the table")
    notes = [f"{shown(out)}: cannot hold {', '.join(told)} of the original; .parquet keeps them"] if told else []
    coded = [f"{name} {_codes(each)}" for name, each in said.items() if each.has_missing_codes]
    if coded:
        notes.append(
            f"{shown(out)}: codes for missing cells are values like all others there, so tell its users which they "
            f"are: {listing(coded, most=20)}"
        )
    return notes


def _lettered(data: pa.Table) -> list[str]:
    """The columns in which missing cells carry letters."""
    import pyarrow as pa

    from rankveil.metadata import tags_of

    numbers = [field.name for field in data.schema if field.type == pa.float64()]
    return [name for name in numbers if tags_of(data.column(name).to_numpy()).any()]


def _codes(described: Described) -> str:
    """The codes of a column in words: `-9 or 90 to 99`."""
    ranges = [f"{low:g} to {high:g}" for low, high in described.missing_ranges]
    return " or ".join([*(str(code) for code in described.missing_codes), *ranges])
