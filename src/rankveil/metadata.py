"""What a file says of a column beyond its values: labels, missing codes, level, format.

It travels as JSON under one key of the Arrow field, and of the schema for what concerns the whole table, so
Parquet and Arrow files keep it. A missing value that has a letter (Stata's .a to .z, SAS's .A to .Z and ._) is a
NaN that carries the letter in its bits, laid out as R's haven does it; every library sees a NaN.

Among the numbers that a column is read as, a missing cell is a NaN that carries a number in the same way: which of the
column's missing codes (n/a, -9, .a) it is, 0 for an empty cell.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Value = int | float | str
Level = Literal["", "nominal", "ordinal", "scale"]
Program = Literal["", "stata", "spss", "sas", "excel"]

KEY = b"rankveil"
_EXTENSION, _OF_EXTENSION = b"ARROW:extension:name", b"ARROW:extension:metadata"
_ENUM = b"_PL_ENUM_VALUES2"
"""Under this key polars tells the words of an Enum: before each the number of its bytes and a semicolon."""
_OF_TYPES = (_EXTENSION, b"PARQUET:field_id", b"_PL_CATEGORICAL", _ENUM)
"""How the keys begin by which libraries tell the types of columns."""
LETTERS = "abcdefghijklmnopqrstuvwxyz_"
"""The letters of missing values; SAS's capitals are written small, and its underscore is among them."""

_LETTERED = ("stata", "sas")
_NOT_AVAILABLE = 0x7FF8_0000_0000_07A2  # what R calls NA: a quiet NaN whose low half is 1954
_LOW_HALF = 0xFFFF_FFFF
_LETTER_PLACE = 32
_NUMBERED = 0x7FFD_0000_0000_0000  # a quiet NaN that is neither R's nor what a processor makes


