"""What a column is and what a release does with it: its kind, its role, the action, and the reason in one sentence.

`rankveil.evidence` gathers what a column's values, name and labels say; `decided` concludes from the facts of all
columns together and reads no cell, so that a table in partitions can be decided by the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Literal, cast

import numpy as np

from rankveil.evidence import FEW, MOSTLY, Facts, facts_of
from rankveil.schema import Action, DecidedKind, Decision, Role
from rankveil.table import Table

ACTIONS: Mapping[str, Action] = {
    "identifier": "leave out",
    "quasi-identifier": "mask",
    "confidential": "mask",
    "weight": "keep",
    "group": "pseudonymise",
    "other": "keep",
}
"""What a release does with the columns of each role."""

_FURTHER: Mapping[str, tuple[Role, str]] = {
    "weight": ("other", "a table has one weight, so this one is kept as it is"),
    "group": ("identifier", "a table has one group, so this one is left out"),
}
"""The role of a second column of a kind of which there is one, and what is said of it."""

_FEW_DECIMALS = 5
_MISSING_CODES = (-1, -2, -3, -4, -5, -6, -7, -8, -9, -66, -77, -88, -99, -777, -888, -999, -9999)
_PATTERNS = {
    "an e-mail address": re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}"),
    "a telephone number": re.compile(r"(\+|00)[0-9][0-9 ()/.-]{6,}[0-9]|\(?0[0-9]{1,5}[)/ -][0-9 /-]{4,}[0-9]"),
    "an account number": re.compile(r"[A-Z]{2}[0-9]{2}( ?[A-Z0-9]{4}){3,7}( ?[A-Z0-9]{1,3})?"),
    "a universal identifier": re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}"),
    "an address of a computer": re.compile(r"([0-9]{1,3}\.){3}[0-9]{1,3}|https?://\S+"),
}
_AREA = re.compile(r"[0-9]{2}-[0-9]{3}|[0-9]{4}-[0-9]{3}|[0-9]{4} ?[A-Z]{2}|[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}")
_DIAGNOSIS = re.compile(r"[A-TV-Z][0-9]{2}(\.[0-9]{1,2})?")

_NUMBERS = re.compile(r"(?i)n[ro°]\.?|num(m?er)?|n[uú]mero|number|numer|key|code?")
"""Names of a column that numbers the records when many of its values are different."""
_AMOUNTS = {"count", "money", "age", "position", "body", "year", "birth", "education", "season", "weight"}

_CONFIDENTIAL = ("health", "belief", "money", "body")
_PUBLIC = ("sex", "age", "birth", "place", "position", "origin", "family", "dwelling", "work", "education")
_LABELS = ("sex", "place", "origin", "family", "dwelling", "work")
"""Topics whose whole numbers are codes, however many there are."""
_SAID = {
    "name": "a name",
    "contact": "an address or account",
    "id": "an identifier",
    "person": "the number of a person",
    "household": "the number of a household or cluster",
    "weight": "a weight",
    "sex": "the sex",
    "age": "an age",
    "birth": "a birth",
    "place": "a place",
    "position": "a position",
    "origin": "an origin",
    "family": "the family",
    "dwelling": "the dwelling",
    "work": "work",
    "education": "education",
    "health": "health",
    "body": "measures of the body",
    "belief": "beliefs or conduct",
    "money": "money",
    "count": "a count or measure",
    "scale": "a scale or class",
    "code": "a code",
    "year": "a year",
    "season": "a part of the year",
    "text": "a remark",
}


def decide(table: Table) -> tuple[Decision, ...]:
    """The decision for every column of a table; what was declared is kept.

    >>> import pyarrow as pa
    >>> people = pa.table({"hid": [1, 1, 2, 2], "sex": [1, 2, 2, 1], "income": [10.5, 20.0, 31.5, 7.25]})
    >>> [(each.name, each.kind, each.role, each.action) for each in decide(Table(people))]
    [('hid', 'unordered', 'group', 'pseudonymise'), ('sex', 'unordered', 'quasi-identifier', 'mask'),
     ('income', 'numbers', 'confidential', 'mask')]
    """
    return decided([facts_of(table, name) for name in table.names])


def decided(facts: Sequence[Facts]) -> tuple[Decision, ...]:
    """The decisions that follow from the facts of all columns of a table."""
    of_bodies = any("body" in each.topics for each in facts)
    words = {word for each in facts for word in each.words}
    return tuple(_decided(each, of_bodies=of_bodies, words=words) for each in facts)


def one_of_each(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """The decisions as they are applied: a table has one weight and one group; others are kept and left out.

    The one is the first that was declared or has more than one value.
    """
    made = list(decisions)
    for role, (further, why) in _FURTHER.items():
        named = [each for each in made if each.role == role]
        best = sorted(named, key=lambda each: (not each.declared, each.constant))
        for place, each in enumerate(made):
            if each.role == role and each is not best[0]:
                reason, published = f"{each.reason}; {why}", f"{each.published}; {why}"
                made[place] = replace(each, role=further, action=ACTIONS[further], reason=reason, published=published)
    return tuple(made)


def _decided(facts: Facts, *, of_bodies: bool, words: Set[str]) -> Decision:
    role, why = _identifying(facts, of_bodies=of_bodies)
    kind, because = _kind(facts, cast(Role, facts.role_given) or role)
    if not role:
        role, why = _role(facts, kind)
    if facts.role_given:
        role, why = cast(Role, facts.role_given), "its role was declared"
    levels = facts.levels if kind == "ordered" and facts.numbers is None else ()
    gaps = facts.gaps if kind in ("numbers", "ordered") else ()
    plain = reason = f"{why}; {because}" if because else why
    taken = bool(words & set(gaps))
    if gaps:
        listed = " and ".join(f'"{gap}"' for gap in gaps)
        reason += f"; {listed} among them reads as a missing value"
    if taken:
        reason += ", but is a category of another column: write it otherwise in one of them"
    if kind == "numbers" and (code := _missing_code(facts)) is not None:
        reason += f"; {code} reads as a code for missing cells (declare it with --missing {code})"
    return Decision(
        facts.name,
        kind,
        role,
        ACTIONS[role],
        reason[0].upper() + reason[1:],
        levels=levels,
        missing=() if taken else gaps,
        constant=facts.distinct <= 1,
        undecided=taken or (kind == "text" and bool(facts.doubt)),
        declared=bool(facts.role_given),
        published=plain[0].upper() + plain[1:],
    )


def _identifying(facts: Facts, *, of_bodies: bool) -> tuple[Role | Literal[""], str]:
    """Whether a column says who somebody is, who belongs together or how much a record counts, and why."""
    about, many = facts.topics, facts.distinct
    if not facts.present:
        return "other", "all its cells are missing"
    if _is_weight(facts, of_bodies=of_bodies):
        return "weight", f"its name or label reads as {_SAID['weight']}"
    if facts.temporal or facts.boolean or (facts.numbers is not None and not facts.whole):
        return "", ""
    pattern = _pattern(facts)
    if pattern:
        return "identifier", f"its values look like {pattern}"
    several = many > 2 and many * 3 > min(facts.present, 3 * FEW)
    for topic in ("name", "contact"):
        placed = topic == "name" and about & {"place", "work"} and not facts.unique
        if topic in about and facts.words and several and not placed:
            return "identifier", f"its name or label reads as {_SAID[topic]}"
    if "contact" in about and facts.numbers is not None and many * 2 > facts.present:
        return "identifier", f"its name or label reads as {_SAID['contact']}"
    if "text" in about and facts.words and many > FEW:
        return "identifier", "it is free text, which may name people"
    return _numbered(facts)


def _numbered(facts: Facts) -> tuple[Role | Literal[""], str]:
    """Whether a column numbers people or groups, and why."""
    about, many = facts.topics, facts.distinct
    shares = facts.present / max(many, 1)
    counted = about & {"count", "scale", "money", "age", "code", "weight"}
    named = "id" in about or (about <= {"number", "count", "code"} and bool(_NUMBERS.fullmatch(facts.name)))
    named = named or ("number" in about and bool(about & {"person", "household"}))
    person = "person" in about <= {"person", "number", "code"}
    grouped = "household" in about and not counted - {"count"} and ("count" not in about or "number" in about)
    if named or grouped or person:
        told = _SAID["household"] if grouped else _SAID["id"] if named else _SAID["person"]
        coded = bool(about & set(_PUBLIC)) and not about & {"household", "person"} and not facts.unique
        if facts.unique:
            return "identifier", f"its name or label reads as {told}, and no value stands twice"
        if not coded and many > 1 and (many > FEW or shares <= FEW):
            return "group", f"its name or label reads as {told}, and records share its values"
        if named and not coded:
            return "identifier", f"its name or label reads as {_SAID['id']}"
    if facts.words and facts.unique and facts.present > FEW and not facts.doubt:
        if _is_free(facts):
            return "identifier", "it is free text, which may name people"
        return "identifier", "no value stands twice in it, so each names its record"
    if facts.words and _is_free(facts):
        return "identifier", "it is free text, which may name people"
    if facts.steps == "rows" and not about & _AMOUNTS:
        return "identifier", "it counts the records"
    if facts.unique and facts.present > FEW and "code" in about:
        return "identifier", "its name or label reads as a code, and no value stands twice"
    if facts.steps == "rising" and not about & _AMOUNTS and shares <= 5 * FEW:
        if facts.unique:
            return "identifier", "its whole numbers rise from record to record, as those of a register do"
        return "group", "its whole numbers rise from record to record, several records with the same"
    if facts.unique and facts.present > FEW and (facts.coded or facts.width >= 7):
        return "identifier", "no value stands twice in it, and all have the same number of digits"
    return "", ""


def _is_weight(facts: Facts, *, of_bodies: bool) -> bool:
    """Whether a column is a weight of the records; a body, a birth and goods have weights too."""
    alone = facts.name.lower() in ("w", "wi")
    if not ("weight" in facts.topics or alone) or facts.numbers is None or facts.coded or not len(facts.numbers):
        return False
    if facts.topics & {"body", "birth", "health", "money", "id", "text", "code"} or facts.numbers[0] < 0:
        return False
    told = facts.topics & {"household", "person"} or re.search(r"(?i)sampl|survey|design|final|calib|expan", facts.name)
    return not of_bodies or bool(told) or alone


def _is_free(facts: Facts) -> bool:
    """Whether texts are sentences rather than labels."""
    lengths = [len(word) for word in facts.words]
    spaced = sum(word.count(" ") >= 2 for word in facts.words)
    return facts.distinct > 5 * FEW and spaced * 2 > len(lengths) and facts.distinct * 3 > facts.present


def _pattern(facts: Facts) -> str:
    """What almost all texts of a column look like that names people, or nothing."""
    if not facts.words or facts.distinct < 2:
        return ""
    for said, pattern in _PATTERNS.items():
        if sum(bool(pattern.fullmatch(word)) for word in facts.words) >= MOSTLY * len(facts.words):
            return said
    return ""


def _kind(facts: Facts, role: str) -> tuple[DecidedKind, str]:
    """The kind of a column and why."""
    if facts.kind_given:
        return _declared(facts)
    if role == "weight":
        return "numbers", ""
    if role in ("identifier", "group"):
        free = facts.words and (_is_free(facts) or facts.topics & {"name", "text"})
        return ("text" if free else "unordered"), ""
    if facts.temporal:
        return "dates", "its values are dates or times"
    if facts.boolean:
        return "unordered", "it says yes or no"
    if facts.numbers is None and facts.doubt:
        return "text", facts.doubt
    if facts.numbers is None:
        return ("ordered", "its labels have an order") if facts.levels else ("unordered", "its values are labels")
    if not len(facts.numbers):
        return "unordered", ""
    if facts.level in ("nominal", "ordinal"):
        return ("unordered" if facts.level == "nominal" else "ordered"), f"its file says that it is {facts.level}"
    if facts.labelled:
        told = facts.labels_in_order or facts.topics & {"education", "scale"}
        return ("ordered" if told else "unordered"), "each of its values has a label"
    if facts.coded:
        return "unordered", "its numbers have leading zeros, as codes do"
    return _kind_of_numbers(facts)


def _declared(facts: Facts) -> tuple[DecidedKind, str]:
    kinds: Mapping[str, DecidedKind] = {"numeric": "numbers", "ordinal": "ordered", "nominal": "unordered"}
    return ("dates" if facts.temporal else kinds[facts.kind_given]), "its kind was declared"


def _kind_of_numbers(facts: Facts) -> tuple[DecidedKind, str]:
    """Whether numbers are numbers, or whole ones that stand for categories."""
    about, many = facts.topics, facts.distinct - len(facts.gaps)
    assert facts.numbers is not None
    if not facts.whole:
        if many <= _FEW_DECIMALS and facts.present >= 5 * FEW and not about & _AMOUNTS:
            return "ordered", "its numbers have few values, as steps of a scale"
        return "numbers", "its values are numbers with decimals"
    if many <= 2 and facts.present > 2:
        return "unordered", "its numbers have no more than two values, as yes and no"
    small = many <= FEW and many * 2 <= facts.present
    if "code" in about and "count" not in about:
        return "unordered", "its whole numbers are codes"
    if small and about & {"money", "age"} and _consecutive(facts) and facts.numbers[-1] <= FEW:
        return "ordered", "its whole numbers are few and small, as those of classes are"
    if "scale" in about and many <= 5 * FEW:
        return "ordered", "its whole numbers are steps of a scale"
    if _in(facts, 1800, 2100) and about & {"year", "birth"}:
        return "ordered", "its numbers are years"
    if about & {"count", "money", "age", "position", "body"}:
        return "numbers", ""
    if "education" in about and small:
        return "ordered", "its whole numbers are few, and have an order"
    if about & set(_LABELS) and (small or about & {"place", "origin", "work"}):
        return "unordered", "its whole numbers are codes"
    if about & {"season", "year"} and small:
        return "ordered", "its whole numbers are few, and have an order"
    if _in(facts, 1850, 2100) and facts.present > FEW:
        return "ordered", "its numbers look like years"
    if small and _falls_off(facts):
        return "ordered", "its whole numbers are few, and have an order like counts"
    if small:
        return "unordered", "its whole numbers have few values, as codes"
    if facts.width >= 4 and many * 5 <= facts.present and facts.present >= 5 * FEW and not _heaped(facts):
        return "unordered", "its whole numbers are many times repeated and have the same number of digits, as codes"
    if not about and _numbering(facts):
        return (
            "unordered",
            "its whole numbers run from 1 with hardly a gap and are alike in frequency, as numbers of units",
        )
    return "numbers", "its values are numbers"


def _in(facts: Facts, low: int, high: int) -> bool:
    assert facts.numbers is not None
    return bool(facts.numbers[0] >= low and facts.numbers[-1] <= high)


def _consecutive(facts: Facts) -> bool:
    """Whether whole numbers leave hardly any out between the smallest, 0 or 1, and the largest."""
    assert facts.numbers is not None
    return facts.numbers[0] in (0, 1) and facts.numbers[-1] - facts.numbers[0] < 1.25 * len(facts.numbers)


def _falls_off(facts: Facts) -> bool:
    """Whether whole numbers from 0 are as frequent as counts: rising to one top, beside that of 0, and falling off."""
    assert facts.numbers is not None
    assert facts.counts is not None
    if facts.numbers[0] != 0 or not _consecutive(facts) or len(facts.numbers) < 5:
        return False
    counts = facts.counts[1:]
    top, many = int(np.argmax(counts)), facts.counts.sum()
    steps = np.diff(counts)
    wrong = -steps[:top].clip(max=0).sum() + steps[top:].clip(min=0).sum()
    return bool(wrong <= 0.02 * many)


def _numbering(facts: Facts) -> bool:
    """Whether whole numbers from 1 on are as frequent in their upper half as in the lower: schools, interviewers."""
    assert facts.numbers is not None
    assert facts.counts is not None
    upper = facts.counts[facts.numbers > facts.numbers[-1] / 2].sum() / facts.counts.sum()
    dense = facts.numbers[0] == 1 and len(facts.numbers) >= MOSTLY * facts.numbers[-1]
    return bool(dense and facts.present >= 5 * len(facts.numbers) and 0.35 <= upper <= 0.65)


def _heaped(facts: Facts) -> bool:
    """Whether most of the numbers are round, as amounts that people tell are."""
    assert facts.numbers is not None
    assert facts.counts is not None
    return bool(facts.counts[facts.numbers % 100 == 0].sum() > 0.1 * facts.counts.sum())


def _missing_code(facts: Facts) -> int | None:
    """A negative number that stands for missing cells among others that are not negative."""
    if facts.numbers is None or facts.counts is None or not facts.whole or len(facts.numbers) < 3:
        return None
    lowest, often = facts.numbers[0], facts.counts[0] >= max(2, 0.005 * facts.present)
    return int(lowest) if lowest in _MISSING_CODES and facts.numbers[1] >= 0 and often else None


def _role(facts: Facts, kind: DecidedKind) -> tuple[Role, str]:
    """The role of a column that identifies nobody by itself, and why."""
    about = facts.topics
    if facts.distinct <= 1:
        return "other", "all its records have the same value"
    shape = [word for word in facts.words if word]
    if shape and all(_DIAGNOSIS.fullmatch(word) for word in shape) and facts.distinct > 2:
        return "confidential", "its values look like codes of diagnoses"
    if shape and all(_AREA.fullmatch(word) for word in shape) and facts.distinct > 2:
        return "quasi-identifier", "its values look like postal codes"
    for topic in _CONFIDENTIAL:
        if topic in about:
            return "confidential", f"its name or label speaks of {_SAID[topic]}"
    for topic in _PUBLIC:
        if topic in about:
            return "quasi-identifier", f"its name or label speaks of {_SAID[topic]}, which others may know"
    if about & {"household", "person"}:
        return "quasi-identifier", "its name or label speaks of the household, which others may know"
    if kind in ("numbers", "text"):
        return "confidential", f"nothing says that others know its {'numbers' if kind == 'numbers' else 'values'}"
    if kind == "dates":
        return "quasi-identifier", "others may know its dates"
    return "quasi-identifier", "others may know its categories"
