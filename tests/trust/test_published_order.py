"""What is published has its rows shuffled: by the order of the rows nobody finds the original's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import rankveil as rv
from rankveil import catalogue, files
from rankveil.beside import read_secret
from rankveil.cli import main
from rankveil.manifest import LISTED, Secret
from rankveil.masking.row_order import Run, Runs
from rankveil.seeds import Seed
from rankveil.table import Table

FALSE_ALARM = 1e-6
HEX = "00112233445566778899aabbccddeeff"
SORTED = "warning: the rows stand in the original's order, which is sorted by INCOME: "
NOISE = ("additive_noise", {"columns": ["INCOME", "SAVINGS"], "alpha": 0.3})

PACKAGES = {".xlsx": "openpyxl", ".dta": "pyreadstat", ".sav": "pyreadstat", "duckdb:": "duckdb"}
OUTS = [
    "out.csv",
    "out.tsv",
    "out.parquet",
    "out.feather",
    "out.dta",
    "out.sav",
    "out.xlsx",
    "sqlite:///out.db?table=people",
    "duckdb:///out.db?table=people",
]


@pytest.fixture
def by_income(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    """The demo's people, sorted by their income, also in a file of the working directory."""
    monkeypatch.chdir(tmp_path)
    people = rv.datasets.demo().drop_columns(["PERSON"])
    people = people.filter(pa.compute.is_valid(people["INCOME"])).sort_by("INCOME")
    files.save(people, "people.csv")
    files.save(people, "people.parquet")
    return people


def mask(*words: str, code: int = 0) -> None:
    assert main(["mask", *words]) == code


def put_back(original: Any, released: Any) -> int:
    """How many values of the original stand where sorting the released ones brings them, row by row."""
    return int(np.sum(np.sort(np.asarray(released, dtype=float)) == np.asarray(original, dtype=float)))


def numbers(path: str, name: str) -> np.ndarray[Any, Any]:
    loaded = files.load(path)
    return Table(loaded.data, decimal=loaded.dialect.decimal if loaded.dialect else ".").values(name)


def test_sorting_the_released_column_puts_back_what_chance_does(by_income: pa.Table) -> None:
    """rank_swap keeps all values: in the original's order, sorting brings each of them back to its row."""
    income = by_income["INCOME"].to_numpy()
    words = ["people.csv", "--method", "rank_swap", "--columns", "INCOME", "--set", "p=20", "--seed", HEX]
    mask(*words, "-o", "kept.csv", "--keep-order")
    assert put_back(income, numbers("kept.csv", "INCOME")) == income.size
    mask(*words, "-o", "out.csv")
    released, order = numbers("out.csv", "INCOME"), read_secret("out.csv.secret.json").order
    assert order is not None
    # what an intruder reads of person i when he sorts the column, held against the person whose record stands there
    guessed = np.sort(released) == income[order]
    ties = np.unique(income, return_counts=True)[1]
    expected = float((ties**2).sum() / income.size)  # equal values are right by chance
    assert stats.poisson.sf(int(guessed.sum()) - 1, expected) > FALSE_ALARM
    assert sorted(released) == sorted(income)


@pytest.mark.parametrize("out", OUTS)
def test_the_order_of_every_format_tells_nothing(by_income: pa.Table, out: str) -> None:
    for mark, package in PACKAGES.items():
        if mark in out:
            pytest.importorskip(package)
    mask("people.parquet", "-o", out, "--method", "additive_noise", "--columns", "INCOME", "--set", "alpha=0.01")
    order = read_secret(f"{files.companion(out)}.secret.json").order
    income, released = by_income["INCOME"].to_numpy(), numbers(out, "INCOME")
    assert order is not None
    assert sorted(order) == list(range(len(income)))
    apart = np.abs(released - income[order])  # the mapping in the secret is right
    assert apart.max() < 0.01 * income.std() * stats.norm.isf(FALSE_ALARM / 2 / len(income))
    related = stats.spearmanr(released, np.arange(len(income))).statistic
    assert abs(related) * np.sqrt(len(income) - 1) < stats.norm.isf(FALSE_ALARM / 2)
    manifest = json.loads(Path(f"{files.companion(out)}.manifest.json").read_text("utf-8"))
    assert (manifest["row_order"], manifest["mapping"]) == ("shuffled", "reordered")
    assert [step["method"] for step in manifest["steps"]] == ["additive_noise", "record_shuffle"]


