"""A masking: the table and its plan in; the release, what is published beside it, and the secret out."""

from __future__ import annotations

import json
from typing import Any

import rankveil as rv
from rankveil import files, masking
from rankveil.errors import RankveilError, listing
from rankveil.files.formulas import for_spreadsheets
from rankveil.manifest import said_of_secret
from rankveil.table import Table
from rankveil.web import repeat
from rankveil.web.declared import Declared
from rankveil.web.jobs.certify import public_part
from rankveil.web.jobs.job import Job, output, plain
from rankveil.web.jobs.names import masked_ending, names_of
from rankveil.web.workspace import write_bytes


def mask_table(job: Job) -> None:
    """Mask the table as its plan says, and write what is published and what is not."""
    source, declared = job.source(job.run.source), Declared.of(job.run.declared)
    plan, publish = rv.Plan.from_dict(job.run.settings["plan"]), tuple(job.run.settings.get("publish", ()))
    opened = job.original()
    job.progress.stage("masking")
    plan = masking.settled(plan, opened.table)
    release = rv.mask(opened.table, plan, publish=publish).published()
    names = names_of(source)
    masked = f"masked{masked_ending(source)}"
    with files.Staged() as staged:
        secret, manifest = release.secret.to_json(), release.manifest.to_json()
        staged.add(job.folder / "secret.json", lambda file: file.write(secret.encode("utf-8")), mode=0o600)
        staged.add(job.folder / "manifest.json", lambda file: file.write(manifest.encode("utf-8")), mode=0o600)
        staged.add(job.folder / masked, files.table_writer(release.data, masked, dialect=opened.dialect), mode=0o600)
    formulas = for_spreadsheets(release.data, names.masked, formulas="keep")[1]
    job.add("plan.toml", plan.to_toml())
    job.add("repeat.py", repeat.script(names, declared, publish=publish, formulas=bool(formulas)))
    outputs = {
        masked: output("The masked table", names.masked, private=False, text="what you release"),
        "manifest.json": output(
            "The manifest", f"{names.masked}.manifest.json", private=False, text="what was done, without the seed"
        ),
    }
    notes = [*opened.notes, *release.notes, *formulas]
    schema = opened.table.schema.only(release.data.column_names)
    table = Table(release.data, schema=schema, decimal=opened.table.decimal)
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
    outputs |= _hierarchies(job, declared)
    of_secret = said_of_secret(release.manifest, release.secret)
    outputs["secret.json"] = output("The secret", names.secret, private=True, text=f"never publish it: {of_secret}")
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
        "of_secret": of_secret,
        "command": repeat.command(names, declared, publish=publish, formulas=bool(formulas)),
        "notes": list(dict.fromkeys(notes)),
    }
    job.finish(content, outputs)


def _hierarchies(job: Job, declared: Declared) -> dict[str, dict[str, Any]]:
    """The hierarchies that were used, each once, for the folder in which the release is made again."""
    folder, made = job.sources.folder(job.source(job.run.source)), {}
    used = declared.released.hierarchies
    for kept in used.values():
        columns = [name for name, other in used.items() if other == kept]
        write_bytes(job.folder / kept.file, (folder / kept.file).read_bytes())
        title = f"The hierarchy of {listing(columns)}"
        made[kept.file] = output(title, kept.name, private=True, text="groups of categories, as you gave it")
    return made


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
    return public_part(made)


def _subject_page(job: Job, masked: Table, release: rv.Release, notes: list[str]) -> bool:
    job.progress.stage("writing the subject's page")
    try:
        columns = tuple(name for name in release.changed) or None
        job.add("subject.html", rv.subject_page(masked, columns=columns, manifest=release.manifest))
    except RankveilError as error:
        notes.append(f"there is no page for subjects: {error}")
        return False
    return True
