"""The guard in front of all pages: which requests come in, how large they may be, and what every answer says.

A page of another site must not be able to read or do anything here, even under a name that it made point to this
machine; hence the checks of Host and Origin beside the session.
"""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.formparsers import MultiPartException
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankveil.web.sessions import Sessions

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere and no script inside a page; plotly writes its styles into the page."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: with that a browser hides the Origin of its own forms, which is checked here.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_DRAINED = 4
"""How many times the limit is read and thrown away, so that the browser reads the answer instead of a broken line."""

_WELCOME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>rankveil</title><link rel="icon" href="/assets/icon.svg">
<meta http-equiv="refresh" content="0; url=/"></head>
<body><p><a href="/">Open the workbench</a></p></body></html>
"""
"""A page and not a redirect: a browser sends a strict cookie only when the request comes from this site."""


def human_size(size: int) -> str:
    """A number of bytes for people.

    >>> human_size(200_000_000), human_size(1500)
    ('200 MB', '2 kB')
    """
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= step:
            return f"{size / step:.0f} {unit}"
    return f"{size} bytes"


class TooLargeError(MultiPartException):
    """More came than may come; of this family, because then the reader of forms closes what it has begun to keep."""


class Guard:
    """Lets a request through to the pages, or answers it with one sentence."""

    def __init__(self, app: ASGIApp, *, sessions: Sessions, limit: int) -> None:
        self._app, self._sessions, self._limit = app, sessions, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = self._refusal(scope)
        if answer is not None:
            await answer(scope, receive, told)
            return
        await self._app(scope, _limited(receive, scope, self._limit), told)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        path = scope.get("raw_path", b"").partition(b"?")[0].lower() or scope["path"].encode()
        if b".." in path or b"%2e" in path or b"%2f" in path or b"%5c" in path or b"\\" in path or b"%00" in path:
            return _refused(400, "Refused: the address holds a name that is a path.")
        allowed = _hosts(scope)
        if headers.get("host", "").lower() not in allowed:
            return _refused(403, "Refused: open the workbench by the address that rankveil serve printed.")
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if token and scope["path"] == "/" and scope["method"] == "GET":
            return self._welcome(token[0])
        if not self._sessions.knows(_cookie(headers, self._sessions.cookie)):
            return _refused(403, "Refused: open the workbench by the address that rankveil serve printed last.")
        origin = headers.get("origin")
        same = origin is not None and origin.lower() in {f"http://{host}" for host in allowed}
        if not same and (origin is not None or scope["method"] not in ("GET", "HEAD")):
            return _refused(403, "Refused: the request comes from another site.")
        return None

    def _welcome(self, token: str) -> Response:
        session = self._sessions.exchange(token)
        if session is None:
            return _refused(
                403, "Refused: this address was used before or is wrong; take the one that rankveil serve printed last."
            )
        made = HTMLResponse(_WELCOME)
        made.set_cookie(self._sessions.cookie, session, httponly=True, samesite="strict", path="/")
        return made


def _hosts(scope: Scope) -> set[str]:
    """The names under which this server may be called: the port is that of the socket."""
    port = (scope.get("server") or ("", 0))[1]
    return {f"127.0.0.1:{port}", f"localhost:{port}"}


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie("; ".join(headers.getlist("cookie"))).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _refused(status: int, sentence: str) -> Response:
    return PlainTextResponse(sentence + "\n", status_code=status)


def _limited(receive: Receive, scope: Scope, limit: int) -> Receive:
    """What comes in, counted: beyond the limit it is thrown away and the request refused."""
    declared = Headers(scope=scope).get("content-length", "")
    seen = 0
    over = declared.isdecimal() and int(declared) > limit

    async def counted() -> Message:
        nonlocal seen, over
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return message
            seen += len(message.get("body", b""))
            over = over or seen > limit
            if not over:
                return message
            if not message.get("more_body", False) or seen > _DRAINED * limit:
                raise TooLargeError(
                    f"The file is larger than {human_size(limit)}, which is the limit for an upload; put it into the "
                    "folder inbox of the workspace and pick it on the Data page, or start rankveil serve with a "
                    "larger --limit.",
                )

    return counted
