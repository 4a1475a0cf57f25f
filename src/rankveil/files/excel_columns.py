"""The cells of one column of a sheet as one Arrow type."""

from __future__ import annotations

import datetime
import math
import re
from typing import TYPE_CHECKING, Any

from rankveil.metadata import Described

if TYPE_CHECKING:
    import pyarrow as pa

_TIME_OF_DAY = re.compile(r"[hs]", re.IGNORECASE)
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[-+]\d+)?")


def column_of(cells: list[Any], *, format: str) -> tuple[pa.Array, Described, list[int]]:
    """The cells as one type, what is said of them, and the places of cells that are no numbers among numbers.

    >>> column_of([1, None, 2.5], format="0.00")[0].to_pylist()
    [1.0, None, 2.5]
    >>> array, described, odd = column_of([1, "n/a", 2.5], format="General")
    >>> array.to_pylist(), described.storage, odd
    (['1', 'n/a', '2.5'], 'mixed', [1])
    """
    import pyarrow as pa

    kinds = {type(cell) for cell in cells if cell is not None}
    described = Described(program="excel", format="" if format == "General" else format)
    if not kinds or kinds == {str}:
        return pa.array(cells, pa.string()), Described(), []
    if kinds <= {int, float}:
        return _numbers(cells), described, []
    if kinds == {bool}:
        return pa.array(cells, pa.bool_()), described, []
    if kinds == {datetime.datetime}:
        return _dates(cells, format), described, []
    if kinds == {datetime.time}:
        return pa.array(cells, pa.time64("us")), described, []
    if kinds == {datetime.timedelta}:
        return pa.array(cells, pa.duration("us")), described, []
    odd = [place for place, cell in enumerate(cells) if cell is not None and type(cell) not in (int, float)]
    texts = [None if cell is None else as_text(cell) for cell in cells]
    # its numbers go back as numbers, unless a text that looks like one would become one too
    mixed = kinds <= {int, float, str} and not any(is_plain_number(cells[place]) for place in odd)
    return pa.array(texts, pa.string()), Described(program="excel", storage="mixed") if mixed else Described(), odd


def as_text(cell: Any) -> str:
    """A cell as plainly as it can be written.

    >>> as_text(12.0), as_text(0.1), as_text(True), as_text(datetime.datetime(2024, 2, 29))
    ('12', '0.1', 'TRUE', '2024-02-29')
    """
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e16:
        return str(int(cell))
    if isinstance(cell, datetime.datetime):
        return cell.date().isoformat() if cell.time() == datetime.time() else cell.isoformat(sep=" ")
    return str(cell)


def is_plain_number(text: str) -> bool:
    """Whether a text is a number as `as_text` writes it.

    >>> is_plain_number("-12.5"), is_plain_number("007"), is_plain_number("1,5")
    (True, False, False)
    """
    return _PLAIN_NUMBER.fullmatch(text) is not None and as_text(number_of(text)) == text


def number_of(text: str) -> int | float:
    """The number that a text is."""
    return float(text) if re.search(r"[.e]", text) else int(text)


def _numbers(cells: list[Any]) -> pa.Array:
    """Whole numbers when all are, and small enough."""
    import pyarrow as pa

    if all(cell is None or (isinstance(cell, int) and abs(cell) < 1 << 63) for cell in cells):
        return pa.array(cells, pa.int64())
    return pa.array([None if cell is None or not math.isfinite(cell) else float(cell) for cell in cells], pa.float64())


def _dates(cells: list[datetime.datetime | None], format: str) -> pa.Array:
    """Dates when nobody sees or has a time of day, else moments."""
    import pyarrow as pa

    shown = re.sub(r'"[^"]*"|\\.|\[[^\]]*\]', "", format)
    midnight = datetime.time()
    if not _TIME_OF_DAY.search(shown) and all(cell is None or cell.time() == midnight for cell in cells):
        return pa.array([None if cell is None else cell.date() for cell in cells], pa.date32())
    return pa.array(cells, pa.timestamp("us"))
