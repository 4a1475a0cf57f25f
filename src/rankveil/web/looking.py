"""A first look at a file that came from outside, in a process of its own: a reader that crashes takes only that along.

The process (`python -m rankveil.web.looking`) gets one line: where the file lies, or the address of a table of a
database that is to be copied there. It answers with one line, unless it crashed.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from rankveil.errors import FormatError, RankveilError
from rankveil.web import processes


def look_at(path: Path, *, name: str) -> None:
    """Refuse a file that cannot be read as a table, or not in the memory that there is; people know it by `name`."""
    _asked({"path": str(path)}, name=name)


def copy_table(address: str, path: Path, *, name: str) -> list[str]:
    """Write a table of a database to a file; what is to be said of it comes back."""
    return list(_asked({"path": str(path), "address": address}, name=name)["notes"])


def _asked(request: dict[str, str], *, name: str) -> dict[str, Any]:
    try:
        process = processes.start("rankveil.web.looking", answers=True)
    except OSError as error:
        reason = (error.strerror or "the system refused").lower()
        raise FormatError(f"{name}: the process that reads it could not be started: {reason}") from None
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # it crashed already
        process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
        process.stdin.flush()
    line = process.stdout.readline()
    with suppress(BrokenPipeError):
        process.stdin.close()  # it has answered, and may end
    process.stdout.close()
    code = process.wait()
    if not line:
        raise FormatError(
            f"{name}: the process that read it ended unexpectedly (exit code {code}): the file is damaged, or there "
            "was not enough memory; nothing of it was kept"
        )
    answer: dict[str, Any] = json.loads(line)
    if "sentence" in answer:
        raise FormatError(str(answer["sentence"]).replace(request["path"], name))
    return answer


def _answer(request: dict[str, str]) -> dict[str, Any]:
    from rankveil import files
    from rankveil.web.declared import Declared
    from rankveil.web.sources import open_table

    path = Path(request["path"])
    if "address" in request:
        loaded = files.load(request["address"])
        files.save(loaded.data, path)
        return {"notes": loaded.notes}
    open_table(path, Declared(), name=str(path)).seen  # noqa: B018 - it reads every column
    return {}


def _main(request: dict[str, str]) -> int:
    try:
        answer = _answer(request)
    except RankveilError as error:
        answer = {"sentence": str(error)}
    except MemoryError:
        answer = {"sentence": f"{request['path']}: there is not enough memory to read it"}
    except Exception as error:
        answer = {"sentence": processes.mistake(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    asked = json.loads(sys.stdin.buffer.readline())
    processes.run(lambda: _main(asked))
