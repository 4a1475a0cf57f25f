"""The server: on this machine alone, at a printed address with a one-time token."""

from __future__ import annotations

import html
import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

from rankveil.errors import FileError
from rankveil.web.app import LIMIT, make_app

HOST = "127.0.0.1"
_SOON = 0.5
"""Seconds until the browser is opened: the server is up by then."""


def serve(
    workspace: str | Path,
    *,
    port: int = 0,
    browser: bool = True,
    limit: int = LIMIT,
    say: Callable[[str], object] = print,
    begun: Callable[[str], object] | None = None,
) -> None:
    """Serve the workbench until it is stopped; port 0 takes a free one.

    `say` gets what a person should read; `begun`, when it is given, the address instead.
    """
    import uvicorn

    listening = _listening(port)
    taken = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)

    def address(token: str) -> str:
        return f"http://{HOST}:{taken}/?token={token}"

    def renewed(fresh: str) -> None:
        door.remove()
        say(f"For another browser: {address(fresh)}")

    with listening, Door(address(token)) as door:
        app = make_app(workspace, token=token, limit=limit, renewed=renewed)
        app.state.bench.workspace.hold()  # fails before anything is printed
        app.state.bench.workspace.release()
        if begun is not None:
            begun(address(token))
        else:
            say(f"The workspace is {app.state.bench.workspace.root}.")
            say(f"Open {address(token)}")
            say("Stop with Ctrl-C; everything that was done stays in the workspace.")
        if browser and _has_browser():
            door.open_soon()
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,  # addresses hold tokens
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=3,
        )
        uvicorn.Server(config).run(sockets=[listening])


class Door:
    """A page of this user's alone that leads a browser to an address with a token.

    What a browser is started with, everybody on the machine can see in the list of processes: the name of this file,
    and not the token. The file is removed when the token was used, and when the server ends.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._folder: Path | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(_SOON, self._open)
        self._timer.daemon = True

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.remove()

    def open_soon(self) -> None:
        """Write the page, and open it in the browser when the server is up."""
        self._folder = Path(tempfile.mkdtemp(prefix="rankveil-"))  # mode 0700
        page = self._folder / "open.html"
        target = html.escape(self._address)
        with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(
                '<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
                f'<title>rankveil</title><meta http-equiv="refresh" content="0; url={target}">'
                f'<p><a href="{target}">To the workbench</a></p>\n'
            )
        self._timer.start()

    def _open(self) -> None:
        with self._lock:
            folder = self._folder
        if folder is not None:
            webbrowser.open((folder / "open.html").as_uri())

    def remove(self) -> None:
        """Remove the page, if it is there."""
        with self._lock:
            folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _listening(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
        made.listen(128)  # from now on a browser waits instead of being turned away
    except OSError as error:
        made.close()
        reason = (error.strerror or "the system refused").lower()
        raise FileError(
            f"port {port} cannot be used: {reason}; choose another with --port, or 0 for a free one"
        ) from None
    return made


def _has_browser() -> bool:
    """Whether there is a browser that would not take over the terminal."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True
