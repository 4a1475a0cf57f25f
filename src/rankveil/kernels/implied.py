"""What follows from one link when values changed places in pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import kernel

Places = NDArray[np.int64]


@kernel
def surviving(
    tried: Places,
    person: int,
    owner: Places,
    holder: Places,
    key_x: Places,
    key_y: Places,
    low: Places,
    high: Places,
    place: Places,
    reach: Places,
    link: Places,
    taken: Places,
    seen_x: Places,
    seen_y: Places,
    stack: Places,
    epoch: int,
) -> tuple[int, int, int]:
    """The released records of `tried` whose link with a person contradicts nothing that follows from it.

    In column j, owner[a, j] is the original whose value released a has, holder[i, j] the released record that has i's,
    -1 where several have it. If a is i, then owner[a, j] belongs to holder[i, j]: the swap in column j was of those
    two. A link is possible between equal keys where in every column the ranks low[i, j] to high[i, j] of the original
    come within reach[j] of those of the released value, from place[a, 2 j] to place[a, 2 j + 1].
    `link` and `taken` have the links known for sure, `seen_x[i] = (epoch, record)` and `seen_y[a] = (epoch, person)`
    those of the present trial. Returns how many survive (2 at most), the first of them, and the last epoch used; the
    links of the last trial stay in seen_x.
    """
    found, first = 0, -1
    for t in range(tried.size):
        record = tried[t]
        epoch += 1
        stack[0, 0], stack[0, 1] = person, record
        seen_x[person, 0], seen_x[person, 1] = epoch, record
        seen_y[record, 0], seen_y[record, 1] = epoch, person
        top, good = 1, True
        while top > 0 and good:
            top -= 1
            i, a = stack[top, 0], stack[top, 1]
            if key_x[i] != key_y[a] or (link[i] >= 0 and link[i] != a) or (taken[a] >= 0 and taken[a] != i):
                good = False
                break
            for j in range(owner.shape[1]):
                apart = max(low[i, j] - place[a, 2 * j + 1], place[a, 2 * j] - high[i, j])
                if low[i, j] >= 0 and place[a, 2 * j] >= 0 and apart > reach[j]:
                    good = False
                    break
            if not good:
                break
            for j in range(owner.shape[1]):
                other, held = owner[a, j], holder[i, j]
                if other < 0 or held < 0:
                    continue
                known_x, known_y = seen_x[other, 0] == epoch, seen_y[held, 0] == epoch
                if (known_x and seen_x[other, 1] != held) or (known_y and seen_y[held, 1] != other):
                    good = False
                    break
                if not known_x:
                    seen_x[other, 0], seen_x[other, 1] = epoch, held
                    seen_y[held, 0], seen_y[held, 1] = epoch, other
                    stack[top, 0], stack[top, 1] = other, held
                    top += 1
        if good:
            found += 1
            if found == 1:
                first = record
            else:
                break
    return found, first, epoch
