"""The two tables of an audit, an attack or a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import rankveil as rv
from rankveil.errors import FileError
from rankveil.table import Table
from rankveil.web import repeat
from rankveil.web.jobs.job import Job
from rankveil.web.jobs.names import names_of
from rankveil.web.sources import Declared, open_table


@dataclass(frozen=True)
class Pair:
    """An original and a release of it, and what says how their records belong together."""

    original: Table
    masked: Table
    matching: dict[str, Any]
    notes: list[str]
    command: list[str]


def pair_of(job: Job) -> Pair:
    """Original and release as a run asks for them."""
    settings, source = job.run.settings, job.source(job.run.source)
    first = job.original()
    declared = Declared.of(job.run.declared)
    matching: dict[str, Any] = {"columns": tuple(settings["columns"]) if settings.get("columns") else None}
    told: list[str] = []
    if job.run.release is not None:
        run = job.runs.find(job.run.release)
        if run is None or run.status != "done":
            raise FileError("the masking is not in the workspace any more")
        path = job.runs.folder(run) / job.runs.result(run)["content"]["masked"]
        second = open_table(path, Declared.of(run.declared))
        name = names_of(source).masked
        if job.runs.result(run)["content"]["mapping"] == "none":
            matching["mapping"] = False
            told.append("--no-mapping")
        elif job.runs.result(run)["content"]["mapping"] == "reordered":
            matching["secret"] = rv.Secret.from_json((job.runs.folder(run) / "secret.json").read_text("utf-8"))
            told += ["--secret", names_of(source).secret]
    else:
        other = job.source(settings["against"])
        second, name = open_table(job.sources.path(other), declared), other.name
        if settings.get("key"):
            matching["key"] = settings["key"]
            told += ["--key", settings["key"]]
        if settings.get("no_mapping"):
            matching["mapping"] = False
            told.append("--no-mapping")
    if matching["columns"]:
        told += ["--columns", ",".join(matching["columns"])]
    words = ["rankveil", job.run.kind, source.name, name, *told, *repeat.flags(declared)]
    return Pair(first.table, second.table, matching, [*first.notes, *second.notes], words)
