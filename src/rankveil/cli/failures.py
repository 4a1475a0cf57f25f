"""From whatever goes wrong to one sentence on standard error and an exit code."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rankveil.cli.addresses import hidden, hidden_word
from rankveil.errors import RankveilError, suggestion

BAD_INPUT, MISTAKE, STOPPED, NOBODY_READS = 2, 3, 130, 141

_SECRET_LIKE = re.compile(r"(?:0[xX])?[0-9a-fA-F]{16,}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Stopped(Exception):
    """Ctrl-C in work that kept something: the sentence says what and where."""


def debugging() -> bool:
    """Whether a person asked for the traceback of a mistake."""
    return os.environ.get("RANKVEIL_DEBUG", "") not in ("", "0")


def guarded(run: Callable[[list[str]], int], argv: list[str]) -> int:
    """Run a command; every way it can end becomes an exit code, and what went wrong one sentence."""
    try:
        code = run(argv)
        sys.stdout.flush()
    except RankveilError as error:
        return _told(str(error), BAD_INPUT, error)
    except Stopped as stop:
        return _told(str(stop), STOPPED)
    except KeyboardInterrupt:
        return _told("stopped; nothing was written", STOPPED)
    except SystemExit:  # the library that reads the options ends so when nobody reads standard output
        return _nobody_reads()
    except OSError as error:
        if error.errno == errno.EPIPE:
            return _nobody_reads()
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        return _told(where + _lower(error.strerror or "the system refused"), BAD_INPUT, error)
    except MemoryError as error:
        return _told("there is not enough memory for this; try fewer columns or records", BAD_INPUT, error)
    except Exception as error:
        if hasattr(error, "format_message"):  # the options themselves are wrong
            return _told(_usage(error, argv), BAD_INPUT)
        return _told(_mistake(error), MISTAKE, error)
    if code == STOPPED:
        return _told("stopped; nothing was written", STOPPED)
    return code


def ended(run: Callable[[], int]) -> int:
    """The exit code of a process that does this and ends: once it is known, no Ctrl-C changes it."""
    code = STOPPED
    try:
        try:
            code = run()
        finally:
            _ignore_the_keyboard()
    except KeyboardInterrupt:  # while an earlier one was being told, or just after the work was done
        _ignore_the_keyboard()
    return code


def _ignore_the_keyboard() -> None:
    """From here on Ctrl-C does nothing: Python gives it back its deadly meaning before the process has ended."""
    with suppress(ValueError):  # not the main thread: whoever started it decides
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A Ctrl-C that passed through code made from a text (numba and scipy make such) is unhandled for `python -m`,
    # even when it was caught, and kills the process in the end; running another text clears that.
    exec("")


def one_line(text: str) -> str:
    """The text without anything that a terminal would obey.

    >>> one_line("a column named A\\nB")
    'a column named A\\\\nB'
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _told(sentence: str, code: int, error: BaseException | None = None) -> int:
    with suppress(OSError):
        if error is not None and debugging():
            import traceback

            print(hidden("".join(traceback.format_exception(error))), end="", file=sys.stderr)
        print(f"rankveil: {one_line(hidden(sentence))}", file=sys.stderr)
    return code


def _mistake(error: Exception) -> str:
    """Its type and place, but not its text: that could hold an original value or the seed."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(package + os.sep):
            place = f" at rankveil/{os.path.relpath(file, package).replace(os.sep, '/')}:{trace.tb_lineno}"
        trace = trace.tb_next
    return (
        f"this is a mistake of rankveil itself ({type(error).__name__}{place}); please report it "
        "(RANKVEIL_DEBUG=1 shows more, which may include data)"
    )


def _usage(error: Any, argv: list[str]) -> str:
    """One sentence about a wrong option or argument, with the nearest name; what could be a secret is not shown."""
    message = error.format_message()
    for word in argv:
        message = message.replace(word, hidden_word(word)) if "://" in word else message
    message = _SECRET_LIKE.sub("...", " ".join(message.split())).rstrip(".")
    context = getattr(error, "ctx", None)
    verb = f" (see {context.command_path} --help)" if context is not None else ""
    option = getattr(error, "option_name", None)
    if option is not None and message.startswith("No such option"):
        known = [name for each in context.command.params for name in each.opts] if context is not None else []
        near = suggestion(option, [name for name in known if name.startswith("--")])
        return f"there is no option {_SECRET_LIKE.sub('...', option)}" + (near if "mean" in near else verb)
    unknown = re.match(r"No such command '(.*?)'", message)
    if unknown and context is not None:
        return f"there is no verb {unknown[1]}{suggestion(unknown[1], context.command.commands)}"
    parameter = getattr(error, "param", None)
    if parameter is not None:
        option = parameter.param_type_name == "option"
        name = "/".join(parameter.opts) if option else parameter.metavar or parameter.name
        if message.startswith("Missing"):
            return f"{name} is missing{verb}"
        if "integer" in message or parameter.name == "seed":
            return f"{name} must be a whole number"
        return f"{name}: {message.partition(': ')[2] or _lower(message)}"
    return _lower(message) + verb


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _nobody_reads() -> int:
    """Whoever read standard output went away (`| head`): no complaint, not even when Python closes it."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return NOBODY_READS
