"""What a column is: numbers, codes, ordered words; which cells are missing; what is refused, and how it is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil.deciding import decided_table


def table(values: list[Any] | pa.Array, name: str = "INCOME", *, decimal: str = ".", **schema: Any) -> rv.Table:
    return rv.Table(pa.table({name: values}), schema=rv.Schema(**schema), decimal=decimal)


def refused(given_table: rv.Table, name: str = "INCOME") -> str:
    with pytest.raises(rv.TableError) as caught:
        given_table.values(name)
    return str(caught.value)


def test_numbers_in_every_notation() -> None:
    texts = ["1", "-2", "+3", "4.", ".5", "-6.25", "7e2", "8E-1", " 9 "]
    assert table(texts).values("INCOME").tolist() == [1, -2, 3, 4, 0.5, -6.25, 700, 0.8, 9]


@pytest.mark.parametrize("word", ["", "NA", "NaN", "nan", "NULL", "null", "  ", None])
def test_texts_that_stand_for_missing(word: str | None) -> None:
    column = table(["1", word, "3"])
    assert column.columns["INCOME"].missing == 1
    assert np.isnan(column.values("INCOME")[1])


def test_a_word_among_numbers_is_an_error_with_its_rows() -> None:
    texts = ["5"] * 77
    for row in (12, 40, 77):
        texts[row - 1] = "n/a"
    assert refused(table(texts)) == (
        'column INCOME: 3 values are not numbers (rows 12, 40, 77: "n/a"); declare it missing with --missing n/a'
    )
    texts[39] = "?"
    assert refused(table(texts)) == (
        'column INCOME: 3 values are not numbers (rows 12, 40, 77: "n/a", "?"); '
        "declare them missing with --missing n/a,?"
    )
    assert refused(table(["5"] * 20 + ["x"])) == (
        'column INCOME: 1 value is not a number (row 21: "x"); declare it missing with --missing x'
    )


def test_rows_are_counted_with_the_missing_ones() -> None:
    assert "(row 12:" in refused(table(["", "NA"] + ["1"] * 9 + ["one"]))


def test_declared_words_are_missing() -> None:
    column = table(["5"] * 10 + ["n/a", "-9"], missing=("n/a", "-9"))
    assert np.isnan(column.values("INCOME")).sum() == 2
    assert column.columns["INCOME"].kind == "numeric"


@pytest.mark.parametrize(
    ("numbers", "words", "kind"), [(90, 10, "numeric"), (89, 11, "nominal"), (9, 1, "numeric"), (8, 1, "nominal")]
)
def test_nine_tenths_of_numbers_make_a_numeric_column(numbers: int, words: int, kind: str) -> None:
    column = table(["1.5"] * numbers + ["word"] * words + [""] * 50)
    assert column.columns["INCOME"].kind == kind


def test_declared_missing_does_not_count_against_the_numbers() -> None:
    assert table(["1"] * 5 + ["x"] * 5, missing=("x",)).columns["INCOME"].kind == "numeric"


@pytest.mark.parametrize("codes", [["01", "2"], ["007", "123"], ["-05", "1"]])
def test_leading_zeros_are_codes(codes: list[str]) -> None:
    column = table(codes)
    assert column.columns["INCOME"].kind == "nominal"
    assert "leading zeros" in column.columns["INCOME"].why
    assert table(codes, kinds={"INCOME": "numeric"}).values("INCOME").tolist() == [float(code) for code in codes]


@pytest.mark.parametrize("zeros", [["0", "1"], ["0.5", "1"], ["-0.5", "0"]])
def test_a_zero_alone_is_no_code(zeros: list[str]) -> None:
    assert table(zeros).columns["INCOME"].kind == "numeric"


@pytest.mark.parametrize("values", [[2**53, 1], [-(2**53), 1], [str(2**53), "1"], [2**63 - 1, 0]])
def test_whole_numbers_too_long_for_a_float_pass_through(values: list[Any]) -> None:
    frame = pa.table({"long": values, "x": [1.0, 2.0]})
    release = rv.mask(frame, "permute", seed=1)
    assert release.passed_through == ("long",)
    assert release.data["long"].to_pylist() == values
    assert "2^53" in rv.Table(frame).columns["long"].why
    assert table([2**53 - 1, 1]).columns["INCOME"].kind == "numeric"


@pytest.mark.parametrize("values", [[1.0, np.inf, 2.0, -np.inf], ["1", "inf", "2", "-Infinity"]])
def test_infinite_values_are_refused_with_their_rows(values: list[Any]) -> None:
    message = refused(table(values))
    assert message.startswith("column INCOME: infinite values (rows 2, 4)")
    declared = table(values, missing=("inf", "-inf", "-Infinity"))
    assert np.isnan(declared.values("INCOME")).tolist() == [False, True, False, True]


@pytest.mark.parametrize("values", [[1, 2, -9, 4], [1.5, 2.0, -9.0, 4.0], ["1.5", "2", "-9", "4"]])
def test_declared_codes_stay_where_they_are(values: list[Any]) -> None:
    frame = pa.table({"x": values})
    release = rv.mask(frame, "additive_noise", sd=100.0, schema=rv.Schema(missing=("-9",)), seed=3)
    after = release.data["x"].to_pylist()
    assert float(after[2]) == -9
    assert release.changed == {"x": 3}
    # what is missing takes no part: the others are masked as they are without it
    others = rv.mask(
        pa.table({"x": [None if i == 2 else value for i, value in enumerate(values)]}),
        "additive_noise",
        sd=100.0,
        seed=3,
    )
    assert [other for i, other in enumerate(after) if i != 2] == [
        other for i, other in enumerate(others.data["x"].to_pylist()) if i != 2
    ]


def test_decimal_commas_come_back() -> None:
    texts = ["1,5", "2,25", "NA", " 3 ", "", "-0,125"]
    frame = pa.table({"x": texts})
    assert rv.Table(frame, decimal=",").values("x")[[0, 1, 3, 5]].tolist() == [1.5, 2.25, 3.0, -0.125]
    after = rv.mask(frame, "permute", decimal=",", seed=4).data["x"].to_pylist()
    assert (after[2], after[4]) == ("NA", "")
    assert sorted(after) == sorted(["1,5", "2,25", "NA", "3", "", "-0,125"])
    noisy = rv.mask(frame, "additive_noise", decimal=",", seed=4).data["x"].to_pylist()
    assert all("." not in cell for cell in noisy)
    assert np.isfinite(rv.Table(pa.table({"x": noisy}), decimal=",").values("x")[[0, 1, 3, 5]]).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
def test_text_numbers_are_written_so_that_they_read_back_exactly(values: list[float]) -> None:
    frame = pa.table({"x": [f"{value!r}" for value in [*values, 0.5]]})
    column = rv.Table(frame)
    out, _ = column.replaced({"x": column.values("x")})
    assert rv.Table(out).values("x").tolist() == [*values, 0.5]


def test_whole_numbers_in_text_stay_whole() -> None:
    frame = pa.table({"x": ["10", "20", "30", "x"]})
    schema = rv.Schema(missing=("x",))
    release = rv.mask(frame, "additive_noise", sd=4.0, then=["round"], schema=schema, seed=1)
    assert all(cell.lstrip("-").isdigit() for cell in release.data["x"].to_pylist()[:3])
    assert release.data["x"].to_pylist()[3] == "x"
    release = rv.mask(frame, "additive_noise", sd=4.0, schema=schema, seed=1)
    assert all(cell.lstrip("-").isdigit() for cell in release.data["x"].to_pylist()[:3]), "the grid alone keeps them"
    assert not any("whole numbers became decimals" in note for note in release.notes)
    released = rv.mask(frame, "additive_noise", sd=4.0, then=["rescale"], schema=schema, seed=1)
    assert not any("whole numbers became decimals" in note for note in released.notes)


def test_words_with_an_order() -> None:
    column = table(["low", "high", "", "middle"], levels={"INCOME": ["low", "middle", "high"]})
    assert column.columns["INCOME"].kind == "ordinal"
    assert column.values("INCOME")[[0, 1, 3]].tolist() == [0, 2, 1]
    unknown = table(["low", "hihg"], levels={"INCOME": ["low", "high"]})
    assert refused(unknown) == "column INCOME: 'hihg' (row 2) is not one of its levels; did you mean high?"


def test_bad_declarations_are_refused() -> None:
    with pytest.raises(rv.TableError, match="the order of its values is not known"):
        table(["a", "b"], kinds={"INCOME": "ordinal"}).columns  # noqa: B018
    with pytest.raises(rv.TableError, match="must be different"):
        table(["a", "b"], levels={"INCOME": ["a", "a"]}).columns  # noqa: B018
    with pytest.raises(rv.TableError, match="true/false values cannot be numeric"):
        table([True, False], kinds={"INCOME": "numeric"}).columns  # noqa: B018
    with pytest.raises(rv.ParameterError, match="no kind numerc; did you mean numeric"):
        table([1], kinds={"INCOME": "numerc"})
    with pytest.raises(rv.ParameterError, match="no role secret"):
        table([1], roles={"INCOME": "secret"})
    with pytest.raises(rv.TableError, match="no column INCOM; did you mean INCOME"):
        table([1], kinds={"INCOM": "numeric"})


def test_columns_that_cannot_be_used() -> None:
    frame = rv.Table(pa.table({"x": [1.0, 2.0], "w": ["a", "b"], "none": [None, None], "id": [1, 2]}))
    assert frame.usable() == ("x", "id")
    for chosen, said in (
        (["X"], "no column X; did you mean x"),
        (["x", "x"], "named twice"),
    ):
        with pytest.raises(rv.TableError, match=said):
            frame.usable(chosen)
    assert frame.usable(["w", "x"]) == ("w", "x")  # a nominal one is used when it is named
    with pytest.raises(rv.TableError, match="no usable column"):
        rv.mask(pa.table({"none": pa.nulls(2)}), "permute", seed=1)
    with pytest.raises(rv.TableError, match="all its cells are missing"):
        rv.Table(pa.table({"x": pa.array([None, None], pa.float64())})).usable(["x"])


def test_a_role_keeps_a_column_out_whether_it_was_given_or_concluded() -> None:
    frame = pa.table({"person_id": [1, 2, 3], "weight": [1.0, 2.0, 3.0], "x": [3, 2, 1]})
    assert rv.Table(frame).usable() == ("person_id", "weight", "x")  # nobody has asked what they are
    concluded = decided_table(rv.Table(frame))
    assert concluded.schema.roles == {"person_id": "identifier", "weight": "weight", "x": "confidential"}
    assert concluded.usable() == ("x",)
    assert not any(column.role_given for column in concluded.columns.values())
    given_roles = rv.Table(frame, schema=rv.Schema(roles={"person_id": "identifier", "weight": "weight"}))
    assert given_roles.usable() == ("x",)
    otherwise = decided_table(rv.Table(frame, schema=rv.Schema(roles={"weight": "confidential"})))
    assert otherwise.usable() == ("weight", "x")
    assert otherwise.columns["weight"].role_given


@pytest.mark.parametrize("name", ["id", "ID", "customer_id", "userId", "SURNAME", "e-mail", "email", "phone"])
def test_names_of_identifiers(name: str) -> None:
    made = decided_table(rv.Table(pa.table({name: ["ann", "bob", "eve"], "x": [1.0, 2.5, 3.0]})))
    assert made.columns[name].role == "identifier"


@pytest.mark.parametrize("name", ["income", "paid", "idle", "width", "kids", "period"])
def test_names_of_others(name: str) -> None:
    made = decided_table(rv.Table(pa.table({name: [12.5, 3.25, 7.0], "x": [1.0, 2.5, 3.0]})))
    assert made.columns[name].role in ("quasi-identifier", "confidential")


def test_identifiers_are_left_out_unless_one_is_let_through() -> None:
    frame = pa.table({"surname": ["ann", "bob", "eve"], "x": [1.0, 2.0, 3.0]})
    release = rv.mask(frame, "permute", seed=1)
    assert release.data.column_names == ["x"]
    assert any(note.startswith("left out as identifiers: surname") for note in release.notes)
    let = rv.mask(frame, "permute", seed=1, release_identifiers=["surname"])
    assert let.passed_through == ("surname",)
    assert let.manifest["released_identifiers"] == ["surname"]


@pytest.mark.parametrize("cells", [["", "", ""], ["", "only one", ""]])
def test_a_column_without_two_different_texts_identifies_nobody(cells: list[str]) -> None:
    release = rv.mask(pa.table({"remark": cells, "a": [1.0, 2.0, 3.0]}), "permute")
    assert release.data.column_names == ["remark", "a"]


def test_a_point_is_no_decimal_mark_where_that_is_a_comma() -> None:
    thousands = pa.table({"A": ["19.297", "1.250", "13.000", "7.500"], "B": ["1,5", "2,25", "3", "4,0"]})
    table = rv.Table(thousands, decimal=",")
    assert table.columns["A"].kind == "nominal"
    assert "thousands separators" in table.columns["A"].why
    assert table.values("B").tolist() == [1.5, 2.25, 3.0, 4.0]
    mixed = rv.Table(pa.table({"A": ["1,5"] * 19 + ["19.297"]}), decimal=",")
    with pytest.raises(rv.TableError, match=r'column A: 1 value is not a number \(row 20: "19.297"\)'):
        mixed.values("A")


def test_a_column_of_words_that_is_called_numeric_is_refused_without_telling_them() -> None:
    data = pa.table({"NAME": ["Ada", "Emmy", "Grace"]})
    with pytest.raises(rv.TableError) as error:
        rv.Table(data, schema=rv.Schema(kinds={"NAME": "numeric"})).values("NAME")
    assert str(error.value) == "column NAME: its values are not numbers (rows 1, 2, 3); leave its kind out"


def test_a_number_that_is_no_level_is_told_by_its_row() -> None:
    data = pa.table({"INCOME": [1.5, 73519.28]})
    with pytest.raises(rv.TableError) as error:
        rv.Table(data, schema=rv.Schema(levels={"INCOME": ["1.5", "2.5"]})).values("INCOME")
    assert str(error.value) == "column INCOME: the value in row 2 is not one of its levels; known: 1.5, 2.5"


def test_values_that_are_no_labels_are_named_by_their_type() -> None:
    data = pa.table({"A": [[1], [2]]})
    with pytest.raises(rv.TableError, match=r"it holds values of type list<.*>, which cannot serve as labels"):
        rv.mask(data, "permute", columns=["A"])


def test_an_error_is_one_line_whatever_a_column_is_called() -> None:
    with pytest.raises(rv.TableError) as error:
        rv.mask(pa.table({"two\nlines": [None, None]}), columns=["two\nlines"])
    assert str(error.value).startswith("column two\\nlines: ")


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([[]], pa.list_(pa.int64())),
        pa.array([{"a": 1}]),
        pa.array([b"\xff"]),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    ],
    ids=lambda cells: str(cells.type),
)
def test_what_is_no_short_text_has_no_levels(cells: pa.Array) -> None:
    with pytest.raises(rv.TableError, match=r"column A: values of type .* have no levels; convert them to text first"):
        rv.Table(pa.table({"A": cells}), schema=rv.Schema(levels={"A": ("low", "high")})).columns  # noqa: B018


def test_bytes_in_an_order_are_bytes() -> None:
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array([b"\xff", b"a"]), ordered=True)
    (column,) = rv.Table(pa.table({"A": cells})).columns.values()
    assert column.kind == "nominal"
