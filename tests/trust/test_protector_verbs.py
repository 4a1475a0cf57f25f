"""Tables as people have them, and worse, through the protector's verbs: an exit code, one sentence, nothing left."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil import catalogue, files
from rankveil.cli import main
from rankveil.files import registry
from rankveil.masking.register import REGISTER

ENDINGS = sorted(ending for ending, format in registry.formats().items() if hasattr(format, "save"))
METHODS = sorted(catalogue.methods())
COMPARED = sorted(name for name, method in catalogue.methods().items() if method.strength and not method.post)
CHEAP = ("--risk", "permutation_level", "--utility", "um,pil", "--replicates", "1", "--workers", "1", "--points", "3")
KINDS = ["numeric", "ordinal", "nominal", "ordinal:low<middle<high"]
ROLES = ["identifier", "quasi-identifier", "confidential", "weight", "group", "other"]


def some(share: int) -> Any:
    """A part of the examples that the profile gives to one test."""
    return settings(max_examples=max(settings.default.max_examples // share, 1))


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


def run(*words: str) -> Ran:
    """A command in this process: done, or refused in one sentence."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(words))
    ran = Ran(code, out.getvalue(), err.getvalue())
    assert code in (0, 1, 2), ran.err
    if code == 2:
        assert ran.out == ""
        assert ran.err.startswith("rankveil: ")
        assert ran.err.endswith("\n")
        assert len(ran.err.splitlines()) == 1, ran.err
    else:
        assert ran.err == ""
        assert ran.out
        if "--json" in words:
            json.loads(ran.out, parse_constant=pytest.fail)
    return ran


@contextlib.contextmanager
def written(table: pa.Table, ending: str) -> Any:
    """The table in a file of its own folder; the file must stay as it is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"original{ending}"
        try:
            files.save(table, path)
        except rv.RankveilError:  # a format that cannot hold such a table
            assert not list(Path(folder).iterdir())
            assume(False)
        before = path.read_bytes()
        yield path
        assert path.read_bytes() == before, "the file was changed"


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@st.composite
def declared(draw: st.DrawFn, names: list[str]) -> list[str]:
    """Options by which somebody may declare columns."""
    words = []
    for name in names[:6]:
        if draw(st.integers(0, 5)) == 5:
            words += ["--kind", f"{name}={draw(st.sampled_from(KINDS))}"]
        if draw(st.integers(0, 2)) == 2:
            words += ["--role", f"{name}={draw(st.sampled_from(ROLES))}"]
    return [*words, *draw(st.sampled_from([[], [], ["--missing", "n/a,-9"]]))]


@some(1)
@given(data=st.data())
def test_inspect(data: st.DataObject, tables: Any, tally: Any) -> None:
    table, ending = data.draw(tables(wide=False), label="table"), data.draw(st.sampled_from(ENDINGS), label="ending")
    words = data.draw(declared(table.column_names), label="options")
    with written(table, ending) as path:
        run("inspect", str(path), *words, *data.draw(st.sampled_from([[], ["--json"]])))
        assert left_in(path.parent) == {path.name}
    tally("tables through inspect")


@some(1)
@given(data=st.data())
def test_mask(data: st.DataObject, tables: Any, plans: Any, tally: Any) -> None:
    table, ending = data.draw(tables(wide=False), label="table"), data.draw(st.sampled_from(ENDINGS), label="ending")
    method = catalogue.get_method(data.draw(st.sampled_from(METHODS), label="method"))
    plan = data.draw(plans(method, table.column_names[:9]), label="plan")
    words = data.draw(declared(table.column_names), label="options")
    other = data.draw(st.sampled_from([ending, *ENDINGS]), label="ending of the release")
    with written(table, ending) as path:
        steps, out = path.with_name("plan.json"), path.with_name(f"release{other}")
        steps.write_text(plan.to_json(), encoding="utf-8")
        before = left_in(path.parent)
        words += data.draw(st.sampled_from([[], ["--json"]]), label="more")
        ran = run("mask", str(path), "-o", str(out), "--plan", str(steps), *words)
        made = {out.name, f"{out.name}.manifest.json", f"{out.name}.secret.json", REGISTER}
        assert left_in(path.parent) - before == (made if ran.code == 0 else set())
        if ran.code == 0:
            json.loads(path.with_name(f"{out.name}.manifest.json").read_text(), parse_constant=pytest.fail)
            files.load(out)
    tally("tables through mask")


@some(3)
@given(data=st.data())
def test_compare(data: st.DataObject, tables: Any, tally: Any) -> None:
    table, ending = data.draw(tables(wide=False), label="table"), data.draw(st.sampled_from(ENDINGS), label="ending")
    named = data.draw(st.lists(st.sampled_from(COMPARED), min_size=2, max_size=2, unique=True), label="methods")
    where = data.draw(st.sampled_from([["--sweep"], ["--at", "risk=0.3"], ["--at", "utility=0.5"]]), label="where")
    words = data.draw(declared(table.column_names), label="options")
    words += data.draw(st.sampled_from([[], ["--json"]]), label="more")
    with written(table, ending) as path:
        state = str(path.with_name("state"))
        run("compare", str(path), "--methods", ",".join(named), *where, *CHEAP, "--state", state, *words)
        assert left_in(path.parent) == {path.name}
    tally("tables through compare")
