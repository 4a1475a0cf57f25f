"""Compare: methods at a limit, at equal risk or utility, or over the whole map of risk and utility."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.responses import HTMLResponse, JSONResponse, Response

from rankveil import catalogue
from rankveil.comparison.target import default_utilities, risk_of, target_of
from rankveil.errors import ParameterError, RankveilError
from rankveil.plans import Plan
from rankveil.report import interactive
from rankveil.web import forms, places, rendering
from rankveil.web.bench import Bench, Form, go, show
from rankveil.web.pages import pairs
from rankveil.web.runs import Run
from rankveil.web.sources import Source
from rankveil.web.workspace import read_json

_FIRST = ("copula_swap", "mdav", "additive_noise")
TARGETS = {
    "sweep": "the whole map of risk and utility",
    "found": "the least strength that keeps the share of people found within the value (0.09 unless given)",
    "limit": "the least strength that keeps the risk named below within the value",
    "risk": "all at the same risk, as in the papers",
    "utility": "all at the same utility (the first one ticked)",
    "level": "every attribute at the same permutation level",
}


def router(bench: Bench) -> APIRouter:
    """The routes of the page."""
    routes = APIRouter()

    @routes.get("/data/{id}/compare")
    def asking(id: str) -> HTMLResponse:
        return _page(bench, bench.source(id))

    @routes.post("/data/{id}/compare")
    def ask(id: str, form: Form) -> Response:
        source = bench.source(id)
        try:
            settings = _settings(bench, source, form)
        except RankveilError as error:
            return _page(bench, source, error=str(error), given=form)
        return go(f"/runs/{bench.ask('compare', source, settings).id}")

    @routes.get("/runs/{id}/map", response_class=JSONResponse)
    def live(id: str) -> dict[str, Any]:
        run = bench.run(id)
        found = places_of(bench, run)
        chart = places.chart_of(found, risk=run.settings["risk"], utility=run.settings["utility"])
        rows = rendering.fragment("places.html", **places_context(bench, run))
        if chart is None:
            return {"places": len(found), "rows": rows}
        return {
            "places": len(found),
            "rows": rows,
            "title": chart.title,
            "note": chart.note,
            "spec": interactive.spec(chart, titled=False),
        }

    @routes.post("/runs/{id}/take")
    def take(id: str, form: Form) -> Response:
        run = bench.run(id)
        found, place = places_of(bench, run), forms.read_place(str(form.get("place") or ""))
        if place is None or place >= len(found):
            raise ParameterError("there is no such place on the map")
        plan = Plan.from_dict(found[place]["plan"])
        bench.drafts.change(run.source, lambda draft: draft.changed(plan.steps))
        return go(f"/data/{run.source}/mask")

    return routes


def places_of(bench: Bench, run: Run) -> list[dict[str, Any]]:
    """The places of a comparison that are known."""
    if run.kind != "compare":
        raise ParameterError("this is no comparison")
    return list((read_json(bench.runs.folder(run) / "places.json") or {}).get("places", []))


def places_context(bench: Bench, run: Run) -> dict[str, Any]:
    """What the table of places shows."""
    utility = run.settings["utility"]
    return {
        "run": run,
        "places": places.numbered(places_of(bench, run), utility),
        "risk": run.settings["risk"],
        "utility": utility,
    }


def _settings(bench: Bench, source: Source, form: FormData) -> dict[str, Any]:
    methods = [catalogue.get_method(str(name)).id for name in form.getlist("methods")]
    if not methods:
        raise ParameterError("tick at least one method")
    target, at = str(form.get("at") or "sweep"), {}
    if target not in TARGETS:
        raise ParameterError("choose where to compare")
    named = str(form.get("risk") or "")
    risk = risk_of({target: 0.0}, catalogue.get_measure(named).id if named else None)
    if target == "found" and not str(form.get("value") or "").strip():
        at = target_of("found", sweep=False)
    elif target != "sweep":
        value = forms.read_number(form, "value", least=-1e9, most=1e9, what="the value to compare at")
        at = target_of({risk if target == "limit" else target: value}, sweep=False)
    utility = [catalogue.get_measure(str(name)).id for name in form.getlist("utility")]
    if not utility:
        raise ParameterError("tick at least one measure of utility or loss")
    chosen = {id: entry for id, entry in _methods().items() if id in methods}
    parameters = forms.read_settings(chosen, form, prefix="f-")
    for id, entry in chosen.items():
        needed = [name for name, parameter in entry.parameters.items() if parameter.required and name != entry.strength]
        missing = [name for name in needed if name not in parameters.get(id, {})]
        if missing:
            raise ParameterError(f"{id} needs {', '.join(missing)}: give it under Fixed parameters, or untick {id}")
    return {
        "methods": methods,
        "at": at,
        "risk": risk,
        "utility": utility,
        "replicates": int(forms.read_number(form, "replicates", whole=True, least=1, most=100, what="replicates")),
        "points": int(forms.read_number(form, "points", whole=True, least=3, most=40, what="points of each method")),
        "parameters": parameters,
        "target": pairs.read_column(bench, source, form, "target"),
        "columns": pairs.read_columns(bench, source, form),
    }


def _methods() -> Mapping[str, catalogue.Method]:
    return {id: entry for id, entry in catalogue.methods().items() if not entry.post}


def _page(bench: Bench, source: Source, *, error: str | None = None, given: FormData | None = None) -> HTMLResponse:
    measures = list(catalogue.measures().values())
    columns = pairs.columns(bench, source)
    fixed = [
        (
            entry,
            [
                forms.field_of(
                    parameter,
                    name=f"f-{id}-{name}",
                    value=given.get(f"f-{id}-{name}") if given else None,
                    columns=columns["ranked"],
                    blank=True,
                )
                for name, parameter in entry.parameters.items()
            ],
        )
        for id, entry in _methods().items()
        if entry.parameters
    ]
    return show(
        "compare.html",
        tab="compare",
        source=source,
        title=f"Compare methods on {source.name}",
        status=400 if error else 200,
        error=error,
        given=given,
        methods=list(_methods().values()),
        first=_FIRST,
        decides=default_utilities(),
        targets=TARGETS,
        risks=[entry for entry in measures if entry.family in ("risk", "confidentiality")],
        utilities=[entry for entry in measures if entry.family in ("utility", "loss")],
        fixed=fixed,
        columns=columns,
        runs=bench.runs.all(source=source.id, kind="compare"),
    )
