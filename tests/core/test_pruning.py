"""Labels of people who are not in the release are nowhere in it: not in its file, nor in its manifest."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest

import rankveil as rv
from rankveil import files, metadata
from rankveil.cli import main
from rankveil.files import registry
from rankveil.metadata import Described, tagged

GONE = "Zorblax"
"""In every label of the one person who is not released."""
N = 40


def survey(*, letters: bool = False) -> pa.Table:
    """People, the last of whom alone has some values, with labels of values, categories and missing codes."""
    codes = np.array([1, 2, 3] * 13 + [7])
    words = ["cook", "baker", "unused", f"{GONE} of York"]
    jobs = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 19 + [0, 3], pa.int8()), words, ordered=True)
    answers = np.array([4.0, 5.0] * 19 + [np.nan, tagged("b") if letters else -8.0])
    answers[0] = tagged("a") if letters else -9.0
    labels = ((7, f"{GONE} castle"), (2, "town"), (1, "village"), (3, "city"), (8, f"{GONE} declared"))
    own = {"program": "stata"} if letters else {"missing_codes": (-9, -8)}
    missing = [(".a", "refused"), (".b", f"{GONE} ill")] if letters else [(-9, "refused"), (-8, f"{GONE} ill")]
    said = Described(value_labels=(*missing, (4, "four")), **own)  # type: ignore[arg-type]
    fields = [
        metadata.write(pa.field("place", pa.int8()), Described(label="Place of living", value_labels=labels)),
        pa.field("job", jobs.type),
        metadata.write(pa.field("answer", pa.float64()), said),
        pa.field("x", pa.float64()),
    ]
    arrays = [pa.array(codes, pa.int8()), jobs, pa.array(answers), pa.array(np.arange(float(N)))]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def leaves_out(data: Any) -> int:
    """A seed with which the last record is not drawn."""
    return next(seed for seed in range(50) if N - 1 not in rv.mask(data, "sample", size=30, seed=seed).secret.order)


def released(data: Any, how: str) -> Any:
    """A release in which the last record is not, or has none of its values."""
    if how == "sampled":
        return rv.mask(data, "sample", size=30, seed=leaves_out(data))
    roles = dict.fromkeys(("place", "job", "answer"), "quasi-identifier")
    kinds = {"place": "nominal", "answer": "nominal"}
    return rv.mask(data, "suppress", k=2, seed=1, schema=rv.Schema(roles=roles, kinds=kinds))


def everything(path: str) -> bytes:
    """All bytes of a file, packed and unpacked, and of the table that is read from it."""
    found = Path(registry.sheet_of(path)[0]).read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            found += b"".join(packed.read(name) for name in packed.namelist())
    return found + content(files.load(path).data)


def content(data: pa.Table) -> bytes:
    """A table with its dictionaries and what is noted of it, as plain bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, data.schema, options=pa.ipc.IpcWriteOptions(unify_dictionaries=True)) as target:
        target.write_table(data)
    return bytes(sink.getvalue())


WRITTEN = sorted(ending for ending, format in registry.formats().items() if hasattr(format, "save"))


@pytest.mark.parametrize("how", ["sampled", "suppressed"])
@pytest.mark.parametrize("ending", WRITTEN)
def test_a_label_that_no_released_cell_has_is_nowhere_in_the_file(ending: str, how: str, tmp_path: Path) -> None:
    release = released(survey(letters=ending == ".dta"), how)
    path = str(tmp_path / f"out{ending}")
    files.save(release.data, path)
    assert GONE.encode() in content(survey())
    for place in (everything(path), content(release.data), release.manifest.to_json().encode()):
        assert GONE.encode() not in place
        assert b"unused" not in place
    assert not any(GONE in note for note in release.notes)
    assert files.load(path).data.num_rows == (30 if how == "sampled" else N)


@pytest.mark.parametrize("how", ["sampled", "suppressed"])
@pytest.mark.parametrize("kind", sorted(set(registry.formats()) & {"sqlite://", "duckdb://"}))
def test_a_label_that_no_released_cell_has_is_nowhere_in_a_database(kind: str, how: str, tmp_path: Path) -> None:
    release = released(survey(), how)
    files.save(release.data, f"{kind}/{tmp_path}/out.db?table=people")
    assert GONE.encode() not in (tmp_path / "out.db").read_bytes()


