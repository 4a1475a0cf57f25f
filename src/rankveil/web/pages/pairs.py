"""What Audit, Attack and the certificate share: which release of which table, and how records belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData

from rankveil.errors import ParameterError
from rankveil.manifest import Secret
from rankveil.web.bench import Bench, read_upload
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


@dataclass(frozen=True)
class Chosen:
    """The release that was chosen."""

    release: str | None
    """The masking of this workspace that made it, or None."""
    settings: dict[str, Any]
    """Which other table it is, and how records correspond."""
    secret: str | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """What `Bench.ask` is told of it."""
        return {"release": self.release, "secret": self.secret}


def read_release(bench: Bench, source: Source, form: FormData) -> Chosen:
    """The masking that was chosen, or another table and how its records correspond."""
    what, _, id = str(form.get("release") or "").partition(":")
    if what == "run":
        run = bench.runs.find(id)
        if run is None or run.kind != "mask" or run.source != source.id or run.status != "done":
            raise ParameterError("choose a release that is done")
        return Chosen(run.id, {})
    if what == "data":
        other = bench.sources.find(id)
        if other is None:
            raise ParameterError("there is no such table in the workspace")
        return _made_elsewhere(bench, source, other, form)
    raise ParameterError("choose a release: mask the table first, or upload one that was made elsewhere")


def _made_elsewhere(bench: Bench, source: Source, other: Source, form: FormData) -> Chosen:
    key, no_mapping = read_column(bench, source, form, "key"), bool(form.get("no_mapping"))
    upload, notes = read_upload(form, "secret"), []
    secret = None if upload is None else upload.text
    if secret is not None:
        Secret.from_json(secret)
    if sum((key is not None, no_mapping, secret is not None)) > 1:
        raise ParameterError("say in one way which record is which: by a column, by the secret, or not at all")
    manifest = bench.sources.manifest(other)
    if manifest is not None and key is None and secret is None and not no_mapping:
        if manifest["mapping"] == "reordered":
            raise ParameterError(
                f"{other.name}: its rows were reordered, as its manifest says; give its secret "
                f"({other.name}.secret.json) under “The secret of the release”, or match records by a column"
            )
        if manifest["mapping"] == "none":
            no_mapping = True
            notes.append(
                f"{other.name}: its manifest says that its records do not correspond to original ones (no mapping)"
            )
    return Chosen(None, {"against": other.id, "key": key, "no_mapping": no_mapping, "notes": notes}, secret)


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
