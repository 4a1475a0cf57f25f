"""Written reports in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rankveil.report.page import render

Open = Callable[..., Any]


@pytest.mark.parametrize("width", [1000, 400])
def test_a_long_command_is_read_without_scrolling(open_page: Open, width: int) -> None:
    command = f"rankveil compare people.csv --methods {','.join(['additive_noise'] * 30)} --sweep --points 7"
    page = open_page(render(title="Which", lead="Any.", sections=[], internal=True, command=command), width=width).page
    wide = "e => [e.scrollWidth, e.clientWidth]"
    for element in (page.locator("pre"), page.locator("html")):
        within, seen = element.evaluate(wide)
        assert within <= seen
