"""What a run does: mask, audit, attack, compare or certify, from the files of the workspace to files of the run."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import rankveil as rv
from rankveil import files
from rankveil.errors import FileError, FormatError, RankveilError
from rankveil.files import registry
from rankveil.report.page import Section
from rankveil.table import Table
from rankveil.web import places, repeat
from rankveil.web.rendering import sections_html
from rankveil.web.runs import Run, Runs
from rankveil.web.sources import Declared, Opened, Source, Sources, open_table
from rankveil.web.workspace import Workspace, write_bytes, write_json

_OFTEN = 0.25
"""Seconds between two notes of how far the work is."""
_PUBLIC_CERTIFICATE = ("schema", "holds", "records", "attributes", "f", "d", "v", "diversity")
"""What a certificate tells of all records together; single records stay private."""


class Progress:
    """Writes down how far the work is, not more often than people can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stage = ""
        self._last = 0.0

    def stage(self, words: str) -> None:
        """A new part of the work."""
        self._stage, self._last = words, 0.0
        self(0, 0)

    def __call__(self, done: int, total: int) -> None:
        """So much is done of so much."""
        now = time.monotonic()
        if now - self._last >= _OFTEN or done == total:
            self._last = now
            write_json(self._path, {"stage": self._stage, "done": done, "total": total})


@dataclass(frozen=True)
class Job:
    """A run at work: where its inputs are and where its outputs go."""

    run: Run
    folder: Path
    sources: Sources
    runs: Runs
    progress: Progress

    @classmethod
    def of(cls, folder: Path, run: Run) -> Job:
        """From the run's folder in the workspace."""
        workspace = Workspace(folder.parent.parent)
        return cls(run, folder, Sources(workspace), Runs(workspace), Progress(folder / "progress.json"))

    def source(self, id: str) -> Source:
        """A table of the workspace."""
        found = self.sources.find(id)
        if found is None:
            raise FileError("the table is not in the workspace any more")
        return found

    def original(self) -> Opened:
        """The table, with what was declared of it when the run was asked for."""
        self.progress.stage("reading the table")
        return open_table(self.sources.path(self.source(self.run.source)), Declared.of(self.run.declared))

    def add(self, name: str, content: str) -> None:
        """Write an output."""
        write_bytes(self.folder / name, content.encode("utf-8"))

    def finish(self, content: Mapping[str, Any], outputs: Mapping[str, Mapping[str, Any]], **more: Any) -> None:
        """Write down that the work is done, as the last thing."""
        write_json(self.folder / "result.json", plain({"content": content, "outputs": outputs, **more}))

    def show(self, sections: list[Section]) -> None:
        """Keep what the page shows."""
        self.add("view.html", sections_html(sections))


def perform(folder: Path, run: Run) -> None:
    """Do the work of a run."""
    job = Job.of(folder, run)
    kinds: dict[str, Callable[[Job], None]] = {
        "mask": _mask,
        "audit": _audit,
        "attack": _attack,
        "compare": _compare,
        "certify": _certify,
    }
    kinds[run.kind](job)


def output(title: str, name: str, *, private: bool, text: str = "") -> dict[str, Any]:
    """What a page says of an output."""
    return {"title": title, "name": name, "private": private, "text": text}


