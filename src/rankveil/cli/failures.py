"""From whatever goes wrong to one sentence on standard error and an exit code."""

from __future__ import annotations

import _thread
import errno
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from rankveil.cli.addresses import hidden, hidden_word
from rankveil.errors import RankveilError, listing, one_line, suggestion
from rankveil.files.atomic import noting

BAD_INPUT, MISTAKE, STOPPED, NOBODY_READS, TERMINATED = 2, 3, 130, 141, 143

_TOO_LITTLE = "there is not enough memory for this; try fewer columns or records"
_LITTLE = 2**28
"""Bytes of free memory with which libraries may fail to load."""

_AGAIN = 0.05
"""Seconds after which a Ctrl-C that was lost is pressed again."""

_SECRET_LIKE = re.compile(r"(?:0[xX])?[0-9a-fA-F]{16,}")


class Stopped(Exception):
    """Ctrl-C in work that kept something: the sentence says what and where."""


def debugging() -> bool:
    """Whether a person asked for the traceback of a mistake."""
    return os.environ.get("RANKVEIL_DEBUG", "") not in ("", "0")


def guarded(run: Callable[[list[str]], int], argv: list[str]) -> int:
    """Run a command; every way it can end becomes an exit code, and what went wrong one sentence."""
    with noting() as written:
        return _guarded(run, argv, written)


def _guarded(run: Callable[[list[str]], int], argv: list[str], written: Sequence[str]) -> int:
    try:
        code = run(argv)
        sys.stdout.flush()
    except RankveilError as error:
        return _told(str(error), BAD_INPUT, error)
    except Stopped as stop:
        return _told(str(stop), STOPPED)
    except KeyboardInterrupt:
        return _told(_stopped(written), STOPPED)
    except SystemExit:  # the library that reads the options ends so when nobody reads standard output
        return _nobody_reads()
    except OSError as error:
        if error.errno == errno.EPIPE:
            return _nobody_reads()
        if error.errno == errno.ENOMEM or (error.errno is None and _memory_is_short()):
            return _told(_TOO_LITTLE, BAD_INPUT, error)
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        return _told(where + _lower(error.strerror or "the system refused"), BAD_INPUT, error)
    except MemoryError as error:
        return _told(_TOO_LITTLE, BAD_INPUT, error)
    except Exception as error:
        if hasattr(error, "format_message"):  # the options themselves are wrong
            return _told(_usage(error, argv), BAD_INPUT)
        if isinstance(error, ImportError | RuntimeError) and _memory_is_short():
            return _told(_TOO_LITTLE, BAD_INPUT, error)
        return _told(_mistake(error), MISTAKE, error)
    if code == STOPPED:
        return _told(_stopped(written), STOPPED)
    return code


def _memory_is_short() -> bool:
    """Whether a library that could not be loaded, or a thread that could not begin, may have lacked memory."""
    from rankveil import memory

    with suppress(MemoryError):
        return memory.available() < _LITTLE
    return True


def _stopped(written: Sequence[str]) -> str:
    """What a stopped command left behind: files that were whole before it was stopped stay."""
    were = "were" if len(written) > 1 else "was"
    return f"stopped; {listing(written, most=10) if written else 'nothing'} {were} written"


def ended(run: Callable[[], int]) -> int:
    """The exit code of a process that does this and ends: once it is known, no Ctrl-C changes it.

    SIGTERM, by which a system such as SLURM ends a job, is like Ctrl-C but for the exit code.
    """
    code, ended_by = STOPPED, list[int]()

    def terminate(number: int, _: object) -> None:
        ended_by.append(number)
        if len(ended_by) == 1:  # further ones would only disturb the cleaning up
            raise KeyboardInterrupt

    with suppress(ValueError):  # not the main thread: whoever started it decides
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
            signal.signal(signal.SIGTERM, terminate)
    sys.unraisablehook = _Unheard(sys.unraisablehook)
    try:
        try:
            code = run()
        finally:
            _ignore_signals()
    except KeyboardInterrupt:  # while an earlier one was being told, or just after the work was done
        _ignore_signals()
    return TERMINATED if code == STOPPED and ended_by else code


class _Unheard:
    """Ctrl-C is lost on code that cannot fail, such as what cleans up after an object: there it is pressed again."""

    def __init__(self, before: Callable[[Any], object]) -> None:
        self._before = before

    def __call__(self, lost: Any) -> None:
        """What Python does with an error that nobody can catch."""
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            self._before(lost)
            return
        later = threading.Timer(_AGAIN, _thread.interrupt_main)
        later.daemon = True
        later.start()


def _ignore_signals() -> None:
    """From here on Ctrl-C does nothing: Python gives it back its deadly meaning before the process has ended."""
    with suppress(ValueError):  # not the main thread: whoever started it decides
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # A Ctrl-C that passed through code made from a text (numba and scipy make such) is unhandled for `python -m`,
    # even when it was caught, and kills the process in the end; running another text clears that.
    exec("")


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
