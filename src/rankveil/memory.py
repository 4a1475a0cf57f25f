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
_OF_GROUPS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""In either version of control groups: the limit, what is used, and what of that would be given back."""
_UNLIMITED = 2**62


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
    return max(min(_free(), _of_address_space(), *map(_of_group, _groups())), 0)


def _free() -> int:
    with suppress(OSError, ValueError, StopIteration):
        with open("/proc/meminfo", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_address_space() -> int:
    """What a limit of this process leaves (`ulimit -v`)."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            return limit - int(_first_line("/proc/self/statm").split()[0]) * resource.getpagesize()
    return _UNLIMITED


def _groups() -> list[str]:
    """The folders of the control groups that this process is in, of either version, up to the root."""
    found = [GROUP, f"{GROUP}/memory"]
    with suppress(OSError, ValueError):
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            told = [line.rstrip("\n").split(":", 2) for line in file]
        for _, what, path in told:
            top = {"": GROUP, "memory": f"{GROUP}/memory"}.get(what)
            while top is not None and path.strip("/"):
                found.append(f"{top}/{path.strip('/')}")
                path = os.path.dirname(path.rstrip("/"))
    return found


def _of_group(folder: str) -> int:
    """What a control group leaves; files that it holds in memory only to be quick count as free."""
    for limit, used, quick in _OF_GROUPS:
        with suppress(OSError, ValueError):  # no limit here
            left = int(_first_line(f"{folder}/{limit}")) - int(_first_line(f"{folder}/{used}"))
            with suppress(OSError, ValueError), open(f"{folder}/memory.stat", encoding="ascii") as file:
                left += sum(int(line.split()[1]) for line in file if line.startswith(f"{quick} "))
            return left
    return _UNLIMITED


def _first_line(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.readline().strip()
