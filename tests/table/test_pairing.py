"""Which masked record belongs to which original one, and what is said of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.errors import PairError
from rankveil.pairing import pair_tables
from rankveil.pairs import Pair
from rankveil.ranks import average_ranks
from rankveil.summaries.correlations import spearman

ORIGINAL = pa.table({"key": [1, 2, 3, 4, 5], "x": [10.0, 20.0, 30.0, 40.0, 50.0]})


def paired(original: Any, masked: Any, **matching: Any) -> Pair:
    return pair_tables(original, masked, **matching)


def refused(original: Any, masked: Any, **matching: Any) -> str:
    with pytest.raises((rv.PairError, rv.TableError)) as caught:
        paired(original, masked, **matching)
    return str(caught.value)


def test_by_rows() -> None:
    both = paired(ORIGINAL, ORIGINAL)
    assert (both.names, both.mapping, both.notes) == (("key", "x"), "rows", [])
    assert both.original.tolist() == both.masked.tolist() == [0, 1, 2, 3, 4]
    assert "the original has 5 records and the masked table 2" in refused(ORIGINAL, ORIGINAL.slice(0, 2))


@pytest.mark.parametrize(
    "keys",
    [[5, 3, 9, 1], [5.0, 3.0, 9.0, 1.0], ["5", "3", "9", "1"], ["5.0", "3.0", "9.0", "1.0"], [" 5", "3 ", "9", "1"]],
    ids=["whole", "decimal", "text", "decimal text", "spaced"],
)
def test_by_key(keys: list[Any]) -> None:
    both = paired(ORIGINAL, pa.table({"x": [5.0, 3.0, 9.0, 1.0], "key": keys}), key="key")
    assert (both.names, both.mapping) == (("x",), "key")
    assert both.x[:, 0].tolist() == [50.0, 30.0, 10.0]
    assert both.y[:, 0].tolist() == [5.0, 3.0, 1.0]
    assert both.original.tolist() == [4, 2, 0]
    assert both.masked.tolist() == [0, 1, 3]
    assert both.notes == [
        "2 original records have no partner with the same key and are left out",
        "1 masked records have no partner with the same key and are left out",
    ]


def test_keys_of_words_across_libraries() -> None:
    original = pd.DataFrame({"who": pd.Categorical(["ann", "bob", "eve"]), "x": [1.0, 2.0, 3.0]})
    masked = pl.DataFrame({"who": ["eve", "ann", "bob"], "x": [30.0, 10.0, 20.0]})
    both = paired(original, masked, key="who")
    assert both.x[:, 0].tolist() == [3.0, 1.0, 2.0]
    # codes with leading zeros are words: 07 is not 7
    assert "no value stands in both" in refused(
        pa.table({"k": ["07"], "x": [1]}), pa.table({"k": ["7"], "x": [1]}), key="k"
    )


def test_keys_that_are_no_keys() -> None:
    twice = pa.table({"key": [1, 1, 2, 2, 3], "x": [1.0] * 5})
    assert (
        refused(ORIGINAL, twice, key="key")
        == "key key: 2 values stand more than once in the masked table (the first in rows 1, 2); a key must be unique"
    )
    assert "in the original table" in refused(twice, ORIGINAL, key="key")
    holed = pa.table({"key": [1, 2, None, 4, 5], "x": [1.0] * 5})
    assert refused(ORIGINAL, holed, key="key") == "key key: missing in row 3 of the masked table"
    assert refused(ORIGINAL, ORIGINAL.select(["x"]), key="key") == "the masked table has no key column key"
    assert "original table has no key column kee" in refused(ORIGINAL, ORIGINAL, key="kee")
    assert "no value stands in both" in refused(ORIGINAL, pa.table({"key": [7], "x": [1.0]}), key="key")
    nested = pa.table({"key": [[1], [2]], "x": [1.0, 2.0]})
    assert "a key is a number or a text" in refused(nested, nested, key="key")


def test_by_the_order_of_the_secret() -> None:
    release = rv.mask(ORIGINAL, "record_shuffle", seed=11, release_identifiers=["key"])
    both = paired(ORIGINAL, release.data, secret=release.secret)
    assert both.mapping == "secret"
    assert np.array_equal(both.x, both.y)
    assert both.masked.tolist() == [0, 1, 2, 3, 4]
    assert both.original.tolist() == release.secret.order.tolist()  # type: ignore[union-attr]
    assert "the secret maps 5 records, the files have 5 and 4" in refused(
        ORIGINAL, release.data.slice(0, 4), secret=release.secret
    )
    kept = rv.mask(ORIGINAL, "permute", seed=11, release_identifiers=["key"])
    assert paired(ORIGINAL, kept.data, secret=kept.secret).mapping == "rows"
    # the name of its file is not the secret: rows would be taken for matched
    assert "secret must be the secret of a release" in refused(ORIGINAL, release.data, secret="release.secret.json")


def test_without_a_mapping_the_larger_table_is_sampled_and_said_so() -> None:
    large = pa.table({"x": np.arange(100.0)})
    small = pa.table({"x": np.arange(30.0)})
    both = paired(large, small, mapping=False, seed=1)
    assert both.mapping == "none"
    assert both.x.shape == both.y.shape == (30, 1)
    assert both.notes == [
        "where as many original as masked records are needed, 30 of the 100 original ones are used, drawn by the seed"
    ]
    assert len(set(both.original.tolist())) == 30
    assert both.original.tolist() == sorted(both.original.tolist())
    assert np.array_equal(both.original, paired(large, small, mapping=False, seed=1).original)
    assert not np.array_equal(both.original, paired(large, small, mapping=False, seed=2).original)
    turned = paired(small, large, mapping=False, seed=1)
    assert "30 of the 100 masked ones are used" in turned.notes[0]
    assert both.whole.x.shape == (100, 1)
    assert both.whole.y.shape == (30, 1)
    assert paired(large, large, mapping=False).notes == []


def test_without_a_mapping_missing_records_are_left_out_on_each_side() -> None:
    one = pa.table({"x": [1.0, None, 3.0, 4.0]})
    other = pa.table({"x": [None, None, 3.0, 4.0]})
    both = paired(one, other, mapping=False)
    assert len(both) == 2
    assert both.notes[:2] == [
        "1 of 4 original records have missing values, left out where those are needed",
        "2 of 4 masked records have missing values, left out where those are needed",
    ]
    holed = pa.table({"x": [1.0, None], "y": [None, 1.0]})
    apart = paired(pa.table({"x": [1.0], "y": [1.0]}), holed, mapping=False)  # column by column there is something
    assert len(apart) == 0
    assert [column.sizes for column in apart.whole_columns] == [(1, 1), (1, 1)]
    with pytest.raises(PairError, match="no record is complete in all the columns; choose others with --columns"):
        _ = apart.linkable
    empty = pa.table({"x": [1.0, 2.0], "y": pa.array([None, None], pa.float64())})
    with pytest.raises(PairError, match="as y has no value; leave it out with --columns"):
        _ = paired(pa.table({"x": [1.0], "y": [1.0]}), empty, mapping=False).linkable
    assert "no record is complete" in refused(pa.table({"y": [1.0]}), empty.select(["y"]), mapping=False)


def test_contradictions_are_refused() -> None:
    release = rv.mask(ORIGINAL, "record_shuffle", seed=1)
    for both in (
        {"key": "key", "mapping": False},
        {"key": "key", "secret": release.secret},
        {"secret": release.secret, "mapping": False},
    ):
        assert "contradict each other" in refused(ORIGINAL, release.data, **both)


def test_different_columns_are_refused_by_name() -> None:
    renamed = ORIGINAL.rename_columns(["key", "y"])
    assert refused(ORIGINAL, renamed) == (
        "the tables have different columns: the masked one has no x; name the columns to compare with --columns"
    )
    assert "the original one has no key" in refused(ORIGINAL.select(["x"]), ORIGINAL)
    assert refused(ORIGINAL, renamed, columns=["x"]) == "the masked table has no column x"
    assert "no column z" in refused(ORIGINAL, ORIGINAL, columns=["z"])
    assert paired(ORIGINAL, renamed, columns=["key"]).notes == ["not compared: x"]
    words = pa.table({"key": [1, 2, 3, 4, 5], "x": list("abcde")})
    assert "column x: numeric in the original but not in the masked table" in refused(ORIGINAL, words)


def test_words_are_ordered_as_in_the_original() -> None:
    levels = ["low", "middle", "high"]
    original = pd.DataFrame({"g": pd.Categorical(["low", "high", "middle"], categories=levels, ordered=True)})
    turned = pd.DataFrame({"g": pd.Categorical(["low", "high", "middle"], categories=levels[::-1], ordered=True)})
    plain = pa.table({"g": ["low", "high", "middle"]})
    for masked in (
        original,
        turned,
        plain,
        pl.DataFrame({"g": pl.Series(["low", "high", "middle"], dtype=pl.Categorical)}),
    ):
        both = paired(original, masked)
        assert both.x[:, 0].tolist() == both.y[:, 0].tolist() == [0, 2, 1]
    assert "'hihg' (row 2) is not one of its levels; did you mean high?" in refused(
        original, pa.table({"g": ["low", "hihg", "low"]})
    )


def test_missing_values_are_counted() -> None:
    original = pa.table({"a": [1.0, None, 3.0, 4.0], "b": [1.0, 2.0, 3.0, 4.0]})
    masked = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 2.0, None, 4.0]})
    both = paired(original, masked)
    assert len(both.notes) == 1
    assert both.notes[0].startswith("2 of 4 records have missing values")
    assert both.table.original.tolist() == [0, 3]
    assert [view.original.tolist() for view in both.columns] == [[0, 2, 3], [0, 1, 3]]
    lost = pa.table({"a": [None, 1.0], "b": [1.0, None]})
    made = rv.audit(lost, lost, measures=["cm2", "permutation_level"])
    assert "no record has the values" in made.not_applicable["cm2"]
    assert made["permutation_level"] == 0.0  # every column on its own records
    with pytest.raises(rv.PairError, match="no record is complete"):
        rv.certify(lost, lost)
    attacked = rv.attack(lost, lost)  # what there is of a record is evidence
    assert attacked.certain == 2
    assert any("no record is complete" in note for note in attacked.notes)


def test_views_rank_what_is_there() -> None:
    original = pa.table({"a": [5.0, None, 5.0, 9.0]})
    masked = pa.table({"a": [2.0, 7.0, 1.0, 3.0]})
    view = paired(original, masked).table
    assert view.rank_x.T.tolist() == [[1.5, 1.5, 3.0]]
    assert view.rank_y.T.tolist() == [[2.0, 1.0, 3.0]]
    assert view.z.T.tolist() == [[5.0, 5.0, 9.0]]


MAKERS = pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame], ids=["pyarrow", "pandas", "polars"])


@MAKERS
def test_reverse_mapping_gives_the_original_values_in_the_masked_order(make: Any) -> None:
    original = make({"x": [10.0, 20.0, 30.0, 40.0], "n": [1, 2, 3, 4], "word": list("abcd")})
    masked = make({"x": [9.0, 41.0, 22.0, 23.0], "n": [7, 5, 8, 6], "word": list("abcd")})
    z = rv.reverse_map(original, masked)
    assert type(z) is type(masked)
    assert list(z["x"].to_pylist() if make is pa.table else z["x"]) == [10.0, 40.0, 20.0, 30.0]
    assert list(z["n"].to_pylist() if make is pa.table else z["n"]) == [3, 1, 4, 2]
    assert list(z["word"].to_pylist() if make is pa.table else z["word"]) == list("abcd")


@MAKERS
def test_reverse_mapping_with_missing_cells(make: Any) -> None:
    original = make({"x": [10.0, 20.0, None, 40.0, 50.0]})
    masked = make({"x": [5.0, None, None, 1.0, 2.0]})
    z = rv.Table(rv.reverse_map(original, masked)).values("x")
    # rows 2 and 3 lack one side; the others hold their own original values, in the order 5, 1, 2
    assert np.isnan(z).tolist() == [False, True, True, False, False]
    assert z[[0, 3, 4]].tolist() == [50.0, 10.0, 40.0]


def test_reverse_mapping_of_the_running_example() -> None:
    """Section 2 of Domingo-Ferrer and Muralidhar (2016): rank correlations of X and Z."""
    original, masked = rv.datasets.running_example()
    z = rv.reverse_map(original, masked)
    found = []
    for name in original.column_names:
        x, y, mapped = (average_ranks(frame[name].to_numpy()) for frame in (original, masked, z))
        assert np.array_equal(y, mapped)
        assert sorted(z[name].to_pylist()) == sorted(original[name].to_pylist())
        found.extend(spearman(x[:, None], mapped[:, None]))
    assert found == pytest.approx([0.722, 0.844, 0.776], abs=0.0005)


def test_reverse_mapping_of_ordered_words() -> None:
    levels = ["low", "middle", "high"]
    original = pa.table({"g": pa.DictionaryArray.from_arrays(pa.array([2, 0, 1]), levels, ordered=True)})
    turned = pa.table({"g": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), levels[::-1], ordered=True)})
    assert rv.reverse_map(original, turned)["g"].to_pylist() == ["high", "middle", "low"]
    text = rv.reverse_map(original, pa.table({"g": ["high", "low", "low"]}))["g"].to_pylist()
    assert text[0] == "high"
    assert sorted(text[1:]) == ["low", "middle"]


def test_reverse_mapping_breaks_ties_by_the_seed() -> None:
    original, masked = pa.table({"x": np.arange(40.0)}), pa.table({"x": np.repeat([1.0, 2.0], 20)})
    first, again, other = (rv.reverse_map(original, masked, seed=seed)["x"].to_pylist() for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(first) == sorted(other) == list(range(40))
    assert max(first[:20]) < min(first[20:])


def test_reverse_mapping_by_key_and_order() -> None:
    original = pa.table({"key": [1, 2, 3], "x": [10.0, 20.0, 30.0]})
    masked = pa.table({"key": [3, 2, 1], "x": [7.0, 9.0, 8.0]})
    assert rv.reverse_map(original, masked, key="key")["x"].to_pylist() == [10.0, 30.0, 20.0]
    with pytest.raises(rv.PairError, match="as many original records"):
        rv.reverse_map(original, pa.table({"key": [1, 2, 3, 4], "x": [1.0, 2.0, 3.0, 4.0]}), mapping=False)


def test_reverse_mapping_refuses_masked_values_without_an_original() -> None:
    original = pa.table({"key": [1, 2], "x": [10.0, 20.0]})
    masked = pa.table({"key": [1, 2, 3], "x": [7.0, 9.0, 8.0]})
    with pytest.raises(rv.PairError, match=r"^column x: masked row 3 has no original value"):
        rv.reverse_map(original, masked, key="key")
    imputed = pa.table({"key": [1, 2], "x": [None, 20.0]})
    with pytest.raises(rv.PairError, match=r"^column x: masked row 1 has no original value"):
        rv.reverse_map(imputed, masked.slice(0, 2))


def test_a_table_keeps_its_own_declarations() -> None:
    table = rv.Table(ORIGINAL, schema=rv.Schema(roles={"key": "confidential", "x": "confidential"}))
    assert rv.audit(table, table, schema=table.schema, decimal=".").attributes == ("key", "x")
    with pytest.raises(rv.ParameterError, match="a Table has its own schema"):
        rv.audit(table, table, schema=rv.Schema(roles={"key": "identifier"}))
    with pytest.raises(rv.ParameterError, match="there is no argument colums; did you mean columns"):
        rv.audit(table, table, colums=["x"])


def test_one_name_is_not_its_letters() -> None:
    letters = pa.table({"k": [1.0, 2.0], "e": [2.0, 1.0], "y": [1.0, 3.0], "key": [5.0, 4.0]})
    assert rv.audit(letters, letters, columns="key", measures="permutation_level").attributes == ("key",)
    assert rv.audit(letters, letters, fail_if="permutation_level<0.1").ok is False
    schema = rv.Schema(roles={"key": "confidential"})
    release = rv.mask(letters, "identity", then="round", publish="permutation_level", seed=1, schema=schema)
    assert [step["method"] for step in release.manifest["steps"]] == ["identity", "round"]
    assert release.manifest["measures"] == {"permutation_level": 0.0}


def weighted(order: list[int]) -> tuple[pa.Table, pa.Table, rv.Schema]:
    """An original with weights, and the release of its records in another order, which left the weights out."""
    original = pa.table({"K": ["a", "b", "c", "d"], "X": [1.5, 2.5, 3.5, 4.5], "W": [1.0, 2.0, 3.0, 10.0]})
    return original, original.take(order).drop_columns("W"), rv.Schema(roles={"W": "weight"})


def test_a_release_without_its_weights_has_those_of_the_originals_records() -> None:
    original, release, schema = weighted([3, 1, 0, 2])
    made = pair_tables(original, release, columns=["X"], key="K", schema=schema)
    assert made.known[1].survey is not None
    assert made.known[1].survey.tolist() == [10.0, 2.0, 1.0, 3.0]
    audited = rv.audit(original, release, measures=["mean_shift"], columns=["X"], key="K", schema=schema)
    assert audited["mean_shift"] == pytest.approx(0.0, abs=1e-12)


def test_without_a_mapping_nobody_knows_the_weights_that_a_release_left_out() -> None:
    original, release, schema = weighted([3, 1, 0, 2])
    made = pair_tables(original, release, columns=["X"], mapping=False, schema=schema)
    assert made.known[1].survey is None
    assert any("no weights: its records count once each" in note for note in made.notes)