def test_who_keeps_the_order_is_warned_and_the_manifest_says_so(
    by_income: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["people.csv", "-o", "kept.csv", "--method", "additive_noise", "--columns", "INCOME"]
    mask(*words, "--set", "alpha=0.3", "--keep-order")
    assert SORTED in capsys.readouterr().out
    manifest = json.loads(Path("kept.csv.manifest.json").read_text("utf-8"))
    assert (manifest["row_order"], manifest["mapping"]) == ("kept", "kept")
    assert any(words.startswith("the rows stand in the original's order") for words in manifest["for_users"])
    assert read_secret("kept.csv.secret.json").order is None
    assert main(["attack", "people.csv", "kept.csv", "--json"]) == 1
    attacked = json.loads(capsys.readouterr().out)
    assert attacked["found"]["share"] == 1
    assert {each["id"]: each["found"] for each in attacked["evidence"]}["row_order"] == 1


@pytest.mark.parametrize("verb", ["audit", "attack", "certify"])
def test_the_published_file_is_measured_like_the_release_in_memory(
    by_income: pa.Table, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    original = files.load("people.csv").data
    release = rv.mask(original, NOISE[0], **NOISE[1], seed=HEX)
    release.write("out.csv")
    names = ["INCOME", "SAVINGS"]
    more = {"audit": ["--measures", "cm1,cm2,um,permutation_level,rank_linkage,il1s,people_found"]}.get(verb, [])
    code = main([verb, "people.csv", "out.csv", "--columns", ",".join(names), *more, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["mapping"] == "secret"
    assert "the mapping was read from the secret beside the release: out.csv.secret.json" in told["notes"]
    if verb == "audit":
        assert code == 0
        made = rv.audit(original, release, columns=names, measures=more[1].split(","))
        for name in made:
            assert told["measures"][name]["value"] == pytest.approx(made[name], rel=1e-9), name
    elif verb == "certify":
        assert told["largest"] == rv.certify(original, release, columns=names).to_dict()["largest"]
    else:
        alone = rv.attack(original, release, columns=names)
        assert told["found"]["share"] == pytest.approx(alone.found, abs=4 * np.sqrt(0.25 / len(original)))


def test_columns_that_only_moved_may_be_declared_otherwise(
    by_income: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shuffle names all columns in the manifest, and does nothing to them that depends on their kinds."""
    mask("people.csv", "-o", "out.csv", "--method", NOISE[0], "--columns", "INCOME", "--set", "alpha=0.3")
    capsys.readouterr()
    levels = "EDUCATION=ordinal:primary<secondary<tertiary"
    assert main(["attack", "people.csv", "out.csv", "--kind", levels, "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["mapping"] == "secret"
    manifest = rv.Manifest.from_json(Path("out.csv.manifest.json").read_text("utf-8"))
    fewer = files.load("people.csv").data.select(["INCOME", "TAX", "AGE"])
    released, secret = files.load("out.csv").data, read_secret("out.csv.secret.json")
    assert rv.attack(fewer, released, manifest=manifest, secret=secret).mapping == "secret"


def columns_of(entry: Any) -> tuple[str, ...] | None:
    return ("INCOME", "SAVINGS", "TAX") if "numeric" in entry.kinds else None


@pytest.mark.parametrize("name", [name for name in catalogue.methods() if name not in ("suppress", "recode")])
@pytest.mark.parametrize("make", [lambda table: table, pa.Table.to_pandas, pl.from_arrow])
def test_published_is_as_with_the_step_in_the_plan(name: str, make: Callable[[pa.Table], Any]) -> None:
    """And the values are those of the release in memory: no draw of another step depends on the shuffle."""
    entry = catalogue.get_method(name)
    table = make(rv.datasets.demo(120).drop_columns(["PERSON"]).drop_null())
    given: dict[str, Any] = {"epsilon": 9.0, "lower": 0.0, "upper": 1e6, "d": 3, "columns": None, "fast": True}
    if entry.works_on == "names":
        given["columns"] = ("TAX",)
    elif entry.works_on != "records" and not entry.post:
        given["columns"] = columns_of(entry)
    if name in ("pram", "randomized_response"):
        given["columns"] = ("REGION",)
    if name == "pseudonymise":
        given["columns"] = ("TAX",)
    known = {what: each for what, each in given.items() if what in entry.parameters or what == "columns"}
    if "how" in entry.parameters and name == "top_bottom_code":
        known |= {}
    try:
        plan = rv.Plan.of(name, **known)
        memory = rv.mask(table, plan, seed=3)
    except rv.RankveilError as error:
        pytest.skip(str(error))
    if entry.random and not _repeats(table, plan):
        pytest.skip("it draws noise that does not repeat itself")
    published = memory.published()
    assert memory.published(keep_order=True).manifest.content.get("row_order") in ("kept", "shuffled")
    order, before = published.secret.order, memory.secret.order
    assert order is not None
    if plan.in_random_order().reorders:
        assert published is memory
        return
    explicit = rv.mask(table, plan.then("record_shuffle"), seed=3)
    assert np.array_equal(explicit.secret.order, order)
    assert explicit.manifest.content == published.manifest.content
    assert explicit.secret.to_json() == published.secret.to_json()
    first, second = (_arrow(each.data) for each in (explicit, published))
    assert first.equals(second)
    place = {row: k for k, row in enumerate(range(len(order)) if before is None else before)}
    taken = _arrow(memory.data).take(pa.array([place[row] for row in order]))
    assert [column.to_pylist() for column in second.columns] == [column.to_pylist() for column in taken.columns]


def _repeats(table: Any, plan: rv.Plan) -> bool:
    return _arrow(rv.mask(table, plan, seed=3).data).equals(_arrow(rv.mask(table, plan, seed=3).data))


def _arrow(data: Any) -> pa.Table:
    if isinstance(data, pd.DataFrame):
        return pa.Table.from_pandas(data, preserve_index=False)
    return data.to_arrow() if isinstance(data, pl.DataFrame) else data


@pytest.mark.parametrize("make", [lambda table: table, pa.Table.to_pandas, pl.from_arrow])
@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_write_is_what_the_command_does(by_income: pa.Table, make: Callable[[pa.Table], Any], out: str) -> None:
    by_income = by_income.drop_columns(["EDUCATION"])  # polars forgets which categories are ordered
    files.save(by_income, "people.parquet")
    release = rv.mask(make(by_income), NOISE[0], **NOISE[1], seed=HEX)
    written = release.write(f"again-{out}")
    words = ["--columns", "INCOME,SAVINGS", "--set", "alpha=0.3", "--seed", HEX]
    mask("people.parquet", "-o", out, "--method", NOISE[0], *words)
    assert Path(f"{out}.manifest.json").read_text("utf-8") == Path(f"again-{out}.manifest.json").read_text("utf-8")
    one, other = (read_secret(f"{name}.secret.json") for name in (out, f"again-{out}"))
    assert np.array_equal(one.order, other.order)
    assert (one.seed.reveal(), one.fingerprint) == (other.seed.reveal(), other.fingerprint)
    first, second = (files.load(name).data for name in (out, f"again-{out}"))
    assert first.to_pylist() == second.to_pylist()
    assert Path(f"again-{out}.secret.json").stat().st_mode & 0o777 == 0o600
    assert numbers(out, "INCOME") == pytest.approx(np.asarray(_arrow(written.data)["INCOME"], dtype=float))
    assert release.secret.order is None  # in memory it keeps its order
    assert written.secret.to_json() == Path(f"again-{out}.secret.json").read_text("utf-8")


def test_nothing_is_written_unless_all_is(by_income: pa.Table) -> None:
    release = rv.mask(by_income, NOISE[0], **NOISE[1])
    Path("taken").mkdir()
    with pytest.raises(rv.RankveilError):
        release.write("out.csv", secret="taken")
    with pytest.raises(rv.RankveilError, match="names of their own"):
        release.write("out.csv", manifest="out.csv")
    with pytest.raises(rv.RankveilError, match="there is no folder nowhere"):
        release.write("nowhere/out.csv")
    assert sorted(path.name for path in Path().iterdir()) == ["people.csv", "people.parquet", "taken"]


def test_a_manifest_that_says_reordered_needs_the_mapping(by_income: pa.Table) -> None:
    published = rv.mask(by_income, NOISE[0], **NOISE[1]).published()
    for verb in (rv.audit, rv.attack):
        with pytest.raises(rv.PairError, match="the rows of the release were reordered, as its manifest says"):
            verb(by_income, published.data, manifest=published.manifest)
    told = {"manifest": published.manifest, "secret": published.secret}
    assert rv.audit(by_income, published.data, measures=["cm1"], **told).mapping == "secret"


def test_paths_find_the_mapping_that_lies_beside(by_income: pa.Table) -> None:
    rv.mask("people.parquet", NOISE[0], output="out.parquet", seed=HEX, **NOISE[1])
    made = rv.audit("people.parquet", "out.parquet", measures=["cm1", "permutation_level"])
    assert made.mapping == "secret"
    memory = rv.mask(by_income, NOISE[0], seed=HEX, **NOISE[1])
    alone = rv.audit(by_income, memory, measures=["cm1", "permutation_level"])
    assert [made[name] for name in made] == pytest.approx([alone[name] for name in alone], rel=1e-9)
    Path("out.parquet.secret.json").unlink()
    with pytest.raises(rv.PairError, match="its rows were reordered, as its manifest says; give its secret"):
        rv.audit("people.parquet", "out.parquet", measures=["cm1"])
    kept = rv.mask("people.parquet", NOISE[0], output="kept.parquet", shuffled=False, **NOISE[1])
    assert any(note.startswith(SORTED) for note in kept.notes)
    assert rv.audit("people.parquet", "kept.parquet", measures=["cm1"]).mapping == "rows"


# -- the secret of a long table


def test_a_long_mapping_is_the_key_that_makes_it_again() -> None:
    shuffle = Seed.of(3).stream("mask", 1, "record_shuffle", 0)
    for records in (LISTED, LISTED + 1):
        secret = Secret(Seed.of(3), "fingerprint", shuffle.at().order(records), shuffle=shuffle)
        text = secret.to_json()
        assert isinstance(json.loads(text)["mapping"], list) == (records == LISTED)
        again = Secret.from_json(text)
        assert np.array_equal(again.order, secret.order)
        assert again.to_json() == text
    assert len(text) < 300


@pytest.mark.parametrize("records", ["-1", "true", "1e18", '"x"', "null"])
def test_a_damaged_mapping_is_refused(records: str) -> None:
    plain = {"schema": "rankveil/secret/1", "seed": HEX, "original_fingerprint": "", "mapping": {"records": 0}}
    plain["mapping"] |= {"records": json.loads(records), "shuffled_by": HEX}
    with pytest.raises(rv.FileError, match="the secret file is damaged"):
        Secret.from_json(json.dumps(plain))
    plain["mapping"] |= {"records": 10**15}
    with pytest.raises(rv.FileError, match=r"needs .* of memory, and less is free"):
        Secret.from_json(json.dumps(plain))
    plain["mapping"] |= {"records": 5, "shuffled_by": "00"}
    with pytest.raises(rv.FileError, match="the secret file is damaged"):
        Secret.from_json(json.dumps(plain))


# -- by which columns rows are sorted


def table_of(**columns: Any) -> Table:
    return Table(pa.table(columns))


def test_sorted_columns_are_found_whatever_they_hold() -> None:
    words = [f"{k:02d} words" for k in range(20)]
    table = table_of(
        rising=np.arange(20.0),
        falling=-np.arange(20),
        tied=np.arange(20) // 5,
        gaps=[None if k % 3 else float(k) for k in range(20)],
        words=words,
        codes=[str(k) for k in range(20)],
        dates=pa.array(np.arange(20, dtype=np.int32)).cast(pa.date32()),
        constant=[1.0] * 20,
        mixed=[1.0, 0.0] * 10,
        few=[1.0, 2.0, 3.0] + [None] * 17,
        lists=[[k] for k in range(20)],
    )
    runs = Runs.of(table, table)
    found = {name for name, run in runs.original.items() if run.is_sorted}
    # 7 values are there in `gaps`, which says nothing yet
    assert found == {"rising", "falling", "tied", "words", "codes", "dates"}


def test_runs_of_parts_are_those_of_the_whole() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        values = np.sort(rng.integers(0, 6, 24)).astype(float)
        if rng.random() < 0.5:
            values[rng.integers(0, 24, 2)] = rng.integers(0, 6, 2)
        values[rng.random(24) < 0.2] = np.nan
        cuts = [0, *sorted(rng.integers(0, 25, 3)), 24]
        whole = Runs.of(table_of(A=values), table_of(A=values))
        parts = [Runs.of(table_of(A=part), table_of(A=part)) for part in np.split(values, cuts[1:-1]) if part.size]
        together = parts[0]
        for part in parts[1:]:
            together = together.then(part)
        assert together == whole
    assert not Run(9, 1.0, 9.0, True, False).then(Run(9, "a", "b", True, False)).is_sorted
