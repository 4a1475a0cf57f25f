"""rankveil mask: writes the release, its public manifest and its private secret, together or not at all."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankveil.cli import addresses, output, words
from rankveil.cli.clustering import Clustering, kept_when_stopped
from rankveil.cli.options import AsJson, Reading
from rankveil.cli.progress import watching
from rankveil.cli.room import check_job
from rankveil.errors import FileError, ParameterError, TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rankveil.cli.tables import Opened
    from rankveil.masking.register import Entered
    from rankveil.people.protector import Release
    from rankveil.people.publishing import Places, Written
    from rankveil.plans import Plan

EXAMPLE = (
    "rankveil mask rankveil-demo/original.csv -o release.csv --method additive_noise \\\n"
    "    --set alpha=0.2,alpha.INCOME=0.3 --then round --role PERSON=identifier"
)
MASK_SCHEMA = "rankveil/mask/1"
_SEED_DIGITS = 32
_ALLOW = "--release-identifier"
_DONE = {"leave out": "left out", "mask": "masked", "keep": "kept", "pseudonymise": "pseudonyms"}
"""What was done with a column, in the words of a table."""


def mask(
    *,
    file: Annotated[str, typer.Argument(metavar="IN", help="The original table.", show_default=False)],
    out: Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="The release.", show_default=False)],
    method: Annotated[
        str | None, typer.Option("--method", metavar="ID", help="See rankveil methods. [copula_swap]")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter; alpha.INCOME=0.3 for one column. Repeatable."),
    ] = None,
    then: Annotated[
        list[str] | None,
        typer.Option("--then", metavar="STEP[:NAME=VALUE,...]", help="A further step, such as round. Repeatable."),
    ] = None,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="F.toml", help="All steps from a file (TOML or JSON) instead.")
    ] = None,
    publish: Annotated[
        list[str] | None, typer.Option("--publish", metavar="ID,ID", help="Measures to put into the manifest.")
    ] = None,
    seed_file: Annotated[
        str | None,
        typer.Option(
            "--seed-file", metavar="F", help="A secret seed of at least 32 hexadecimal digits; - is standard input."
        ),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option("--seed", metavar="HEX", help="The seed itself, for studies: others can see it. [a fresh one]"),
    ] = None,
    key_file: Annotated[
        str | None,
        typer.Option(
            "--key-file",
            metavar="F",
            help="The key of pseudonyms that stay the same over waves: at least 32 hexadecimal digits; - is stdin.",
        ),
    ] = None,
    manifest: Annotated[
        str | None, typer.Option("--manifest", metavar="F", help="The public manifest. [OUT.manifest.json]")
    ] = None,
    secret: Annotated[
        str | None, typer.Option("--secret", metavar="F", help="The private secret. [OUT.secret.json]")
    ] = None,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Leave the rows in the original's order; the manifest says so.")
    ] = False,
    release_identifier: Annotated[
        list[str] | None,
        typer.Option(
            "--release-identifier",
            metavar="NAME",
            help="Release this identifier as it is; the manifest says so. Repeatable. [identifiers are left out]",
        ),
    ] = None,
    formulas: Annotated[
        str,
        typer.Option(
            "--formulas",
            metavar="WHAT",
            help="Texts in a CSV that a spreadsheet would run: refuse, neutralise (an apostrophe before each) or keep.",
        ),
    ] = "refuse",
    reading: Reading,
    clustering: Clustering,
    as_json: AsJson = False,
) -> int:
    """Mask a table.

    Without --columns the decisions that rankveil inspect shows are applied: identifiers are left out, weights are
    kept, group ids become pseudonyms, the rest is masked.

    Writes the release, the public manifest and the private secret, together or not at all. The rows of the release
    are shuffled; the secret says which is whose.
    """
    from dataclasses import replace

    from rankveil.cli.leaving import left_behind_notes
    from rankveil.cli.tables import check_outputs, open_table
    from rankveil.files.formulas import check_choice
    from rankveil.people.publishing import Places, check_formulas

    check_choice(formulas)
    place, notes = _place(file, out, clustering)
    to = Places.beside(out, manifest=manifest, secret=secret)
    manifest, secret = to.manifest, to.secret
    inputs = {"input": file, "plan": plan, "file of roles": reading.roles}
    inputs |= {what: None if path == "-" else path for what, path in (("seed file", seed_file), ("key file", key_file))}
    outputs = {"release": out, "manifest": manifest, "secret": secret}
    notes += check_outputs(outputs, inputs, table="release", otherwise={} if place is None else _in_folders(manifest))
    steps = _plan(method, given, then, plan, reading.chosen)
    key, chosen_seed = _key(key_file, seed_file), _seed(seed, seed_file)
    measures = words.items(publish, option="--publish")
    allowed = [name for given in release_identifier or () for name in words.chosen([given], option=_ALLOW) or ()]

    if place is not None:
        how = {"seed": chosen_seed, "pseudonym_key": key, "publish": measures, "shuffled": not keep_order}
        how["release_identifiers"] = allowed
        release, entered = _in_parts(file, steps, place, reading, clustering, as_json, to, how)
        notes += release.notes
    else:
        import rankveil as rv

        with watching("masking", quiet=as_json):
            opened = open_table(file, reading)
            if plan is not None:
                _check_headings(plan, steps, opened.table.names)
            chosen = [name for step in steps.steps for name in step.columns or ()]
            remedy = "mask fewer --columns, or write the table as Parquet and use --cluster local"
            check_job("mask", opened.table, columns=chosen or None, remedy=remedy)
            decimal = opened.table.decimal
            drawn = {"seed": chosen_seed, "pseudonym_key": key, "shuffled": not keep_order}
            drawn["release_identifiers"] = allowed
            release = rv.mask(opened.table, steps, publish=measures, decimal=decimal, **drawn)
            if why := release.changes_nothing:
                raise ParameterError(why)
            left_behind = left_behind_notes(release.data, out)
            check_formulas(release.data, to, formulas=formulas)
            release = release.published(keep_order=keep_order)
            written = _write(release, steps, opened, to, formulas=formulas)
            release, entered = replace(release, manifest=written.manifest), written.entered
        notes += [*opened.notes, *release.notes, *left_behind, *written.notes]
    notes += [*entered.notes, *to.notes()]
    if seed is not None:
        notes.append(
            "others on this machine can see a seed on the command line, and the shell remembers it: for a release, "
            "give it with --seed-file"
        )
    out, manifest = addresses.hidden_word(out), addresses.hidden_word(manifest)
    if as_json:
        output.emit(
            {
                "schema": MASK_SCHEMA,
                "records": release.manifest["records"]["out"],
                "changed": release.changed,
                "passed_through": release.passed_through,
                "output": out,
                "manifest": manifest,
                "secret": secret,
                **({} if entered.count is None else {"releases_of_this_table": entered.count}),
                "notes": notes,
            }
        )
    else:
        _show(release, out=out, manifest=manifest, secret=secret, notes=notes)
    return 0


def _place(file: str, out: str, clustering: Clustering) -> tuple[str | None, list[str]]:
    """Where the table is masked in parts, None for in memory, and what is to be said about that."""
    from importlib.util import find_spec

    from rankveil.cluster.masks import too_large
    from rankveil.partitions import places

    clustering.check()
    why = too_large(file, out) if clustering.cluster is None or places.is_address(out) else None
    if clustering.cluster is not None:
        return clustering.cluster, []
    if why is not None and places.is_address(out) and find_spec("distributed") is None:
        raise ParameterError(f"{out}: {why}, for which Dask must be installed (pip install 'rankveil[cluster]')")
    if why is None or find_spec("distributed") is None:
        if clustering.resume:
            raise ParameterError("--resume takes up work in parts: say where, as with --cluster local")
        lacking = f"{why}; it was not masked in parts, as Dask is not installed (pip install 'rankveil[cluster]')"
        return None, [] if why is None else [lacking]
    return "local", [f"{why}: masked in parts by processes of this machine, as with --cluster local"]


def _in_folders(manifest: str) -> dict[str, Callable[[str], object]]:
    """What is no file when a table is masked in parts, and what refuses a place for it."""
    from rankveil.cluster.folders import check_new, check_target
    from rankveil.partitions import places

    found: dict[str, Callable[[str], object]] = {"release": check_target}
    if places.is_address(manifest):
        found["manifest"] = check_new
    return found


def _in_parts(
    file: str,
    steps: Plan,
    place: str,
    reading: Reading,
    clustering: Clustering,
    as_json: bool,
    to: Places,
    how: dict[str, Any],
) -> tuple[Release, Entered]:
    """Mask a table in parts and write the release with its manifest, its secret and its entry in the register."""
    from dataclasses import replace

    from rankveil.cli.tables import declared_schema, load_pandas
    from rankveil.people.protector import masked_in_parts
    from rankveil.people.publishing import write_parts

    load_pandas()
    how |= {
        "scratch": clustering.scratch,
        "memory": clustering.memory,
        "resume": clustering.resume,
        "schema": declared_schema(reading),
    }
    with (
        watching("masking", quiet=as_json) as progress,
        kept_when_stopped(),
        masked_in_parts(file, steps, output=to.release, cluster=place, progress=progress, **how) as (release, made),
    ):
        entered = write_parts(made, release.manifest, release.secret, to, plan=steps)
    return replace(release, notes=(*release.notes, *made.notes)), entered


def _plan(
    method: str | None, given: list[str] | None, then: list[str] | None, plan: str | None, columns: list[str] | None
) -> Plan:
    from rankveil import catalogue
    from rankveil.people.protector import DEFAULT_METHOD
    from rankveil.plans import Plan, make_step

    if plan is not None:
        if method is not None or given or columns is not None:
            raise ParameterError(
                "--plan holds methods, parameters and columns; leave out --method, --set and --columns"
            )
        steps = _read_plan(plan)
    elif method is None and given:
        able = [name for name, entry in catalogue.methods().items() if not entry.post]
        raise ParameterError(f"--set is of a method: name it with --method ({', '.join(able)})")
    else:
        steps = Plan(
            (make_step(method or DEFAULT_METHOD, words.pairs(given, option="--set", lists=True), columns=columns),)
        )
    for text in then or ():
        name, _, parameters = (part.strip() for part in text.partition(":"))
        # a post-step works on what was masked before it; another masking on the chosen columns
        own = None if catalogue.get_method(name).post else columns
        more = words.pairs([parameters], option=f"--then {name}", lists=True)
        steps = steps.then(make_step(name, more, columns=own))
    return steps


def _check_headings(path: str, plan: Plan, names: Sequence[str]) -> None:
    """A column that is not in the table is shown where it stands in the plan's file."""
    from rankveil.plans import check_headings

    try:
        check_headings(plan, names)
    except TableError as error:
        raise TableError(f"{path}: {error}") from None


