"""The compiled loops of this room: arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import kernel

Array = NDArray[np.float64]
Codes = NDArray[np.uint64]
Places = NDArray[np.uint32]


@kernel
def sort_places(codes: Codes, ordered: Codes, places: Places, words: Codes, spare: Codes) -> None:
    """The codes in order and the place where each one stood, equal codes in the order of their places.

    All arrays are as long as the codes; `words` and `spare` are room to work in.

    The upper 32 bits of what varies are sorted digit by digit, with the place in the lower half of the word. What is
    then out of order lies in groups with the same upper bits: a short one is sorted by insertion, a long one in a
    second round, by its own bits, of which there are no more than 32.
    """
    n = codes.size
    half, byte = np.uint64(32), np.uint64(255)
    first, last = 0, n
    low_of_all, shift_of_all = np.uint64(0), np.uint64(0)
    seen = n
    while first < last:
        whole = last - first == n
        given = codes if whole else ordered[first:last].copy()
        stood = places if whole else places[first:last].copy()
        size = given.size
        low, high = given[0], given[0]
        for i in range(size):
            low, high = min(low, given[i]), max(high, given[i])
        shift = np.uint64(0)
        while (high - low) >> shift > np.uint64(0xFFFFFFFF):
            shift += np.uint64(1)
        counts = np.zeros((4, 256), np.int64)
        for i in range(size):
            top = (given[i] - low) >> shift
            words[i] = (top << half) | np.uint64(i)
            counts[0, np.int64(top & byte)] += 1
            counts[1, np.int64((top >> np.uint64(8)) & byte)] += 1
            counts[2, np.int64((top >> np.uint64(16)) & byte)] += 1
            counts[3, np.int64(top >> np.uint64(24))] += 1
        for digit in range(4):
            if counts[digit].max() == size:  # the same everywhere
                continue
            start = np.zeros(256, np.int64)
            for k in range(1, 256):
                start[k] = start[k - 1] + counts[digit, k - 1]
            right = np.uint64(32 + 8 * digit)
            for i in range(size):
                word = words[i]
                value = np.int64((word >> right) & byte)
                spare[start[value]] = word
                start[value] += 1
            words, spare = spare, words
        for i in range(size):
            place = np.uint32(words[i] & np.uint64(0xFFFFFFFF))
            ordered[first + i] = given[place]
            places[first + i] = place if whole else stood[place]
        if whole:
            low_of_all, shift_of_all = low, shift
            seen = 1 if shift > np.uint64(0) else n
        else:
            seen = last
        first = last = 0
        while seen < n and last == 0:
            if ordered[seen] >= ordered[seen - 1]:
                seen += 1
                continue
            top = (ordered[seen] - low_of_all) >> shift_of_all
            start_of, end_of = seen - 1, seen + 1
            while start_of > 0 and (ordered[start_of - 1] - low_of_all) >> shift_of_all == top:
                start_of -= 1
            while end_of < n and (ordered[end_of] - low_of_all) >> shift_of_all == top:
                end_of += 1
            if end_of - start_of > 32:
                first, last = start_of, end_of
                continue
            for i in range(start_of + 1, end_of):
                code, place, j = ordered[i], places[i], i
                while j > start_of and ordered[j - 1] > code:
                    ordered[j], places[j] = ordered[j - 1], places[j - 1]
                    j -= 1
                ordered[j], places[j] = code, place
            seen = end_of


@kernel
def spread_ranks(ordered: Codes, places: Places, below: int, ranks: NDArray[np.unsignedinteger]) -> int:
    """Doubled average ranks of ordered codes, written to their places, `below` smaller ones lying elsewhere.

    Returns how many different codes there are.
    """
    n = ordered.size
    different = 0
    start = 0
    while start < n:
        end = start + 1
        while end < n and ordered[end] == ordered[start]:
            end += 1
        rank = 2 * below + start + end + 1
        for i in range(start, end):
            ranks[places[i]] = rank
        different += 1
        start = end
    return different


@kernel
def codes_and_gaps(values: Array, bits: Codes, codes: Codes) -> int:
    """Codes in the order of the values, from their bits; how many values are missing, which have no place in it."""
    sign = np.uint64(1 << 63)
    missing = 0
    for i in range(values.size):
        if values[i] != values[i]:
            missing += 1
        if values[i] == 0.0:  # -0 too
            codes[i] = sign
        elif bits[i] >= sign:
            codes[i] = ~bits[i]
        else:
            codes[i] = bits[i] | sign
    return missing


@kernel
def sums(x: Array, unit: float) -> tuple[float, float]:
    """The sum of x / unit as a number and what rounding took from it (two sums of Knuth)."""
    total, rest = 0.0, 0.0
    for i in range(x.size):
        value = x[i] / unit
        more = total + value
        part = more - total
        rest += (total - (more - part)) + (value - part)
        total = more
    both = total + rest
    return both, rest - (both - total)


@kernel
def central_sums(x: Array, unit: float, mean: float, rest: float) -> tuple[float, float, float]:
    """The sums of the second, third and fourth power of x / unit - mean - rest, as short sums that are then added."""
    second, third, fourth = 0.0, 0.0, 0.0
    for start in range(0, x.size, 256):
        two, three, four = 0.0, 0.0, 0.0
        for i in range(start, min(start + 256, x.size)):
            gap = x[i] / unit - mean - rest
            square = gap * gap
            two += square
            three += square * gap
            four += square * square
        second += two
        third += three
        fourth += four
    return second, third, fourth


@kernel
def distances(
    ranks_x: NDArray[np.unsignedinteger], ranks_y: NDArray[np.unsignedinteger], records: float, widest: int
) -> tuple[Array, np.int64, NDArray[np.int64]]:
    """Distances of doubled ranks, their sum, and how many are first caught by an interval of 1, 2, ... percent."""
    found = np.empty(ranks_x.size)
    within = np.zeros((4, widest + 1), np.int64)  # one of four in turn, so that no count waits for the one before
    total = np.int64(0)
    for i in range(ranks_x.size):
        gap = abs(np.int64(ranks_x[i]) - np.int64(ranks_y[i]))  # the compiler's int of an unsigned number is unsigned
        total += gap
        found[i] = gap
    for i in range(ranks_x.size):
        percent = np.ceil(found[i] / 2 * 100 / records)
        within[i & 3, np.int64(min(max(percent, 1.0), widest + 1.0)) - 1] += 1
    return found, total, within.sum(axis=0)


@kernel
def power_sums(values: Array, highest: int, unit: float, inverse: bool) -> Array:
    """The sums of the first, second, ... power of value / unit, or of unit / value, as short sums that are then added.

    Eight numbers at a time, as processors have it.
    """
    found = np.zeros(highest)
    lanes = np.zeros((highest, 8))
    share, power = np.empty(8), np.empty(8)
    whole = values.size // 8 * 8
    for start in range(0, whole, 8):
        for lane in range(8):
            share[lane] = unit / values[start + lane] if inverse else values[start + lane] / unit
            power[lane] = 1.0
        for k in range(highest):
            for lane in range(8):
                power[lane] *= share[lane]
                lanes[k, lane] += power[lane]
        if start % 2048 == 2040:
            for k in range(highest):
                for lane in range(8):
                    found[k] += lanes[k, lane]
                    lanes[k, lane] = 0.0
    for k in range(highest):
        for lane in range(8):
            found[k] += lanes[k, lane]
    for i in range(whole, values.size):
        last = 1.0
        for k in range(highest):
            last *= unit / values[i] if inverse else values[i] / unit
            found[k] += last
    return found


@kernel
def change_sums(
    x: Array, y: Array, unit: float, spread: float, widest: int
) -> tuple[int, float, float, float, NDArray[np.int64]]:
    """How many x are not 0, the sums of |1 - y / x| over these, of |x - y| and of (x - y)^2, and how many changes are
    first caught by an interval of 1, 2, ... percent of the spread; x, y and the spread in the unit."""
    within = np.zeros((4, widest + 1), np.int64)
    there = 0
    variation, absolute, squared = 0.0, 0.0, 0.0
    for start in range(0, x.size, 256):
        one, two, three = 0.0, 0.0, 0.0
        for i in range(start, min(start + 256, x.size)):
            if x[i] != 0.0:
                there += 1
                one += abs(1.0 - y[i] / x[i])
            change = abs(x[i] / unit - y[i] / unit)
            two += change
            three += change * change
            percent = change / spread * 100 if spread > 0.0 else (0.0 if change == 0.0 else np.inf)
            within[i & 3, np.int64(min(max(np.ceil(percent), 1.0), widest + 1.0)) - 1] += 1
        variation += one
        absolute += two
        squared += three
    return there, variation, absolute, squared, within.sum(axis=0)


@kernel
def split_digits(
    values: NDArray[np.integer[Any]], start: int, stop: int, centre: float, count: int, base: float, digits: Array
) -> None:
    """The digits of values - centre from start to before stop, lowest first: row k * columns + j has digit k of column
    j. Adding and subtracting 3 * 2^51 rounds to a whole number.
    """
    columns = values.shape[1]
    whole = 3.0 * 2.0**51
    for j in range(columns):
        for i in range(stop - start):
            digits[j, i] = values[start + i, j] - centre
        for k in range(count - 1):
            for i in range(stop - start):
                rest = digits[k * columns + j, i]
                above = (rest / base + whole) - whole
                digits[k * columns + j, i] = rest - above * base
                digits[(k + 1) * columns + j, i] = above
