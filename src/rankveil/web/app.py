"""The workbench as an ASGI application; everything that it keeps is in its workspace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.responses import HTMLResponse, Response

from rankveil._version import __version__
from rankveil.errors import RankveilError
from rankveil.report import interactive
from rankveil.web import rendering
from rankveil.web.bench import TABS, Bench
from rankveil.web.pages import attack, audit, compare, data, delete, mask, release, work
from rankveil.web.security import Guard
from rankveil.web.sessions import Sessions
from rankveil.web.workspace import Workspace

LIMIT = 200_000_000
"""Bytes of an upload, unless another limit is given."""

_OWN = {"style.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
_MEDIA: dict[str, dict[str, Any]] = {media: {} for media in _OWN.values()}


def make_app(
    workspace: str | Path,
    *,
    token: str,
    limit: int = LIMIT,
    renewed: Callable[[str], object] = lambda token: None,
) -> FastAPI:
    """The workbench on a workspace folder; `renewed` hears of the next one-time token when one was used."""
    held = Workspace(workspace)
    bench = Bench(held, limit)
    rendering.environment().globals["version"] = __version__

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        held.hold()
        bench.dispatcher.start()
        try:
            yield
        finally:
            bench.dispatcher.stop()
            held.release()

    app = _App(title="rankveil", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.add_middleware(Guard, sessions=Sessions(held, token=token, renewed=renewed), limit=limit)
    app.add_exception_handler(AnyHTTPException, _refused)
    app.add_exception_handler(RankveilError, _refused)
    app.add_exception_handler(FileNotFoundError, _gone)
    app.state.bench = bench
    app.get("/assets/{name}", response_class=Response, responses={200: {"content": _MEDIA}})(_asset)
    for module in (data, mask, audit, attack, compare, release, work, delete):
        app.include_router(module.router(bench), default_response_class=HTMLResponse)
    return app


class _App(FastAPI):
    """Describes its pages when somebody asks, at /openapi.json: that reads the whole catalogue."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        from rankveil.web.description import describe

        return describe(self.routes, title=self.title, version=self.version)


async def _refused(request: Request, error: Exception) -> Response:
    """One sentence on a page."""
    status = error.status_code if isinstance(error, AnyHTTPException) else 400
    sentence = str(error.detail) if isinstance(error, AnyHTTPException) else str(error)
    if status == 404 and sentence == "Not Found":
        sentence = "There is no such page."
    return rendering.page(
        "refused.html",
        status=status,
        tab="",
        tabs=TABS,
        source=None,
        title="That did not work",
        sentence=sentence,
        charts=False,
        headers=getattr(error, "headers", None),
    )


async def _gone(request: Request, error: Exception) -> Response:
    """What was there a moment ago, before another browser deleted it."""
    return await _refused(request, HTTPException(404, "It is not in the workspace any more."))


def _asset(name: str) -> Response:
    """The style and scripts: our own, and plotly's from its installed package."""
    text, media = _text_of(name)
    return Response(text, media_type=media, headers={"Cache-Control": "private, max-age=3600"})


@cache
def _text_of(name: str) -> tuple[str, str]:
    if name == "plotly.js":
        return interactive.plotly_js(), "text/javascript"
    if name == "draw.js":
        return interactive.DRAW, "text/javascript"
    if name == "charts.css":
        return interactive.STYLE, "text/css"
    if name not in _OWN:
        raise HTTPException(404, "There is no such file.")
    return (resources("rankveil.web") / "assets" / name).read_text(encoding="utf-8"), _OWN[name]
