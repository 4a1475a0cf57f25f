"""Data: upload or pick a table, look at it, and say what its columns are."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, get_args

from fastapi import APIRouter
from starlette.datastructures import FormData, UploadFile
from starlette.responses import HTMLResponse, Response

import rankveil as rv
from rankveil.errors import ParameterError, RankveilError
from rankveil.table import Kind, Role
from rankveil.web.bench import Bench, Form, go, show
from rankveil.web.security import human_size
from rankveil.web.sources import EXAMPLES, Declared, Source

_SHOWN = 8
"""Records of the table that the page shows."""


def router(bench: Bench) -> APIRouter:
    """The routes of the page."""
    routes = APIRouter()

    @routes.get("/")
    def home() -> HTMLResponse:
        return _home(bench)

    @routes.post("/data")
    def add(form: Form) -> Response:
        try:
            return go(f"/data/{_added(bench, form).id}")
        except RankveilError as error:
            return _home(bench, error=str(error))

    @routes.get("/data/{id}")
    def table(id: str) -> HTMLResponse:
        return _table(bench, bench.source(id))

    @routes.post("/data/{id}")
    def declare(id: str, form: Form) -> Response:
        source = bench.source(id)
        try:
            bench.sources.declare(source, _declared(bench, source, form))
        except RankveilError as error:
            return _table(bench, source, error=str(error), given=form)
        return go(f"/data/{id}")

    @routes.post("/data/{id}/leave-out")
    def leave_out(id: str) -> Response:
        source = bench.source(id)
        loose = _loose(bench, source)
        old = source.declared
        roles = {**old.roles, **dict.fromkeys(loose, "identifier")}
        bench.sources.declare(source, Declared(old.kinds, old.levels, roles, old.missing, (*old.left_out, *loose)))
        return go(f"/data/{id}")

    return routes


def _added(bench: Bench, form: FormData) -> Source:
    """The table that was uploaded, picked or taken from the examples."""
    example, picked, file = form.get("example"), form.get("picked"), form.get("file")
    if isinstance(example, str):
        return bench.sources.add_example(example)
    if isinstance(picked, str):
        return bench.sources.pick(picked)
    if not isinstance(file, UploadFile) or not file.filename:
        raise ParameterError("choose a file first")
    upload = file

    def fill(path: Path) -> None:
        with open(path, "xb") as kept:
            shutil.copyfileobj(upload.file, kept)

    return bench.sources.add(file.filename, fill, origin="upload")


def _home(bench: Bench, *, error: str | None = None) -> HTMLResponse:
    sources = bench.sources.all()
    names = {source.id: source.name for source in sources}
    return show(
        "home.html",
        tab="data",
        source=None,
        title="Data",
        status=400 if error else 200,
        error=error,
        sources=sources,
        examples=EXAMPLES,
        inbox=bench.sources.inbox(),
        inbox_folder=str(bench.workspace.root / "inbox"),
        limit=bench.limit,
        limit_words=human_size(bench.limit),
        runs=[(run, names.get(run.source, "?")) for run in bench.runs.all()][:50],
    )


def _table(bench: Bench, source: Source, *, error: str | None = None, given: FormData | None = None) -> HTMLResponse:
    opened = bench.opened(source)
    table = opened.table
    seen = rv.inspect(table)
    looks: dict[str, Any] = {look.name: look for look in seen.columns}
    rows = [
        [("" if cell is None else str(cell)) for cell in row.values()]
        for row in table.native.slice(0, _SHOWN).to_pylist()
    ]
    return show(
        "table.html",
        tab="data",
        source=source,
        title=source.name,
        status=400 if error else 200,
        error=error,
        seen=seen,
        looks=looks,
        columns=opened.everything,
        declared=source.declared,
        given=given,
        kinds=get_args(Kind),
        roles=get_args(Role),
        names=table.names,
        rows=rows,
        loose=_loose(bench, source),
        notes=[*opened.notes, *(note for note in seen.notes if "identifier" not in note)],
    )


def _loose(bench: Bench, source: Source) -> list[str]:
    """Columns that look like identifiers and would pass into the release unmasked."""
    seen = rv.inspect(bench.opened(source).table)
    return [look.name for look in seen.columns if look.looks_like_identifier and not look.masked]


def _declared(bench: Bench, source: Source, form: FormData) -> Declared:
    """What was entered, by the place of each column."""
    kinds: dict[str, str] = {}
    levels: dict[str, tuple[str, ...]] = {}
    roles: dict[str, str] = {}
    left_out: list[str] = []
    everything = bench.opened(source).everything
    for place, name in enumerate(everything):
        kind, role = str(form.get(f"kind-{place}") or ""), str(form.get(f"role-{place}") or "")
        order = [word.strip() for word in str(form.get(f"order-{place}") or "").split("<") if word.strip()]
        if order and kind not in ("", "ordinal"):
            raise ParameterError(f"column {name}: only an ordinal column has an order")
        if kind or order:
            kinds[name] = kind or "ordinal"
        if order:
            levels[name] = tuple(order)
        if role:
            roles[name] = role
        if form.get(f"out-{place}"):
            left_out.append(name)
    if len(left_out) == len(everything):
        raise ParameterError("every column is left out; keep at least one")
    missing = tuple(word.strip() for word in str(form.get("missing") or "").split(",") if word.strip())
    return Declared(kinds, levels, roles, missing, tuple(left_out))
