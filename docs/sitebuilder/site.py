"""The whole site: pages written and pages made, figures, the index for the search."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from sitebuilder import documents, figures, interface, inventory, reference
from sitebuilder.outline import ROOT, Page, written
from sitebuilder.rendering import Rendered, layout, rendered

_HERE = Path(__file__).parent
_MADE = re.compile(r"<!-- generated: ([\w-]+) -->")
_MARK = ".rankveil-site"
"""A file that says that the folder is a site built here, so that it may be replaced."""

TABLES: dict[str, Callable[[], str]] = {
    "methods-with-a-secret": lambda: inventory.table(random=True),
    "methods-without-a-secret": lambda: inventory.table(random=False),
    "null-agreement": figures.agreement,
    "null-twenty": figures.running_table,
}
"""What stands where a page says `<!-- generated: NAME -->`."""


def pages() -> list[Page]:
    """All pages, in their order."""
    filled = [dataclasses.replace(page, text=_filled(page.text)) for page in written()]
    made = [*reference.pages(), *interface.pages(), *documents.pages()]
    return [*filled, *made]


def _filled(text: str) -> str:
    return _MADE.sub(lambda found: TABLES[found.group(1)](), text)


def build(folder: Path) -> list[Rendered]:
    """Write the site into a folder that is empty, not there, or a site built before."""
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise SystemExit(f"{folder} holds something else than a site; name another folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARK).touch()
    every = pages()
    made = [rendered(page) for page in every]
    framed = layout()
    for one in made:
        place = folder / one.page.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(framed(one, every), encoding="utf-8")
        for source, target in one.assets:
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / source, folder / target)
    figures.draw(folder / "theory" / "figures")
    shutil.copyfile(documents.SCHEMA, folder / "reference" / documents.SCHEMA.name)
    for name in ("style.css", "search.js"):
        shutil.copyfile(_HERE / name, folder / name)
    (folder / "index.js").write_text(f"const PAGES = {_index(made)};\n", encoding="utf-8")
    return made


def _index(made: list[Rendered]) -> str:
    rows = [
        {
            "path": one.page.path.as_posix(),
            "title": one.page.title.replace("`", ""),
            "headings": " ".join(text for _, _, text in one.headings),
            "words": one.words[:20_000],
        }
        for one in made
    ]
    return json.dumps(rows, ensure_ascii=False)
