"""What the intruder, the subject and the user do with tables of every kind: a clean result, or one sentence."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil.catalogue import Method, measures, methods
from rankveil.cli import main
from rankveil.people.diversity import CRITERIA

Draw = Callable[[st.SearchStrategy[Any]], Any]
CHEAP = [name for name, measure in measures().items() if measure.per == "column"]
MANY = settings.default.max_examples
EVIL = ("<script>alert(1)</script>", "<b>bold</b>")


def some(*values: Any) -> st.SearchStrategy[Any]:
    """One of these."""
    return st.sampled_from(values)


@st.composite
def pairs(draw: st.DrawFn, tables: Any, released: Any) -> tuple[pa.Table, pa.Table, dict[str, Any]]:
    """Two tables and how they are said to belong together; most of their columns are simply named."""
    table = draw(tables(wide=False, plain_names=draw(st.integers(0, 3)) > 0))
    release = draw(released(table))
    how = draw(some({}, {}, {"mapping": False}, {"mapping": False}, {"key": "K"}))
    if "key" in how:
        table, release = (
            each.append_column("K", pa.array(range(each.num_rows), pa.int64())) for each in (table, release)
        )
    if table.num_columns and draw(st.booleans()):
        how = {**how, "columns": draw(st.lists(some(*table.column_names), min_size=1, max_size=3, unique=True))}
    return table, release, {**how, "seed": draw(st.integers(0, 3))}


@st.composite
def answers(draw: st.DrawFn, table: pa.Table) -> dict[str, Any]:
    """What a subject may give as her values: those of a record, or anything, also for columns that there are not."""
    names = table.column_names or ["A"]
    chosen = draw(st.lists(some(*names), min_size=1, max_size=4, unique=True))
    row = draw(st.integers(0, max(table.num_rows - 1, 0)))
    there = dict(zip(table.column_names, table.columns, strict=True)) if table.num_rows else {}
    record = {name: there[name][row].as_py() if name in there else 1 for name in chosen}
    if draw(st.booleans()):
        return record
    odd = st.one_of(
        some(None, True, "", " ", "many", "nan", "inf", "1,5", "2024-02-30", b"x", [1], 1e400, -0.0, 2**70),
        st.floats(), st.integers(), st.text(max_size=4), st.datetimes(), st.dates(),
    )  # fmt: skip
    return {**record, draw(st.one_of(some(*chosen), some("no such column"))): draw(odd)}


def limits(names: list[str]) -> st.SearchStrategy[Any]:
    """Demands on a certificate: numbers for all, for each or by name, also too many, too few and none at all."""
    number = st.one_of(st.floats(0, 50), st.integers(0, 5))
    wrong = st.one_of(number, some(-1.0, float("nan"), float("inf"), "many", 1e300))
    by_name = st.dictionaries(some(*names, "no such column"), wrong, max_size=3)
    return st.one_of(st.none(), st.none(), number, number, st.lists(wrong, max_size=4), by_name)


def audited(draw: Draw, table: pa.Table, release: pa.Table, how: dict[str, Any]) -> Any:
    rules = draw(some([], [], ["permutation_level>0.5", "cm2<0.05"], ["spearman_risk<=1e-3"], ["no<1"], ["emd<"]))
    several = draw(st.integers(0, 4)) == 0
    made = rv.audit(table, [release, table, release] if several else release, measures=CHEAP, fail_if=rules, **how)
    assert made.ok == all(gate["ok"] for gate in made.gates)
    return made.to_dict()


def attacked(draw: Draw, table: pa.Table, release: pa.Table, how: dict[str, Any]) -> Any:
    rows = st.integers(0, table.num_rows + 1)
    own = st.just([(row, row) for row in range(1, table.num_rows + 1)])
    asked = {
        "draws": draw(some(100, 100, 100, 500, 1, 0)),
        "subsets": draw(st.booleans()),
        "links": draw(st.one_of(st.none(), st.none(), own, st.lists(st.tuples(rows, rows), max_size=3))),
    }
    made = rv.attack(table, release, **asked, **how)
    found = made.to_dict()
    who = found["found"]
    shares = [who["share"], *who["interval"], who["guessing"]]
    if "chance" in found:  # the paper's own test, where it applies
        chance = found["chance"]
        shares += [chance["hellinger"], chance["ks_p"], *chance["null"].values()]
        shares += [link["p_value"] for link in found["links"]]
    assert all(0 <= share <= 1 + 1e-9 for share in shares)
    assert (found["verdict"] == "holds") == (who["share"] <= 0.09 and found["certain"] == 0)
    return found


def certified(draw: Draw, table: pa.Table, release: pa.Table, how: dict[str, Any]) -> Any:
    wanted = limits(table.column_names)
    asked = {"d": draw(wanted), "v": draw(wanted), "diversity": draw(some(*CRITERIA, *CRITERIA, "spread"))}
    f = draw(some(None, None, None, "mapping", "minimax", "euclidean", "nearest"))
    return rv.certify(table, release, **asked, f=f, **how).to_dict()


def verified(draw: Draw, table: pa.Table, release: pa.Table, how: dict[str, Any]) -> Any:
    f = draw(some("minimax", "minimax", "euclidean", 1, 0, -1, "2", "nobody", 10**30))
    record = draw(answers(release))
    found = rv.verify(release, record, f=f, draws=draw(some(100, 500)), seed=how["seed"]).to_dict()
    assert 0 <= found["chance"]["p_value"] <= 1 + 1e-9
    return found


def reversed_(draw: Draw, table: pa.Table, release: pa.Table, how: dict[str, Any]) -> Any:
    found = rv.reverse_map(table, release, **how)
    assert found.num_rows == release.num_rows
    assert found.column_names == release.column_names
    return None


def paged(draw: Draw, table: pa.Table, release: pa.Table, how: dict[str, Any]) -> Any:
    page = rv.subject_page(release, columns=how.get("columns"), title=draw(some("mine", *EVIL)))
    assert Whole(page).unescaped == []
    return None


VERBS = (audited, attacked, certified, verified, reversed_, paged)


class Whole(HTMLParser):
    """A page from its first to its last element, and what in it no page of ours has: it came from names or cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.unescaped = [evil for evil in EVIL if evil in text]
        self.feed(text)
        self.close()
        assert text.rstrip().endswith("</html>")

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "b" or any(name.startswith("on") for name, _ in attrs):
            self.unescaped.append(tag)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__.rstrip("_"))
