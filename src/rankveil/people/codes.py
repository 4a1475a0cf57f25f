"""Codes of labelled files: the label of a value stands for it, and a code for a missing value is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rankveil import metadata
from rankveil.errors import ParameterError, listing
from rankveil.table import Table


def as_coded(table: Table, name: str, value: Any, notes: list[str]) -> Any:
    """Her value as the file codes it: a value label stands for its code; a code for a missing value is an error."""
    said, text = _described(table, name), str(value).strip()
    code = value
    if text not in table.labels(name) and _plain_number(text, table.decimal) is None:
        meant = [each for each, label in said.value_labels if label.strip() == text]
        if len(meant) > 1:
            raise ParameterError(f"column {name}: {text} is the label of {listing(meant)}; give the one that is meant")
        if meant:
            code = str(metadata.plain(meant[0]))
            notes.append(f"column {name}: {text} is the label of {code}")
    number = _plain_number(str(code), table.decimal)
    missing = said.stands_for_missing(str(code)) or (number is not None and said.stands_for_missing(number))
    if missing or text in table.schema.missing:
        raise ParameterError(f"column {name}: {text} is a missing code and no value; leave {name} out")
    return code


def _described(table: Table, name: str) -> metadata.Described:
    """What the file says of a column beyond its values."""
    native = table.native
    return metadata.read(native.schema.field(name)) if isinstance(native, pa.Table) else metadata.Described()


def labels_by_code(table: Table, name: str) -> dict[str, str]:
    """The labels that the file has for values of a column, by the values as they are written."""
    return {str(metadata.plain(code)): label for code, label in _described(table, name).value_labels}


def _plain_number(text: str, decimal: str) -> float | None:
    try:
        return float(text.replace(",", ".") if decimal == "," else text)
    except ValueError:
        return None


def meanings(table: Table, names: Sequence[str], nearest: Sequence[Any]) -> list[str]:
    """What the nearest released codes stand for, where the file has labels for them."""
    made = []
    for name, code in zip(names, nearest, strict=True):
        labels = labels_by_code(table, name)
        if str(code) in labels:
            made.append(f"column {name}: the nearest released value {code} stands for {labels[str(code)]}")
    return made