def plain(value: Any) -> Any:
    """Plain JSON data: infinite and undefined numbers as None."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return [plain(each) for each in (value.tolist() if hasattr(value, "tolist") else value)]


def masked_ending(source: Source) -> str:
    """The format of a release: that of the original, or CSV where that cannot be written."""
    try:
        registry.writer(source.file)
    except FormatError:
        return ".csv"
    return source.ending


def names_of(source: Source) -> repeat.Names:
    """What the files of a masking are called when they are downloaded."""
    masked = f"{source.stem}-masked{masked_ending(source)}"
    return repeat.Names(source.name, masked, f"{source.stem}-plan.toml", f"{masked}.secret.json")


def _mask(job: Job) -> None:
    source, declared = job.source(job.run.source), Declared.of(job.run.declared)
    plan, publish = rv.Plan.from_dict(job.run.settings["plan"]), tuple(job.run.settings.get("publish", ()))
    opened = job.original()
    job.progress.stage("masking")
    release = rv.mask(opened.table, plan, publish=publish)
    names = names_of(source)
    masked = f"masked{masked_ending(source)}"
    with files.Staged() as staged:
        secret, manifest = release.secret.to_json(), release.manifest.to_json()
        staged.add(job.folder / "secret.json", lambda file: file.write(secret.encode("utf-8")), mode=0o600)
        staged.add(job.folder / "manifest.json", lambda file: file.write(manifest.encode("utf-8")), mode=0o600)
        staged.add(job.folder / masked, files.table_writer(release.data, masked, dialect=opened.dialect), mode=0o600)
    job.add("plan.toml", plan.to_toml())
    job.add("repeat.py", repeat.script(names, declared, publish=publish))
    outputs = {
        masked: output("The masked table", names.masked, private=False, text="what you release"),
        "manifest.json": output(
            "The manifest", f"{names.masked}.manifest.json", private=False, text="what was done, without the seed"
        ),
    }
    notes = [*opened.notes, *release.notes]
    table = Table(release.data, schema=opened.table.schema, decimal=opened.table.decimal)
    certificate = _public_certificate(job, opened.table, table, release, notes)
    if certificate is not None:
        job.add("certificate.json", json.dumps(plain(certificate), indent=2))
        outputs["certificate.json"] = output(
            "The certificate",
            f"{names.masked}.certificate.json",
            private=False,
            text="how far every record is from where it was, at least",
        )
    if _subject_page(job, table, release, notes):
        outputs["subject.html"] = output(
            "The subject's page",
            f"{source.stem}-check-yourself.html",
            private=False,
            text="people check their own record in their own browser",
        )
    outputs["plan.toml"] = output("The plan", names.plan, private=False, text="methods and parameters")
    outputs["repeat.py"] = output(
        "The script", f"{source.stem}-repeat.py", private=True, text="makes the release again"
    )
    outputs["secret.json"] = output(
        "The secret", names.secret, private=True, text="with it the masking can be undone: never publish it"
    )
    content = {
        "records": release.manifest["records"]["out"],
        "changed": dict(release.changed),
        "passed_through": list(release.passed_through),
        "guarantees": list(release.manifest["guarantees"]),
        "disclosive": list(release.manifest["disclosive_parameters"]),
        "certificate": certificate,
        "measures": dict(release.manifest["measures"]),
        "mapping": release.manifest["mapping"],
        "masked": masked,
        "command": repeat.command(names, declared, publish=publish),
        "notes": list(dict.fromkeys(notes)),
    }
    job.finish(content, outputs)


def _public_certificate(
    job: Job, original: Table, masked: Table, release: rv.Release, notes: list[str]
) -> dict[str, Any] | None:
    job.progress.stage("certifying")
    if not release.changed:
        return None
    matching: dict[str, Any] = {"columns": tuple(release.changed)}
    if release.manifest["mapping"] == "none":
        matching["mapping"] = False
    else:
        matching["secret"] = release.secret
    try:
        made = rv.certify(original, masked, **matching).to_dict()
    except RankveilError as error:
        notes.append(f"there is no certificate: {error}")
        return None
    return {name: made[name] for name in _PUBLIC_CERTIFICATE}


def _subject_page(job: Job, masked: Table, release: rv.Release, notes: list[str]) -> bool:
    job.progress.stage("writing the subject's page")
    try:
        columns = tuple(name for name in release.changed) or None
        permutation = release.manifest["marginals"] == "kept"
        job.add("subject.html", rv.subject_page(masked, columns=columns, permutation=permutation))
    except RankveilError as error:
        notes.append(f"there is no page for subjects: {error}")
        return False
    return True


@dataclass(frozen=True)
class Pair:
    """An original and a release of it, and what says how their records belong together."""

    original: Table
    masked: Table
    matching: dict[str, Any]
    notes: list[str]
    command: list[str]


def _pair(job: Job) -> Pair:
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


def _audit(job: Job) -> None:
    import shlex

    from rankveil.report.documents import audit_sections, audit_words

    settings, both = job.run.settings, _pair(job)
    job.progress.stage("measuring")
    made = rv.audit(
        both.original,
        both.masked,
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
    made.report(job.folder / "report.html", command=command, public=True)
    made.report(job.folder / "internal.html", command=command)
    for name in ("report.html", "internal.html"):
        os.chmod(job.folder / name, 0o600)
    job.add("audit.json", json.dumps(plain(content), indent=2))
    job.show(audit_sections(content, made.pictures()))
    outputs = {
        "report.html": output(
            "The audit report", f"{stem}-audit.html", private=False, text="the public form: nothing of single records"
        ),
        "internal.html": output("The internal report", f"{stem}-audit-internal.html", private=True, text="everything"),
        "audit.json": output("All numbers", f"{stem}-audit.json", private=True, text="for other programs"),
    }
    job.finish({"words": audit_words(content), "ok": made.ok, "command": command}, outputs)


def _attack(job: Job) -> None:
    import shlex

    from rankveil.report.documents import attack_sections, attack_words

    settings, both = job.run.settings, _pair(job)
    job.progress.stage("linking")
    draws = int(settings.get("draws") or 10_000)
    made = rv.attack(
        both.original,
        both.masked,
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
    job.show(attack_sections(content, made.matches.distance, (made.null.values, made.null.shares)))
    outputs = {
        "internal.html": output("The internal report", f"{stem}-attack-internal.html", private=True, text="everything"),
        "attack.json": output("All links", f"{stem}-attack.json", private=True, text="for other programs"),
    }
    told = {"words": attack_words(content), "withstands": made.withstands, "command": shlex.join(words)}
    job.finish(told, outputs)


def _certify(job: Job) -> None:
    import shlex

    from rankveil.report.documents import certificate_section

    settings, both = job.run.settings, _pair(job)
    job.progress.stage("certifying")
    asked = {name: settings[name] for name in ("d", "v") if settings.get(name) is not None}
    made = rv.certify(both.original, both.masked, diversity=settings["diversity"], **asked, **both.matching)
    made.notes[:0] = both.notes
    content, stem = made.to_dict(), job.source(job.run.source).stem
    public = {name: content[name] for name in _PUBLIC_CERTIFICATE}
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
    outputs = {
        "certificate.json": output(
            "The certificate", f"{stem}-certificate.json", private=False, text="for all records"
        ),
        "certificate-internal.json": output(
            "Record by record", f"{stem}-certificate-internal.json", private=True, text="which records fail"
        ),
    }
    job.finish({"words": told, "holds": made.holds, "command": shlex.join(words)}, outputs)


def _compare(job: Job) -> None:
    import shlex

    from rankveil.report.comparing import compare_sections

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
        resume=True,
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
    words += ["--columns", ",".join(asked["columns"])] if asked["columns"] else []
    words += repeat.flags(Declared.of(job.run.declared))
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
            "The internal report", f"{source.stem}-compare-internal.html", private=True, text="everything"
        ),
        "compare.json": output("All numbers", f"{source.stem}-compare.json", private=True, text="for other programs"),
    }
    job.finish({"words": content["recommendation"], "command": shlex.join(words)}, outputs)


def _target(at: Mapping[str, float]) -> str:
    ((what, value),) = at.items()
    return f"{what}={value:g}"
