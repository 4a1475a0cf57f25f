"""Mask: build a plan step by step, see at once what each step does, and mask."""

from __future__ import annotations

import threading
from typing import Any

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.responses import HTMLResponse, Response

from rankveil import catalogue
from rankveil.errors import ParameterError, RankveilError
from rankveil.plans import Plan
from rankveil.web import drafts, forms, rendering
from rankveil.web.bench import Bench, Form, go, read_upload, show
from rankveil.web.preview import MOST, Preview, preview
from rankveil.web.sources import Source

FIRST = "copula_swap"
"""The method whose form is shown first."""


class _Tried:
    """The last plan that was tried, so that looking at another attribute does not mask again."""

    def __init__(self) -> None:
        self._key: Any = None
        self._made: Preview | None = None
        self._guard = threading.Lock()

    def of(self, bench: Bench, source: Source, plan: Plan) -> Preview:
        """What a plan does to a table."""
        key = (source, plan.to_json())
        with self._guard:
            if self._made is None or key != self._key:
                self._made, self._key = preview(bench.opened(source).table, plan), key
            return self._made


def router(bench: Bench) -> APIRouter:
    """The routes of the page."""
    routes, tried = APIRouter(), _Tried()

    def page(source: Source, **more: Any) -> HTMLResponse:
        return _page(bench, tried, source, **more)

    @routes.get("/data/{id}/mask")
    def building(id: str, method: str = FIRST, edit: str = "", column: str | None = None) -> HTMLResponse:
        return page(bench.source(id), method=method, edit=forms.read_place(edit), column=column)

    @routes.get("/data/{id}/mask/fields")
    def fields(id: str, method: str = FIRST) -> HTMLResponse:
        form = forms.step_form(method, bench.opened(bench.source(id)).table)
        return HTMLResponse(rendering.fragment("step_fields.html", form=form))

    @routes.post("/data/{id}/mask/step")
    def step(id: str, form: Form) -> Response:
        source = bench.source(id)
        edit = forms.read_place(str(form.get("edit") or ""))
        try:
            made = forms.read_step(form, bench.opened(source).table)
            wanted = drafts.added(made, at=edit)(bench.drafts.get(id)).plan
            assert wanted is not None
            tried.of(bench, source, wanted)  # a plan that fails is not taken
            bench.drafts.change(id, drafts.added(made, at=edit))
        except RankveilError as error:
            return page(source, method=str(form.get("method") or FIRST), edit=edit, error=str(error), given=form)
        return go(f"/data/{id}/mask#plan")

    @routes.post("/data/{id}/mask/change")
    def change(id: str, form: Form) -> Response:
        source = bench.source(id)
        try:
            bench.drafts.change(id, _change(form))
        except RankveilError as error:
            return page(source, error=str(error))
        return go(f"/data/{id}/mask")

    @routes.post("/data/{id}/mask/plan")
    def load(id: str, form: Form) -> Response:
        source = bench.source(id)
        try:
            wanted = _read_plan(form)
            tried.of(bench, source, wanted)  # a plan that fails is not taken
            bench.drafts.change(id, lambda draft: draft.changed(wanted.steps))
        except RankveilError as error:
            return page(source, error=str(error), loading=True)
        return go(f"/data/{id}/mask#plan")

    @routes.get(
        "/data/{id}/mask/plan.toml", response_class=Response, responses={200: {"content": {"application/toml": {}}}}
    )
    def plan(id: str) -> Response:
        source, plan = bench.source(id), bench.drafts.get(id).plan
        if plan is None:
            raise ParameterError("the plan has no step yet")
        name = f'attachment; filename="{source.stem}-plan.toml"'
        return Response(plan.to_toml(), media_type="application/toml", headers={"Content-Disposition": name})

    @routes.post("/data/{id}/mask")
    def run(id: str, form: Form) -> Response:
        source, plan = bench.source(id), bench.drafts.get(id).plan
        try:
            if plan is None:
                raise ParameterError("add a step first")
            publish = [catalogue.get_measure(str(name)).id for name in form.getlist("publish")]
        except RankveilError as error:
            return page(source, error=str(error))
        made = bench.ask("mask", source, {"plan": plan.to_dict(), "publish": publish})
        for kind in ("audit", "attack"):
            if form.get(kind):
                bench.ask(kind, source, {}, release=made.id, after=made.id)
        return go(f"/runs/{made.id}")

    return routes


def _read_plan(form: FormData) -> Plan:
    """The plan in the file that was chosen."""
    upload = read_upload(form, "plan")
    if upload is None:
        raise ParameterError("choose a file first")
    text, read = upload.text, Plan.from_json if upload.name.lower().endswith(".json") else Plan.from_toml
    try:
        return read(text)
    except RankveilError as error:
        raise type(error)(f"{upload.name}: {error}") from None


def _change(form: FormData) -> Any:
    """What a button of the list of steps asks for."""
    what, _, place = str(form.get("do") or "").partition("-")
    if what in ("undo", "redo"):
        return lambda draft: draft.moved(-1 if what == "undo" else 1)
    at = forms.read_place(place)
    if at is None:
        raise ParameterError("there is no such step in the plan")
    if what == "remove":
        return drafts.removed(at)
    if what in ("up", "down"):
        return drafts.swapped(at, -1 if what == "up" else 1)
    raise ParameterError("there is no such change of a plan")


def _page(
    bench: Bench,
    tried: _Tried,
    source: Source,
    *,
    method: str = FIRST,
    edit: int | None = None,
    column: str | None = None,
    error: str | None = None,
    given: FormData | None = None,
    loading: bool = False,
) -> HTMLResponse:
    table = bench.opened(source).table
    draft = bench.drafts.get(source.id)
    step = draft.steps[edit] if edit is not None and 0 <= edit < len(draft.steps) else None
    if step is not None and given is None:
        method = step.method
    seen, problem, chart = None, None, None
    if draft.plan is not None:
        try:
            seen = tried.of(bench, source, draft.plan)
            if seen.names:
                chart = seen.marginal(column if column in seen.names else seen.names[0])
        except RankveilError as why:
            problem = str(why)
    methods = catalogue.methods()
    return show(
        "mask.html",
        tab="mask",
        source=source,
        title=f"Mask {source.name}",
        status=400 if error else 200,
        charts=chart is not None,
        error=error,
        given=given,
        loading=loading,
        draft=draft,
        steps=[(each, forms.step_words(each)) for each in draft.steps],
        form=forms.step_form(method, table, step=step, given=given),
        edit=edit if step is not None else None,
        maskings=[entry for entry in methods.values() if not entry.post],
        posts=[entry for entry in methods.values() if entry.post],
        preview=seen,
        problem=problem,
        chart=chart,
        chosen=chart.x_label if chart else None,
        most=MOST,
        records=len(table),
        measures=catalogue.measures().values(),
    )
