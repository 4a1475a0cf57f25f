"""An attack: its report, all links, and what the page shows of it."""

from __future__ import annotations

import json
import os
import shlex

import rankveil as rv
from rankveil.report.attacks import attack_sections, attack_words
from rankveil.web.jobs.job import Job, output, plain
from rankveil.web.jobs.pair import pair_of


def attack_release(job: Job) -> None:
    """Find people in the release as an intruder would, with all that is published of it."""
    settings, both = job.run.settings, pair_of(job)
    job.progress.stage("linking")
    draws = int(settings.get("draws") or 10_000)
    made = rv.attack(
        both.original,
        both.masked,
        manifest=both.manifest,
        ordered=True,
        draws=draws,
        subsets=bool(settings.get("subsets")),
        progress=job.progress,
        **both.matching,
    )
    made.notes[:0] = both.notes
    job.progress.stage("writing the report")
    content, stem = made.to_dict(), job.source(job.run.source).stem
    words = [*both.command, "--draws", str(draws), *(["--subsets"] if settings.get("subsets") else [])]
    made.report(job.folder / "internal.html", command=shlex.join(words))
    os.chmod(job.folder / "internal.html", 0o600)
    job.add("attack.json", json.dumps(plain(content)))
    job.show(attack_sections(content, made.pictures()))
    outputs = {
        "internal.html": output(
            "The internal attack report", f"{stem}-attack-internal.html", private=True, text="everything"
        ),
        "attack.json": output("All links", f"{stem}-attack.json", private=True, text="for other programs"),
    }
    told = {"words": attack_words(content), "holds": made.holds, "command": shlex.join(words)}
    job.finish(told, outputs)
