"""rankveil audit: every measure that applies to a release, and gates for pipelines."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from rankveil.cli import output, words
from rankveil.cli.options import AsJson, Masked, Matching, Original, Reading, Report
from rankveil.cli.progress import watching

EXAMPLE = (
    "rankveil audit rankveil-demo/original.csv rankveil-demo/masked.csv \\\n"
    "    --fail-if 'spearman_risk>0.99' --report audit.html"
)


def audit(
    *,
    context: typer.Context,
    original: Original,
    masked: Masked,
    measures: Annotated[
        list[str] | None, typer.Option("--measures", metavar="ID,ID", help="See rankveil measures. [all that apply]")
    ] = None,
    report: Report = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option("--fail-if", metavar="'ID<NUMBER'", help="Exit code 1 when this comes true. Repeatable."),
    ] = None,
    reading: Reading,
    matching: Matching,
    as_json: AsJson = False,
) -> int:
    """Measure a release made by whatever tool.

    Exit code 1 when a gate (--fail-if) fails.
    """
    import rankveil as rv
    from rankveil.cli.tables import check_outputs, open_pair

    if report is not None:
        inputs = {
            "original": original,
            "masked table": masked,
            "secret": matching.secret,
            "file of roles": reading.roles,
        }
        check_outputs({"report": report}, inputs)
    with watching("measuring", quiet=as_json):
        both = open_pair(original, masked, reading, matching)
        made = rv.audit(
            both.original,
            both.masked,
            measures=words.chosen(measures, option="--measures"),
            fail_if=words.items(fail_if, option="--fail-if"),
            **both.matching,
        )
        made.notes[:0] = both.notes
        if report is not None:
            made.report(report, command=shlex.join(["rankveil", *context.obj]))
    content = made.to_dict()
    if as_json:
        output.emit(content)
    else:
        _show(content, report)
    return 0 if made.ok else 1


def _show(content: dict[str, Any], report: str | None) -> None:
    from rankveil.catalogue import get_measure
    from rankveil.report.documents import audit_words

    output.say(audit_words(content))
    if content["measures"]:
        output.gap()
        output.grid(
            ("measure", "value", "better", "", "what it is"),
            [
                (name, float(given["value"]), given["better"], given["family"], get_measure(name).title)
                for name, given in content["measures"].items()
            ],
        )
    by_attribute = {
        name: given["details"]["per_attribute"]
        for name, given in content["measures"].items()
        if "per_attribute" in given["details"]
    }
    if by_attribute:
        output.gap()
        rows = [(each, *(given.get(each) for given in by_attribute.values())) for each in content["attributes"]]
        output.grid(("attribute", *by_attribute), rows)
    if content["gates"]:
        output.gap()
        rows = [(gate["rule"], gate["value"], "held" if gate["ok"] else "FAILED") for gate in content["gates"]]
        output.grid(("must not come true", "value", "result"), rows)
    if report is not None:
        output.gap()
        output.line(f"report: {report} (for internal use)")
    without = [f"{name} does not apply: {why}" for name, why in content["not_applicable"].items()]
    output.notes([*without, *content["notes"]])
