"""Whether a job fits in memory, told before it begins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rankveil.errors import FileError, ParameterError

if TYPE_CHECKING:
    from rankveil.table import Table

_EACH = {"mask": 60, "measure": 50, "measure all": 100, "attack": 130, "certify": 130, "compare": 180}
"""Bytes that a job takes at its peak for each cell of its columns, beside the tables themselves.

Measured with 1 and with 3 million cells of decimals (what the peak of the process grew by over the cells: 69, 58, 112,
155, 152 and 230) and rounded down: what is refused would not have fitted.
"""

SMALLER = "fewer --columns, or both tables as Parquet with --cluster local"
"""What helps when two tables do not fit."""

_TEXT = (".csv", ".tsv", ".txt")
_READ = 2
"""A text file takes this many times its size while it is read, at least."""


def check_file(path: str) -> None:
    """Refuse a file that is larger than the memory that is free."""
    from rankveil import memory
    from rankveil.files import registry

    with suppress(OSError):
        size = os.stat(path).st_size if os.path.isfile(path) else 0
        need = size * (_READ if registry.ending_of(path) in _TEXT else 1)
        free = memory.available()
        if need > free:
            raise FileError(
                f"{path}: reading it needs about {memory.shown(need)} of memory and {memory.shown(free)} are free; "
                "write it as Parquet and use --cluster local, or free some memory"
            )


def check_job(what: str, *tables: Table, columns: Sequence[str] | None, copies: int = 1, remedy: str) -> None:
    """Refuse to begin what needs more memory than is free; `copies` processes do it at once."""
    from rankveil import memory

    free = memory.available()
    if sum(len(table) * len(table.names) for table in tables) * _EACH[what] * copies <= free:
        return  # whatever the columns are
    cells = sum(len(table) * _width(table, columns) for table in tables)
    need = cells * _EACH[what] * copies
    if need > free:
        raise ParameterError(
            f"to {what.removesuffix(' all')} {cells:,} cells needs about {memory.shown(need)} of memory and "
            f"{memory.shown(free)} are free; {remedy}"
        )


def _width(table: Table, columns: Sequence[str] | None) -> int:
    """How many columns are worked on: those that were chosen, or those of numbers."""
    names = table.names if columns is None else [name for name in columns if name in table.names]
    return sum(columns is not None or table.columns[name].kind == "numeric" for name in names)
