"""rankveil subject-page: the subject's own check as one page for her browser."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rankveil.cli import output
from rankveil.cli.options import AsJson, Masked, Reading
from rankveil.cli.progress import watching
from rankveil.cli.verify import ManifestFile, NoManifest, manifest_of
from rankveil.errors import listing

EXAMPLE = "rankveil subject-page rankveil-demo/masked.csv -o verify.html"
SUBJECT_PAGE_SCHEMA = "rankveil/subject-page/1"


def subject_page(
    *,
    masked: Masked,
    out: Annotated[str, typer.Option("--output", "-o", metavar="F.html", help="The page.", show_default=False)],
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The heading of the page.")] = None,
    manifest: ManifestFile = None,
    no_manifest: NoManifest = False,
    reading: Reading,
    as_json: AsJson = False,
) -> int:
    """Write the subject's check as a page.

    One file with the released data, for people's own browsers; nothing that they type leaves it.
    """
    import rankveil as rv
    from rankveil.cli.tables import check_outputs, open_table
    from rankveil.deciding import decided_table
    from rankveil.files import Staged

    inputs = {"released table": masked, "manifest": manifest, "file of roles": reading.roles}
    found = check_outputs({"page": out}, inputs)
    with watching("writing the page", quiet=as_json):
        opened = open_table(masked, reading)
        notes = list(opened.notes)
        told = manifest_of(masked, len(opened.table), notes, given=manifest, without=no_manifest)
        chosen = reading.chosen
        table = decided_table(opened.table, named=chosen or (), concluded=chosen is None, manifest=told)
        names = table.usable(chosen)
        permutation = told is not None and told.permutes(names)
        page = rv.subject_page(table, columns=names, title=title, manifest=told).encode("utf-8")
        with Staged() as staged:
            staged.add(out, lambda file: file.write(page))
    others = [name for name in opened.table.names if name not in names]
    content = {
        "schema": SUBJECT_PAGE_SCHEMA,
        "page": out,
        "bytes": len(page),
        "records": len(opened.table),
        "attributes": list(names),
        "approximate": not permutation,
        "notes": [*found, *notes, *([f"not on the page: {listing(others, most=20)}"] if others else [])],
    }
    if as_json:
        output.emit(content)
    else:
        _show(content)
    return 0


def _show(content: dict[str, Any]) -> None:
    records, attributes = output.count(content["records"], "released record"), content["attributes"]
    columns = f"{output.count(len(attributes), 'column')} ({listing(attributes, most=8)})"
    output.say(f"{records} with {columns} and the check of one's own values:")
    output.line(f"page: {content['page']} ({content['bytes'] / 1e6:.1f} MB)")
    output.say("It holds what the release and its manifest tell and nothing else, so it can be published with them.")
    output.notes(content["notes"])