def _read_plan(path: str) -> Plan:
    from rankveil.beside import parsed_from
    from rankveil.plans import Plan

    json = path.lower().endswith(".json")
    return parsed_from(path, "plan", Plan.from_json if json else Plan.from_toml)


def _seed(seed: str | None, seed_file: str | None) -> Any:
    """The given seed, or None for a fresh one; no error repeats what could be a seed, not even as a file's name."""
    from rankveil.seeds import Seed

    if seed is not None and seed_file is not None:
        raise ParameterError("give --seed or --seed-file, not both")
    if seed_file is None:
        return None if seed is None else Seed.of(seed)
    return Seed.of(_digits(seed_file, "seed"))


def _key(key_file: str | None, seed_file: str | None) -> Any:
    """The key of the pseudonyms, or None."""
    from rankveil.seeds import Seed

    if key_file == seed_file == "-":
        raise ParameterError("standard input holds one of seed and key: give the other in a file")
    return None if key_file is None else Seed.of(_digits(key_file, "key"))


def _digits(path: str, what: str) -> str:
    """The hexadecimal digits of a secret in a file."""
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="ascii") as file:
                text = file.read()
    except OSError as error:
        reason = (error.strerror or "the system refused").lower()
        raise FileError(f"the {what} file cannot be read: {reason}") from None
    except UnicodeDecodeError:
        text = ""
    digits = "".join(text.split()).removeprefix("0x")
    if len(digits) < _SEED_DIGITS or any(sign not in "0123456789abcdefABCDEF" for sign in digits):
        raise ParameterError(
            f"the {what} file must hold at least {_SEED_DIGITS} hexadecimal digits (0-9, a-f), nothing else"
        )
    return digits


