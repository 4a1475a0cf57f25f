"""Delete: a table or a run, after a question that says what goes with it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from rankveil.errors import RankveilError
from rankveil.web.bench import TAB_OF, Bench, go, show
from rankveil.web.runs import Run
from rankveil.web.sources import Source


def router(bench: Bench) -> APIRouter:
    """The routes of the page."""
    routes = APIRouter()

    @routes.get("/data/{id}/delete")
    def ask_table(id: str) -> HTMLResponse:
        return _about_table(bench, bench.source(id))

    @routes.post("/data/{id}/delete")
    def delete_table(id: str) -> Response:
        source = bench.source(id)
        try:
            bench.delete_table(source)
        except RankveilError as error:
            return _about_table(bench, source, error=str(error))
        return go("/")

    @routes.get("/runs/{id}/delete")
    def ask_run(id: str) -> HTMLResponse:
        return _about_run(bench, bench.run(id))

    @routes.post("/runs/{id}/delete")
    def delete_run(id: str) -> Response:
        run = bench.run(id)
        try:
            bench.delete_run(run)
        except RankveilError as error:
            return _about_run(bench, run, error=str(error))
        return go(f"/data/{run.source}/{TAB_OF[run.kind]}" if bench.sources.find(run.source) else "/")

    return routes


def _about_table(bench: Bench, source: Source, *, error: str | None = None) -> HTMLResponse:
    return show(
        "delete.html",
        tab="data",
        source=source,
        title=f"Delete {source.name}?",
        status=400 if error else 200,
        error=error,
        words="the table, its plan and everything that was made of it",
        runs=bench.work_on(source),
        address=f"/data/{source.id}",
    )


def _about_run(bench: Bench, run: Run, *, error: str | None = None) -> HTMLResponse:
    about = bench.runs.about(run)
    return show(
        "delete.html",
        tab=TAB_OF[run.kind],
        source=bench.sources.find(run.source),
        title="Delete this run?",
        status=400 if error else 200,
        error=error,
        words="the run and everything that came out of it" + (", also what is about its release" if about else ""),
        runs=[run, *about],
        address=f"/runs/{run.id}",
    )
