"""The order of labels, where they tell it themselves: bands of numbers, and the words of well-known scales."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import pairwise

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_END = rf"({_NUMBER}|[+-]?(?:inf(?:inity)?|∞))"
_BETWEEN = re.compile(rf"^[\[\](]?\s*{_END}\s*(?:-|\u2013|to|,|;|\.\.)\s*{_END}\s*[\[\])]?$", re.IGNORECASE)
_ABOVE = re.compile(rf"^(?:>=|>|≥|over|from)\s*({_NUMBER})$|^({_NUMBER})\s*(?:\+|and over|or more)$", re.IGNORECASE)
_BELOW = re.compile(rf"^(?:<=|<|≤|under|below|up to)\s*({_NUMBER})$", re.IGNORECASE)
_STRICTLY_ABOVE = re.compile(r"^(?:>(?!=)|over\b)", re.IGNORECASE)
_STRICTLY_BELOW = re.compile(r"^(?:<(?!=)|under\b|below\b)", re.IGNORECASE)

_SCALES = (
    ("very low", "low", "medium", "high", "very high"),
    ("very low", "low", "middle", "high", "very high"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("very bad", "bad", "fair", "good", "very good", "excellent"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("none", "mild", "moderate", "severe", "very severe"),
    ("small", "medium", "large"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("strongly disagree", "disagree", "neither agree nor disagree", "agree", "strongly agree"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("primary", "secondary", "tertiary"),
)


def ends(label: str) -> tuple[float, float] | None:
    """The ends of a band of numbers, or None for what is no band.

    >>> ends("[18,30)"), ends("65+"), ends("<= 5"), ends("20-29"), ends("Ulm")
    ((18.0, 30.0), (65.0, inf), (-inf, 5.0), (20.0, 29.0), None)
    """
    text = label.strip()
    between = _BETWEEN.match(text)
    if between:
        low, high = (_parsed(word) for word in between.groups())
        return (low, high) if low <= high else None
    above = _ABOVE.match(text)
    if above:
        return float(above[1] or above[2]), math.inf
    below = _BELOW.match(text)
    return (-math.inf, float(below[1])) if below else None


def holds(label: str, number: float) -> bool:
    """Whether a number lies in a band; an end belongs to it unless a bracket or a word says otherwise.

    >>> holds("[30,40)", 40), holds("30-39", 39), holds("65+", 80), holds("over 65", 65), holds("7", 7)
    (False, True, True, False, True)
    """
    text = label.strip()
    found = ends(text)
    if found is None:
        return re.fullmatch(_NUMBER, text) is not None and float(text) == number
    low, high = found
    without_low = text[0] in "(]" or bool(_STRICTLY_ABOVE.match(text))
    without_high = text[-1] in ")[" or bool(_STRICTLY_BELOW.match(text))
    return (low < number if without_low else low <= number) and (number < high if without_high else number <= high)


def _parsed(word: str) -> float:
    return float(word.lower().replace("∞", "inf"))


def detected(labels: Iterable[str]) -> tuple[str, ...] | None:
    """The labels in the order that they tell themselves, or None.

    >>> detected(["high", "low"]), detected(["10-19", "0-9", "20+"]), detected(["Ulm", "Bonn"])
    (('low', 'high'), ('0-9', '10-19', '20+'), None)
    """
    words = list(dict.fromkeys(labels))
    if len(words) < 2:
        return None
    folded = {" ".join(word.lower().split()): word for word in words}
    for scale in _SCALES:
        if len(folded) == len(words) and set(folded) <= set(scale):
            return tuple(folded[word] for word in scale if word in folded)
    bands = {word: ends(word) for word in words}
    known = {word: band for word, band in bands.items() if band is not None}
    if len(known) < len(words):
        # a band of one number, such as 0 beside 1-4, is a band among bands
        alone = {word: float(word) for word in words if bands[word] is None and re.fullmatch(_NUMBER, word.strip())}
        if len(known) < 2 or len(known) + len(alone) < len(words):
            return None
        known |= {word: (number, number) for word, number in alone.items()}
    ordered = sorted(words, key=lambda word: known[word])
    pairs = [known[word] for word in ordered]
    if any(after[0] < before[1] or after == before for before, after in pairwise(pairs)):
        return None  # bands that overlap have no order
    return tuple(ordered)


def middle(label: str) -> float | None:
    """A number within a band: its middle, or its one end when it is open.

    >>> middle("[18,30)"), middle("65+")
    (24.0, 65.0)
    """
    found = ends(label)
    if found is None:
        return float(label) if re.fullmatch(_NUMBER, label.strip()) else None
    low, high = found
    if math.isinf(low) or math.isinf(high):
        return None if math.isinf(low) and math.isinf(high) else (high if math.isinf(low) else low)
    return low / 2 + high / 2  # the sum of the two may be too large
