"""The command line: thin, it only calls the public names.

Nothing heavy is imported here or at the top of any file of this folder, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from rankveil.cli import failures

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the number returned is the exit code.

    0 done, 1 a check failed, 2 bad input, 3 a mistake of rankveil itself, 130 stopped by the keyboard, 141 nobody
    reads standard output any more, 143 stopped by SIGTERM.
    """
    return failures.ended(_of_this_process) if argv is None else failures.guarded(_run, list(argv))


def _of_this_process() -> int:
    _settle_streams()
    return failures.guarded(_run, sys.argv[1:])


def _run(argv: list[str]) -> int:
    from rankveil.cli.app import command

    code = command().main(args=argv, prog_name="rankveil", standalone_mode=False, obj=argv)
    return code if isinstance(code, int) else 0


def _settle_streams() -> None:
    """What a terminal cannot show is written as an escape, and libraries' warnings do not mix with our one sentence.

    A stream that the caller closed (`>&-`, a service without a terminal) leads nowhere.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - it stays open as long as the process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if not failures.debugging():
        warnings.simplefilter("ignore")
