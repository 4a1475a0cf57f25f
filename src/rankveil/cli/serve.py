"""rankveil serve: the local web workbench."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rankveil.cli import addresses, output
from rankveil.cli.options import AsJson
from rankveil.errors import ParameterError

EXAMPLE = "rankveil serve --workspace survey-2024"
SERVE_SCHEMA = "rankveil/serve/1"


def serve(
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="N", help="The port on 127.0.0.1; 0 for a free one.", show_default=True)
    ] = 0,
    workspace: Annotated[
        str,
        typer.Option("--workspace", metavar="DIR", help="The folder that keeps everything.", show_default=True),
    ] = "rankveil-workspace",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="MB", help="The largest file that may be uploaded.", show_default=True)
    ] = 200,
    as_json: AsJson = False,
) -> int:
    """Open the workbench in a browser.

    It listens on this machine only and prints an address with a one-time token.
    """
    if not 0 <= port <= 65535:
        raise ParameterError(f"--port must be a whole number from 0 to 65535, not {port}")
    if limit < 1:
        raise ParameterError(f"--limit must be at least 1, not {limit}")
    addresses.refuse_address(workspace, "workspace", wanted="folder")
    from rankveil.web.serving import serve as serving

    def begun(address: str) -> None:
        output.emit({"schema": SERVE_SCHEMA, "address": address, "workspace": workspace})
        sys.stdout.flush()

    serving(
        workspace,
        port=port,
        browser=not no_browser,
        limit=limit * 10**6,
        say=lambda line: print(line, file=sys.stderr if as_json else sys.stdout, flush=True),
        begun=begun if as_json else None,
    )
    return 0
