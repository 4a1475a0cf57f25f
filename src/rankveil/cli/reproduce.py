"""rankveil reproduce: a paper's tables and figures, published value beside ours."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rankveil.cli import addresses, output
from rankveil.cli.options import AsJson
from rankveil.cli.progress import watching

EXAMPLE = "rankveil reproduce masking-as-permutation -o reproduced"


def reproduce(
    *,
    paper: Annotated[
        str,
        typer.Argument(metavar="PAPER", help="The short name of a paper, agreement, or all.", show_default=False),
    ],
    data: Annotated[
        str | None, typer.Option("--data", metavar="DIR", help="A folder with data that a paper needs.")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--output", "-o", metavar="DIR", help="Write a page, figures and JSON there.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Compute a paper's tables and figures again.

    Exit code 1 when a value differs from the published one for no known reason.
    """
    from rankveil.papers import reproduce as again

    for what, folder in (("folder of data", data), ("folder of results", out)):
        if folder is not None:
            addresses.refuse_address(folder, what, wanted="folder")
    with watching(f"reproducing {paper}", quiet=as_json) as progress:
        made = again(paper, data=data, out=out, progress=progress)
    content = made.to_dict()
    if as_json:
        output.emit(content)
    else:
        for one in content.get("papers", [content]):
            _show(one)
        if out is not None:
            output.say(f"Written into {out}.")
    return 0 if made.ok else 1


def _show(content: dict[str, Any]) -> None:
    output.say(f"{content['paper']}:")
    rows = []
    for table in content["tables"]:
        printed = [row for row in table["rows"] if row["published"] is not None]
        agree = sum(row["ok"] for row in printed)
        explained = sum(not row["ok"] and "remark" in row for row in printed)
        found = len(table["rows"]) - len(printed)
        rows.append((table["name"], len(printed), agree, explained, len(printed) - agree - explained, found))
    output.grid(("table", "published", "agree", "explained", "differ", "own findings"), rows)
    wrong = [
        f"{table['name']}, {row['item']}: published {row['published']}, computed {row['computed']}"
        for table in content["tables"]
        for row in table["rows"]
        if not row["ok"] and "remark" not in row
    ]
    output.notes([*(f"DIFFERS: {each}" for each in wrong), *content["remarks"]])
    output.gap()
