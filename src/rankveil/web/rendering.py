"""From data to HTML: the templates of the workbench, and the parts of reports inside its pages."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from rankveil.report import interactive
from rankveil.report.chart import Chart
from rankveil.report.look import number
from rankveil.report.page import Section
from rankveil.web.wording import for_page

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.responses import HTMLResponse


@cache
def environment() -> Environment:
    """The templates, with everything escaped that is not said to be HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("rankveil.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["moment"] = moment
    made.filters["shown"] = shown
    made.filters["for_page"] = for_page
    made.globals["draw"] = draw
    return made


def page(template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **context: Any) -> HTMLResponse:
    """A whole page."""
    from starlette.responses import HTMLResponse

    return HTMLResponse(fragment(template, **context), status_code=status, headers=headers)


def fragment(template: str, **context: Any) -> str:
    """A template filled in."""
    return environment().get_template(template).render(**context)


def sections_html(sections: Sequence[Section]) -> str:
    """The parts of a report, for inside a page."""
    return fragment("sections.html", sections=sections)


def draw(chart: Chart) -> Any:
    """A chart as HTML, in which names are escaped already."""
    from markupsafe import Markup

    return Markup(interactive.element(chart))


def safe(html: str) -> Any:
    """HTML that this package made."""
    from markupsafe import Markup

    return Markup(html)


def moment(seconds: float | None) -> str:
    """A time for people, that of this machine."""
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def shown(value: Any) -> str:
    """A cell for people; a dash for nothing.

    >>> shown(0.123456), shown(True), shown(7)
    ('0.1235', 'yes', '7')
    """
    if value is None or (isinstance(value, float) and value != value):
        return "\u2013"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else str(value)
