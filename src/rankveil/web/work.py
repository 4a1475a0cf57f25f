"""The process of one run: `python -m rankveil.web.work RUN_FOLDER`.

What a comparison has finished is kept, and a resumed run goes on from it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rankveil.errors import RankveilError
from rankveil.web import processes
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
        sentence = processes.mistake(error)
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


if __name__ == "__main__":
    processes.run(lambda: main(Path(sys.argv[1])))
