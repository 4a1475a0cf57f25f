"""Sorting whole numbers digit by digit, and the ranks of what is in order."""

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
def spread_ranks(ordered: Codes, places: Places, below: int, ranks: NDArray[Any]) -> int:
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
