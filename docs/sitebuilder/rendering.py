"""From Markdown to HTML: headings that can be linked to, links between pages, coloured code, one layout for all."""

from __future__ import annotations

import html
import itertools
import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jinja2 import Environment, FileSystemLoader
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sitebuilder.outline import ROOT, SECTIONS, Page, place_of

_HERE = Path(__file__).parent
_LONG = 40
"""A word of code with more signs may be broken."""
_ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@dataclass(frozen=True)
class Rendered:
    """The inside of a page, its headings, and the files that it shows or offers."""

    page: Page
    body: str
    headings: tuple[tuple[int, str, str], ...]
    """Level, anchor and text of each."""
    assets: tuple[tuple[PurePosixPath, PurePosixPath], ...]
    """Files of the checkout (or the folder of figures) and where they go in the site."""

    @property
    def words(self) -> str:
        """Its text without the marks, for the search."""
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", self.body)).split())


def rendered(page: Page) -> Rendered:
    """A page as HTML."""
    parser = MarkdownIt("commonmark", {"html": True, "highlight": _coloured}).enable(["table", "strikethrough"])
    parser.add_render_rule("code_inline", _unbroken)
    tokens = parser.parse(page.text)
    headings = _anchored(tokens)
    assets: dict[PurePosixPath, PurePosixPath] = {}
    for token in _all(tokens):
        for name in ("href", "src"):
            target = token.attrGet(name)
            if isinstance(target, str):
                token.attrSet(name, _linked(target, page, assets))
    body = parser.renderer.render(tokens, parser.options, {})
    body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    return Rendered(page, body, tuple(headings), tuple(assets.items()))


def _unbroken(_: object, tokens: Sequence[Token], place: int, *__: object) -> str:
    """Code within a line: broken between its words if it has several, and never after the dashes of an option."""
    words = [html.escape(word, quote=False) for word in tokens[place].content.split(" ")]
    if len(words) == 1 and len(words[0]) <= _LONG:
        return f"<code>{words[0]}</code>"
    kept = (f"<span>{word}</span>" if "-" in word and len(word) <= _LONG else word for word in words)
    return f'<code class="line">{" ".join(kept)}</code>'


def _all(tokens: Sequence[Token]) -> list[Token]:
    return [each for token in tokens for each in (token, *_all(token.children or ()))]


def _anchored(tokens: Sequence[Token]) -> list[tuple[int, str, str]]:
    """Gives every heading an id, and returns level, id and text of all."""
    found: list[tuple[int, str, str]] = []
    taken: set[str] = set()
    for token, inside in itertools.pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = "".join(each.content for each in inside.children or () if each.type in ("text", "code_inline"))
        anchor = base = anchor_of(text)
        number = 1
        while anchor in taken:
            number += 1
            anchor = f"{base}-{number}"
        taken.add(anchor)
        token.attrSet("id", anchor)
        found.append((int(token.tag[1]), anchor, text))
    return found


def anchor_of(text: str) -> str:
    """The anchor of a heading: its words in small letters.

    >>> anchor_of("A plan: `rankveil mask`")
    'a-plan-rankveil-mask'
    """
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")


def _linked(target: str, page: Page, assets: dict[PurePosixPath, PurePosixPath]) -> str:
    """A link as the site has it: Markdown files become their pages, other files of the checkout come along."""
    if _ELSEWHERE.match(target) or target.startswith("#") or page.source is None:
        return target
    path, mark, anchor = target.partition("#")
    seen = PurePosixPath(posixpath.normpath((page.source.parent / path).as_posix()))
    if seen.suffix == ".md":
        place = place_of(seen.as_posix())
    elif (ROOT / seen).is_dir():
        place = _first_in(seen)
    elif seen.parts[0] == "docs":
        place = PurePosixPath(*seen.parts[1:])
    else:
        place = PurePosixPath(seen.name if seen.suffix else f"{seen.name}.txt")
    if (ROOT / seen).is_file() and seen.suffix != ".md":
        assets[seen] = place
    return between(page.path, place) + mark + anchor


def _first_in(folder: PurePosixPath) -> PurePosixPath:
    """The page that stands for a folder: its first one."""
    return place_of(sorted((ROOT / folder).glob("*.md"))[0].relative_to(ROOT).as_posix())


def between(here: PurePosixPath, there: PurePosixPath) -> str:
    """The link from one page of the site to another.

    >>> between(PurePosixPath("howto/a.html"), PurePosixPath("index.html"))
    '../index.html'
    """
    return posixpath.relpath(there.as_posix(), here.parent.as_posix())


def _coloured(code: str, language: str, _: str) -> str:
    """Code in colours; names of classes only, the colours are in the style sheet."""
    from pygments import highlight  # type: ignore[import-untyped]
    from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        lexer = get_lexer_by_name({"sh": "bash"}.get(language, language or "text"))
    except ClassNotFound:
        return ""
    marked: str = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return marked


def layout() -> Callable[[Rendered, Sequence[Page]], str]:
    """What puts a page into the frame that all have."""
    environment = Environment(loader=FileSystemLoader(_HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.get_template("page.html")

    def framed(one: Rendered, pages: Sequence[Page]) -> str:
        here = one.page.path
        listing = [
            (
                section,
                section == one.page.section,
                [
                    (between(here, page.path), page.label or page.title.replace("`", ""), page.path == here)
                    for page in pages
                    if page.section == section and page.listed
                ],
            )
            for section in SECTIONS
        ]
        return template.render(
            title=one.page.title.replace("`", ""),
            body=one.body,
            listing=listing,
            contents=[heading for heading in one.headings if heading[0] == 2],
            to=lambda name: between(here, PurePosixPath(name)),
            top=between(here, PurePosixPath("index.html")).removesuffix("index.html"),
        )

    return framed
