"""The key of pseudonyms: of one release alone, or the protector's own, by which releases can be linked."""

from __future__ import annotations

from rankveil.errors import ParameterError
from rankveil.plans import Plan
from rankveil.seeds import SAFE_BITS, Seed


def key_of_pseudonyms(given: Seed | int | str | bytes | None, plan: Plan) -> Seed | None:
    """The key that was given for pseudonyms, which the plan must have; None where the key of the release serves."""
    if given is None:
        return None
    if not _has_pseudonyms(plan):
        raise ParameterError("a key for pseudonyms is given, but no step of the plan makes any: add pseudonymise")
    return Seed.of(given)


def notes_on_pseudonyms(plan: Plan, key: Seed | None) -> list[str]:
    """What the protector should know of the key of the pseudonyms."""
    if not _has_pseudonyms(plan):
        return []
    if key is None:
        return [
            "the pseudonyms are those of this release alone: the same values have others in the next one; to keep them "
            "over waves, give them a key of their own (--key-file F, pseudonym_key in Python)"
        ]
    notes = [
        "the pseudonyms have a key of their own, which is kept nowhere here: every release with that key can be linked"
    ]
    if key.bits < SAFE_BITS:
        notes.append(f"the key of the pseudonyms has fewer than {SAFE_BITS} bits: good for studies, not for a release")
    return notes


def _has_pseudonyms(plan: Plan) -> bool:
    return any(step.entry.keyed for step in plan.steps)
