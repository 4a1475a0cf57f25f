"""What runs on a worker: it takes a function from the scratch folder, and an item that came with the task."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from rankveil._version import __version__
from rankveil.errors import ClusterError, FileError
from rankveil.execute import keep_to


def call(task: bytes) -> Any:
    """Do a task."""
    version, path, item = pickle.loads(task)
    if version != __version__:  # a worker may join later than the others were asked
        raise ClusterError(f"the worker on {socket.gethostname()} has rankveil {__version__}, not {version}")
    keep_to(1)
    return _function(path)(item)


def all_of(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """[function(item) for item in items]: a few items that travel together, as each journey takes its time."""
    return [function(item) for item in items]


@lru_cache(maxsize=2)  # few, as a function may hold a whole table
def _function(path: str) -> Callable[[Any], Any]:
    try:
        with open(path, "rb") as file:
            found: Callable[[Any], Any] = pickle.load(file)
            return found
    except OSError as error:
        raise FileError(f"{path}: cannot be read on {socket.gethostname()}: {error.strerror or error}") from error
