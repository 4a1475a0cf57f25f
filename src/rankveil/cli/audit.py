"""rankveil audit: every measure that applies to a release, and gates for pipelines."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rankveil.cli import addresses, output, words
from rankveil.cli.clustering import Clustering, Subjects, kept_when_stopped, place_of
from rankveil.cli.options import AsJson, Matching, Original, Public, Reading, Report, report_told
from rankveil.cli.progress import watching
from rankveil.cli.room import SMALLER, check_job
from rankveil.errors import ParameterError

EXAMPLE = (
    "rankveil audit rankveil-demo/original.csv rankveil-demo/masked.csv \\\n"
    "    --fail-if 'spearman_risk>0.99' --report audit.html"
)


def audit(
    *,
    context: typer.Context,
    original: Original,
    masked: Annotated[
        list[str],
        typer.Argument(
            metavar="MASKED...",
            help="The released table; several versions give means and intervals.",
            show_default=False,
        ),
    ],
    measures: Annotated[
        list[str] | None, typer.Option("--measures", metavar="ID,ID", help="See rankveil measures. [all that apply]")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ID.NAME=VALUE", help="A parameter, as in um.basis=values. Repeatable."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COL", help="Losses and utilities also on this column's subdomains.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="COL", help="The column that users want to explain by the others.")
    ] = None,
    use: Annotated[
        str | None,
        typer.Option("--use", metavar="F.toml", help="Regressions, means and tables whose estimates are to be kept."),
    ] = None,
    pair: Annotated[
        str | None,
        typer.Option(
            "--pair", metavar="nearest", help="With --no-mapping: losses pair each masked record with the nearest."
        ),
    ] = None,
    report: Report = None,
    public: Public = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            metavar="'ID<NUMBER'",
            help="Exit code 1 when this comes true: of a measure or a headline number, or red or amber. Repeatable.",
        ),
    ] = None,
    knows: Annotated[
        list[str] | None,
        typer.Option("--knows", metavar="A,B", help="Also count whom somebody finds who knows these columns only."),
    ] = None,
    people: Annotated[
        float, typer.Option("--people", metavar="SHARE", help="And only this share of the people. [1]")
    ] = 1.0,
    everything: Annotated[bool, typer.Option("--all", help="Print all measures, not only what decides.")] = False,
    subjects: Subjects = None,
    reading: Reading,
    matching: Matching,
    clustering: Clustering,
    as_json: AsJson = False,
) -> int:
    """Measure a release made by whatever tool.

    Exit code 1 when a gate (--fail-if) fails.
    """
    import rankveil as rv
    from rankveil.cli.tables import as_masked, check_outputs, open_pair, open_versions

    if public and report is None:
        raise ParameterError("--public is about the page of --report: give both")
    if use is not None:
        addresses.refuse_address(use, "file of uses")
    found: list[str] = []
    if report is not None:
        inputs = {
            "original": original,
            **{f"masked table{f' {i + 1}' if i else ''}": path for i, path in enumerate(masked)},
            "secret": matching.secret,
            "file of roles": reading.roles,
            "file of uses": use,
        }
        found = check_outputs({"report": report}, inputs)
    if pair is not None and not matching.no_mapping:
        raise ParameterError("--pair is for tables whose records do not correspond: give --no-mapping too")
    if len(masked) > 1 and matching.secret is not None:
        raise ParameterError("--secret is of one release; with several masked tables leave it out")
    asked: dict[str, Any] = {
        "measures": words.chosen(measures, option="--measures"),
        "fail_if": words.items(fail_if, option="--fail-if"),
        "settings": _settings(given),
    }
    known = None if knows is None else words.chosen(knows, option="--knows")
    for_use: dict[str, Any] = {"by": by, "target": target, "pair": pair, "use": use}
    for_use |= {"knows": known, "people": None if people == 1 else people}
    with watching("measuring", quiet=as_json) as progress, kept_when_stopped():
        place = place_of(original, masked, reading, matching, clustering, for_use)
        if place.cluster is not None:
            how = {**place.how, "cluster": place.cluster, "subjects": subjects}
            made = rv.audit(original, masked[0], progress=progress, **asked, **how)
            made.notes[:0] = place.notes
        else:
            several = len(masked) > 1
            both = (
                open_versions(original, masked, reading, matching)
                if several
                else open_pair(original, masked[0], reading, matching)
            )
            both = as_masked(both, masked, reading)
            what = "measure" if asked["measures"] else "measure all"
            check_job(what, *both.tables, columns=reading.chosen, remedy=f"fewer --measures, or {SMALLER}")
            told = [
                _manifest(path, table, both.notes, found=_finds_people(asked["measures"], known, people))
                for path, table in zip(masked, both.tables[1:], strict=True)
            ]
            for_use |= {"manifest": told if several else told[0], "people": people}
            made = rv.audit(both.original, both.masked, progress=progress, **asked, **for_use, **both.matching)
            made.notes[:0] = [*place.notes, *both.notes]
        declared = [addresses.hidden_word(word) for word in reading.told]
        made.of_files(*map(addresses.hidden_word, (original, masked[0])), reading=declared)
        if report is not None:
            made.report(report, command=addresses.command(context.obj), public=public)
    content = made.to_dict()
    content["notes"] = [*found, *content["notes"]]
    if as_json:
        output.emit(content)
    else:
        _show(content, report, public=public, everything=everything, chosen=asked["measures"] is not None)
    return 0 if made.ok else 1


def _settings(given: list[str] | None) -> dict[str, dict[str, str]]:
    """Parameters of measures by id."""
    found: dict[str, dict[str, str]] = {}
    for name, value in words.pairs(given, option="--set", lists=True).items():
        measure, dot, parameter = name.partition(".")
        if not dot or not parameter:
            raise ParameterError(f"--set {name}={value}: a measure's parameter reads like um.basis=values")
        found.setdefault(measure, {})[parameter] = value
    return found


def _finds_people(measures: Any, knows: Any, people: float) -> bool:
    """Whether it is measured who is found, so that it matters what the manifest says."""
    return measures is None or "people_found" in measures or knows is not None or people != 1


def _manifest(path: str, table: Any, notes: list[str], *, found: bool) -> Any:
    """The manifest beside a release; that there is none is said where somebody looks for people."""
    from rankveil.cli.tables import manifest_beside

    said: list[str] = []
    made = manifest_beside(path, table, said)
    notes += said if found or made is not None else [note for note in said if "no manifest lies" not in note]
    return made


def _show(content: dict[str, Any], report: str | None, *, public: bool, everything: bool, chosen: bool) -> None:
    from rankveil.cli.decision import show_decision
    from rankveil.report.audits import audit_grids, audit_words, not_applicable

    show_decision(content)
    if everything or chosen:
        output.gap()
        output.say(audit_words(content, found=False))
        for caption, headings, rows in audit_grids(content):
            output.gap()
            output.line(caption)
            output.grid(headings, rows)
    if content["gates"]:
        output.gap()
        rows = [(gate["rule"], gate["value"], "held" if gate["ok"] else "FAILED") for gate in content["gates"]]
        output.grid(("must not come true", "value", "result"), rows)
    if report is not None:
        output.gap()
        output.line(report_told(report, public=public))
    notes = [*not_applicable(content), *content["notes"]]
    if everything or chosen:
        output.notes(notes)
        return
    warnings = [note for note in notes if note.startswith("warning:")]
    output.notes(warnings)
    more = output.count(len(notes) - len(warnings), "note")
    output.gap()
    output.say(f"{output.count(len(content['measures']), 'measure')} and {more}: --all prints them.")
