"""What given roles say of all masked records: quasi-identifiers and confidential columns, where they fit in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from rankveil.errors import NotApplicableError, listing
from rankveil.matching import Known
from rankveil.partitions.encoding import Encoded
from rankveil.partitions.looking import MOST
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Each

_NEEDED = 64
"""Bytes that a measure of equivalence classes takes at most for each cell."""


@dataclass(frozen=True, eq=False)
class Roles:
    """The columns of the masked table that were given such roles."""

    source: Encoded
    bounds: tuple[int, ...] = (0,)
    quasi: tuple[str, ...] = ()
    confidential: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    """The kinds of the confidential columns of the original."""
    too_many: tuple[str, ...] = ()
    """Columns with too many different values."""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(dict.fromkeys((*self.quasi, *self.confidential)))


def known_roles(each: Each, roles: Roles, scratch: Scratch, *, room: float) -> tuple[Known, Known]:
    """What is known of the records; `room` is how many bytes of memory that may take."""
    if roles.too_many:
        raise NotApplicableError(
            f"not on a cluster: column {listing(roles.too_many)} has more than {MOST:,} different values"
        )
    records, names = roles.bounds[-1], roles.names
    need = records * len(names) * _NEEDED
    if need > room:
        raise NotApplicableError(
            f"not on a cluster: {len(names)} columns of {records} records at once may take {need / 2**30:.1f} GiB of "
            "memory, which are not free"
        )
    parts = range(len(roles.bounds) - 1)
    if names:
        each(partial(gather_roles, roles, scratch), parts)
    found = {}
    for j, name in enumerate(names):
        pieces = []
        for p in parts:
            size = roles.bounds[p + 1] - roles.bounds[p]
            pieces.append(scratch.take(_roles_file(p), np.float64, start=j * size, stop=(j + 1) * size))
        found[name] = np.concatenate([*pieces, np.empty(0)])
    quasi, confidential = ({name: found[name] for name in some} for some in (roles.quasi, roles.confidential))
    return Known(kinds=roles.kinds), Known(quasi, confidential, kinds=roles.kinds)


def gather_roles(roles: Roles, scratch: Scratch, partition: int) -> None:
    """A task: write the cells of a partition as numbers."""
    values = roles.source.read(roles.names, roles.bounds[partition], roles.bounds[partition + 1])
    scratch.put(_roles_file(partition), np.concatenate(values))


def _roles_file(partition: int) -> str:
    return f"roles-{partition}"
