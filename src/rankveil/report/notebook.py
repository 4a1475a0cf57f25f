"""A result in a notebook: words, still pictures, tables; nothing is loaded and no script runs."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape
from typing import Any

from rankveil.markup import html_table
from rankveil.report import static
from rankveil.report.chart import Chart
from rankveil.report.look import number
from rankveil.report.page import Captioned


def shown(words: str, *, charts: Iterable[Chart] = (), grids: Iterable[Captioned] = ()) -> str:
    """An HTML fragment for `_repr_html_`.

    >>> shown("Two records.", grids=[("", ("A", "B"), [(1, None)])])
    '<p>Two records.</p><table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td></td></tr></table>'
    """
    parts = [f"<p>{escape(words)}</p>"]
    for chart in charts:
        picture = base64.b64encode(static.svg(chart).encode("utf-8")).decode("ascii")
        parts.append(f'<p><b>{escape(chart.title)}</b></p><img alt="" src="data:image/svg+xml;base64,{picture}">')
    for caption, headings, rows in grids:
        parts.append(html_table(headings, rows, caption=caption, write=_cell))
    return "".join(parts)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return number(value) if isinstance(value, float) else str(value)
