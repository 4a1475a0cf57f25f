"""The server: on this machine alone, at a printed address with a one-time token."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

from rankveil.errors import FileError
from rankveil.web.app import LIMIT, make_app

HOST = "127.0.0.1"


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

    with listening:
        app = make_app(
            workspace,
            token=token,
            limit=limit,
            renewed=lambda fresh: say(f"For another browser: {address(fresh)}"),
        )
        app.state.bench.workspace.hold()  # fails before anything is printed
        app.state.bench.workspace.release()
        if begun is not None:
            begun(address(token))
        else:
            say(f"The workspace is {app.state.bench.workspace.root}.")
            say(f"Open {address(token)}")
            say("Stop with Ctrl-C; everything that was done stays in the workspace.")
        if browser and _has_browser():
            threading.Timer(0.5, webbrowser.open, [address(token)]).start()
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,  # addresses hold tokens
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=3,
        )
        uvicorn.Server(config).run(sockets=[listening])


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
