"""A comparison: its report, all its numbers, and the places of its map while it fills."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import rankveil as rv
from rankveil.report.comparisons import compare_sections
from rankveil.web import places, repeat
from rankveil.web.declared import Declared
from rankveil.web.jobs.job import Job, output, plain
from rankveil.web.workspace import write_json


def compare_methods(job: Job) -> None:
    """Compare methods on the table, over the whole map or at one place of it."""
    settings = job.run.settings
    opened = job.original()
    asked: dict[str, Any] = {
        "risk": settings["risk"],
        "utility": tuple(settings["utility"]),
        "replicates": settings["replicates"],
        "points": settings["points"],
        "parameters": settings.get("parameters") or {},
        "columns": tuple(settings["columns"]) if settings.get("columns") else None,
    }
    at = settings.get("at") or None
    state = job.folder / "state.jsonl"
    filling = None if at else places.Filling.of(opened.table, settings["methods"], **asked)
    job.progress.stage("comparing")

    def told(done: int, total: int) -> None:
        job.progress(done, total)
        if filling is not None:
            write_json(job.folder / "places.json", plain({"places": filling.places(state)}))

    made = rv.compare(
        opened.table,
        settings["methods"],
        at=at,
        sweep=at is None,
        target=settings.get("target") or None,
        state=state,
        resume=state.exists(),
        progress=told,
        **asked,
    )
    made.notes[:0] = opened.notes
    job.progress.stage("writing the report")
    source = job.source(job.run.source)
    words = ["rankveil", "compare", source.name, "--methods", ",".join(settings["methods"])]
    words += ["--sweep", "--points", str(settings["points"])] if at is None else ["--at", _target(at)]
    words += ["--risk", asked["risk"], "--utility", ",".join(asked["utility"])]
    words += ["--replicates", str(asked["replicates"])]
    for id, given in asked["parameters"].items():
        words += ["--set", ",".join(f"{id}.{name}={value}" for name, value in given.items())]
    words += ["--target", settings["target"]] if settings.get("target") else []
    words += ["--columns", ",".join(asked["columns"])] if asked["columns"] else []
    words += repeat.flags_of_whole(Declared.of(job.run.declared))
    made.report(job.folder / "internal.html", command=shlex.join(words))
    os.chmod(job.folder / "internal.html", 0o600)
    content = made.to_dict()
    job.add("compare.json", json.dumps(plain(content), indent=2))
    write_json(job.folder / "places.json", plain({"places": places.of_comparison(made)}))
    sections = compare_sections(content)
    if at is None:  # the page has a table of its own for the places of the map
        sections = [replace(section, tables=()) for section in sections]
    job.show(sections)
    outputs = {
        "internal.html": output(
            "The internal comparison report", f"{source.stem}-compare-internal.html", private=True, text="everything"
        ),
        "compare.json": output("All numbers", f"{source.stem}-compare.json", private=True, text="for other programs"),
    }
    job.finish({"words": content["recommendation"], "command": shlex.join(words)}, outputs)


def _target(at: Mapping[str, float]) -> str:
    ((what, value),) = at.items()
    return f"{what}={value:g}"
