"""How much memory there is, and how much is asked for."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from rankveil.errors import ParameterError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{unit}i": 2 ** (10 * power) for power, unit in enumerate("kmgt", start=1)}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?)b?", re.IGNORECASE)
GROUP = "/sys/fs/cgroup"
"""Where a container finds its limits."""


def size_of(given: str | int) -> int:
    """Bytes, from a number or a text.

    >>> size_of("3GiB"), size_of("1.5 GB"), size_of(4096)
    (3221225472, 1500000000, 4096)
    """
    found = _SIZE.fullmatch(str(given).strip())
    if not found or found[2].lower() not in _UNITS or float(found[1]) == 0:
        raise ParameterError(f"memory must be a size such as 3GiB, not {given!r}")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def shown(size: float) -> str:
    """A size for a person.

    >>> shown(3 * 2**30)
    '3.0 GiB'
    """
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def available() -> int:
    """Bytes of memory that can still be used, here or in the container that this runs in."""
    found = _free()
    with suppress(OSError, ValueError):  # no container, or one without a limit
        limit, used = (int(_first_line(f"{GROUP}/memory.{what}")) for what in ("max", "current"))
        found = min(found, max(limit - used, 0))
    return found


def _free() -> int:
    with suppress(OSError, ValueError, StopIteration):
        with open("/proc/meminfo", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _first_line(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.readline().strip()
