"""Release: what to publish, what to keep, and how to repeat it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import FileResponse, HTMLResponse, Response

from rankveil.errors import ParameterError, RankveilError
from rankveil.people.diversity import CRITERIA
from rankveil.web import forms
from rankveil.web.bench import Bench, Form, go, show
from rankveil.web.runs import Run

_LEAST, _MOST = 0.0, 1e300
_WARNING = "warning: "


def router(bench: Bench) -> APIRouter:
    """The routes of the page."""
    routes = APIRouter()

    @routes.get("/data/{id}/release")
    def all_of(id: str) -> HTMLResponse:
        source = bench.source(id)
        return show(
            "releases.html",
            tab="release",
            source=source,
            title=f"Releases of {source.name}",
            runs=bench.runs.all(source=source.id, kind="mask"),
        )

    @routes.get(
        "/runs/{id}/files/{name}",
        response_class=FileResponse,
        responses={200: {"content": {"application/octet-stream": {}}}},
    )
    def download(id: str, name: str) -> Response:
        found = bench.runs.output(bench.run(id), name)
        if found is None:
            raise ParameterError("there is no such file in this run")
        path, said = found
        # Never shown inside the workbench: a file is data, also when it is a page.
        return FileResponse(
            path, filename=said["name"], media_type="application/octet-stream", content_disposition_type="attachment"
        )

    @routes.post("/runs/{id}/certify")
    def certify(id: str, form: Form) -> Response:
        run = bench.run(id)
        if run.kind != "mask" or run.status != "done":
            raise ParameterError("choose a release that is done")
        try:
            diversity = str(form.get("diversity") or "variance")
            if diversity not in CRITERIA:
                raise ParameterError(f"diversity must be {' or '.join(CRITERIA)}")
            settings: dict[str, object] = {"diversity": diversity, "columns": list(_changed(bench, run))}
            for name, what in (("d", "the distance d"), ("v", "the diversity v")):
                if str(form.get(name) or "").strip():
                    settings[name] = forms.read_number(form, name, least=_LEAST, most=_MOST, what=what)
        except RankveilError as error:
            return release_page(bench, run, error=str(error))
        return go(f"/runs/{bench.ask('certify', bench.source(run.source), settings, release=run.id).id}")

    return routes


def _changed(bench: Bench, run: Run) -> dict[str, int]:
    return dict(bench.result(run)["content"]["changed"])


def release_page(bench: Bench, run: Run, *, error: str | None = None) -> HTMLResponse:
    """The page of a masking that is done."""
    source = bench.source(run.source)
    result = bench.result(run)
    content, outputs = result["content"], result["outputs"]
    notes = content["notes"]
    about = bench.runs.all(release=run.id)
    reports = [
        (other, name, said)
        for other in about
        if other.status == "done"
        for name, said in bench.runs.result(other).get("outputs", {}).items()
        if name.endswith(".html") or other.kind == "certify"
    ]
    return show(
        "release.html",
        tab="release",
        source=source,
        title=f"Release of {source.name}",
        status=400 if error else 200,
        error=error,
        run=run,
        content=content,
        warnings=[
            *(note.removeprefix(_WARNING) for note in notes if note.startswith(_WARNING)),
            *content["disclosive"],
        ],
        notes=[note for note in notes if not note.startswith(_WARNING)],
        steps=run.settings["plan"]["steps"],
        public=[(run, name, said) for name, said in outputs.items() if not said["private"]]
        + [each for each in reports if not each[2]["private"]],
        private=[(run, name, said) for name, said in outputs.items() if said["private"]]
        + [each for each in reports if each[2]["private"]],
        about=about,
        verdicts=[
            (other, told)
            for other in about
            if other.status == "done" and (told := bench.runs.result(other).get("content"))
        ],
        hierarchies=bool(run.declared.get("hierarchies")),
        script=bench.runs.text(run, "repeat.py"),
        criteria=CRITERIA,
    )
