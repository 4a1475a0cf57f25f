"""Several releases of one original: their evidence together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import get_method
from rankveil.errors import PairError, ParameterError
from rankveil.intruder.finding import Attack, Evidence, Finding, Prepared, Progress, attack_on, find_people
from rankveil.intruder.model import Model, Part, Values
from rankveil.intruder.simulation import Simulated
from rankveil.likelihood import Term
from rankveil.seeds import Seed
from rankveil.table import Table

Array = NDArray[np.float64]
Places = NDArray[np.int64]


def find_people_in(
    original: Table,
    released: Sequence[Table],
    *,
    manifests: Sequence[Mapping[str, Any] | None] | None = None,
    truths: Sequence[Places | None] | None = None,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    knows: Sequence[str] | None = None,
    people: float = 1.0,
    without: Collection[str] = (),
    ordered: bool = False,
    seed: Seed | int = 0,
    progress: Progress | None = None,
) -> Finding:
    """Attack several releases of the same original.

    Where a row of one release is the same person as that row of the others, because every manifest says that records
    stayed where they were, or because a common column `key` tells, their evidence is multiplied. Otherwise the links of
    one release say nothing about those of another once the original is known: each is attacked alone, and every person
    gets the surest bet of them all (`Finding.release` tells of which).
    """
    number = len(released)
    if number == 0:
        raise ParameterError("name at least one release")
    seed = Seed.of(seed)
    documents = list(manifests) if manifests is not None else [None] * number
    known = list(truths) if truths is not None else [None] * number
    if len(documents) != number or len(known) != number:
        raise ParameterError(f"{number} releases need as many manifests and as many mappings, None for what is unknown")
    given: dict[str, Any] = {"columns": columns, "knows": knows, "people": people, "without": without}
    if number == 1:
        return find_people(
            original,
            released[0],
            manifest=documents[0],
            truth=known[0],
            ordered=ordered,
            seed=seed,
            progress=progress,
            **given,
        )
    rows = _rows_by_key(released, key) if key is not None else _rows_as_they_are(released, documents, known)
    if rows is None:
        alone = [
            find_people(original, each, manifest=document, truth=truth, ordered=ordered, seed=seed, **given)
            for each, document, truth in zip(released, documents, known, strict=True)
        ]
        return _surest(alone)
    attacks = [
        attack_on(original, each, ordered=ordered, seed=seed, progress=progress, number=number, **given)
        for number, each in enumerate(released)
    ]
    truth = next((each[mine] for each, mine in zip(known, rows, strict=True) if each is not None), None)
    return _together(attacks, documents, rows, truth)


def _rows_as_they_are(
    released: Sequence[Table], manifests: Sequence[Mapping[str, Any] | None], truths: Sequence[Places | None]
) -> list[Places] | None:
    """All rows of every release, where they correspond."""
    sizes = {len(each) for each in released}
    if len(sizes) > 1 or any(manifest is None or not _kept(manifest) for manifest in manifests):
        return None
    first = next((each for each in truths if each is not None), None)
    if any(each is not None and first is not None and not np.array_equal(each, first) for each in truths):
        return None  # somebody put their rows in another order afterwards
    return [np.arange(len(released[0]), dtype=np.int64)] * len(released)


def _kept(manifest: Mapping[str, Any]) -> bool:
    """Whether every record stayed in its row."""
    try:
        entries = [get_method(str(step["method"])) for step in manifest["steps"]]
    except (KeyError, TypeError, ParameterError):
        return False
    return all(entry.mapping == "kept" and not entry.leaves_out for entry in entries)


def _rows_by_key(released: Sequence[Table], key: str) -> list[Places]:
    """Rows of every release whose key stands in all of them, in one order."""
    labels = []
    for number, each in enumerate(released, start=1):
        if key not in each.names:
            raise PairError(f"release {number} has no column {key}; name a key that all releases have")
        cells = each.cells(key).labels().to_pylist()
        if len(set(cells)) < len(cells) or None in cells:
            raise PairError(f"release {number}: column {key} is no key, because a value is missing or stands twice")
        labels.append({label: row for row, label in enumerate(cells)})
    common = [label for label in labels[0] if all(label in other for other in labels[1:])]
    if not common:
        raise PairError(f"no value of {key} stands in all releases; leave the key out to attack each alone")
    return [np.array([each[label] for label in common], dtype=np.int64) for each in labels]


@dataclass(frozen=True, eq=False)
class _OfRelease:
    """A part of the model of one release among several."""

    number: int
    part: Part

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_named(self.number, name) for name in self.part.names)

    def term(self, released: Values) -> Term:
        return self.part.term({name: released[_named(self.number, name)] for name in self.part.names})


def _named(number: int, name: str) -> str:
    return f"{number}/{name}"


def _together(
    attacks: Sequence[Attack],
    manifests: Sequence[Mapping[str, Any] | None],
    rows: Sequence[Places],
    truth: Places | None,
) -> Finding:
    """One model of all releases: the sum of their terms."""
    made = [attack.prepared(manifest) for attack, manifest in zip(attacks, manifests, strict=True)]
    count = len(attacks[0].shared.original)
    model = Model(count)
    values: dict[str, Array] = {}
    bits: list[Part] = []
    for number, (each, mine) in enumerate(zip(made, rows, strict=True), start=1):
        model.keys |= {_named(number, name): x for name, x in each.model.keys.items()}
        model.likely |= {_named(number, name) for name in each.model.likely}
        model.parts += [_OfRelease(number, part) for part in each.model.parts]
        model.notes += [note for note in each.model.notes if note not in model.notes]
        bits += [_OfRelease(number, part) for part in each.bits]
        values |= {_named(number, name): column[mine] for name, column in each.values.items()}
    size = min(len(each.releases) for each in made)
    releases = [_joined([each.releases[k] for each in made], count, rows[0].size) for k in range(size)]
    whole = attacks[0]
    whole.records = int(rows[0].size)
    alone = replace_values(made, rows)
    pairs = [attack.paired(each) for attack, each in zip(attacks, alone, strict=True)]
    prepared = Prepared(model, values, [each for each in releases if each is not None], made[0].source, tuple(bits))
    return whole.concluded(prepared, manifests[0], truth, pairs=pairs)


def replace_values(made: Sequence[Prepared], rows: Sequence[Places]) -> list[Prepared]:
    """Each release with its rows in the common order."""
    return [
        replace(each, values={name: column[mine] for name, column in each.values.items()})
        for each, mine in zip(made, rows, strict=True)
    ]


def _joined(releases: Sequence[Simulated], count: int, records: int) -> Simulated | None:
    """Simulated releases of the same people side by side, as many as the real ones have."""
    there = np.ones(count, dtype=bool)
    for each in releases:
        there &= each.present(count)
    origin = np.flatnonzero(there)[:records]
    if not origin.size:
        return None
    values = {
        _named(number, name): each.aligned(name, count)[origin]
        for number, each in enumerate(releases, start=1)
        for name in each.values
    }
    return Simulated(values, origin)


def _surest(findings: Sequence[Finding]) -> Finding:
    """For every person the surest of the bets."""
    person = np.unique(np.concatenate([each.person for each in findings]))
    size, first = person.size, findings[0]
    probability, candidates = np.full(size, -1.0), np.ones(size)
    record, release = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=np.int64)
    certain, present = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    measured = all(each.right is not None and each.present is not None for each in findings)
    right = np.zeros(size)
    for number, each in enumerate(findings):
        at = np.searchsorted(person, each.person)
        better = (each.probability > probability[at]) | (each.certain & ~certain[at])
        better &= ~certain[at] | each.certain
        to = at[better]
        probability[to], candidates[to] = each.probability[better], each.candidates[better]
        record[to], release[to], certain[to] = each.record[better], number, each.certain[better]
        if each.right is not None and each.present is not None:
            right[to] = each.right[better]
            present[at] |= each.present
    evidence = [
        Evidence(f"release {number}", each.share if each.right is not None else None, int(each.certain.sum()))
        for number, each in enumerate(findings, start=1)
    ]
    return Finding(
        person=person,
        record=record,
        probability=np.maximum(probability, 0.0),
        candidates=candidates,
        certain=certain,
        right=right if measured else None,
        present=present if measured else None,
        records=max(each.records for each in findings),
        evidence=tuple(evidence),
        columns=tuple(dict.fromkeys(name for each in findings for name in each.columns)),
        people=first.people,
        chosen=first.chosen,
        calibrated=all(each.calibrated for each in findings),
        learned=first.learned,
        notes=tuple(dict.fromkeys(note for each in findings for note in each.notes)),
        release=release,
    )