@dataclass(frozen=True)
class Described:
    """What a file says of a column beyond its values."""

    label: str = ""
    value_labels: tuple[tuple[Value, str], ...] = ()
    """Values and their labels in the file's order; `.a` stands for the missing value with that letter."""
    label_set: str = ""
    """The name that the file gives to its set of value labels (Stata)."""
    missing_codes: tuple[Value, ...] = ()
    """Values that stand for a missing one (SPSS)."""
    missing_ranges: tuple[tuple[float, float], ...] = ()
    """Lowest and highest of values that stand for a missing one (SPSS); an end may be infinite."""
    level: Level = ""
    """Measurement level (SPSS)."""
    program: Program = ""
    """Whose words `format`, `storage` and `alignment` are."""
    format: str = ""
    """How the program shows a value, in its own words: `%9.0g`, `F8.2`, `DATE9`, `dd.mm.yyyy`."""
    storage: str = ""
    """How the program stores a value, in its own words: `byte`, `str12`, `A12`, `mixed`."""
    width: int = 0
    """How wide the program shows the column (SPSS)."""
    alignment: str = ""

    @property
    def labels(self) -> dict[Value, str]:
        """The label of each value that has one."""
        return dict(self.value_labels)

    @property
    def decimals(self) -> int | None:
        """How many decimals the program shows, None when its format does not say.

        >>> Described(program="spss", format="F8.2").decimals, Described(program="stata", format="%9.0g").decimals
        (2, None)
        """
        if self.program == "stata":
            found = re.fullmatch(r"%[-0]*\d+[.,](\d+)fc?", self.format)
        else:
            found = re.fullmatch(r"[A-Z]+\d+(?:\.(\d+))?", self.format)
        return int(found.group(1) or 0) if found else None

    @property
    def whole(self) -> bool:
        """Whether the file keeps the column as whole numbers, though missing letters made it decimal here."""
        return self.program == "stata" and self.storage in ("byte", "int", "long")

    @property
    def has_missing_codes(self) -> bool:
        """Whether some values are declared to stand for a missing one."""
        return bool(self.missing_codes or self.missing_ranges)

    @property
    def marks_missing(self) -> bool:
        """Whether cells may be missing that are not empty: text of Stata and SAS declares none, but .a to .z are."""
        return self.has_missing_codes or self.program in _LETTERED

    @property
    def declares(self) -> bool:
        """Whether something is said of single values: labels, or that they stand for missing ones."""
        return bool(self.value_labels) or self.has_missing_codes

    def declared_in(self, array: pa.ChunkedArray) -> tuple[list[Value], list[tuple[float, float]]]:
        """Of the labelled values, missing codes and ranges those that some cell has or lies in.

        >>> ages = Described(value_labels=((1, "one"), (2, "two"), (".a", "refused")), missing_codes=(-9,))
        >>> ages.declared_in(pa.chunked_array([[2.0, tagged("a"), None]]))
        ([2, '.a'], [])
        """
        declared = dict.fromkeys([*(value for value, _ in self.value_labels), *self.missing_codes])
        cells = array.combine_chunks()
        if pa.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        if is_text(cells.type):
            texts = {text.rstrip() for text in pc.unique(cells).drop_null().to_pylist()}
            return [value for value in declared if str(value).rstrip() in texts], []
        numbers = _as_numbers(cells.cast(pa.int8()) if pa.types.is_boolean(cells.type) else cells)
        if numbers is None:
            return [], []
        there = {f".{letter}" for letter in np.unique(tags_of(numbers)).tolist() if letter}
        different = pc.unique(pa.array(numbers[~np.isnan(numbers)])).to_numpy()
        there.update(different.tolist())
        ranges = [(low, high) for low, high in self.missing_ranges if np.any((low <= different) & (different <= high))]
        return [value for value in declared if value in there], ranges

    def stands_for_missing(self, value: Value) -> bool:
        """Whether a value that has a label is a missing one: a letter such as .a, a code, or within a range."""
        if isinstance(value, str):
            return value in self.missing_codes or bool(re.fullmatch(r"\.[a-zA-Z_]", value))
        return value in self.missing_codes or any(low <= value <= high for low, high in self.missing_ranges)

    def is_missing(self, array: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
        """Which cells are missing: null, NaN, or a value that the file declares so.

        Dates and times are compared by the whole numbers behind them.

        >>> Described(missing_codes=(-9,), missing_ranges=((90, math.inf),)).is_missing(pa.array([1, -9, None, 99]))
        array([False,  True,  True,  True])
        """
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        missing: NDArray[np.bool_] = pc.is_null(array, nan_is_null=True).to_numpy(zero_copy_only=False).copy()
        if not self.marks_missing:
            return missing
        if is_text(array.type):
            letters = [f".{letter}" for letter in LETTERS] if self.program in _LETTERED else []
            codes = [code for code in self.missing_codes if isinstance(code, str)] + letters
            missing |= pc.is_in(array, value_set=pa.array(codes, array.type)).to_numpy(zero_copy_only=False)
            return missing
        values = _as_numbers(array) if self.has_missing_codes else None
        if values is None:
            return missing
        missing |= np.isin(values, [code for code in self.missing_codes if not isinstance(code, str)])
        for low, high in self.missing_ranges:
            missing |= (low <= values) & (values <= high)
        return missing


@dataclass(frozen=True)
class DescribedTable:
    """What a file says of its table as a whole."""

    label: str = ""
    notes: tuple[str, ...] = ()
    encoding: str = ""
    program: Program = ""


def read(field: pa.Field) -> Described:
    """What the field's metadata say; nothing when there are none or they are not rankveil's.

    >>> read(write(pa.field("AGE", pa.int8()), Described(label="Age in years"))).label
    'Age in years'
    """
    said = {key: value for key, value in _said(field.metadata).items() if key in _NAMES}
    try:
        said["value_labels"] = tuple((_value(value), str(label)) for value, label in said.get("value_labels", ()))
        said["missing_ranges"] = tuple((float(low), float(high)) for low, high in said.get("missing_ranges", ()))
        said["missing_codes"] = tuple(_value(code) for code in said.get("missing_codes", ()))
    except (TypeError, ValueError, OverflowError):
        return Described()
    made = Described(**said)
    return made if _alike(made, Described()) else Described()


def write(field: pa.Field, described: Described) -> pa.Field:
    """The field with `described` in its metadata, beside what else stands there."""
    said = _without_defaults(asdict(described), asdict(Described()))
    if "missing_ranges" in said:  # JSON has no infinite numbers
        said["missing_ranges"] = [[_finite(low), _finite(high)] for low, high in described.missing_ranges]
    kept = _with_said(field.metadata, said)
    return field.with_metadata(kept) if kept else field.remove_metadata()


def read_table(schema: pa.Schema) -> DescribedTable:
    """What the schema's metadata say of the table as a whole."""
    said = _said(schema.metadata)
    known = {field.name: said[field.name] for field in fields(DescribedTable) if field.name in said}
    notes = known.get("notes", ())
    if not isinstance(notes, list | tuple) or not all(isinstance(note, str) for note in notes):
        return DescribedTable()
    made = DescribedTable(**{**known, "notes": tuple(notes)})
    return made if _alike(made, DescribedTable()) else DescribedTable()


def write_table(schema: pa.Schema, described: DescribedTable) -> pa.Schema:
    """The schema with `described` in its metadata, beside what else stands there."""
    said = _without_defaults(asdict(described), asdict(DescribedTable()))
    kept = _with_said(schema.metadata, said)
    return schema.with_metadata(kept) if kept else schema.remove_metadata()


def described_columns(schema: pa.Schema) -> dict[str, Described]:
    """The columns of which something is said, by name."""
    found = {field.name: read(field) for field in schema}
    return {name: described for name, described in found.items() if described != Described()}


def foreign(schema: pa.Schema) -> list[str]:
    """The keys under which somebody else says something of the table or of a column, which nobody here understands.

    >>> age = pa.field("AGE", pa.int8(), metadata={"comment": "as told by Ann"})
    >>> foreign(pa.schema([age], metadata={"lineage": "register of 2020"}))
    ['lineage', 'comment']
    """
    said = [schema.metadata or {}, *(field.metadata or {} for field in schema)]
    return list(dict.fromkeys(key.decode(errors="replace") for each in said for key in each if key in _strange(each)))


def only_understood(said: Mapping[bytes, bytes] | None) -> dict[bytes, bytes] | None:
    """Metadata without what nobody here understands: it may tell of the original."""
    said = said or {}
    return {key: value for key, value in said.items() if key not in _strange(said)} or None


def _strange(said: Mapping[bytes, bytes]) -> set[bytes]:
    """The keys that nobody here understands; a type with a content of its own is one of a library that is not here."""
    found = {key for key in said if key != KEY and not key.startswith(_OF_TYPES)}
    if not said.get(_OF_EXTENSION):
        return found - {_OF_EXTENSION}
    return found | ({_EXTENSION} & said.keys())


def with_enum_of(said: Mapping[bytes, bytes] | None, words: Collection[Any]) -> dict[bytes, bytes] | None:
    """Metadata in which polars finds an Enum of these words, where it found one of these and others before.

    >>> with_enum_of({b"_PL_ENUM_VALUES2": b"3;Ann3;Ben"}, {"Ben"})
    {b'_PL_ENUM_VALUES2': b'3;Ben'}
    """
    kept = {key: value for key, value in (said or {}).items() if key != _ENUM}
    content = (said or {}).get(_ENUM, b"")
    if content:
        declared = []
        while found := re.match(rb"(\d+);", content):
            end = found.end() + int(found[1])
            declared.append(content[found.end() : end].decode(errors="replace"))
            content = content[end:]
        told = [word for word in declared if word in words]
        if not content and told and len(told) == len(words):
            kept[_ENUM] = b"".join(b"%d;%s" % (len(word.encode()), word.encode()) for word in told)
    return kept or None


def in_words_of(described: Described, program: Program) -> Described:
    """The same without format, storage and alignment when these are the words of another program."""
    if described.program == program:
        return described
    return replace(described, program=program, format="", storage="", alignment="", width=0)


def of_labels(described: Described, stayed: Collection[str], *, gaps: Sequence[str] | None) -> Described:
    """What still holds of a column whose values are other labels now, `stayed` of them the ones that they were.

    `gaps` are the missing codes as text, where numbers became text.

    >>> ages = Described(label="Age", value_labels=((1, "one"), (-9, "refused")), missing_codes=(-9,), level="scale")
    >>> of_labels(ages, (), gaps=["-9"])
    Described(label='Age', value_labels=(('-9', 'refused'),), label_set='', missing_codes=('-9',), missing_ranges=(), \
level='nominal', program='', format='', storage='', width=0, alignment='')
    """
    missing = {value for value, _ in described.value_labels if described.stands_for_missing(value)}
    kept = [(value, word) for value, word in described.value_labels if value in missing or str(value) in stayed]
    if gaps is None:
        return replace(described, value_labels=tuple(kept))
    if described.program in _LETTERED:  # their text has neither labels nor codes; its letters are missing all the same
        return Described(label=described.label, program=described.program)
    return Described(
        label=described.label,
        value_labels=tuple((str(value), word) for value, word in kept),
        missing_codes=tuple(gaps),
        level="nominal" if described.level else "",  # a program would put levels that are text in alphabetical order
        program=described.program,
    )


def tagged(letter: str) -> float:
    """The missing value that carries a letter.

    >>> tagged("a"), tags_of(np.array([1.5, tagged("a"), math.nan]))
    (nan, array(['', 'a', ''], dtype='<U1'))
    """
    return float(_bits_of(letter.lower()).view(np.float64)[0])


def tags_of(values: NDArray[np.float64]) -> NDArray[np.str_]:
    """The letter of each missing value that has one, empty for all others."""
    found = np.zeros(values.shape, dtype="<U1")
    at = np.flatnonzero(np.isnan(values))
    bits = np.ascontiguousarray(values[at]).view(np.uint64)
    letters = (bits >> _LETTER_PLACE) & 0xFF
    known = (bits & _LOW_HALF == _NOT_AVAILABLE & _LOW_HALF) & np.isin(letters, [ord(letter) for letter in LETTERS])
    found[at[known]] = letters[known].astype(np.uint32).view("<U1")
    return found


def numbered_gaps(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Missing values that carry numbers from 0 on: which missing code of its column each is, 0 for an empty cell.

    >>> numbered_gaps(np.array([0, 2])), gap_numbers(np.append(numbered_gaps(np.array([0, 2])), [math.nan, 1.5]))
    (array([nan, nan]), array([ 0,  2, -1, -1]))
    """
    made: NDArray[np.float64] = (numbers.astype(np.uint64) | np.uint64(_NUMBERED)).view(np.float64)
    return made


def gap_numbers(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The number that each missing value carries; -1 for one without, and for a value that is there."""
    found = np.full(values.shape, -1, dtype=np.int64)
    at = np.flatnonzero(np.isnan(values))
    bits = np.ascontiguousarray(values[at]).view(np.uint64)
    known = bits >> np.uint64(48) == _NUMBERED >> 48
    found[at[known]] = (bits[known] & np.uint64(_LOW_HALF)).astype(np.int64)
    return found


EMPTY = float(numbered_gaps(np.zeros(1, dtype=np.int64))[0])
"""The missing value of an empty cell."""


def plain(value: Value) -> Value:
    """A whole number as one: 1 rather than 1.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def labelled(pairs: Mapping[Value, str] | Iterable[tuple[Value, str]]) -> tuple[tuple[Value, str], ...]:
    """Values and labels as `Described` holds them."""
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    return tuple((plain(value), label) for value, label in items)


def _bits_of(letter: str) -> NDArray[np.uint64]:
    if len(letter) != 1 or letter not in LETTERS:
        raise ValueError(f"a missing value cannot carry {letter!r}")
    return np.array([_NOT_AVAILABLE | ord(letter) << _LETTER_PLACE], dtype=np.uint64)


_NAMES = {field.name for field in fields(Described)}


def _alike(made: object, usual: object) -> bool:
    """Whether everything has the type that it should have; a damaged file may say anything."""
    return all(type(value) is type(getattr(usual, name)) for name, value in vars(made).items())


def _value(given: object) -> Value:
    if isinstance(given, int | float | str):
        if isinstance(given, int):
            float(given)  # whole numbers of hundreds of digits are none of a file
        return given
    raise TypeError("a value is a number or a text")


def _said(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    content = (metadata or {}).get(KEY)
    if content is None:
        return {}
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", said) if isinstance(said, dict) else {}


def _with_said(metadata: Mapping[bytes, bytes] | None, said: dict[str, Any]) -> dict[bytes, bytes]:
    others = {key: value for key, value in (metadata or {}).items() if key != KEY}
    if said:
        others[KEY] = json.dumps(said, ensure_ascii=False, allow_nan=False).encode()
    return others


def _without_defaults(said: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if value != defaults[key]}


def _finite(end: float) -> float | str:
    return end if math.isfinite(end) else str(end)


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of this type are text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _as_numbers(array: pa.Array) -> NDArray[np.float64] | None:
    """The numbers, or those behind dates and times; None for what has none."""
    kind = array.type
    if pa.types.is_temporal(kind):
        array = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    values: NDArray[np.float64] = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values
