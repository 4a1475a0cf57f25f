"""What to do about it: the changes that would help most, each as a command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rankveil.strengths import measured
from rankveil.table import Table
from rankveil.verdict.evidence import Told, columns_told
from rankveil.verdict.headline import Measured
from rankveil.verdict.item import FOUND_LIMIT, Item
from rankveil.verdict.remasking import Masking, default_masking, masking_of, stronger, weaker
from rankveil.verdict.words import portion

_MOST = 3
ORIGINAL, RELEASE, NEW, PEOPLE = "original.csv", "release.csv", "release-2.csv", "people.csv"
"""What stands for the files until it is known how they are called."""
_FEWEST_BITS = 0.5
"""A column that tells less hardly narrows anybody down."""


@dataclass(frozen=True)
class Advice:
    """A change that would help, and the command that makes it."""

    sentence: str
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        """As it is typed."""
        return shlex.join(self.words)

    def of_files(self, original: str, masked: str, *, reading: Sequence[str] = ()) -> Advice:
        """The same with the names of the files, and what was declared of their columns."""
        stem, ending = os.path.splitext(masked)
        plain = "://" not in masked and ending
        names = {ORIGINAL: original, RELEASE: masked, NEW: f"{stem}-2{ending}" if plain else NEW}
        own = {word.partition("=")[0] for before, word in pairwise(self.words) if before == "--role"}
        words = tuple(names.get(word, word) for word in self.words)
        return replace(self, words=(*words, *_unless_own(reading, own)))

    def to_dict(self) -> dict[str, str]:
        """For the JSON document."""
        return {"sentence": self.sentence, "command": self.command}


def _unless_own(reading: Sequence[str], own: Collection[str]) -> Iterator[str]:
    """Options and their values, without the roles that the command itself gives."""
    for option, value in zip(reading[::2], reading[1::2], strict=True):
        if option != "--role" or value.partition("=")[0] not in own:
            yield from (option, value)


def advice(items: Sequence[Item], given: Measured, original: Table, released: Table) -> list[Advice]:
    """The three changes that would help most, from what identifies people and what is lost; none where all holds."""
    by = {item.id: item for item in items}
    made: list[Advice] = []
    seen = set()
    for each in _changes(by, given, original, released):
        if each.words not in seen:
            seen.add(each.words)
            made.append(each)
    return made[:_MOST]


def _changes(by: Mapping[str, Item], given: Measured, original: Table, released: Table) -> Iterator[Advice]:
    """What would help, the most helpful first."""
    found, certain, utility = by["people_found"], by["certain"], by["worst_utility"]
    masking = masking_of(given.manifest)
    if by["guarantees"].status == "red" and masking is not None:
        text = "The release breaks what its manifest promises: make it again from the original by the same steps."
        yield Advice(text, _mask(masking))
    exposed = found.value is not None and found.status != "green" and given.finding is not None
    if exposed or certain.status == "red":
        assert given.finding is not None
        assert given.pair is not None
        told = columns_told(original, released, given.pair, given.finding.columns)
        yield from _protected(by, given, masking, told, original)
    elif by.get("k_anonymity") is not None and by["k_anonymity"].status == "red":
        yield from _grouped(by["k_anonymity"], given, masking)
    if utility.value is not None and utility.status != "green":
        yield from _kept(utility, masking, given, exposed=exposed)
    if found.value is None or utility.value is None:
        yield from _measured(given)


def _protected(
    by: Mapping[str, Item],
    given: Measured,
    masking: Masking | None,
    told: Sequence[Told],
    original: Table,
) -> Iterator[Advice]:
    """Less to be found by: mask, leave out what tells most, make the masking stronger, group."""
    found, certain = by["people_found"], by["certain"]
    untouched = [each for each in told if each.untouched]
    bare = bool(told) and len(untouched) == len(told)
    first: list[Advice] = []
    if masking is None or bare:
        base, expected = default_masking(original, given.finding.columns if given.finding else original.names)
        why = "No manifest tells what was done" if given.manifest is None else "Too much is left to be found"
        why = "Nothing was masked" if bare else why
        first.append(Advice(f"{why}: mask with {base.method}{_left(expected)}.", _mask(base)))
    else:
        base = masking
        change = stronger(masking, columns=masking.masked, share=found.value or 0.0, limit=FOUND_LIMIT)
        if change is not None:
            more, expected = change
            told_of = f"{more.strength} = {more.value:g} instead of {masking.value:g}"
            first.append(Advice(f"Mask more strongly, {told_of}{_left(expected)}.", _mask(more)))
    leave = [each for each in told if each.bits >= _FEWEST_BITS][:1] if len(told) > 1 else []
    out = [Advice(_leaving(each), _without(base, each.name)) for each in leave if base.columns != (each.name,)]
    # what is released as it is cannot be made safe by a stronger masking of the other columns
    yield from [*out, *first] if out and leave[0].untouched and not bare else [*first, *out]
    if by.get("k_anonymity") is not None and by["k_anonymity"].status == "red":
        yield from _grouped(by["k_anonymity"], given, None if bare else masking)
    aside = leave[0].name if out and leave[0].untouched else None
    text = "Let compare find the least masking with which no more people are found than the limit"
    yield _compare(f"{text}{f', {aside} left out' if aside else ''}.", aside=aside)
    if certain.value:
        text = "List who is certain (column certain), and leave out or recode what makes these people unique."
        yield Advice(text, ("rankveil", "attack", ORIGINAL, RELEASE, "--records", PEOPLE))


def _without(masking: Masking, name: str) -> tuple[str, ...]:
    """The same masking with a column left out of the release."""
    others = tuple(each for each in masking.columns if each != name)
    return (*_mask(replace(masking, columns=others)), "--role", f"{name}=identifier")


def _leaving(told: Told) -> str:
    as_it_is = "is released as it is and " if told.untouched else ""
    narrowed = f"narrowing a person down to about 1 record in {_records(told.bits)}"
    return f"Leave out {told.name}: it {as_it_is}tells most, {narrowed}."


def _left(expected: float | None) -> str:
    """What is found at a strength, by the table of strengths."""
    if expected is None:
        return ""
    return f" (on {measured().records:,} records of measured tables that left at most {portion(expected)} found)"


def _records(bits: float) -> str:
    ratio = 2.0 ** min(bits, 60.0)
    return f"{ratio:.1f}" if ratio < 10 else f"{round(ratio):,}"


def _grouped(item: Item, given: Measured, masking: Masking | None) -> Iterator[Advice]:
    """Classes large enough, by suppressing cells of the quasi-identifiers."""
    k = int(item.limit or 0)
    quasi = ",".join(given.quasi)
    text = f"Suppress as few cells of {quasi.replace(',', ', ')} as can be until every class has {k} records."
    roles = tuple(word for name in given.quasi for word in ("--role", f"{name}=quasi-identifier"))
    if masking is None:
        own = ("--method", "suppress", "--set", f"k={k}", "--columns", quasi)
        yield Advice(text, ("rankveil", "mask", ORIGINAL, "-o", NEW, *own))
    elif masking.method != "suppress":
        yield Advice(text, (*_mask(replace(masking, columns=())), "--then", f"suppress:k={k}", *roles))


def _kept(utility: Item, masking: Masking | None, given: Measured, *, exposed: bool) -> Iterator[Advice]:
    """More to be kept: as weak as the limit allows, or a method that keeps what was lost."""
    if masking is not None and not exposed:
        change = weaker(masking, columns=masking.masked)
        if change is not None:
            less, expected = change
            told = f"{less.strength} = {less.value:g} instead of {masking.value:g}"
            text = f"Mask less, {told}{_left(expected)}."
            yield Advice(text, _mask(less))
    if masking is not None and masking.method != "copula_swap" and utility.more.get("measure") != "table_cells":
        text = "Swap by a copula instead: it keeps all distributions and nearly all rank correlations."
        yield Advice(text, _mask(replace(masking, method="copula_swap", parameters={}, then=())))
    yield _compare("Let compare find which method keeps most at the limit of people found.")


def _measured(given: Measured) -> Iterator[Advice]:
    """What was not measured, and can be."""
    if "people_found" not in given.not_applicable and given.finding is None and given.pair is not None:
        yield Advice("Measure everything before deciding.", ("rankveil", "audit", ORIGINAL, RELEASE))


def _compare(text: str, *, aside: str | None = None) -> Advice:
    methods = "copula_swap,rank_swap,mdav"
    words = ("rankveil", "compare", ORIGINAL, "--methods", methods, "--at", f"found={FOUND_LIMIT:g}")
    return Advice(text, words if aside is None else (*words, "--role", f"{aside}=identifier"))


def _mask(masking: Masking | None) -> tuple[str, ...]:
    own = () if masking is None else masking.words
    return ("rankveil", "mask", ORIGINAL, "-o", NEW, *own)
