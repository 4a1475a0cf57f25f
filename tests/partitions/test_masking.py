"""The contract of masking in parts: every method gives the release that it gives in memory, however a table is cut."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil import catalogue, metadata
from rankveil.catalogue import Method
from rankveil.cluster.addresses import parse
from rankveil.cluster.masks import MaskedParts, masked_table, open_table
from rankveil.manifest import describe
from rankveil.masking import defended
from rankveil.partitions import looking, whole
from rankveil.plans import Plan, make_step
from rankveil.seeds import Seed
from rankveil.table import Table

SEED = "5eed0123456789abcdef5eed0123456789abcdef5eed0123456789abcdef5eed"
HIERARCHY = [(town, town[0], "*") for town in ("na", "nb", "sa", "sb", "sc")]
RECORDS = 161
CUTS: dict[int, Sequence[int]] = {1: (), 2: (80,), 4: (1, 60, 61), 7: (1, 60, 61, 62, 120, 160)}
"""Where a table is cut into so many parts; two of the four and four of the seven have one record."""
MANY = [4, pytest.param(7, marks=pytest.mark.thorough)]
PERSONS = [f"P{i:04d}" for i in range(RECORDS)]
BLOCK = 40
"""Records that are put in order together."""
PROTECTOR = (
    "warning:",
    "passed through",
    "masked like",
    "the seed has",
    "the synthetic records stand",
    "the pseudonyms are",
    "somebody who knows all originals",
    "how many people an intruder",
)
"""How notes begin that are about the release as a whole."""
ORDER = "warning: the rows "
"""How those begin that the parts tell of the order of their rows."""


class Here:
    """An engine of the process itself, as careless as the tests of this room have it."""

    address, notes, memory = parse("local"), (), 2**31

    def __init__(self, each: Callable[..., list[Any]], scratch: Path) -> None:
        self._each, self.scratch = each, str(scratch)

    def check_seen(self, files: Sequence[str]) -> None:
        """There is nobody else."""

    def __call__(self, function: Any, items: Sequence[Any], *, done: Callable[[int, Any], None]) -> list[Any]:
        found = self._each(function, items)
        for place, result in enumerate(found):
            done(place, result)
        return found


def by_post(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """An engine that sends all by post and does everything once."""
    return [pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(item))) for item in items]


class Parted(NamedTuple):
    data: pa.Table
    made: MaskedParts


def people(n: int = RECORDS) -> pa.Table:
    """Columns of every kind: ties, gaps of all sorts, a constant, whole numbers, categories, dates, weights."""
    rng = np.random.default_rng(4)

    def gaps(values: Any, share: float = 0.1) -> pa.Array:
        return pa.array(values, mask=rng.random(n) < share)

    grades = gaps(rng.integers(0, 3, n).astype(np.int8))
    ages = np.where(rng.random(n) < 0.1, -9, rng.integers(18, 70, n))
    born = np.datetime64("1950-01-01") + rng.integers(0, 20_000, n).astype("timedelta64[D]")
    return pa.table(
        {
            "PERSON": PERSONS[:n],
            "TOWN": gaps(np.array([row[0] for row in HIERARCHY])[rng.integers(0, 5, n)]),
            "JOB": pa.array([f"job {k}" for k in np.minimum(rng.geometric(0.3, n), 9)]).dictionary_encode(),
            "GRADE": pa.DictionaryArray.from_arrays(grades, ["low", "middle", "high"], ordered=True),
            "AGE": ages,
            "INCOME": gaps(rng.lognormal(10, 1, n)),
            "SCORE": np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(size=n) * 3)),  # ties, NaN, 0 and -0
            "SAME": np.full(n, 7.0),
            "BORN": gaps(born),
            "WEIGHT": np.where(np.arange(n) < 70, 0, rng.integers(1, 9, n)),
        }
    )


ROLES = {"PERSON": "identifier", "TOWN": "quasi-identifier", "AGE": "quasi-identifier", "WEIGHT": "weight"}


def declared(**given: Any) -> rv.Schema:
    how: dict[str, Any] = {"missing": ("-9",), "roles": ROLES, "hierarchies": {"TOWN": rv.Hierarchy(HIERARCHY)}}
    return rv.Schema(**{**how, **given})


@contextmanager
def in_parts(each: Any, data: pa.Table, plan: Plan, cuts: Sequence[int], schema: rv.Schema) -> Iterator[Parted]:
    """The release of a table that is cut at some rows."""
    with TemporaryDirectory() as place:
        folder, out, scratch = (Path(place) / name for name in ("in", "out", "scratch"))
        folder.mkdir()
        scratch.mkdir()
        for number, (start, stop) in enumerate(pairwise((0, *cuts, len(data)))):
            part = data.slice(start, stop - start)
            if "JOB" in part.column_names:  # a file has its own dictionary
                jobs = part.column("JOB").combine_chunks().cast(pa.string()).dictionary_encode()
                part = part.set_column(part.column_names.index("JOB"), "JOB", jobs)
            pq.write_table(part, folder / f"{number:02d}.parquet")
        how: dict[str, Any] = {"schema": schema, "seed": Seed.of(SEED), "rows": 1, "block": BLOCK}
        try:
            with masked_table(Here(each, scratch), open_table(folder), plan, out=out, **how) as made:
                made.folder.commit()
            files = [pq.ParquetFile(path).read() for path in sorted(out.iterdir())]
            assert len(files) == len(cuts) + 1
            yield Parted(pa.concat_tables(files), made)
        finally:
            assert os.listdir(scratch) == []
            assert set(os.listdir(place)) <= {"in", "out", "scratch"}


def assert_same_table(parted: pa.Table, memory: pa.Table) -> None:
    """The same types, what is said of columns, words of dictionaries and cells, to the last bit."""
    assert parted.column_names == memory.column_names
    for one, other in zip(parted.schema, memory.schema, strict=True):
        assert one.equals(other, check_metadata=True), one.name
        ours, theirs = (table.column(one.name).unify_dictionaries() for table in (parted, memory))
        if pa.types.is_dictionary(one.type):
            words = [
                list(dict.fromkeys(w for c in column.chunks for w in c.dictionary.to_pylist()))
                for column in (ours, theirs)
            ]
            assert words[0] == words[1], one.name
        assert list(map(repr, ours.to_pylist())) == list(map(repr, theirs.to_pylist())), one.name  # tells 0 from -0


def assert_the_same(
    plan: Plan,
    *,
    each: Any = by_post,
    data: pa.Table | None = None,
    schema: rv.Schema | None = None,
    parts: Sequence[int] = (1, 2, 4),
) -> None:
    """A plan gives in so many parts what it gives in memory, its rows in the same order."""
    data, schema, plan = people() if data is None else data, schema or declared(), plan.in_random_order()
    memory = rv.mask(data, plan, seed=SEED, schema=schema).published(keep_order=True)
    decided = defended(plan, Table(data, schema=schema))
    own = [note for note in memory.notes if note not in decided.notes]
    said = [note for note in own if note.startswith(ORDER) or not note.startswith(PROTECTOR)]
    for many in parts:
        with in_parts(each, data, decided.plan, CUTS[many], decided.table.schema) as (parted, made):
            assert_same_table(parted, memory.data)
        kept = not made.plan.reorders
        manifest = describe(made.whole, made.plan, made.account, digest=made.digest, order_kept=kept).to_json()
        assert json.loads(manifest) == json.loads(memory.manifest.to_json())
        assert made.account.changed == memory.changed
        assert made.fingerprint == memory.secret.fingerprint
        assert (made.order is None) == (memory.secret.order is None)
        assert made.order is None or np.array_equal(made.order, memory.secret.order)
        about_parts = f"masked in {many} part{'s' if many > 1 else ''} on the cluster local"
        told = {note for note in (*made.notes, *made.account.notes) if not note.startswith("in: ")}  # which files
        assert sorted(told) == sorted({*said, about_parts})


GIVEN: dict[str, dict[str, Any]] = {
    "distance_swap": {"d": 3},
    "dp_microaggregation": {"epsilon": 1.0, "lower": -100, "upper": 1000, "fast": True, "columns": ["AGE", "SCORE"]},
    "drop": {"columns": ["JOB", "SAME"]},
    "laplace_dp": {"epsilon": 1.0, "bounds": "data", "fast": True, "columns": ["AGE", "INCOME"]},
    "missing_swap": {"columns": ["TOWN", "GRADE", "INCOME", "BORN"]},
    "recode": {"level.TOWN": 1, "width.AGE": 10.0, "rare.JOB": 10.0, "cuts.GRADE": "middle", "width.BORN": 3650.0},
    "sample": {"share": 0.3},
    "suppress": {"k": 2},
    "top_bottom_code": {"top_percent": 5.0, "replace": "mean", "columns": ["AGE", "INCOME", "SCORE"]},
}
"""What a method must be told before it can do anything with this table."""


def plan_of(method: Method) -> Plan:
    given = dict(GIVEN.get(method.id, {}))
    step = make_step(method.id, given, columns=given.pop("columns", None))
    noise = make_step("additive_noise", {"alpha": 0.5}, columns=["AGE", "INCOME", "SCORE", "BORN"])
    return Plan((noise, step)) if method.post else Plan((step,))


@pytest.mark.parametrize("method", [pytest.param(each, id=each.id) for each in catalogue.methods().values()])
def test_every_method_gives_the_release_that_it_gives_in_memory(method: Method) -> None:
    assert_the_same(plan_of(method))


Told = tuple[str, dict[str, Any], list[str] | None]
NOISE: Told = ("additive_noise", {"alpha": 0.5}, ["AGE", "INCOME", "SCORE", "BORN"])
NUMBERS = ["AGE", "INCOME", "SCORE", "SAME", "BORN"]
PLANS: dict[str, list[Told]] = {
    "mdav in blocks": [("mdav", {"k": 3, "kd_blocks": 6}, None)],
    "mdav in blocks, columns apart": [("mdav", {"k": 3, "kd_blocks": 4, "block": 2}, NUMBERS)],
    "ipso given": [("ipso", {"given": ("AGE",)}, ["INCOME", "SCORE"])],
    "shuffle given": [("shuffle", {"given": ("AGE",)}, ["INCOME", "SCORE", "GRADE"])],
    "invariant pram": [("pram", {"invariant": True, "to": "frequency"}, ["TOWN", "JOB", "GRADE"])],
    "a domain": [("randomized_response", {"epsilon": 1.0, "domain.TOWN": "na,nb,sa,sb,sc,sd"}, ["TOWN", "JOB"])],
    "limits of ranks": [("top_bottom_code", {"top_percent": 5.0, "bottom_percent": 9.0}, ["GRADE", "INCOME", "BORN"])],
    "noise twice, then shuffled": [NOISE, ("correlated_noise", {}, NUMBERS[:2]), ("shuffle", {}, NUMBERS[:2])],
    "a sample is swapped": [("sample", {"share": 0.5}, None), ("rank_swap", {"p": 20}, None)],
    "a sample of a sample is grouped": [
        ("sample", {"share": 0.7}, None),
        ("sample", {"size": 50}, None),
        ("mdav", {"k": 3, "kd_blocks": 3}, None),
    ],
    "parts that lose all their records": [
        ("sample", {"size": 3}, None),
        ("rank_swap", {"p": 50}, None),
        ("permute", {}, None),
    ],
    "noise, a sample, original values": [NOISE, ("sample", {"size": 50}, None), ("reverse_map", {}, ["INCOME", "AGE"])],
    "groups are exchanged": [("recode", {"rare.JOB": 10.0, "level.TOWN": 1}, None), ("pram", {}, ["JOB", "TOWN"])],
    "groups are suppressed": [
        ("recode", {"width.AGE": 10.0, "level.TOWN": 1}, None),
        ("suppress", {"k": 3}, ["AGE", "TOWN"]),
    ],
    "noise in bands": [NOISE, ("recode", {"width.AGE": 10.0, "width.BORN": 365.0}, None)],
    "suppressed, then swapped": [("suppress", {"k": 2}, ["TOWN", "GRADE"]), ("rank_swap", {}, ["TOWN", "GRADE"])],
    "a sample with noise, shuffled": [("sample", {"share": 0.6}, None), NOISE, ("record_shuffle", {}, None)],
    "pseudonyms of numbers": [("pseudonymise", {}, ["PERSON", "AGE", "INCOME"]), ("drop", {}, ["JOB"])],
}


@pytest.mark.parametrize("parts", MANY)
@pytest.mark.parametrize("name", PLANS)
def test_plans_of_several_steps(name: str, parts: int) -> None:
    plan = Plan(tuple(make_step(method, given, columns=names) for method, given, names in PLANS[name]))
    assert_the_same(plan, parts=[parts])


def test_tasks_that_are_done_twice_and_in_any_order(each: Any) -> None:
    steps = [("sample", {"share": 0.7}, None), ("rank_swap", {}, ["INCOME", "TOWN"]), ("mdav", {"kd_blocks": 3}, None)]
    plan = Plan(tuple(make_step(method, given, columns=names) for method, given, names in steps))
    assert_the_same(plan, each=each, parts=[2])


def test_numbers_that_were_declared_categories() -> None:
    schema = declared(roles={}, kinds={"AGE": "nominal", "WEIGHT": "ordinal"})
    assert_the_same(Plan.of("pram", p=0.4), schema=schema, parts=[4])
    assert_the_same(Plan.of("suppress", k=2, columns=["WEIGHT", "AGE"]), schema=schema, parts=[2])


@pytest.mark.parametrize(("percent", "kind"), [(7.0, pa.int64()), (7.5, pa.float64())])
def test_whole_numbers_stay_so_only_when_all_parts_have_them(percent: float, kind: pa.DataType) -> None:
    data = pa.table({"A": np.arange(RECORDS, dtype=np.int64)})
    plan = Plan.of("top_bottom_code", top_percent=percent, replace="mean")  # of 150 to 160, or of 149 to 160
    schema = rv.Schema(roles={"A": "confidential"})  # it counts the records, and would be left out
    assert rv.mask(data, plan, seed=SEED, schema=schema).data.schema.field("A").type == kind
    assert_the_same(plan, data=data, schema=schema)  # only the last parts have the mean


@pytest.mark.parametrize(
    ("row", "column", "cell", "method", "schema", "said"),
    [
        (130, "WEIGHT", -1, "rank_swap", {}, "column WEIGHT: a negative weight (row 131); a weight is 0 or more"),
        (130, "INCOME", np.inf, "rank_swap", {}, "column INCOME: infinite values (row 131); remove or declare them"),
        (130, "INCOME", 1e300, "multiplicative_noise", {}, "multiplicative_noise makes values too large (row 131)"),
        (130, "PERSON", "x", "rank_swap", {"levels": {"PERSON": PERSONS}}, "is not one of its levels"),
        (130, "TOWN", "zz", "rank_swap", {}, "column TOWN: its hierarchy hierarchy misses 'zz'"),
        (130, "TOWN", "sa", "rank_swap", {"roles": {"JOB": "group"}}, "JOB: groups are not for a table in parts"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_the_row_of_the_table(
    row: int, column: str, cell: Any, method: str, schema: dict[str, Any], said: str
) -> None:
    data = people()
    cells = data.column(column).to_pylist()
    cells[row] = cell
    data = data.set_column(data.column_names.index(column), column, pa.array(cells, data.schema.field(column).type))
    masked = [column] if column in ("INCOME", "PERSON", "TOWN") else ["INCOME"]
    strong = {"beta": 1e9} if method == "multiplicative_noise" else {}
    plan = Plan.of(method, columns=masked, **strong)
    with pytest.raises(rv.RankveilError) as refused, in_parts(by_post, data, plan, CUTS[7], declared(**schema)):
        raise AssertionError
    assert said in str(refused.value)
    assert SEED not in str(refused.value)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([("missing_swap", {}, ["AGE", "SCORE", "BORN"])], "column AGE, SCORE: missing cells that are written"),
        ([NOISE, ("suppress", {"k": 2}, ["AGE"])], "column AGE: masked numbers are not taken as labels"),
    ],
)
def test_what_parts_cannot_do_is_refused(steps: list[Told], said: str) -> None:
    plan = Plan(tuple(make_step(method, given, columns=names) for method, given, names in steps))
    with pytest.raises(rv.ParameterError, match=said), in_parts(by_post, people(), plan, CUTS[2], declared()):
        raise AssertionError


@pytest.mark.parametrize("columns", [["PERSON"], None])
def test_too_many_categories_are_refused_and_not_emptied(
    columns: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (looking, whole):
        monkeypatch.setattr(module, "MOST", 100)
    plan = Plan((make_step("pseudonymise", {}, columns=columns),))
    with (
        pytest.raises(rv.TableError, match="column PERSON: more than 100 different values"),
        in_parts(by_post, people(), plan, CUTS[2], declared()),
    ):
        raise AssertionError
    assert_the_same(Plan.of("rank_swap", columns=["INCOME"]), parts=[2])  # who is not masked may be anybody


def test_a_part_tells_no_categories_that_it_lost() -> None:
    words = ["a", "b", "c", "d"]
    letters = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 2, 2, 1] * 20, pa.int8()), words, ordered=True)
    data = pa.table({"LETTER": letters, "X": np.arange(120.0)})
    for plan in (Plan.of("sample", size=4), Plan.of("rank_swap", columns=["LETTER"], p=90.0)):
        memory = rv.mask(data, plan, seed=SEED).data.column("LETTER").combine_chunks().dictionary.to_pylist()
        with in_parts(by_post, data, plan, (1, 2, 60), rv.Schema()) as (parted, _):
            for chunk in parted.column("LETTER").chunks:
                assert len(chunk) == 0 or chunk.dictionary.to_pylist() == memory


def test_all_parts_tell_the_labels_that_some_released_cell_of_any_part_has() -> None:
    labels = ((3, "three"), (1, "one"), (2, "two"), (4, "nobody's"), (-9, "refused"))
    said = metadata.Described(value_labels=labels, missing_codes=(-9, -8))
    field = metadata.write(pa.field("CODE", pa.int64()), said)
    cells = [1] * 40 + [2] * 40 + [3] * 39 + [-9]
    data = pa.Table.from_arrays([pa.array(cells), np.arange(120.0)], schema=pa.schema([field, ("X", pa.float64())]))
    schema = rv.Schema(roles={"CODE": "quasi-identifier", "X": "confidential"})  # neither a group nor an identifier
    for plan, kept in (
        (Plan.of("identity", columns=["X"]), [3, 1, 2, -9]),
        (Plan.of("pram", columns=["CODE"], p=0.5), [3, 1, 2, -9]),
        (Plan.of("sample", size=4), None),
    ):
        memory = metadata.read(rv.mask(data, plan, seed=SEED, schema=schema).data.schema.field("CODE"))
        assert kept is None or [value for value, _ in memory.value_labels] == kept
        with in_parts(by_post, data, plan, (1, 2, 60), schema) as (parted, _):
            assert metadata.read(parted.schema.field("CODE")) == memory