def _write(release: Release, steps: Plan, opened: Opened, to: Places, *, formulas: str) -> Written:
    """Write the release with its manifest, its secret and its entry in the register."""
    from rankveil.cli.tables import with_types
    from rankveil.files import csv_text, registry
    from rankveil.people.publishing import write

    data, dialect = release.data, opened.dialect
    if dialect is not None and registry.ending_of(to.release) not in csv_text.ENDINGS:
        data, dialect = with_types(data, opened.table), None
    how: dict[str, Any] = {"plan": steps, "dialect": dialect, "formulas": formulas}
    return write(data, release.manifest, release.secret, to, described=data is release.data, **how)


def _show(release: Release, *, out: str, manifest: str, secret: str, notes: list[str]) -> None:
    from rankveil.manifest import said_of_secret

    records = release.manifest["records"]["out"]
    steps = ", then ".join(step["method"] for step in release.manifest["steps"])
    output.say(f"{output.count(records, 'record')} masked by {steps}.")
    output.gap()
    rows = []
    for column in release.manifest["columns"]:
        many = release.changed.get(column["name"])
        share = "" if many is None else f"{many} ({100 * many / max(records, 1):.0f} %)"
        done = _DONE[column["action"]]
        rows.append((column["name"], column["role"], done, share, column.get("reason", "")))
    output.grid(("column", "role", "", "cells changed", "why"), rows)
    output.gap()
    output.line(f"release:  {out}")
    output.line(f"manifest: {manifest} (publish it with the release)")
    output.line(f"secret:   {secret} (keep it: {said_of_secret(release.manifest, release.secret)})")
    output.notes(notes)
