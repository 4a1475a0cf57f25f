"""Where the workers are: `local`, `local:4`, `tcp://host:8786`, `tls://host:8786`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rankveil.errors import ParameterError

_LOCAL = re.compile(r"local(?::(\d+))?")
_REMOTE = re.compile(r"(?:tcp|tls)://(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(\d{1,5})")

_MOST = 1024
"""Processes of this machine at most."""


@dataclass(frozen=True)
class Address:
    """A parsed address."""

    text: str
    local: bool
    workers: int | None = None
    """How many local ones were asked for; one for each core otherwise."""


def parse(text: str) -> Address:
    """Read an address.

    >>> parse("local:2").workers, parse("tcp://node7:8786").local
    (2, False)
    """
    if not isinstance(text, str):
        raise ParameterError(f"a cluster is given by its address, as in local:2, not by {type(text).__name__}")
    given = text.strip()
    local = _LOCAL.fullmatch(given)
    if local:
        workers = None if local[1] is None else int(local[1])
        if workers is not None and not 1 <= workers <= _MOST:
            raise ParameterError(f"cluster {given}: the number of workers must be from 1 to {_MOST}")
        return Address(given, True, workers)
    remote = _REMOTE.fullmatch(given.rstrip("/"))
    if remote and 0 < int(remote[1]) < 65536:
        return Address(given.rstrip("/"), False)
    raise ParameterError(f"cluster {given}: must be local, local:N, or a scheduler's address such as tcp://host:8786")
