"""A run: how far it is, how to stop it, how to go on, and what came out."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import HTMLResponse, JSONResponse, Response

from rankveil.report import figures  # noqa: F401 - loaded before the first chart is asked for
from rankveil.web import places, rendering
from rankveil.web.bench import TAB_OF, Bench, go, show
from rankveil.web.pages.compare import places_context, places_of
from rankveil.web.pages.release import release_page
from rankveil.web.runs import Run

_TITLES = {
    "mask": "Masking {}",
    "audit": "Audit of a release of {}",
    "attack": "Attack on a release of {}",
    "compare": "Comparison of methods on {}",
    "certify": "Certificate of a release of {}",
}


def router(bench: Bench) -> APIRouter:
    """The routes of the page."""
    routes = APIRouter()

    @routes.get("/runs/{id}")
    def one(id: str) -> HTMLResponse:
        run = bench.run(id)
        if run.kind == "mask" and run.status == "done":
            return release_page(bench, run)
        return _page(bench, run)

    @routes.get("/runs/{id}/state", response_class=JSONResponse)
    def state(id: str) -> dict[str, Any]:
        return _state(bench, bench.run(id))

    @routes.post("/runs/{id}/cancel")
    def cancel(id: str) -> Response:
        bench.dispatcher.cancel(bench.run(id))
        return go(f"/runs/{id}")

    @routes.post("/runs/{id}/resume")
    def resume(id: str) -> Response:
        bench.dispatcher.resume(bench.run(id))
        return go(f"/runs/{id}")

    return routes


def _state(bench: Bench, run: Run) -> dict[str, Any]:
    progress = bench.runs.progress(run) if run.status != "queued" else {}
    return {
        "status": run.status,
        "stage": progress.get("stage", ""),
        "done": progress.get("done", 0),
        "total": progress.get("total", 0),
    }


def _page(bench: Bench, run: Run) -> HTMLResponse:
    source = bench.source(run.source)
    result = bench.runs.result(run) if run.status == "done" else {}
    map_ = None
    if run.kind == "compare":
        map_ = places_context(bench, run) | {"chart": _chart(bench, run)}
    return show(
        "run.html",
        tab=TAB_OF[run.kind],
        source=source,
        title=_TITLES[run.kind].format(source.name),
        charts=run.status == "done" or run.kind == "compare",
        run=run,
        state=_state(bench, run),
        failure=bench.runs.failure(run) if run.status == "failed" else None,
        content=result.get("content", {}),
        outputs=result.get("outputs", {}),
        view=rendering.safe(bench.runs.text(run, "view.html")) if run.status == "done" else "",
        map=map_,
    )


def _chart(bench: Bench, run: Run) -> Any:
    """The map of a comparison that has ended too early; while it works the script draws it."""
    if run.under_way or run.status == "done":
        return None
    return places.chart_of(places_of(bench, run), risk=run.settings["risk"], utility=run.settings["utility"])
