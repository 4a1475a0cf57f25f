"""The process of one run: `python -m rankveil.web.work RUN_FOLDER`.

It ends with the server that started it: its standard input is a pipe from there, and when that closes, whatever the
reason, the whole group of processes goes. What a comparison has finished is kept, and a resumed run goes on from it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from pathlib import Path
from typing import Any

from rankveil.errors import RankveilError
from rankveil.web.jobs import perform
from rankveil.web.runs import read_run
from rankveil.web.workspace import open_lock, write_json


def main(folder: Path) -> int:
    """Do the work; whatever goes wrong becomes one sentence in the run's folder."""
    run = read_run(folder)
    if run is None:
        return 2
    held = _alone(folder)
    for earlier in ("result.json", "failure.json"):  # of a process that was stopped at the last moment
        (folder / earlier).unlink(missing_ok=True)
    try:
        perform(folder, run)
        return 0
    except RankveilError as error:
        sentence = str(error)
    except MemoryError:
        sentence = "there is not enough memory for this; try fewer columns or records"
    except Exception as error:
        sentence = _mistake(error)
    finally:
        if held is not None:
            held.close()
    write_json(folder / "failure.json", {"sentence": sentence})
    return 1


def _alone(folder: Path) -> Any:
    """Wait until a process that had this run before is gone."""
    try:
        import fcntl
    except ImportError:
        return None
    held = open_lock(folder)
    fcntl.flock(held, fcntl.LOCK_EX)
    return held


def _mistake(error: Exception) -> str:
    """A mistake of rankveil itself: where it happened, but not what the error says, which may quote data."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}, line {last.lineno}"
    return f"rankveil made a mistake ({type(error).__name__} in {where}); please report it"


def _end_with_the_server() -> None:
    sys.stdin.buffer.read()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    # At the end of an interpreter a thread that reads standard input would hold its lock.
    code = main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(code)
