"""rankveil attack: the maximum-knowledge intruder, and whether a match is better than chance."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rankveil.cli import addresses, output
from rankveil.cli.clustering import Clustering, Subjects, kept_when_stopped, place_of
from rankveil.cli.options import (
    AsJson,
    Draws,
    Masked,
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
_SHOWN = 10


def attack(
    *,
    context: typer.Context,
    original: Original,
    masked: Masked,
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
    """Attack a release as an intruder would.

    Links every original record to the nearest released one and tests the links against chance.
    """
    import rankveil as rv
    from rankveil.cli.tables import check_outputs, open_pair

    if public and report is None:
        raise ParameterError("--public is about the page of --report: give both")
    if report is not None:
        inputs = {"original": original, "masked table": masked, "table of links": links}
        check_outputs({"report": report}, inputs | {"secret": matching.secret, "file of roles": reading.roles})
    use: dict[str, Any] = {"subsets": subsets or None, "links": links}
    with watching("linking", quiet=as_json) as progress, kept_when_stopped():
        place = place_of(original, [masked], reading, matching, clustering, use, done="attacked")
        if place.cluster is not None:
            how = {**place.how, **draws_given(draws), "cluster": place.cluster, "subjects": subjects}
            made = rv.attack(original, masked, progress=progress, **how)
            made.notes[:0] = place.notes
        else:
            both = open_pair(original, masked, reading, matching)
            check_job("attack", *both.tables, columns=reading.chosen, remedy=SMALLER)
            made = rv.attack(
                both.original,
                both.masked,
                subsets=subsets,
                links=None if links is None else _read_links(links),
                progress=progress,
                **draws_given(draws),
                **both.matching,
            )
            made.notes[:0] = [*place.notes, *both.notes]
        if report is not None:
            made.report(report, command=addresses.command(context.obj), public=public)
        content = made.to_dict()
    if as_json:
        output.emit(content)
    else:
        _show(content, report, public=public)
    return 0


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


def _show(content: dict[str, Any], report: str | None, *, public: bool) -> None:
    from rankveil.report.attacks import attack_words, most_exposed

    output.say(attack_words(content))
    output.gap()
    output.grid(("attribute", "mean distance of the matches"), list(content["mean_distance"].items()))
    output.gap()
    output.say(
        f"Real against random records: Hellinger distance {output.number(content['hellinger'])},",
        f"Kolmogorov-Smirnov p-value {output.number(content['ks_p'])}.",
    )
    exposed = most_exposed(content["links"], claims=content["claims"])
    if exposed:
        output.gap()
        rows = [
            (link["original"], ", ".join(map(str, link["masked"][:5])), link["distance"], link["p_value"])
            for link in exposed[:_SHOWN]
        ]
        output.grid(("original record", "released record", "distance", "p-value"), rows)
        if len(exposed) > _SHOWN:
            output.say(f"... and {len(exposed) - _SHOWN} more (--json lists all links)")
    if report is not None:
        output.gap()
        output.line(report_told(report, public=public))
    output.notes(content["notes"])
