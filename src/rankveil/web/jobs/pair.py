"""The two tables of an audit, an attack or a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rankveil as rv
from rankveil.auditing import decided_original
from rankveil.errors import FileError, listing
from rankveil.table import Table
from rankveil.web import repeat
from rankveil.web.declared import Declared
from rankveil.web.jobs.job import Job
from rankveil.web.jobs.names import names_of
from rankveil.web.sources import Opened, open_table
from rankveil.web.workspace import is_file_name


@dataclass(frozen=True)
class Pair:
    """An original and a release of it, and what says how their records belong together."""

    original: Table
    masked: Table
    matching: dict[str, Any]
    notes: list[str]
    command: list[str]
    manifest: rv.Manifest | None = None
    """What is published of the release, where it was made here."""


@dataclass(frozen=True)
class _Release:
    """A release, how its records belong to those of the original, and how a command says that."""

    name: str
    opened: Opened
    matching: dict[str, Any]
    told: list[str]
    notes: list[str]
    manifest: rv.Manifest | None = None


def pair_of(job: Job) -> Pair:
    """Original and release as a run asks for them."""
    opened = job.original()
    release = _of_workspace(job) if job.run.release is not None else _made_elsewhere(job, opened.table)
    columns = tuple(job.run.settings.get("columns") or ()) or None
    first = decided_original(
        opened.table, {}, columns=columns, manifest=release.manifest, released=[release.opened.table]
    )
    notes = [*opened.notes, *release.opened.notes, *release.notes]
    if columns is None and job.run.release is not None and job.run.kind != "attack":  # an intruder uses what there is
        columns = _not_dropped(first, release.opened.table, notes)
    told = [*release.told, "--columns", ",".join(columns)] if columns else release.told
    source, flags = job.source(job.run.source), repeat.flags_of_whole(Declared.of(job.run.declared))
    return Pair(
        first,
        release.opened.table,
        {"columns": columns, **release.matching},
        notes,
        ["rankveil", job.run.kind, source.name, release.name, *told, *flags],
        release.manifest,
    )


def _of_workspace(job: Job) -> _Release:
    """What a masking of this workspace made; its secret is there too."""
    run = job.runs.find(job.run.release or "")
    if run is None or run.status != "done":
        raise FileError("the masking is not in the workspace any more")
    folder, content, names = job.runs.folder(run), job.runs.result(run)["content"], names_of(job.source(run.source))
    beside = job.sources.folder(job.source(run.source))
    if not is_file_name(content["masked"]):
        raise FileError("the masked table does not lie with its masking")
    opened = open_table(folder / content["masked"], Declared.of(run.declared), name=names.masked, folder=beside)
    manifest = rv.Manifest.from_json((folder / "manifest.json").read_text("utf-8"))
    if content["mapping"] == "none":
        return _Release(names.masked, opened, {"mapping": False}, ["--no-mapping"], [], manifest)
    if content["mapping"] == "reordered":
        return _Release(names.masked, opened, {"secret": _secret(folder)}, ["--secret", names.secret], [], manifest)
    return _Release(names.masked, opened, {}, [], [], manifest)


def _not_dropped(original: Table, masked: Table, notes: list[str]) -> tuple[str, ...] | None:
    """The columns to compare where the plan dropped some of those that would be; None for all."""
    names = original.usable()  # as it was decided
    dropped = [name for name in names if name not in masked.names]
    if not dropped:
        return None
    notes.append(f"dropped by the plan, so not compared: {listing(dropped, most=10)}")
    return tuple(name for name in names if name in masked.names) or None


def _made_elsewhere(job: Job, original: Table) -> _Release:
    """Another table of the workspace, with what was said of its records."""
    settings, other = job.run.settings, job.source(job.run.settings["against"])
    beside = job.sources.folder(job.source(job.run.source))
    opened = open_table(job.sources.path(other), Declared.of(job.run.declared), name=other.name, folder=beside)
    notes = list(settings.get("notes", ()))
    if settings.get("key"):
        return _Release(other.name, opened, {"key": settings["key"]}, ["--key", settings["key"]], notes)
    if settings.get("no_mapping"):
        return _Release(other.name, opened, {"mapping": False}, ["--no-mapping"], notes)
    if (job.folder / "secret.json").exists():
        secret = _secret(job.folder)
        told = ["--secret", f"{other.name}.secret.json"]
        return _Release(other.name, opened, {"secret": secret}, told, [*notes, *_doubts(secret, original)])
    return _Release(other.name, opened, {}, [], notes)


def _secret(folder: Path) -> rv.Secret:
    return rv.Secret.from_json((folder / "secret.json").read_text("utf-8"))


def _doubts(secret: rv.Secret, original: Table) -> list[str]:
    """Why a secret may not be that of the release."""
    notes = []
    if secret.is_of(original) is False:
        notes.append("the secret was made for another original, or for this one with other columns or missing values")
    if secret.order is None:
        notes.append("the secret holds no mapping: the rows of that release were not reordered")
    return notes
