"""rankveil inspect: columns, kinds and roles, missing values, ties, what would be masked, and a decision for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rankveil.cli import output
from rankveil.cli.options import AsJson, Reading
from rankveil.cli.progress import watching

if TYPE_CHECKING:
    from rankveil.inspection import Inspection, Look

EXAMPLE = "rankveil inspect rankveil-demo/original.csv --hierarchy REGION=rankveil-demo/region.csv"


def inspect(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The table.", show_default=False)],
    reading: Reading,
    write_roles: Annotated[
        str | None,
        typer.Option("--write-roles", metavar="F.toml", help="Write the decisions for --roles, with their reasons."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Look at the columns of a table.

    Shows their kinds and roles, missing values, ties, hierarchies, and what would be masked; and for every column the
    decision with its reason: what it is, and what a release does with it unless you say otherwise.
    """
    from rankveil import files
    from rankveil.cli.tables import check_outputs, hierarchies_seen_from, open_table
    from rankveil.inspection import inspect as look

    found: list[str] = []
    if write_roles is not None:
        found = check_outputs(
            {"file of roles": write_roles}, {"table": file, "file of roles that is read": reading.roles}
        )
    with watching("reading", quiet=as_json):
        opened = open_table(file, reading)
        seen = look(opened.table, columns=reading.chosen)
    if write_roles is not None:
        text = seen.roles(
            missing=opened.table.schema.missing, hierarchies=hierarchies_seen_from(write_roles, reading)
        ).encode("utf-8")
        with files.Staged() as staged:
            staged.add(write_roles, lambda out: out.write(text))
    file = files.shown(file)
    if as_json:
        content = seen.to_dict()
        dialect = opened.dialect
        written = None if dialect is None else {"separator": dialect.separator, "decimal": dialect.decimal}
        if dialect is not None and written is not None:
            written["encoding"] = dialect.encoding
        content |= {"file": file, "csv": written, "notes": [*found, *opened.notes, *content["notes"]]}
        output.emit(content)
    else:
        _show(file, seen, [*found, *opened.notes], write_roles)
    return 0


def _show(file: str, seen: Inspection, notes: list[str], written: str | None) -> None:
    output.say(f"{file}: {output.count(seen.records, 'record')}, {output.count(len(seen.columns), 'column')}.")
    output.gap()
    output.grid(
        ("column", "kind", "role", "missing", "different", "tied", "masked", ""),
        [
            (
                look.name,
                look.kind + ("" if look.kind_given else " (guess)"),
                look.role + ("" if look.role_given else " (guess)"),
                look.missing,
                look.distinct,
                "-" if look.ties is None else f"{100 * look.ties:.0f} %",
                look.masked,
                _remark(look),
            )
            for look in seen.columns
        ],
    )
    output.gap()
    output.say("What the columns are, and what a release does with them:")
    output.gap()
    output.grid(
        ("column", "kind", "role", "action", "reason"),
        [
            (made.name, made.kind, made.role, made.action, made.reason)
            for made in (look.decision for look in seen.columns)
        ],
    )
    if written is not None:
        output.gap()
        output.line(f"decisions: {written} (correct them there, and give the file with --roles)")
    problems = [f"masking would refuse {look.problem}" for look in seen.columns if look.problem]
    told = (
        "mask, audit, attack and compare follow these decisions; to correct one: --role NAME=..., --kind NAME=..., or "
        "--write-roles F.toml, and the corrected file with --roles"
    )
    advice = [] if all(look.role_given for look in seen.columns) else [told]
    output.notes([*notes, *seen.notes, *problems, *advice])


def _remark(look: Look) -> str:
    if look.levels:
        return " < ".join(look.levels[:6]) + (" < ..." if len(look.levels) > 6 else "")
    if look.hierarchy is not None:
        name, categories = look.hierarchy.name, look.hierarchy.categories
        levels = output.count(len(categories) - 1, "level")
        return f"hierarchy {name}: {levels} above ({' > '.join(map(str, categories))} categories)"
    return look.why_not_numeric or ""
