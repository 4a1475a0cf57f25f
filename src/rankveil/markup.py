"""A small table as HTML, for results that show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any


def html_table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = "", write: Callable[[Any], str] = str
) -> str:
    """A table; whatever stands in a cell is text.

    >>> html_table(("A", "B"), [(1, "<b>")])
    '<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>&lt;b&gt;</td></tr></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(write(value))}</td>" for value in row) + "</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<tr>{head}</tr>{body}</table>"
