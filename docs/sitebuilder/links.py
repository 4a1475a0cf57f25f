"""Links of a built site that lead nowhere, or out of it without being meant to."""

from __future__ import annotations

import posixpath
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Reader(HTMLParser):
    """What a page links to and shows, and the anchors that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[tuple[str, str]] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.targets.append((tag, value))


def read(page: Path) -> _Reader:
    """One page, read."""
    reader = _Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def broken(folder: Path) -> list[str]:
    """A sentence for each link that leads nowhere, and for each thing that would be fetched from the network."""
    read_pages = {page.relative_to(folder).as_posix(): read(page) for page in sorted(folder.rglob("*.html"))}
    wrong = []
    for here, one in read_pages.items():
        for tag, target in one.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if tag != "a" and parts.scheme != "data":
                    wrong.append(f"{here}: {tag} fetches {target}")
                continue
            path = posixpath.normpath(posixpath.join(posixpath.dirname(here), unquote(parts.path)))
            there = here if not parts.path else path
            if not (folder / there).is_file():
                wrong.append(f"{here}: {target} is not there")
            elif parts.fragment and there in read_pages and parts.fragment not in read_pages[there].anchors:
                wrong.append(f"{here}: {target} has no such heading")
    return wrong
