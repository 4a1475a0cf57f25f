"""What a reader hands over: the table, and how a text file was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Dialect:
    """How a CSV was written, so that a release can be written in the same way."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    newline: str = "\n"
    bom: bool = False


@dataclass(frozen=True)
class Loaded:
    """A table read from a file; `dialect` is None unless the file was text, `notes` say what was assumed."""

    data: pa.Table
    dialect: Dialect | None = None
    notes: tuple[str, ...] = ()
