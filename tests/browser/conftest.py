"""A real browser for the tests of pages: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SHOTS = Path(__file__).parent / "shots"
"""Where the screenshots of the last run lie, for people to look at; git does not keep them."""


# Of a module, not of the whole run: Playwright keeps an event loop running, in which tests of other things would fail.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser; without one the test is skipped."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no Chromium here (on Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # In a container Chromium has no rights to build its own sandbox.
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page in the browser, with all that it asked the network for and all that it complained of."""

    def __init__(self, context: Any, path: Path) -> None:
        self.page = context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())


Open = Callable[..., Opened]


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Write a page to a file and open it; at the end it must have loaded nothing else and complained of nothing."""
    made: list[tuple[Any, Opened, Path]] = []

    def opening(html: str, *, width: int = 1000, height: int = 900, **options: Any) -> Opened:
        path = tmp_path / f"page-{len(made)}.html"
        path.write_text(html, encoding="utf-8")
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(60_000)
        opened = Opened(context, path)
        made.append((context, opened, path))
        return opened

    yield opening
    for context, opened, path in made:
        context.close()
        assert opened.requests == [path.as_uri()]
        assert opened.complaints == []


@pytest.fixture
def shot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Keep a screenshot under the test's name."""

    def take(page: Any, what: str = "") -> None:
        name = re.sub(r"\W+", "-", f"{request.node.name} {what}".strip()).strip("-")
        page.screenshot(path=SHOTS / f"{name}.png", full_page=True)

    return take