@pytest.mark.parametrize("how", ["sampled", "suppressed"])
@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_what_pyreadstat_finds_in_a_release(
    ending: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files.save(survey(letters=ending == ".dta"), f"in{ending}")
    assert GONE.encode() in Path(f"in{ending}").read_bytes()
    more = ["sample", "--set", "size=30", "--seed", str(leaves_out(files.load(f"in{ending}").data))]
    if how == "suppressed":
        more = ["suppress", "--set", "k=2", "--seed", "1"]
        more += [f"--role={name}=quasi-identifier" for name in ("place", "job", "answer")]
        more += ["--kind=place=nominal", "--kind=answer=nominal"]
    assert main(["mask", f"in{ending}", "-o", f"out{ending}", "--method", *more]) == 0
    read = pyreadstat.read_dta if ending == ".dta" else pyreadstat.read_sav
    _, said = read(f"out{ending}", user_missing=True, output_format="dict")
    labels = said.variable_value_labels
    assert labels["place"] == {1: "village", 2: "town", 3: "city"}
    assert sorted(labels["job"].values()) == ["baker", "cook"]
    assert labels["answer"].get(4) == "four"
    assert said.column_names_to_labels["place"] == "Place of living"
    for file in tmp_path.glob("out*"):
        assert GONE.encode() not in file.read_bytes(), file.name


def test_codes_that_are_used_stay_in_their_order() -> None:
    data = survey()
    made = rv.mask(data, "identity", columns=["x"], release_identifiers=["x"]).data
    said = metadata.read(made.schema.field("place"))
    assert [value for value, _ in said.value_labels] == [7, 2, 1, 3]  # 8 is declared and has no cell
    answer = metadata.read(made.schema.field("answer"))
    assert answer.missing_codes == (-9, -8)
    assert made["job"].combine_chunks().dictionary.to_pylist() == ["cook", "baker", f"{GONE} of York"]
    assert made["job"].type.ordered
    assert metadata.read(data.schema.field("place")).labels[8] == f"{GONE} declared"  # the table given stays


@pytest.mark.parametrize(
    ("cells", "labels", "kept"),
    [
        (["m", "f "], (("m", "male"), ("f", "female"), ("x", GONE)), ["m", "f"]),
        ([True, None], ((1, "yes"), (0, GONE)), [1]),
        ([1.5, np.nan], ((1.5, "half"), (".a", GONE), (1, GONE)), [1.5]),
        ([1.5, tagged("a")], ((1.5, "half"), (".a", "refused"), (".b", GONE)), [1.5, ".a"]),
        (pd.to_datetime(["1970-01-03"]).date, ((2, "launch"), (3, GONE)), [2]),
        ([[1]], ((1, GONE),), []),
    ],
)
def test_labels_of_cells_of_every_type(cells: Any, labels: Any, kept: list[Any]) -> None:
    array = pa.array(cells)
    field = metadata.write(pa.field("a", array.type), Described(value_labels=labels))
    data = pa.Table.from_arrays([array, pa.array(np.arange(float(len(array))))], schema=pa.schema([field, ("x", "f8")]))
    made = rv.mask(data, "identity", columns=["x"]).data
    assert [value for value, _ in metadata.read(made.schema.field("a")).value_labels] == kept


def test_ranges_of_missing_codes() -> None:
    said = Described(missing_codes=(-9,), missing_ranges=((90.0, np.inf), (50.0, 60.0)), value_labels=((55, GONE),))
    field = metadata.write(pa.field("a", pa.int64()), said)
    data = pa.Table.from_arrays([pa.array([1, 99]), pa.array([1.0, 2.0])], schema=pa.schema([field, ("x", "f8")]))
    made = metadata.read(rv.mask(data, "identity", columns=["x"]).data.schema.field("a"))
    assert made == Described(missing_ranges=((90.0, np.inf),))


def test_values_that_masking_makes_keep_the_labels_that_they_have() -> None:
    data = survey()
    made = rv.mask(data, "pram", columns=["place"], p=0.5, seed=3, schema=rv.Schema(kinds={"place": "nominal"})).data
    used = set(made["place"].to_pylist())
    assert used == {1, 2, 3, 7}
    assert set(metadata.read(made.schema.field("place")).labels) == used


def test_categories_of_frames() -> None:
    words = pd.Categorical(["a", "b"] * 5, categories=["b", GONE, "a"], ordered=True)
    index = pd.CategoricalIndex(["p", "q"] * 5, categories=["p", "q", GONE])
    arrow = pd.Series(
        pa.DictionaryArray.from_arrays([0, 2] * 5, ["b", GONE, "a"]),
        dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())),
    )
    frame = pd.DataFrame({"w": words, "arrow": arrow, "x": np.arange(10.0)}).set_index(index)
    made = rv.mask(frame, "identity", columns=["x"]).data
    assert made["w"].cat.categories.tolist() == ["b", "a"]
    assert made["w"].cat.ordered
    assert made["w"].tolist() == frame["w"].tolist()
    assert made["arrow"].array._pa_array.combine_chunks().dictionary.to_pylist() == ["b", "a"]
    assert made.index.categories.tolist() == ["p", "q"]
    several = (
        frame.reset_index(drop=True).set_index(pd.MultiIndex.from_arrays([["u"] * 9 + [GONE], range(10)])).iloc[:9]
    )
    assert GONE in several.index.levels[0]
    kept = rv.mask(several, "identity", columns=["x"]).data
    assert GONE not in kept.index.levels[0]
    assert kept.index.equals(several.index)
    assert list(frame["w"].cat.categories) == ["b", GONE, "a"]  # the table given stays

    columns = {"e": pl.Series(["a", "b"] * 5, dtype=pl.Enum(["b", GONE, "a"])), "x": np.arange(10.0)}
    columns["l"] = pl.Series([["a"], None] * 5, dtype=pl.List(pl.Enum(["a", GONE])))
    columns["s"] = pl.Series([{"k": "a"}] * 10, dtype=pl.Struct({"k": pl.Enum(["a", GONE])}))
    release = rv.mask(pl.DataFrame(columns), "identity", columns=["x"]).data
    assert release.schema["e"] == pl.Enum(["b", "a"])
    assert release["e"].to_list() == ["a", "b"] * 5
    assert release["l"].to_list() == [["a"], None] * 5
    assert GONE not in str(release.schema)


