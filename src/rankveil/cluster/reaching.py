"""A scheduler elsewhere: reached soon, or not at all."""

from __future__ import annotations

import logging
import queue
import re
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rankveil.cluster.addresses import Address
from rankveil.errors import ClusterError

ANSWER = 6.0
"""Seconds that a scheduler has to answer."""

_BEGIN = 3.0
"""Seconds that one has which is just beginning, where nothing listens yet."""


def reached(address: Address) -> Any:
    """A client of the scheduler at an address."""
    end = time.monotonic() + ANSWER
    if address.text.startswith("tcp://"):
        _knock(address, end)
    answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
    # in a thread that can be left: Dask itself waits without end for one that accepts a connection and then is silent
    threading.Thread(target=_ask, args=(address.text, end, answer), daemon=True).start()
    try:
        client = answer.get(timeout=max(end - time.monotonic(), 0.0) + 0.5)
    except queue.Empty:
        raise _unanswered(address, "it is silent") from None
    if isinstance(client, BaseException):
        raise _unanswered(address, "as Dask's configuration for TLS sets it up" if "tls" in address.text else "")
    return client


def _ask(address: str, end: float, answer: queue.SimpleQueue[Any]) -> None:
    from distributed import Client

    try:
        with silent(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions: who has them is named later
            answer.put(Client(address, timeout=max(end - time.monotonic(), 1.0), set_as_default=False))
    except BaseException as error:
        answer.put(error)


def _knock(address: Address, end: float) -> None:
    """Wait until something there speaks: a scheduler greets whoever comes."""
    found = re.fullmatch(r"tcp://\[?([^\]]*?)\]?:(\d+)", address.text)
    assert found is not None
    why, start = "", time.monotonic()
    while time.monotonic() < end:
        left = max(end - time.monotonic(), 0.1)
        try:
            with socket.create_connection((found[1], int(found[2])), timeout=left) as connection:
                connection.settimeout(left)
                if connection.recv(1):
                    return
                why = "what is there is no scheduler"
        except TimeoutError:
            why = "it is silent"
        except socket.gaierror:
            raise _unanswered(address, f"there is no host {found[1]}") from None
        except OSError as error:
            why = (error.strerror or "").lower()
            end = min(end, start + _BEGIN)
        with suppress(ValueError):
            time.sleep(min(0.2, end - time.monotonic()))
    raise _unanswered(address, why)


def _unanswered(address: Address, why: str) -> ClusterError:
    return ClusterError(f"cluster {address.text}: no scheduler answers{f' ({why})' if why else ''}")


@contextmanager
def silent() -> Iterator[None]:
    """Without the log of Dask: what a person must know is said in the errors."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "distributed.core", "tornado")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
