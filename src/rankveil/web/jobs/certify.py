"""A certificate: for all records together, record by record, and what the page shows of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import rankveil as rv
from rankveil.people.certificate import TRIVIAL
from rankveil.report.attacks import certificate_section
from rankveil.web.jobs.job import Job, output, plain
from rankveil.web.jobs.pair import pair_of

_PUBLIC = ("schema", "holds", "trivial", "records", "attributes", "f", "d", "v", "diversity")


def certify_release(job: Job) -> None:
    """Certify the permuted privacy that every record of the release has."""
    settings, both = job.run.settings, pair_of(job)
    job.progress.stage("certifying")
    asked = {name: settings[name] for name in ("d", "v") if settings.get(name) is not None}
    made = rv.certify(both.original, both.masked, diversity=settings["diversity"], **asked, **both.matching)
    made.notes[:0] = both.notes
    content, stem = made.to_dict(), job.source(job.run.source).stem
    public = public_part(content)
    job.add("certificate.json", json.dumps(plain(public), indent=2))
    job.add("certificate-internal.json", json.dumps(plain(content)))
    job.show([certificate_section(content)])
    failing = len(content["failing"])
    words = [*both.command, "--diversity", settings["diversity"]]
    for name, value in asked.items():
        words += [f"--{name}", f"{value:g}"]
    told = (
        f"All {content['records']} records have the permuted privacy that was asked for."
        if made.holds
        else f"{failing} of {content['records']} records do NOT have the permuted privacy that was asked for."
    )
    if made.trivial and made.holds:
        told = f"{TRIVIAL[0].upper()}{TRIVIAL[1:]}."
    outputs = {
        "certificate.json": output(
            "The certificate", f"{stem}-certificate.json", private=False, text="for all records"
        ),
        "certificate-internal.json": output(
            "Record by record", f"{stem}-certificate-internal.json", private=True, text="which records fail"
        ),
    }
    job.finish({"words": told, "holds": made.holds and not made.trivial, "command": shlex.join(words)}, outputs)


def public_part(content: Mapping[str, Any]) -> dict[str, Any]:
    """What a certificate tells of all records together; single records stay private."""
    return {name: content[name] for name in _PUBLIC}
