"""What the values, the name and the labels of a column say: the facts from which `rankveil.decisions` concludes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil import metadata, orders
from rankveil.columns import Cells, is_number
from rankveil.table import Table
from rankveil.vocabulary import topics

FEW = 20
"""Whole numbers with so many different values at most are categories unless their use says numbers."""
MOSTLY = 0.95
_RISING = 0.999
_LOOKED_AT = 2000
"""So many different texts are looked at for patterns."""
_PLAIN_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_LEADING_ZERO = r"^0[0-9]"
_NOT_APPLICABLE = re.compile(
    r"(?i)[a-z.*?#-]|\.\.|--|n/?\.?a\.?|n/?\.?d\.?|s/?d|k\.? ?a\.?|keine angabe|b\.?d\.?|brak danych|ns/?nr|"
    r"n\.?v\.?t\.?|dk|unknown|unbekannt|inconnue?|desconocid[oa]|sconosciut[oa]|onbekend|desconhecid[oa]|"
    r"nieznan[ey]|missing|refused|do(n't| not) know|wei(ß|ss) nicht|not applicable|not stated|not available"
)
"""Words that stand for no number among numbers."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What the values, the name and the labels of a column say."""

    name: str
    topics: frozenset[str]
    records: int
    present: int
    distinct: int
    """Different values; as many as there are present cells where they cannot be compared."""
    numbers: NDArray[np.float64] | None = None
    """The different numbers in order, where all values are numbers, but for the words `gaps`."""
    counts: NDArray[np.int64] | None = None
    gaps: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Different texts, where they are not numbers: as many as are looked at."""
    coded: bool = False
    """Whether numbers are written as codes: with leading zeros."""
    boolean: bool = False
    temporal: bool = False
    steps: Literal["", "rows", "rising"] = ""
    """Whether whole numbers count the rows, or never fall from row to row."""
    levels: tuple[str, ...] = ()
    """An order of its categories that was given or that they tell themselves."""
    doubt: str = ""
    """Why it is not read as the numbers or dates that it looks like."""
    labelled: bool = False
    """Whether each value has a label in the file."""
    labels_in_order: bool = False
    level: str = ""
    kind_given: str = ""
    role_given: str = ""

    @property
    def whole(self) -> bool:
        """Whether all numbers are whole."""
        return self.numbers is not None and bool(np.all(self.numbers == np.rint(self.numbers)))

    @property
    def width(self) -> int:
        """How many digits all whole numbers have, 0 where they differ."""
        if (
            self.numbers is None
            or not self.whole
            or not len(self.numbers)
            or not 0 < self.numbers[0] <= self.numbers[-1] < 2**53
        ):
            return 0
        first, last = (len(str(int(self.numbers[place]))) for place in (0, -1))
        return first if first == last else 0

    @property
    def unique(self) -> bool:
        """Whether no value stands twice."""
        return 1 < self.distinct == self.present


def facts_of(table: Table, name: str) -> Facts:
    """What a column's values, name and labels say."""
    cells, column = table.cells(name), table.columns[name]
    said = _described(table, name)
    about = topics(name)
    if not about - {"number", "count", "code"} and said.label:
        about |= topics(said.label)
    present = cells.present
    made = Facts(
        name=name,
        topics=about,
        records=len(table),
        present=len(present),
        distinct=len(present),
        temporal=cells.temporal is not None,
        boolean=pa.types.is_boolean(present.type),
        levels=cells.levels,
        doubt=cells.why if cells.doubtful else "",
        level=said.level,
        kind_given=cells.kind if column.kind_given else "",
        role_given=column.role if column.role_given else "",
    )
    if not (cells.is_text or is_number(present.type) or made.boolean or made.temporal):
        return made
    counted = pc.value_counts(present)
    values, counts = counted.field("values"), counted.field("counts").to_numpy(zero_copy_only=False)
    made = replace(made, distinct=len(values))
    if made.boolean or made.temporal:
        return made
    if cells.is_text:
        return _of_text(made, cells, values, counts)
    numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return _with_labels(_of_numbers(made, numbers, counts, cells), said)


def _of_text(made: Facts, cells: Cells, values: pa.Array, counts: NDArray[np.int64]) -> Facts:
    """The facts of a column of text, which may be numbers with a few words among them."""
    words = pc.replace_substring(values, cells.decimal, ".") if cells.decimal != "." else values
    good = pc.match_substring_regex(words, _PLAIN_NUMBER).to_numpy(zero_copy_only=False)
    others = values.filter(pa.array(~good))[:_LOOKED_AT].to_pylist()
    numeric = good.sum() >= 2 or (good.any() and not others)
    if numeric and len(others) <= 2 and all(_NOT_APPLICABLE.fullmatch(word) for word in others):
        texts = pc.replace_substring_regex(words.filter(pa.array(good)), r"^\+", "")
        coded = pc.any(pc.match_substring_regex(texts, _LEADING_ZERO)).as_py()
        made = _of_numbers(made, texts.cast(pa.float64()).to_numpy(zero_copy_only=False), counts[good], cells)
        return replace(made, gaps=tuple(others), coded=bool(coded))
    listed = values[:_LOOKED_AT].to_pylist()
    told = orders.detected(listed) if len(listed) <= FEW else None
    return replace(made, words=tuple(listed), levels=made.levels or told or ())


def _of_numbers(made: Facts, numbers: NDArray[np.float64], counts: NDArray[np.int64], cells: Cells) -> Facts:
    finite = np.isfinite(numbers)
    numbers, counts = numbers[finite], counts[finite]
    order = np.argsort(numbers, kind="stable")
    made = replace(made, numbers=numbers[order], counts=counts[order])
    return replace(made, steps=_steps(cells) if made.whole and len(numbers) > FEW else "")


def _steps(cells: Cells) -> Literal["", "rows", "rising"]:
    """Whether whole numbers count the rows in the order of the table, or hardly ever fall."""
    try:
        numbers = cells.present.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # words among them
        return ""
    steps = np.diff(numbers)
    if np.all(steps == 1):
        return "rows"
    return "rising" if np.mean(steps >= 0) >= _RISING else ""


def _with_labels(made: Facts, said: metadata.Described) -> Facts:
    """With what the labels of the values say, in the file's order."""
    labels = {value: label for value, label in said.labels.items() if not isinstance(value, str)}
    if not labels or made.numbers is None or not len(made.numbers):
        return made
    every = bool(np.all(np.isin(made.numbers, list(labels))))
    shown = [labels[value] for value in sorted(labels) if not said.stands_for_missing(value)]
    told = orders.detected(shown) if every else None
    return replace(made, labelled=every, labels_in_order=told in (tuple(shown), tuple(reversed(shown))))


def _described(table: Table, name: str) -> metadata.Described:
    native = table.native
    return metadata.read(native.schema.field(name)) if isinstance(native, pa.Table) else metadata.Described()
