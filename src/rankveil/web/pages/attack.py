"""Attack: who can be found by somebody who knows every original record."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.responses import HTMLResponse, Response

from rankveil.errors import RankveilError
from rankveil.people.chance import DRAWS
from rankveil.web import forms
from rankveil.web.bench import Bench, Form, go, show
from rankveil.web.pages import pairs
from rankveil.web.sources import Source

_MOST_DRAWS = 10_000_000


def router(bench: Bench) -> APIRouter:
    """The routes of the page."""
    routes = APIRouter()

    @routes.get("/data/{id}/attack")
    def asking(id: str) -> HTMLResponse:
        return _page(bench, bench.source(id))

    @routes.post("/data/{id}/attack")
    def ask(id: str, form: Form) -> Response:
        source = bench.source(id)
        try:
            chosen = pairs.read_release(bench, source, form)
            draws = forms.read_number(
                form, "draws", whole=True, least=1, most=_MOST_DRAWS, what="the number of random records"
            )
            settings = chosen.settings | {
                "draws": int(draws),
                "subsets": bool(form.get("subsets")),
                "columns": pairs.read_columns(bench, source, form),
            }
        except RankveilError as error:
            return _page(bench, source, error=str(error), given=form)
        return go(f"/runs/{bench.ask('attack', source, settings, **chosen.asked).id}")

    return routes


def _page(bench: Bench, source: Source, *, error: str | None = None, given: FormData | None = None) -> HTMLResponse:
    return show(
        "attack.html",
        tab="attack",
        source=source,
        title=f"Attack releases of {source.name}",
        status=400 if error else 200,
        error=error,
        given=given,
        releases=pairs.releases(bench, source),
        columns=pairs.columns(bench, source),
        draws=DRAWS,
        runs=bench.runs.all(source=source.id, kind="attack"),
    )
