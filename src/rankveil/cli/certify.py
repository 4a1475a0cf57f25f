"""rankveil certify: (d, v, f)-permuted privacy of a release."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rankveil.cli import output, words
from rankveil.cli.options import AsJson, Masked, Matching, Original, Reading
from rankveil.cli.progress import watching
from rankveil.cli.room import check_job
from rankveil.errors import ParameterError, listing, suggestion

EXAMPLE = (
    "rankveil certify rankveil-demo/original.csv rankveil-demo/masked.csv --columns INCOME,SAVINGS --diversity distinct"
)
_CHOICES = ("mapping", "minimax", "euclidean")


def certify(
    *,
    original: Original,
    masked: Masked,
    d: Annotated[
        list[str] | None,
        typer.Option(
            "--d", metavar="4,1,4", help="Least rank distance: for all, for each attribute, or A=4. [the largest]"
        ),
    ] = None,
    v: Annotated[
        list[str] | None, typer.Option("--v", metavar="10,10,10", help="Least diversity, given in the same way.")
    ] = None,
    diversity: Annotated[
        str,
        typer.Option("--diversity", metavar="ID", help="variance, distinct, entropy or closeness.", show_default=True),
    ] = "variance",
    f: Annotated[
        str | None,
        typer.Option(
            "--f", metavar="ID", help="Which released record is whose: mapping, minimax or euclidean. [mapping]"
        ),
    ] = None,
    record: Annotated[
        int | None, typer.Option("--record", metavar="N", help="Also tell of this original record, numbered from 1.")
    ] = None,
    reading: Reading,
    matching: Matching,
    as_json: AsJson = False,
) -> int:
    """Certify (d,v,f)-permuted privacy.

    Exit code 1 when it is not met, or when every d is 0; without --d, tells the largest that holds.
    """
    import rankveil as rv
    from rankveil.cli.tables import as_masked, note_other_table, open_pair
    from rankveil.people.diversity import CRITERIA

    if diversity not in CRITERIA:
        raise ParameterError(f"there is no diversity criterion {diversity}{suggestion(diversity, CRITERIA)}")
    if f is not None and f not in _CHOICES:
        raise ParameterError(f"f must be {' or '.join(_CHOICES)}, not {f!r}")
    wanted: dict[str, Any] = {"d": words.numbers(d, option="--d"), "v": words.numbers(v, option="--v")}
    with watching("certifying", quiet=as_json):
        both = as_masked(open_pair(original, masked, reading, matching), [masked], reading)
        note_other_table(masked, both.tables[1], both.notes)
        check_job("certify", *both.tables, columns=reading.chosen, remedy="fewer --columns")
        made = rv.certify(both.original, both.masked, diversity=diversity, f=f, **wanted, **both.matching)  # type: ignore[arg-type]
        made.notes[:0] = both.notes
        content = made.to_dict()
        if record is not None:
            content["record"] = made.record(record)
    if as_json:
        output.emit(content)
    else:
        _show(content, asked=bool(wanted["d"] or wanted["v"]))
    return 0 if made.holds and not made.trivial else 1


def _show(content: dict[str, Any], *, asked: bool) -> None:
    from rankveil.people.certificate import TRIVIAL

    records, failing = content["records"], content["failing"]
    if content["trivial"] and content["holds"]:
        output.say(f"{TRIVIAL[0].upper()}{TRIVIAL[1:]}.")
    elif not asked:
        output.say(f"The largest (d, v, f)-permuted privacy that all {output.count(records, 'record')} have:")
    elif content["holds"]:
        output.say(f"All {output.count(records, 'record')} have the permuted privacy that was asked for.")
    else:
        output.say(f"{len(failing)} of {output.count(records, 'record')} do NOT have the permuted privacy asked for.")
        output.say(f"Original records that fail: {listing(failing, most=20)}.")
    output.gap()
    limit = "at most" if content["diversity"] == "closeness" else "at least"
    headings = ["attribute", "largest d", f"{content['diversity']} there"]
    columns = [content["attributes"], content["largest"]["d"], content["largest"]["v"]]
    if asked:
        headings[1:1] = ["d asked for", f"v asked for ({limit})"]
        columns[1:1] = [content["d"], content["v"]]
    output.grid(headings, list(zip(*columns, strict=True)))
    told = content.get("record")
    if told is not None:
        output.gap()
        output.say(f"Original record {told['record']}{'' if told['ok'] else ' FAILS'}:")
        output.grid(
            ("attribute", "its d", f"{content['diversity']} there"),
            list(zip(content["attributes"], told["d"], told["v"], strict=True)),
        )
    output.notes(content["notes"])
