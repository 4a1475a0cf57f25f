"""rankveil attack: who can be found in a release by somebody who uses everything that is public."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rankveil.cli import addresses, output, words
from rankveil.cli.clustering import Clustering, Place, Subjects, kept_when_stopped, place_of
from rankveil.cli.options import (
    AsJson,
    Draws,
    Matching,
    Original,
    Public,
    Reading,
    Report,
    draws_given,
    report_told,
)
from rankveil.cli.progress import watching
from rankveil.cli.room import SMALLER, check_job
from rankveil.errors import ParameterError, RankveilError, row_listing

EXAMPLE = "rankveil attack rankveil-demo/original.csv rankveil-demo/masked.csv --report attack.html"


def attack(
    *,
    context: typer.Context,
    original: Original,
    masked: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MASKED...",
            help="The released table; several releases of one original are attacked together.",
            show_default=False,
        ),
    ] = None,
    register: Annotated[
        str | None,
        typer.Option("--register", metavar="F", help="All releases that rankveil-register.json names, not MASKED."),
    ] = None,
    manifest: Annotated[
        list[str] | None,
        typer.Option("--manifest", metavar="F", help="What was published of each. [MASKED.manifest.json]"),
    ] = None,
    no_manifest: Annotated[
        bool, typer.Option("--no-manifest", help="Attack without it: learn from the two tables alone.")
    ] = False,
    knows: Annotated[
        list[str] | None,
        typer.Option("--knows", metavar="A,B", help="Columns whose originals the intruder knows. [all]"),
    ] = None,
    people: Annotated[
        float, typer.Option("--people", metavar="SHARE", help="The share of the people whom he knows. [1]")
    ] = 1.0,
    at_most: Annotated[
        float,
        typer.Option("--at-most", metavar="SHARE", help="The largest share of people found that holds. [0.09]"),
    ] = 0.09,
    records: Annotated[
        str | None,
        typer.Option("--records", metavar="F", help="Write the risk of every person (CSV or Parquet)."),
    ] = None,
    draws: Draws = None,
    subsets: Annotated[bool, typer.Option("--subsets", help="Also link by subsets of the attributes.")] = False,
    links: Annotated[
        str | None,
        typer.Option(
            "--links", metavar="F", help="Judge this linkage: a table with columns original and masked (rows from 1)."
        ),
    ] = None,
    report: Report = None,
    public: Public = False,
    subjects: Subjects = None,
    reading: Reading,
    matching: Matching,
    clustering: Clustering,
    as_json: AsJson = False,
) -> int:
    """Attack a release with everything that is public.

    Exit code 1 when more people are found than --at-most, or somebody with certainty.
    """
    import rankveil as rv
    from rankveil.cli.registered import open_registered
    from rankveil.cli.tables import check_outputs, manifest_of, open_releases

    if register is not None and (masked or manifest or clustering.cluster is not None):
        raise ParameterError(
            "--register names the releases with their manifests, for memory: leave out MASKED, --manifest and --cluster"
        )
    if not masked and register is None:
        raise ParameterError("MASKED... is missing: name a release, or --register F for all that a register names")
    masked = masked or []
    if public and report is None:
        raise ParameterError("--public is about the page of --report: give both")
    outputs = {what: path for what, path in (("report", report), ("records", records)) if path is not None}
    found: list[str] = []
    if outputs:
        inputs = {"original": original, "table of links": links, "secret": matching.secret}
        inputs |= {f"masked table{f' {i + 1}' if i else ''}": path for i, path in enumerate(masked)}
        inputs |= {f"manifest{f' {i + 1}' if i else ''}": path for i, path in enumerate(manifest or ())}
        inputs |= {"file of roles": reading.roles, "register": register}
        found = check_outputs(outputs, inputs, table="records")
    if no_manifest and manifest:
        raise ParameterError("give one of --manifest and --no-manifest")
    if manifest and len(manifest) != len(masked):
        raise ParameterError(f"{len(masked)} releases need as many manifests, not {len(manifest)}: repeat --manifest")
    if len(masked) > 1 and matching.secret is not None:
        raise ParameterError("--secret is of one release; with several, each has its own beside it")
    known = None if knows is None else words.chosen(knows, option="--knows")
    use: dict[str, Any] = {"subsets": subsets or None, "links": links, "knows": known, "records": records}
    use |= {"manifest": manifest or None, "people": None if people == 1 else people}
    with watching("linking", quiet=as_json) as progress, kept_when_stopped():
        place = Place(None, {}, [])
        if register is None:
            place = place_of(original, masked, reading, matching, clustering, use, done="attacked")
        if place.cluster is not None:
            how = {name: given for name, given in place.how.items() if name not in use or given is not None}
            how |= {**draws_given(draws), "cluster": place.cluster, "subjects": subjects}
            made = rv.attack(original, masked[0], progress=progress, at_most=at_most, **how)
            made.notes[:0] = place.notes
        else:
            if register is not None:
                both, told = open_registered(original, register, reading, matching, manifests=not no_manifest)
            else:
                both = open_releases(original, masked, reading, matching)
                named: list[str | None] = [None] * len(masked) if not manifest else [*manifest]
                told = [
                    None if no_manifest else manifest_of(own, path, table, both.notes)
                    for own, path, table in zip(named, masked, both.tables[1:], strict=True)
                ]
            check_job("attack", *both.tables, columns=reading.chosen, remedy=SMALLER)
            made = rv.attack(
                both.original,
                both.masked,
                manifest=told if len(told) > 1 else told[0],
                knows=known,
                people=people,
                at_most=at_most,
                ordered=True,
                subsets=subsets,
                links=None if links is None else _read_links(links),
                progress=progress,
                **draws_given(draws),
                **both.matching,
            )
            made.notes[:0] = [*place.notes, *both.notes]
        if report is not None:
            made.report(report, command=addresses.command(context.obj), public=public)
        if records is not None:
            import pyarrow as pa

            from rankveil import files

            files.save(pa.table(made.rows()), records)
        content = made.to_dict()
    content["notes"] = [*found, *content["notes"]]
    if as_json:
        output.emit(content)
    else:
        _show(content, report, public=public, records=records)
    return 1 if made.holds is False else 0


def _read_links(path: str) -> list[tuple[int, int]]:
    """Pairs of row numbers from a file with the columns original and masked."""
    import numpy as np

    from rankveil import files
    from rankveil.schema import require_columns
    from rankveil.table import Table

    table = Table(files.load(path).data)
    try:
        require_columns(("original", "masked"), table.names)
        rows = [table.values(name) for name in table.usable(("original", "masked"))]
    except RankveilError as error:
        raise type(error)(f"{files.shown(path)}: {error}") from None
    bad = np.flatnonzero(~np.all([(row >= 1) & (row == np.rint(row)) for row in rows], axis=0))
    if bad.size:
        do = "does" if bad.size == 1 else "do"
        raise ParameterError(f"{files.shown(path)}: {row_listing(bad + 1)} {do} not hold two row numbers from 1")
    return [(int(a), int(b)) for a, b in zip(*rows, strict=True)]


def _show(content: dict[str, Any], report: str | None, *, public: bool, records: str | None) -> None:
    from rankveil.report.attacks import attack_words, evidence_rows

    output.say(attack_words(content))
    if content.get("evidence"):
        output.gap()
        output.grid(("evidence", "people found by it alone", "certain", ""), evidence_rows(content))
    if "mean_distance" in content:
        output.gap()
        output.grid(("attribute", "mean distance of the nearest records"), list(content["mean_distance"].items()))
    if "chance" in content:
        chance = content["chance"]
        output.gap()
        output.say(
            f"The paper's own test (no verdict): {chance['claims']} matches are nearer than records of independent",
            f"values come; Hellinger distance {output.number(chance['hellinger'])}, Kolmogorov-Smirnov p-value",
            f"{output.number(chance['ks_p'])}.",
        )
    if records is not None:
        output.gap()
        output.line(f"The risk of every person: {records}")
    if report is not None:
        output.gap()
        output.line(report_told(report, public=public))
    output.notes(content["notes"])
