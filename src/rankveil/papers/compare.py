"""From a printed value and a computed one to a row; every rule of agreement stands here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from rankveil.papers.result import Content, Number, Row

Array = NDArray[np.float64]

WITHIN = 4.0
"""A published random value agrees when it lies within this many standard deviations of the replicates' mean."""
_MORE_DIGITS = 4
"""Digits that a computed value keeps beyond the printed ones: enough to see a difference, too few for float dust."""


def lines(table: str) -> list[list[str]]:
    """The words of a printed table, row by row."""
    return [line.split() for line in table.strip().splitlines()]


def decimals(number: str) -> int:
    """Digits after the point.

    >>> decimals("24.70"), decimals("8")
    (2, 0)
    """
    return len(number.partition(".")[2])


def value(number: str) -> Number:
    """The number that is printed, a whole one as such."""
    return float(number) if "." in number else int(number)


def printed(item: str, published: str, computed: float | Iterable[float], *, remark: str | None = None) -> Row:
    """Numbers as printed (one, or several with spaces between): each agrees within half a unit of its last digit.

    >>> printed("variance", "24.70", 24.698).ok, printed("ranks", "8 2 16", [8, 2, 17]).ok
    (True, False)
    """
    words = published.split()
    numbers = [float(each) for each in (computed if isinstance(computed, Iterable) else [computed])]
    shown = [value(word) for word in words]
    digits = [decimals(word) for word in words]
    difference, ok = None, False
    if len(numbers) == len(words):
        apart = [abs(a - b) for a, b in zip(numbers, shown, strict=True)]
        # a value that lies exactly between two printed ones may have been rounded either way
        ok = all(gap <= 0.5 * 10.0**-digit * (1 + 1e-6) for gap, digit in zip(apart, digits, strict=True))
        difference = round(max(apart, default=0.0), max(digits, default=0) + _MORE_DIGITS)
    most = max(digits, default=0)
    kept = tuple(_kept(number, most) for number in numbers)
    return Row(
        item,
        published=shown[0] if len(shown) == 1 else tuple(shown),
        computed=kept[0] if len(kept) == 1 and len(shown) == 1 else kept,
        ok=ok,
        difference=difference,
        remark=remark,
        decimals=most,
    )


def misprint(item: str, published: str, computed: float | Iterable[float], *, corrected: str, remark: str) -> Row:
    """A value known to be printed wrongly: explained only as long as the corrected one is what comes out.

    >>> misprint("count", "5", 6, corrected="6", remark="it is 6").explained
    True
    >>> misprint("count", "5", 7, corrected="6", remark="it is 6").explained
    False
    """
    numbers = list(computed) if isinstance(computed, Iterable) else [computed]
    known = printed(item, corrected, numbers).ok
    return printed(item, published, numbers, remark=remark if known else None)


def replicated(
    item: str, published: str, replicates: Array, *, size: int | None = None, remark: str | None = None
) -> Row:
    """A random number: it agrees when it could be one more replicate, within four standard deviations of their mean.

    `size`: the value is a share of that many records, so that its error is at least the binomial one; this keeps rare
    shares honest, which no replicate may show.
    """
    shown, digit = float(published), decimals(published)
    count, mean = replicates.size, float(replicates.mean())
    variance = float(replicates.var(ddof=1))
    if size is not None:
        share = (shown * size + mean * size * count + 1) / (size * (count + 1) + 2)
        variance = max(variance, share * (1 - share) / size)
    apart = abs(mean - shown)
    reach = WITHIN * math.sqrt(variance * (1 + 1 / count)) + 0.5 * 10.0**-digit
    return Row(
        item,
        published=value(published),
        computed=_kept(mean, digit),
        ok=apart <= reach,
        difference=round(apart, digit + _MORE_DIGITS),
        sd=round(float(replicates.std(ddof=1)), digit + _MORE_DIGITS),
        decimals=digit,
        remark=remark if apart <= reach else None,  # a remark must not excuse a value that does not agree
    )


def statement(
    item: str,
    published: str,
    computed: Number | str | Sequence[Number],
    *,
    ok: bool,
    sd: float | None = None,
    remark: str | None = None,
) -> Row:
    """What the paper says in words, beside the number that bears it out or does not."""
    content: Content = computed if isinstance(computed, int | float | str) else tuple(computed)
    return Row(item, published, content, ok, sd=sd, remark=remark)


def _kept(number: float, digits: int) -> Number:
    if digits == 0 and number.is_integer():
        return int(number)
    return round(number, digits + _MORE_DIGITS) + 0.0  # no negative zero
