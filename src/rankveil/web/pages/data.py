"""Data: upload or pick a table, look at it, and say what its columns are."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.datastructures import FormData, UploadFile
from starlette.responses import HTMLResponse, Response

from rankveil import metadata
from rankveil.errors import ParameterError, RankveilError, listing
from rankveil.files import registry
from rankveil.inspection import Inspection
from rankveil.schema import Kind, Role
from rankveil.table import Table
from rankveil.web.bench import Bench, Form, go, read_upload, show
from rankveil.web.declared import Declared
from rankveil.web.security import human_size
from rankveil.web.sources import EXAMPLES, Source

_RECORDS = 8
"""Records of the table that the page shows."""
_COLUMNS = 100
"""Columns that the page shows at a time: a browser is slow with thousands of fields."""
_NAMED = 30
"""Columns that a sentence names."""
_CODES = 5
"""Codes of missing cells that the page shows of a column."""


@dataclass(frozen=True)
class Part:
    """The columns that the page shows: those whose name holds `find`, a hundred at a time."""

    find: str
    number: int
    """Which hundred, from 1."""
    found: int
    places: tuple[int, ...]
    """Where they stand among all columns, from 0."""

    @classmethod
    def of(cls, names: Sequence[str], *, find: str, number: str) -> Part:
        """The part that was asked for, or the nearest that there is."""
        found = [place for place, name in enumerate(names) if find.lower() in name.lower()]
        last = max(1, -(-len(found) // _COLUMNS))
        at = min(max(1, int(number) if number.isdecimal() and len(number) < 6 else 1), last)
        return cls(find, at, len(found), tuple(found[(at - 1) * _COLUMNS : at * _COLUMNS]))

    @property
    def first(self) -> int:
        """The number of its first column among those found, from 1."""
        return (self.number - 1) * _COLUMNS + 1

    @property
    def last(self) -> int:
        """The number of its last column."""
        return self.first + len(self.places) - 1

    def address(self, number: int | None = None) -> str:
        """What an address says of this part, or of another one."""
        return urlencode({"find": self.find, "part": number or self.number})


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
    def table(id: str, find: str = "", part: str = "1") -> HTMLResponse:
        return _table(bench, bench.source(id), find=find, number=part)

    @routes.post("/data/{id}")
    def declare(id: str, form: Form, find: str = "", part: str = "1") -> Response:
        source = bench.source(id)
        try:
            declared, hierarchies = _declared(bench, source, form)
            bench.sources.declare(source, declared, hierarchies=hierarchies)
        except RankveilError as error:
            return _table(bench, source, find=find, number=part, error=str(error), given=form)
        return go(f"/data/{id}?{urlencode({'find': find, 'part': part})}" if find or part != "1" else f"/data/{id}")

    @routes.post("/data/{id}/leave-out")
    def leave_out(id: str) -> Response:
        source = bench.source(id)
        loose = _loose(bench.opened(source).seen)
        old = source.declared
        roles = {**old.roles, **dict.fromkeys(loose, "identifier")}
        bench.sources.declare(source, replace(old, roles=roles, left_out=(*old.left_out, *loose)))
        return go(f"/data/{id}")

    return routes


def _added(bench: Bench, form: FormData) -> Source:
    """The table that was uploaded, picked, copied from a database or taken from the examples."""
    example, picked, file, address = (form.get(field) for field in ("example", "picked", "file", "address"))
    if isinstance(example, str):
        return bench.sources.add_example(example)
    if isinstance(picked, str):
        return bench.sources.pick(picked)
    if isinstance(address, str):
        return bench.sources.add_database(address.strip())
    if not isinstance(file, UploadFile) or not file.filename:
        raise ParameterError("choose a file first")
    upload = file
    manifest = read_upload(form, "manifest")

    def fill(path: Path) -> None:
        with open(path, "xb") as kept:
            shutil.copyfileobj(upload.file, kept)

    return bench.sources.add(
        file.filename, fill, origin="upload", manifest=None if manifest is None else manifest.content
    )


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
        endings=sorted(ending for ending in registry.formats() if ending.startswith(".")),
        limit=bench.limit,
        limit_words=human_size(bench.limit),
        runs=[(run, names.get(run.source, "?")) for run in bench.runs.all()][:50],
    )


def _table(
    bench: Bench,
    source: Source,
    *,
    find: str = "",
    number: str = "1",
    error: str | None = None,
    given: FormData | None = None,
) -> HTMLResponse:
    opened = bench.opened(source)
    table, seen, everything = opened.table, opened.seen, opened.everything
    part = Part.of(everything, find=find, number=number)
    looks: dict[str, Any] = {look.name: look for look in seen.columns}
    names = [everything[place] for place in part.places if everything[place] in looks]
    rows = [
        [("" if cell is None else str(cell)) for cell in row.values()]
        for row in table.native.select(names).slice(0, _RECORDS).to_pylist()
    ]
    return show(
        "table.html",
        tab="data",
        source=source,
        title=source.name,
        status=400 if error else 200,
        error=error,
        seen=seen,
        masked=listing(seen.masked, most=_NAMED),
        looks=looks,
        columns=[(place, everything[place]) for place in part.places],
        part=part,
        several=len(everything) > _COLUMNS,
        declared=source.declared,
        given=given,
        kinds=get_args(Kind),
        roles=get_args(Role),
        names=names,
        count=len(table.names),
        rows=rows,
        problems=[look.problem for look in seen.columns if look.problem],
        codes={name: said for name in names if (said := _missing_codes(table, name))},
        failed=_uploaded(given, everything),
        loose=_loose(seen),
        notes=[*source.notes, *opened.notes, *(note for note in seen.notes if "identifier" not in note)],
    )


def _missing_codes(table: Table, name: str) -> str:
    """Which values stand for a missing one, as the file of a statistics package says."""
    told = metadata.read(table.native.schema.field(name))
    letters = [value for value in told.labels if isinstance(value, str) and told.program == "stata"]
    words = [
        f"{code} ({told.labels[code]})" if code in told.labels else f"{code}"
        for code in [*told.missing_codes, *letters]
    ]
    return listing([*words, *(f"{low:g} to {high:g}" for low, high in told.missing_ranges)], most=_CODES)


def _uploaded(given: FormData | None, everything: Sequence[str]) -> set[str]:
    """The columns for which a hierarchy was sent that was not taken."""
    if given is None:
        return set()
    return {name for place, name in enumerate(everything) if getattr(given.get(f"hierarchy-{place}"), "filename", "")}


def _loose(seen: Inspection) -> list[str]:
    """Columns that look like identifiers and would pass into the release unmasked."""
    return [look.name for look in seen.columns if look.looks_like_identifier and not look.masked]


def _declared(bench: Bench, source: Source, form: FormData) -> tuple[Declared, dict[str, tuple[str, bytes]]]:
    """What was entered, by the place of each column, and hierarchies that are new.

    Columns that the form did not show stay as they were declared.
    """
    everything, old = bench.opened(source).everything, source.declared
    shown = {str(place) for place in form.getlist("shown")}
    asked = {name: place for place, name in enumerate(everything) if not shown or str(place) in shown}
    kinds = {name: kind for name, kind in old.kinds.items() if name not in asked}
    levels = {name: order for name, order in old.levels.items() if name not in asked}
    roles = {name: role for name, role in old.roles.items() if name not in asked}
    left_out = [name for name in old.left_out if name not in asked]
    hierarchies, fresh = dict(old.hierarchies), dict[str, tuple[str, bytes]]()
    for name, place in asked.items():
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
        upload = read_upload(form, f"hierarchy-{place}")
        if upload is not None:
            fresh[name] = (upload.name, upload.content)
        elif form.get(f"without-{place}"):
            hierarchies.pop(name, None)
        elif kind == "numeric" and name in hierarchies:
            raise ParameterError(f"column {name}: numbers have no hierarchy; choose another kind, or take it away")
    if len(left_out) == len(everything):
        raise ParameterError("every column is left out; keep at least one")
    missing = tuple(word.strip() for word in str(form.get("missing") or "").split(",") if word.strip())
    return Declared(kinds, levels, roles, missing, tuple(left_out), hierarchies), fresh