def test_dictionaries_inside_lists_and_what_is_noted_there() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 0]), ["a", GONE])
    item = pa.field("item", words.type, metadata={"note": GONE})
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4]), words).cast(pa.list_(item))
    records = pa.StructArray.from_arrays([words], fields=[item])
    data = pa.table({"lists": lists, "records": records, "x": [1.0, 2.0, 3.0, 4.0]})
    made = rv.mask(
        data.filter(pa.array([True, False, True, True])), "identity", columns=["x"], release_identifiers=["records"]
    ).data
    assert made["lists"].to_pylist() == [["a"]] * 3
    assert made["records"].to_pylist() == [{"item": "a"}] * 3
    assert GONE.encode() not in content(made)


def test_what_the_types_of_other_libraries_carry_is_left_out_and_said() -> None:
    said = {"ARROW:extension:name": "arrow.r.vctrs", "ARROW:extension:metadata": f"levels: {GONE}"}
    data = pa.table([pa.array([1.0, 2.0])], schema=pa.schema([pa.field("x", pa.float64(), metadata=said)]))
    release = rv.mask(data, "identity")
    assert GONE.encode() not in content(release.data)
    assert any("ARROW:extension:metadata" in note for note in release.notes)


def test_values_beneath_missing_cells_and_ends_of_columns_are_those_of_the_release(tmp_path: Path) -> None:
    data = pa.table({"g": ["a", "a", "b", "b"], "x": [1.0, 1.0, 2.0, 98765.4321], "t": ["p", "p", "q", GONE]})
    roles = dict.fromkeys(data.column_names, "quasi-identifier")
    made = rv.mask(data, "suppress", k=2, schema=rv.Schema(roles=roles, kinds={"x": "nominal"}), seed=1).data
    assert GONE.encode() not in content(made)
    assert np.float64(98765.4321).tobytes() not in content(made)
    files.save(made, str(tmp_path / "out.parquet"))
    assert np.float64(98765.4321).tobytes() not in (tmp_path / "out.parquet").read_bytes()
