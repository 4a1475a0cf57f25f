"""The verbs put together."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from rankveil.cli.groups import grouped

VERBS = (
    "demo",
    "inspect",
    "mask",
    "audit",
    "attack",
    "certify",
    "verify",
    "subject-page",
    "compare",
    "serve",
    "methods",
    "measures",
    "reproduce",
)
"""In the order of the work; each is a module here with a function of its name (- as _) and an `EXAMPLE`."""

_WIDTH = {"max_content_width": 110, "help_option_names": ["-h", "--help"]}


def command() -> Any:
    """The whole command line."""
    app = typer.Typer(
        name="rankveil",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=_WIDTH,
        epilog="Begin with:  rankveil demo",
    )
    app.callback(invoke_without_command=True)(_rankveil)
    for verb in VERBS:
        name = verb.replace("-", "_")
        module = import_module(f"rankveil.cli.{name}")
        example = (
            "\b\nExample (the files are those of rankveil demo):\n  "
            if "-demo/" in module.EXAMPLE
            else "\b\nExample:\n  "
        )
        run = grouped(getattr(module, name))
        app.command(verb, epilog=example + module.EXAMPLE.replace("\n", "\n  "), context_settings=_WIDTH)(run)
    return typer.main.get_command(app)


def _rankveil(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Release microdata safely, and show for any release how much protection and usefulness it has."""
    if version:
        from rankveil._version import __version__

        print(f"rankveil {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit
