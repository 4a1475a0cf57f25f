"""An audit: its reports, all its numbers, and what the page shows of it."""

from __future__ import annotations

import json
import shlex

import rankveil as rv
from rankveil.report.audits import audit_page, audit_sections, audit_words
from rankveil.report.pictures import pictures_of
from rankveil.web.jobs.job import Job, output, plain
from rankveil.web.jobs.pair import pair_of


def audit_release(job: Job) -> None:
    """Measure the release against its original."""
    settings, both = job.run.settings, pair_of(job)
    job.progress.stage("measuring")
    made = rv.audit(
        both.original,
        both.masked,
        manifest=both.manifest,
        measures=settings.get("measures") or None,
        fail_if=settings.get("fail_if", ()),
        settings=settings.get("settings") or None,
        by=settings.get("by") or None,
        target=settings.get("target") or None,
        progress=job.progress,
        **both.matching,
    )
    made.notes[:0] = both.notes
    job.progress.stage("writing the reports")
    content, stem = made.to_dict(), job.source(job.run.source).stem
    words = list(both.command)
    for option, value in (("--by", settings.get("by")), ("--target", settings.get("target"))):
        words += [option, value] if value else []
    for rule in settings.get("fail_if", ()):
        words += ["--fail-if", rule]
    if settings.get("measures"):
        words += ["--measures", ",".join(settings["measures"])]
    for id, given in (settings.get("settings") or {}).items():
        words += ["--set", ",".join(f"{id}.{name}={value}" for name, value in given.items())]
    command = shlex.join(words)
    assert made.pair is not None
    pictures = pictures_of(made.pair, levels=made.rank_changes())
    shown = content | {"roles": dict(both.original.schema.roles or {})}
    for name, public in (("report.html", True), ("internal.html", False)):
        job.add(name, audit_page(shown, pictures, command=command, public=public))
    job.add("audit.json", json.dumps(plain(content), indent=2))
    job.show(audit_sections(shown, pictures))
    outputs = {
        "report.html": output(
            "The audit report", f"{stem}-audit.html", private=False, text="the public form: nothing of single records"
        ),
        "internal.html": output(
            "The internal audit report", f"{stem}-audit-internal.html", private=True, text="everything"
        ),
        "audit.json": output("All numbers", f"{stem}-audit.json", private=True, text="for other programs"),
    }
    job.finish({"words": audit_words(content), "ok": made.ok, "command": command}, outputs)
