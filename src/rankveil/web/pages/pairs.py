"""What Audit, Attack and the certificate share: which release of which table, and how records belong together."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData

from rankveil.errors import ParameterError
from rankveil.web.bench import Bench
from rankveil.web.rendering import moment
from rankveil.web.runs import Run
from rankveil.web.sources import Source


def releases(bench: Bench, source: Source) -> list[tuple[str, str]]:
    """What can be held against a table: its maskings, and the other tables of the workspace."""
    made = [(f"run:{run.id}", f"{_methods(run)}, masked {moment(run.ended)}") for run in bench.releases(source)]
    others = [
        (f"data:{other.id}", f"{other.name}, added {moment(other.added)} (a release made elsewhere)")
        for other in bench.sources.all()
        if other.id != source.id
    ]
    return [*made, *others]


def _methods(run: Run) -> str:
    return " then ".join(step["method"] for step in run.settings["plan"]["steps"])


def read_release(bench: Bench, source: Source, form: FormData) -> tuple[str | None, dict[str, Any]]:
    """The masking that was chosen, or settings that name another table."""
    what, _, id = str(form.get("release") or "").partition(":")
    if what == "run":
        run = bench.runs.find(id)
        if run is None or run.kind != "mask" or run.source != source.id or run.status != "done":
            raise ParameterError("choose a release that is done")
        return run.id, {}
    if what == "data":
        other = bench.sources.find(id)
        if other is None:
            raise ParameterError("there is no such table in the workspace")
        key = read_column(bench, source, form, "key")
        return None, {"against": other.id, "key": key, "no_mapping": bool(form.get("no_mapping"))}
    raise ParameterError("choose a release: mask the table first, or upload one that was made elsewhere")


def read_columns(bench: Bench, source: Source, form: FormData) -> list[str] | None:
    """The columns that were ticked; None for all."""
    names = bench.opened(source).table.names
    chosen = [str(name) for name in form.getlist("columns")]
    for name in chosen:
        if name not in names:
            raise ParameterError("a column was named that the table does not have")
    return chosen or None


def read_column(bench: Bench, source: Source, form: FormData, field: str) -> str | None:
    """One column, or None."""
    name = str(form.get(field) or "")
    if name and name not in bench.opened(source).table.names:
        raise ParameterError("a column was named that the table does not have")
    return name or None


def columns(bench: Bench, source: Source) -> dict[str, list[str]]:
    """All columns, and those that can be ranked."""
    table = bench.opened(source).table
    return {
        "all": list(table.names),
        "ranked": [name for name in table.names if table.cells(name).kind != "nominal"],
    }
