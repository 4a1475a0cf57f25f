"""Which pages there are, in the order in which they are listed beside every page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Page:
    """A page before it is rendered: where it goes, its Markdown, and from where its links are seen."""

    path: PurePosixPath
    """In the site, ending in .html."""
    text: str
    source: PurePosixPath | None = None
    """The Markdown file in the checkout that it comes from; none for a page made from the catalogue."""
    section: str = ""
    label: str = ""
    """What the list of pages calls it; its heading unless given."""
    listed: bool = True

    @property
    def title(self) -> str:
        """Its first heading."""
        for line in self.text.splitlines():
            if line.startswith("# "):
                return line.removeprefix("# ").strip()
        raise ValueError(f"{self.source or self.path}: a page begins with a heading")


SECTIONS: dict[str, tuple[str, ...]] = {
    "Start": ("README.md", "docs/tutorial.md"),
    "How-to": (
        "docs/howto/choose-a-method.md",
        "docs/howto/audit-synthetic-data.md",
        "docs/howto/gate-a-pipeline.md",
        "docs/howto/let-subjects-verify.md",
        "docs/howto/stata-and-spss.md",
        "docs/howto/spreadsheets.md",
        "docs/howto/scale-out.md",
    ),
    "Reference": ("docs/measures.md", "docs/plans.md", "docs/guarantees.md"),
    "Theory": (
        "docs/theory/permutation-model.md",
        "docs/theory/intruder.md",
        "docs/theory/null-distribution.md",
        "docs/papers.md",
    ),
    "Inventory and comparison": ("docs/inventory.md", "docs/other-tools.md"),
    "Decisions": (),
    "Project": ("CONTRIBUTING.md", "CHANGELOG.md"),
}
"""The Markdown files of each section that have a place of their own; others of docs/ follow where their folder is."""

_FOLDERS = {"docs/decisions": "Decisions", "docs/howto": "How-to", "docs/theory": "Theory", "docs": "Reference"}
_UNLISTED = {"docs/reproduced": "Theory"}

_LABELS = {
    "README.md": "What rankveil is",
    "docs/tutorial.md": "Tutorial: a defended release in fifteen minutes",
    "docs/measures.md": "What an audit says",
    "docs/guarantees.md": "Guarantees",
    "docs/inventory.md": "Which methods are transparent",
    "CHANGELOG.md": "Changes",
}


def written() -> list[Page]:
    """All pages that are Markdown files: those of `SECTIONS` first, then whatever else lies in docs/."""
    placed = {name: section for section, names in SECTIONS.items() for name in names}
    found = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    for name in found:
        folder = PurePosixPath(name).parent.as_posix()
        placed.setdefault(name, _FOLDERS.get(folder) or _UNLISTED.get(folder) or "Reference")
    return [_page(name, section) for name, section in placed.items() if (ROOT / name).exists()]


def _page(name: str, section: str) -> Page:
    return Page(
        path=place_of(name),
        text=(ROOT / name).read_text(encoding="utf-8"),
        source=PurePosixPath(name),
        section=section,
        label=_LABELS.get(name, ""),
        listed=PurePosixPath(name).parent.as_posix() not in _UNLISTED,
    )


def place_of(name: str) -> PurePosixPath:
    """Where a Markdown file of the checkout goes in the site.

    >>> str(place_of("README.md")), str(place_of("docs/howto/scale-out.md"))
    ('index.html', 'howto/scale-out.html')
    """
    if name == "README.md":
        return PurePosixPath("index.html")
    path = PurePosixPath(name)
    inside = path.relative_to("docs") if path.parts[0] == "docs" else PurePosixPath(path.name.lower())
    return inside.with_suffix(".html")