@settings(max_examples=max(MANY // 2, 1))
@given(data=st.data())
def test_a_verb_gives_a_clean_document_or_refuses(
    verb: Any, data: Any, tables: Any, released: Any, content: Callable[[pa.Table], bytes], tally: Any
) -> None:
    table, release, how = data.draw(pairs(tables, released))
    before = content(table), content(release)
    tally("pairs of tables through the verbs of intruder, subject and user")
    try:
        json.dumps(verb(data.draw, table, release, how), allow_nan=False)
    except rv.RankveilError as error:
        assert str(error).strip()  # noqa: PT017 - it need not be refused
    assert (content(table), content(release)) == before


# The user, who has a manifest.


@st.composite
def damaged(draw: st.DrawFn, manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest with a part left out, or with something else in its place."""
    name = draw(some(*manifest))
    rest = {key: value for key, value in manifest.items() if key != name}
    return rest if draw(st.booleans()) else {**rest, name: draw(some(None, 1, "x", [], {}, [1], [{}], {"a": 1}))}


def correctable(method: Method) -> bool:
    """Whether moments or shares of the original follow from a release by it."""
    return method.correction is not None or method.share_correction is not None


@settings(max_examples=max(MANY // 2, 1))
@given(data=st.data())
def test_a_correction_is_clean_or_refused(data: Any, tables: Any, released: Any, tally: Any) -> None:
    table = data.draw(tables(wide=False, plain_names=True))
    method = data.draw(some(*(each for each in methods().values() if correctable(each))))
    needed = {"epsilon": 1.0, "lower": -10.0, "upper": 10.0}
    given_ = {name: needed[name] for name, each in method.parameters.items() if each.required and name in needed}
    names = data.draw(st.one_of(st.none(), st.lists(some(*table.column_names, "V0"), min_size=1, unique=True)))
    try:
        release = rv.mask(table, method.id, columns=names, seed=1, **given_)
    except rv.RankveilError:
        assume(False)
    manifest = json.loads(release.manifest.to_json())
    manifest = data.draw(damaged(manifest)) if data.draw(st.booleans()) else manifest
    masked = data.draw(released(release.data)) if data.draw(st.booleans()) else release.data
    tally("releases corrected by their manifest, or by a damaged one")
    try:
        json.dumps(rv.correct(masked, manifest).to_dict(), allow_nan=False)
    except rv.RankveilError as error:
        assert str(error).strip()  # noqa: PT017 - it need not be refused


# The command line.


def run(*argv: str) -> tuple[int, str, str]:
    """A command in this process: its exit code, and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(argv))
    return code, out.getvalue(), err.getvalue()


def saved(table: pa.Table, path: Path) -> str:
    """The table in a file, as some other program would have written it."""
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return str(path)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        columns = [column.to_pylist() for column in table.columns]
        writer.writerows(zip(*columns, strict=True))
    return str(path)


def check_ended(code: int, out: str, err: str, *, as_json: bool) -> None:
    """Done, or refused in one sentence and nothing else."""
    assert code in (0, 1, 2), err
    if code == 2:
        assert re.fullmatch(r"rankveil: [^\n]*\S[^\n]*\n", err), err
        assert out == ""
        return
    assert err == ""
    if as_json:
        json.loads(out, parse_constant=pytest.fail)


@st.composite
def words(draw: st.DrawFn, verb: str, table: pa.Table, release: pa.Table) -> list[str]:
    """The options of a verb, right and wrong."""
    names = [name for name in table.column_names if name]
    asked = []
    if verb == "verify":
        record = draw(answers(release))
        asked += [f"--record={name}={value}" for name, value in record.items()]
        asked += draw(some([], ["--f=euclidean"], ["--f=1"], ["--f=x"]))
    elif verb != "subject-page":
        asked += draw(some([], [], ["--no-mapping"], [f"--key={draw(some(*names, 'K'))}"]))
    if verb == "audit":
        asked += [
            f"--measures={','.join(CHEAP)}",
            *draw(some([], ["--fail-if=permutation_level<0.9"], ["--fail-if=x"])),
        ]
    if verb == "certify":
        asked += draw(some([], ["--d=1"], ["--d=1,2", "--v=0"], ["--d=x"], ["--diversity=distinct"], ["--record=1"]))
    if verb in ("attack", "verify"):
        asked += draw(some(["--draws=100"], ["--draws=100"], ["--draws=0"]))
    if names and draw(st.integers(0, 2)) == 0:
        asked.append(f"--columns={draw(some(*names))}")
    if names and draw(st.integers(0, 3)) == 0:
        role = draw(some("quasi-identifier", "confidential", "identifier", "weight", "king"))
        asked.append(f"--role={draw(some(*names))}={role}")
    return asked + draw(some([], ["--missing=NA,n/a"]))


@pytest.mark.parametrize("verb", ["audit", "attack", "certify", "verify", "subject-page"])
@settings(max_examples=max(MANY // 4, 1))
@given(data=st.data())
def test_a_command_ends_well_or_with_one_sentence(
    verb: str, data: Any, tables: Any, released: Any, tmp_path_factory: Any, tally: Any
) -> None:
    folder: Path = tmp_path_factory.mktemp("verbs")
    table = data.draw(tables(wide=False, plain_names=data.draw(st.booleans())))
    release = data.draw(released(table))
    ending = data.draw(some("csv", "csv", "parquet"))
    original, masked = (saved(each, folder / f"{name}.{ending}") for each, name in ((table, "o"), (release, "m")))
    as_json, page = data.draw(st.booleans()), folder / "page.html"
    argv = [verb, *([] if verb in ("verify", "subject-page") else [original]), masked]
    argv += data.draw(words(verb, table, release))
    reported = verb == "subject-page" or (verb in ("audit", "attack") and data.draw(st.integers(0, 4)) == 0)
    if reported:
        argv += ["-o" if verb == "subject-page" else "--report", str(page)]
    code, out, err = run(*argv, *(["--json"] if as_json else []))
    tally("commands of intruder, subject and user")
    check_ended(code, out, err, as_json=as_json)
    if reported and code != 2:
        assert Whole(page.read_text(encoding="utf-8")).unescaped == []
        tally("pages searched for names and cells that are not escaped")
    left = {"page.html"} if reported and code != 2 else set()
    assert {path.name for path in folder.iterdir()} == {Path(original).name, Path(masked).name} | left
