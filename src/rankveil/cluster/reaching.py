"""A scheduler elsewhere: reached soon, or not at all, and workers that answer or are named."""

from __future__ import annotations

import asyncio
import logging
import queue
import re
import socket
import threading
import time
import warnings
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from rankveil.cluster.addresses import Address
from rankveil.errors import ClusterError, listing

T = TypeVar("T")

ANSWER = 6.0
"""Seconds that a scheduler has to answer."""

_BEGIN = 3.0
"""Seconds that one has which is just beginning, where nothing listens yet."""

_WORD = 4.0
"""Seconds in which whoever is asked nothing but whether it is there says so."""


def reached(address: Address) -> Any:
    """A client of the scheduler at an address."""
    if address.text.startswith("tls://"):
        _check_certificate(address)
    end = time.monotonic() + ANSWER
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


def answered(client: Any, question: Coroutine[Any, Any, T], address: Address) -> T:
    """What a scheduler and its workers say to a question; whoever says nothing at all for a while is named."""
    found: T = client.sync(_answered, client, question, address)
    return found


async def _answered(client: Any, question: Coroutine[Any, Any, T], address: Address) -> T:
    asked = asyncio.ensure_future(question)
    try:
        while not (await asyncio.wait([asked], timeout=ANSWER))[0]:
            await _check_all_speak(client, address)  # a question may take long, a word does not
        return asked.result()
    finally:
        asked.cancel()


async def _check_all_speak(client: Any, address: Address) -> None:
    """Refuse a scheduler, or workers, that do not even say that they are there, as stopped processes do not."""
    try:
        known = await asyncio.wait_for(client.scheduler.identity(n_workers=-1), _WORD)
    except TimeoutError:
        raise _unanswered(address, "it is silent") from None

    async def speaks(worker: str) -> bool:
        word = client.scheduler.broadcast(msg={"op": "versions", "packages": []}, workers=[worker], on_error="ignore")
        with suppress(TimeoutError):
            await asyncio.wait_for(word, _WORD)
            return True
        return False

    workers = list(known["workers"])
    spoken = await asyncio.gather(*map(speaks, workers))
    mute = [worker for worker, spoke in zip(workers, spoken, strict=True) if not spoke]
    if mute:
        raise ClusterError(
            f"cluster {address.text}: no answer from {'the worker' if len(mute) == 1 else 'the workers'} "
            f"{listing(mute)}; end {'it' if len(mute) == 1 else 'them'}, or see whether the machine is up"
        )


def _check_certificate(address: Address) -> None:
    """Refuse to begin without what TLS needs: Dask would try for long, and then not say what was lacking."""
    from distributed import Security

    try:
        secured = Security().get_connection_args("client")["ssl_context"] is not None
    except OSError as error:  # errors of certificates are such too
        raise ClusterError(
            f"cluster {address.text}: the certificate or key that Dask's configuration names cannot be read "
            f"({(error.strerror or str(error)).lower()})"
        ) from None
    if not secured:
        raise ClusterError(
            f"cluster {address.text}: no certificate is configured; set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
            "...TLS__CLIENT__CERT and ...TLS__CLIENT__KEY to its files"
        )


def _knock(address: Address, end: float) -> None:
    """Wait until something there speaks: a scheduler greets whoever comes, one by TLS whoever greets it."""
    found = re.fullmatch(r"(?:tcp|tls)://\[?([^\]]*?)\]?:(\d+)", address.text)
    assert found is not None
    why, start = "", time.monotonic()
    while time.monotonic() < end:
        left = max(end - time.monotonic(), 0.1)
        try:
            with socket.create_connection((found[1], int(found[2])), timeout=left) as connection:
                connection.settimeout(left)
                if address.text.startswith("tls://") or connection.recv(1):
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
