"""pandas, polars and pyarrow tables in, the same kind out: order, types, missing cells, untouched cells."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil import metadata
from rankveil.metadata import Described, DescribedTable

N = 8
WHOLE = [5, 3, 8, 1, 9, 2, 7, 4]
REAL = [1.5, 2.25, -3.0, 0.1, 3.3, 2.25, 8.0, 0.3]
WORDS = ["b", "a", "c", "b", "a", "c", "c", "a"]
LEVELS = ["low", "middle", "high"]
GRADES = ["low", "high", "low", "middle", "high", "low", "middle", "high"]


def holes(values: list[Any]) -> list[Any]:
    return [None if i in (2, 5) else value for i, value in enumerate(values)]


def pandas_numpy() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "word": WORDS,
            "i64": WHOLE,
            "i16": np.array(WHOLE, dtype=np.int16),
            "real": holes(REAL),
            "f32": np.array(REAL, dtype=np.float32),
            "truth": [True, False] * 4,
            "when": pd.date_range("2020-01-01", periods=N),
        }
    )


def pandas_labelled() -> pd.DataFrame:
    return pandas_numpy().set_axis([7, 7, 3, 0, 1, 3, 2, 7])


def pandas_nullable() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "i64": pd.array(holes(WHOLE), dtype="Int64"),
            "u8": pd.array(WHOLE, dtype="UInt8"),
            "real": pd.array(holes(REAL), dtype="Float64"),
            "truth": pd.array(holes([True] * N), dtype="boolean"),
            "word": pd.array(holes(WORDS), dtype="string"),
        }
    )


def pandas_arrow() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "i8": pd.array(holes(WHOLE), dtype="int8[pyarrow]"),
            "real": pd.array(holes(REAL), dtype="double[pyarrow]"),
            "word": pd.array(holes(WORDS), dtype="string[pyarrow]"),
            "coded": pd.Series(WORDS, dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
        },
        index=list("abcdefga"),
    )


def pandas_categories() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "grade": pd.Categorical(holes(GRADES), categories=LEVELS, ordered=True),
            "rating": pd.Categorical(WHOLE, categories=[9, 8, 7, 5, 4, 3, 2, 1], ordered=True),
            "word": pd.Categorical(holes(WORDS)),
            "number": pd.Categorical(holes(WHOLE)),
            "spaced": pd.Categorical([" a", "b "] * 4, categories=["b ", " a"], ordered=True),
        }
    )


def pandas_objects() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "whole": pd.Series(holes(WHOLE), dtype=object),
            "real": pd.Series(holes(REAL), dtype=object),
            "mixed": pd.Series([1, "a", pd.NA, None, 2.5, b"x", "b", "c"], dtype=object),
            "list": pd.Series([[1], [2]] * 4, dtype=object),
            "text": pd.Series(holes([str(value) for value in WHOLE]), dtype=object),
        }
    )


def polars_types() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "grade": pl.Series(holes(GRADES), dtype=pl.Enum(LEVELS)),
            "coded": pl.Series(holes(WORDS), dtype=pl.Categorical),
            "i8": pl.Series(holes(WHOLE), dtype=pl.Int8),
            "u64": pl.Series(WHOLE, dtype=pl.UInt64),
            "real": pl.Series(holes(REAL)),
            "f32": pl.Series(REAL, dtype=pl.Float32),
            "money": pl.Series([Decimal(f"{value:.2f}") for value in REAL], dtype=pl.Decimal(10, 2)),
            "nothing": pl.Series([None] * N, dtype=pl.Null),
            "list": [[1], [], None, [2]] * 2,
            "when": [datetime.date(2020, 1, day + 1) for day in range(N)],
        }
    )


def coded(values: list[str | None], words: list[str], *, ordered: bool) -> pa.Array:
    codes = pa.array([None if value is None else words.index(value) for value in values], pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(words), ordered=ordered)


def pyarrow_types() -> pa.Table:
    graded = holes(GRADES)
    return pa.table(
        {
            "grade": pa.chunked_array([coded(graded[part], LEVELS, ordered=True) for part in (slice(3), slice(3, N))]),
            "word": pa.chunked_array(
                [coded(WORDS[:3], ["a", "b", "c"], ordered=False), coded(WORDS[3:], ["c", "b", "a"], ordered=False)]
            ),
            "number": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None] * 2, pa.int8()), [10, 30, 20]),
            "money": pa.array([Decimal(f"{value:.2f}") for value in REAL], pa.decimal128(9, 2)),
            "large": pa.array(WORDS, pa.large_string()),
            "figures": pa.array(holes([str(value) for value in WHOLE]), pa.large_string()),
            "chunked": pa.chunked_array([WHOLE[:3], [], holes(WHOLE)[3:]], pa.int64()),
            "i8": pa.array(holes(WHOLE), pa.int8()),
            "f32": pa.array(holes(REAL), pa.float32()),
            "when": pa.array([datetime.datetime(2020, 1, day + 1) for day in range(N)]),
            "nested": [{"a": 1}, None] * 4,
            "bytes": [b"x"] * N,
            "nothing": pa.nulls(N),
        }
    )


NUMERIC = {
    pandas_numpy: {"i64", "i16", "real", "f32", "when"},
    pandas_labelled: {"i64", "i16", "real", "f32", "when"},
    pandas_nullable: {"i64", "u8", "real"},
    pandas_arrow: {"i8", "real"},
    pandas_categories: {"number"},
    pandas_objects: {"whole", "real", "text"},
    polars_types: {"i8", "u64", "real", "f32", "money", "when"},
    pyarrow_types: {"number", "money", "figures", "chunked", "i8", "f32", "when"},
}
ORDINAL = {pandas_categories: {"grade", "rating", "spaced"}, polars_types: {"grade"}, pyarrow_types: {"grade"}}
MAKERS = pytest.mark.parametrize("make", list(NUMERIC), ids=lambda make: make.__name__)
Make = Callable[[], Any]


def names(frame: Any) -> list[str]:
    return list(frame.column_names if isinstance(frame, pa.Table) else frame.columns)


def types(frame: Any) -> list[Any]:
    return list(frame.schema.types) if isinstance(frame, pa.Table) else list(frame.dtypes)


def same(one: Any, other: Any) -> bool:
    """Whether two frames agree in type, order, cells and labels."""
    if type(one) is not type(other):
        return False
    if isinstance(one, pa.Table):
        return bool(one.schema.equals(other.schema) and one.to_pydict() == other.to_pydict())
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other)
        return True
    return bool(one.equals(other) and one.schema == other.schema)


def cells(frame: Any, name: str) -> list[Any]:
    """The cells of a column as plain values, missing ones as None."""
    column = frame[name]
    values = column.to_pylist() if isinstance(frame, pa.Table) else column.to_list()
    return [None if value is None or value is pd.NA or value != value else value for value in values]


@MAKERS
def test_kinds(make: Make) -> None:
    columns = rv.Table(make()).columns
    assert {name for name, column in columns.items() if column.kind == "numeric"} == NUMERIC[make]
    assert {name for name, column in columns.items() if column.kind == "ordinal"} == ORDINAL.get(make, set())


@MAKERS
def test_missing_cells_are_found(make: Make) -> None:
    frame = make()
    for name, column in rv.Table(frame).columns.items():
        assert column.missing == cells(frame, name).count(None), name


def declared(frame: Any) -> rv.Schema:
    """What is said of a column of numbers that reads as an identifier: it is none."""
    return rv.Schema(roles={"number": "confidential"} if "number" in names(frame) else {})


@MAKERS
def test_identity_gives_the_same_table(make: Make) -> None:
    masked = sorted(NUMERIC[make] | ORDINAL.get(make, set()))
    assert same(rv.mask(make(), "identity", columns=masked, schema=declared(make()), seed=1).data, make())


@MAKERS
@pytest.mark.parametrize("method", ["permute", "record_shuffle", "additive_noise"])
def test_the_table_given_is_not_changed(make: Make, method: str) -> None:
    frame = make()
    only = sorted(NUMERIC[make]) if method == "additive_noise" else None
    rv.mask(frame, method, columns=only, schema=declared(frame), seed=1)
    assert same(frame, make())


@MAKERS
def test_a_permutation_keeps_order_types_missing_and_untouched_cells(make: Make) -> None:
    frame = make()
    masked = NUMERIC[make] | ORDINAL.get(make, set())
    release = rv.mask(frame, "permute", columns=sorted(masked), schema=declared(frame), seed=5)
    assert type(release.data) is type(frame)
    assert names(release.data) == names(frame)
    assert types(release.data) == types(frame)
    assert set(release.changed) == masked
    moved = 0
    for name in names(frame):
        before, after = cells(frame, name), cells(release.data, name)
        if name not in masked:
            assert after == before, name
            continue
        assert [cell is None for cell in after] == [cell is None for cell in before], name
        assert sorted(map(str, after)) == sorted(map(str, before)), name
        assert release.changed[name] == sum(one != other for one, other in zip(before, after, strict=True)), name
        moved += release.changed[name]
    assert moved > 0
    if isinstance(frame, pd.DataFrame):
        pd.testing.assert_index_equal(release.data.index, frame.index)


@MAKERS
def test_record_shuffle_moves_whole_rows(make: Make) -> None:
    frame = make()
    release = rv.mask(frame, "record_shuffle", schema=declared(frame), seed=5)
    order = release.secret.order
    assert order is not None
    assert sorted(order) == list(range(N))
    assert list(order) != list(range(N))
    assert types(release.data) == types(frame)
    for name in names(frame):
        before = cells(frame, name)
        assert cells(release.data, name) == [before[row] for row in order], name


@pytest.mark.parametrize("method", ["permute", "record_shuffle"])
def test_views_of_text_come_back_as_text(method: str) -> None:
    figures = ["1", "2", None, "4"] * 2
    frame = pa.table({"word": pa.array(WORDS, pa.string_view()), "figures": pa.array(figures, pa.string_view())})
    released = rv.mask(frame, method, seed=5).data
    assert released.schema.types == [pa.string(), pa.string()]
    for name in frame.column_names:
        assert sorted(map(str, cells(released, name))) == sorted(map(str, cells(frame, name)))


def test_the_index_does_not_tell_the_order_of_a_shuffle() -> None:
    for frame in (pandas_numpy(), pandas_labelled()):
        shuffled = rv.mask(frame, "record_shuffle", seed=5).data
        assert list(shuffled.index) == list(range(N))


def test_shuffling_then_masking_puts_values_beside_their_own_missing_cells() -> None:
    frame = pyarrow_types().select(["i8", "large"])
    plan = rv.Plan.of("record_shuffle").then("additive_noise", sd=0.0)
    release = rv.mask(frame, plan, seed=2)
    order = release.secret.order
    assert order is not None
    assert cells(release.data, "i8") == [cells(frame, "i8")[row] for row in order]


def test_two_columns_of_one_read_only_array_can_be_masked() -> None:
    values = np.arange(6.0)
    values.setflags(write=False)
    frame = pd.DataFrame({"a": values, "b": values}, copy=False)
    release = rv.mask(frame, "additive_noise", sd=1e6, seed=1)
    assert np.array_equal(values, np.arange(6.0))
    assert np.all(release.data.to_numpy() != frame.to_numpy())


@pytest.mark.parametrize("make", [pandas_numpy, pandas_nullable, pandas_arrow, polars_types, pyarrow_types])
def test_whole_numbers_become_decimals_with_a_note_unless_rounded(make: Make) -> None:
    frame = make()
    name = next(name for name in ("i8", "i64") if name in names(frame))
    means = rv.mask(frame, "mdav", columns=[name], k=4)
    assert any(f"column {name}: whole numbers became decimals" in note for note in means.notes)
    values = cells(means.data, name)
    assert any(value is not None and value != round(value) for value in values)
    rounded = rv.mask(frame, "mdav", columns=[name], k=4, then=["round"])
    assert not any("became" in note for note in rounded.notes)
    assert types(rounded.data) == types(frame)
    expected = [None if value is None else round(value) for value in values]
    assert cells(rounded.data, name) == expected


@pytest.mark.parametrize("make", [pandas_numpy, pandas_nullable, pandas_arrow, polars_types, pyarrow_types])
def test_noise_on_whole_numbers_is_whole(make: Make) -> None:
    frame = make()
    name = next(name for name in ("i8", "i64") if name in names(frame))
    noisy = rv.mask(frame, "additive_noise", columns=[name], sd=10.0, seed=1)
    assert types(noisy.data) == types(frame)
    assert not any("became" in note for note in noisy.notes)
    assert cells(noisy.data, name) != cells(frame, name)


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"x": pa.array([1, 2, None, 100], pa.int8())}),
        pl.DataFrame({"x": pl.Series([1, 2, None, 100], dtype=pl.Int8)}),
        pd.DataFrame({"x": pd.array([1, 2, None, 100], dtype="Int8")}),
    ],
    ids=["pyarrow", "polars", "pandas"],
)
def test_masked_values_that_do_not_fit_get_a_wider_type_and_a_note(frame: Any) -> None:
    release = rv.mask(frame, "additive_noise", sd=500.0, then=["round"], seed=1)
    assert "column x: Int8 cannot hold its masked values and became Int64" in release.notes
    present = [value for value in cells(release.data, "x") if value is not None]
    assert len(present) == 3
    assert max(map(abs, present)) > 127
    assert all(value == int(value) for value in present)


def test_single_precision_never_becomes_infinite() -> None:
    frame = pa.table({"x": pa.array([3e38, 3.2e38, -3e38], pa.float32()), "y": np.array([6e4, 1, 2], np.float16)})
    released = rv.mask(frame, "additive_noise", sd=1e39, seed=1).data
    assert np.all(np.isfinite(released["x"].to_numpy()))
    assert np.all(np.isfinite(released["y"].to_numpy()))


def test_fixed_decimals_stay_when_the_masked_values_fit() -> None:
    values = [Decimal("3.30"), None, Decimal("1.10"), Decimal("2.21")]
    frame = pa.table({"x": pa.array(values, pa.decimal128(9, 2))})
    assert rv.Table(frame).values("x")[[0, 2, 3]].tolist() == [3.3, 1.1, 2.21]
    loose = rv.mask(frame, "mdav", k=3)
    assert loose.data.schema.field("x").type == pa.float64()
    assert any("fixed decimals became floating ones" in note for note in loose.notes)
    tight = rv.mask(frame, "mdav", k=3, then=["round"])
    assert tight.data.schema.equals(frame.schema)
    assert all(
        abs(Decimal(loose.data["x"][i].as_py()) - tight.data["x"][i].as_py()) <= Decimal("0.005") for i in (0, 2, 3)
    )
    noisy = rv.mask(frame, "additive_noise", seed=1)  # on a grid of the column's own decimals
    assert noisy.data.schema.equals(frame.schema)
    assert not any("decimals" in note for note in noisy.notes)


def test_numbers_that_leave_their_categories_become_plain_ones() -> None:
    frame = pd.DataFrame({"x": pd.Categorical([10, 20, None, 30])})
    released = rv.mask(frame, "additive_noise", seed=1).data
    assert released["x"].dtype == np.float64
    assert released["x"].isna().tolist() == [False, False, True, False]
    whole = rv.mask(frame, "additive_noise", sd=9.0, then=["round"], seed=1).data["x"]
    assert all(value == round(value) for value in whole.dropna())


def test_levels_that_are_numbers_stay_numbers() -> None:
    schema = rv.Schema(levels={"x": ["3", "1", "2"]})
    for frame in (
        pa.table({"x": [1, 2, None, 3]}),
        pl.DataFrame({"x": [1, 2, None, 3]}),
        pd.DataFrame({"x": [1, 2, 3, 3]}),
    ):
        assert rv.Table(frame, schema=schema).values("x")[[0, 1, 3]].tolist() == [1.0, 2.0, 0.0]
        assert types(rv.mask(frame, "permute", schema=schema, seed=1).data) == types(frame)


def test_one_seed_gives_one_release_whatever_the_library() -> None:
    columns = {"a": REAL, "b": [float(value) for value in WHOLE]}
    made = [
        rv.mask(frame, "additive_noise", seed=9).data
        for frame in (pa.table(columns), pd.DataFrame(columns), pl.DataFrame(columns))
    ]
    for name in columns:
        assert cells(made[0], name) == cells(made[1], name) == cells(made[2], name)


def test_what_is_no_table_is_said() -> None:
    for wrong in ({"x": [1]}, [[1.0]], np.eye(2), pd.Series([1.0]), None):
        with pytest.raises(rv.TableError, match="a table is a pandas, polars or pyarrow one, not"):
            rv.Table(wrong)
    with pytest.raises(rv.TableError, match=r"frame\.collect\(\)"):
        rv.Table(pl.LazyFrame({"x": [1]}))
    with pytest.raises(rv.TableError, match="names must be texts"):
        rv.Table(pd.DataFrame([[1.0]]))


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), pa.table([[1], [2], [3]], names=["a", "b", "a"])],
    ids=["pandas", "pyarrow"],
)
def test_a_name_that_stands_twice_is_named(frame: Any) -> None:
    with pytest.raises(rv.TableError, match="column a stands more than once"):
        rv.Table(frame)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(),
        pd.DataFrame({"x": []}),
        pl.DataFrame(),
        pl.DataFrame({"x": []}),
        pa.table({}),
        pa.table({"x": pa.array([], pa.int64())}),
    ],
)
@pytest.mark.parametrize("method", ["permute", "record_shuffle"])
def test_an_empty_table_is_refused(frame: Any, method: str) -> None:
    with pytest.raises(rv.TableError, match="the table has no records"):
        rv.mask(frame, method, seed=1)


def test_odd_names_are_names() -> None:
    odd = ["", "a.b", "a b", "Größe ÅÄ", "日本", "alpha.x", "a=b,c", "'; --", "sd"]
    frame = pa.table(dict.fromkeys(odd, REAL))
    release = rv.mask(frame, "additive_noise", seed=1, **{"sd": 1.0, "sd.a.b": 0.0, "sd.": 0.0})
    assert release.data.column_names == odd
    assert release.changed["a.b"] == release.changed[""] == 0
    assert all(release.changed[name] == N for name in odd[2:])
    draws = [tuple(release.data[name].to_pylist()) for name in odd[2:]]
    assert len(set(draws)) == len(draws)


def test_an_index_that_tells_who_is_who_is_warned_about() -> None:
    frame = pd.DataFrame({"A": [1.0, 2.0, 3.0]})
    assert not any("index" in note for note in rv.mask(frame, "permute").notes)
    assert not any("index" in note for note in rv.mask(frame.set_axis([0, 1, 2]), "permute").notes)
    named = frame.set_axis(["Ann", "Ben", "Cat"])
    assert any("index" in note for note in rv.mask(named, "permute").notes)
    assert not any("index" in note for note in rv.mask(named, "record_shuffle").notes)


@pytest.mark.parametrize("method", ["permute", "record_shuffle"])
def test_of_what_arrow_notes_only_what_rankveil_understands_stays(method: str) -> None:
    words = pa.array(["lo", "hi", "lo", "mid"]).dictionary_encode()
    ordered = pa.DictionaryArray.from_arrays(words.indices, pa.array(["lo", "hi", "mid"]), ordered=True)
    labelled = metadata.write(pa.field("n", pa.int64(), nullable=False), Described(label="Income in EUR"))
    own = pa.schema([pa.field("w", ordered.type, metadata={"ARROW:extension:name": "levels"}), labelled])
    own = metadata.write_table(own, DescribedTable(label="Survey"))
    given = pa.Table.from_arrays([ordered, pa.array([1, 2, 3, 4])], schema=own)
    told = rv.mask(given, method)
    assert told.data.schema.equals(own, check_metadata=True)
    assert not any("left out" in note for note in told.notes)
    means = rv.mask(given, "mdav", columns=["n"], k=4).data
    assert means.schema.field("n").type == pa.float64()

    secret = {"PANDAS_ATTRS": '{"by": "Zorblax"}', "lineage": "Zorblax", **given.schema.metadata}
    noted = pa.schema([field.with_metadata({"comment": "Zorblax", **field.metadata}) for field in own], secret)
    made = rv.mask(given.cast(noted), method)
    assert made.data.schema.equals(own, check_metadata=True)
    [note] = [note for note in made.notes if "left out" in note]
    assert "(PANDAS_ATTRS, lineage, comment)" in note
    assert "Zorblax" not in note + made.manifest.to_json()


@pytest.mark.parametrize("method", ["permute", "identity"])
def test_what_is_attached_to_a_pandas_table_is_left_out_and_said(method: str) -> None:
    data = pd.DataFrame({"A": [1.0, 2.0, 3.0]})
    data.attrs["by"] = "Zorblax"
    made = rv.mask(data, method)
    assert made.data.attrs == {}
    assert data.attrs == {"by": "Zorblax"}
    assert any("(by) is left out" in note for note in made.notes)


def test_whole_numbers_beyond_the_exact_ones_that_are_masked_need_not_fit_the_new_type() -> None:
    data = pa.table({"A": pa.array([2**64 - 1, 5, 7], pa.uint64())})
    made = rv.mask(data, "additive_noise", seed=1, schema=rv.Schema(kinds={"A": "numeric"})).data
    assert made["A"].type == pa.float64()


def test_fixed_decimals_with_masked_values_near_the_largest_number_become_floating_ones() -> None:
    data = pa.table({"A": pa.array([Decimal("1.25"), Decimal("2.50")], pa.decimal128(10, 2))})
    made = rv.mask(data, "multiplicative_noise", beta=1e307, seed=1).data
    assert made["A"].type == pa.float64()


def test_a_column_without_a_type_stays_as_it_is() -> None:
    data = pa.table({"A": pa.nulls(2), "B": [1.0, 2.0]})
    assert rv.mask(data, "identity", schema=rv.Schema(roles={"A": "quasi-identifier"})).data.equals(data)


def test_decimals_and_durations_of_polars_as_labels() -> None:
    money = pl.Series([Decimal("1.25"), Decimal("2.50")] * 3, dtype=pl.Decimal(10, 2))
    longs = pl.Series([datetime.timedelta(days=day) for day in range(5)] + [None])
    data = pl.DataFrame({"A": money, "B": longs})
    made = rv.mask(data, "pram", p=0.0, columns=["A"], seed=1, schema=rv.Schema(kinds={"A": "ordinal"})).data
    assert made.equals(data)
    names = rv.mask(data, "pseudonymise", columns=["B"], seed=1).data["B"]
    assert names.dtype == pl.String
    assert names.n_unique() == 6
    assert names[5] is None
