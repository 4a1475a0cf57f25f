"""What a run does: mask, audit, attack, compare or certify, from the files of the workspace to files of the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rankveil.web.jobs.attack import attack_release
from rankveil.web.jobs.audit import audit_release
from rankveil.web.jobs.certify import certify_release
from rankveil.web.jobs.compare import compare_methods
from rankveil.web.jobs.job import Job
from rankveil.web.jobs.mask import mask_table
from rankveil.web.runs import Run

__all__ = ["perform"]


def perform(folder: Path, run: Run) -> None:
    """Do the work of a run."""
    job = Job.of(folder, run)
    kinds: dict[str, Callable[[Job], None]] = {
        "mask": mask_table,
        "audit": audit_release,
        "attack": attack_release,
        "compare": compare_methods,
        "certify": certify_release,
    }
    kinds[run.kind](job)
