"""Audit: how much protection and how much usefulness a release has."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.responses import HTMLResponse, Response

from rankveil import catalogue
from rankveil.errors import RankveilError
from rankveil.verdict.gates import Gate
from rankveil.web import forms
from rankveil.web.bench import Bench, Form, go, show
from rankveil.web.pages import pairs
from rankveil.web.sources import Source

FAMILIES = {
    "confidentiality": "How well the release hides who is who",
    "risk": "What an intruder gains",
    "utility": "What a user keeps",
    "loss": "What a user loses",
}


def router(bench: Bench) -> APIRouter:
    """The routes of the page."""
    routes = APIRouter()

    @routes.get("/data/{id}/audit")
    def asking(id: str) -> HTMLResponse:
        return _page(bench, bench.source(id))

    @routes.post("/data/{id}/audit")
    def ask(id: str, form: Form) -> Response:
        source = bench.source(id)
        try:
            chosen = pairs.read_release(bench, source, form)
            measures = [catalogue.get_measure(str(name)).id for name in form.getlist("measures")]
            gates = [line.strip() for line in str(form.get("fail_if") or "").split(",") if line.strip()]
            settings = chosen.settings | {
                "measures": measures,
                "fail_if": [Gate.parse(rule).rule for rule in gates],
                "columns": pairs.read_columns(bench, source, form),
                "by": pairs.read_column(bench, source, form, "by"),
                "target": pairs.read_column(bench, source, form, "target"),
                "settings": forms.read_settings(_with_parameters(), form, prefix="s-"),
            }
        except RankveilError as error:
            return _page(bench, source, error=str(error), given=form)
        return go(f"/runs/{bench.ask('audit', source, settings, **chosen.asked).id}")

    return routes


def _with_parameters() -> Mapping[str, catalogue.Measure]:
    return {id: entry for id, entry in catalogue.measures().items() if entry.parameters}


def _page(bench: Bench, source: Source, *, error: str | None = None, given: FormData | None = None) -> HTMLResponse:
    families = {
        words: [entry for entry in catalogue.measures().values() if entry.family == family]
        for family, words in FAMILIES.items()
    }
    settings = [
        (
            entry,
            [
                forms.field_of(
                    parameter,
                    name=f"s-{id}-{name}",
                    value=given.get(f"s-{id}-{name}") if given else None,
                    blank=True,
                )
                for name, parameter in entry.parameters.items()
            ],
        )
        for id, entry in _with_parameters().items()
    ]
    return show(
        "audit.html",
        tab="audit",
        source=source,
        title=f"Audit releases of {source.name}",
        status=400 if error else 200,
        error=error,
        given=given,
        releases=pairs.releases(bench, source),
        columns=pairs.columns(bench, source),
        families=families,
        settings=settings,
        runs=bench.runs.all(source=source.id, kind="audit"),
    )
