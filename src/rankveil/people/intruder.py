"""The intruder: who can be found in a release by somebody who uses everything that is public.

The verdict is that of `rankveil.intruder`: the share of people whose best link is right, and who is certain. The
paper's own test (`people.plaintext`) stands beside it under its own name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankveil.auditing import check_share, loaded, of_release, of_releases
from rankveil.cluster.places import Parts, place_for, several
from rankveil.errors import ParameterError, RankveilError, refuse_unknown
from rankveil.intruder.calibration import wilson
from rankveil.intruder.finding import Finding
from rankveil.intruder.several import find_people_in
from rankveil.manifest import content_of, other_table
from rankveil.pairing import pair_tables, released_table, true_links
from rankveil.people.chance import DRAWS, Progress, check_draws
from rankveil.people.plaintext import PlaintextAttack, plaintext_attack, plaintext_in_parts
from rankveil.schema import listed
from rankveil.table import Table
from rankveil.verdict.item import FOUND_LIMIT
from rankveil.verdict.words import knowledge, portion
from rankveil.verdict.words import people as said_of

if TYPE_CHECKING:
    from rankveil.cluster.engine import Engine

ATTACK_SCHEMA = "rankveil/attack/2"
LIMIT = FOUND_LIMIT
"""The largest share of people found with which a release holds, unless another is given."""

_IN_PARTS = (
    "no verdict: tables in parts are linked by distance alone, for drawn subjects; the intruder who uses everything "
    "needs the tables in memory"
)


@dataclass(eq=False)
class Attack:
    """Who was found, and the paper's own test beside it."""

    finding: Finding | None
    """What the intruder of the verdict found; None for tables in parts, which only the paper's attack is made for."""
    plaintext: PlaintextAttack | None
    """The paper's attack; None where it does not apply."""
    limit: float = LIMIT
    worst: Finding | None = None
    """The same for somebody who knows everything, where a scenario was given."""
    mapping: str = "none"
    records: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def found(self) -> float:
        """The share of people whose best link is right (expected by the intruder where no mapping is known)."""
        if self.finding is not None:
            return self.finding.share
        assert self.plaintext is not None
        correct = self.plaintext.counts["correct"]
        return float("nan") if correct is None else correct / max(len(self.plaintext.p_values), 1)

    @property
    def certain(self) -> int:
        """How many links follow by logic, whatever was drawn."""
        return 0 if self.finding is None else int(self.finding.certain.sum())

    @property
    def claims(self) -> int:
        """How many links he can claim at a false discovery rate of 5 % of being right."""
        return 0 if self.finding is None else int(self.finding.claimed.sum())

    @property
    def claims_right(self) -> float | None:
        """How many of the claims are right; None where no mapping is known."""
        if self.finding is None or self.finding.right is None:
            return None
        return _plain(float(self.finding.right[self.finding.claimed].sum()))

    @property
    def holds(self) -> bool | None:
        """Whether no more than the limit are found and nobody is certain; None where there is no verdict."""
        return None if self.finding is None else self.found <= self.limit and self.certain == 0

    @property
    def verdict(self) -> str | None:
        """`fails` or `holds`; None for tables in parts."""
        return None if self.holds is None else "holds" if self.holds else "fails"

    @property
    def counts(self) -> dict[str, int | None]:
        """The paper's count: records linked to their own masked record alone, to several, to another one."""
        return {"correct": None, "multiple": None, "wrong": None} if self.plaintext is None else self.plaintext.counts

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return sentence(self.to_verdict())

    def to_verdict(self) -> dict[str, Any]:
        """The part of the JSON document that says who is found."""
        if self.finding is None:
            return {"verdict": None, "limit": self.limit, "found": self._by_distance()}
        made = {"verdict": self.verdict, "limit": self.limit, **_of(self.finding)}
        if self.worst is not None:
            made["worst"] = _of(self.worst)
        return made

    def _by_distance(self) -> dict[str, Any] | None:
        """What linking by distance alone found among the drawn subjects."""
        assert self.plaintext is not None
        correct, of = self.plaintext.counts["correct"], len(self.plaintext.p_values)
        if correct is None:
            return None
        return {
            "share": correct / max(of, 1),
            "right": correct,
            "expected": None,
            "of": of,
            "interval": list(wilson(correct, of)),
            "guessing": 1 / max(self.records, 1),
        }

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `rankveil attack`."""
        content: dict[str, Any] = {"schema": ATTACK_SCHEMA, **self.to_verdict()}
        content["sentence"] = sentence(content)
        content |= {"records": self.records, "mapping": self.mapping}
        if self.plaintext is not None:
            content["attributes"] = list(self.plaintext.linkage.names)
            content |= self.plaintext.to_dict()
        return {**content, "notes": self.notes}

    def rows(self) -> dict[str, list[Any]]:
        """One row per person: original, masked (his best bet), probability, candidates, certain, right."""
        if self.finding is None:
            raise ParameterError("tables in parts have no record of every person; attack them in memory")
        made, right = self.finding, self.finding.right
        return {
            "original": (made.person + 1).tolist(),
            **({} if made.release is None else {"release": (made.release + 1).tolist()}),
            "masked": [int(row) + 1 if row >= 0 else None for row in made.record],
            "probability": made.probability.tolist(),
            "candidates": made.candidates.tolist(),
            "certain": made.certain.tolist(),
            "right": [None] * made.person.size if right is None else right.tolist(),
        }

    def to_frame(self) -> Any:
        """A data frame with one row per person: pandas when it is installed, otherwise pyarrow."""
        try:
            import pandas as pd
        except ImportError:
            import pyarrow as pa

            return pa.table(self.rows())
        return pd.DataFrame(self.rows())

    def report(self, path: str | os.PathLike[str], *, command: str | None = None, public: bool = False) -> None:
        """Write the attack as one self-contained page, whole or not at all; a public one tells of no single record."""
        from rankveil.files import Staged, check_writable
        from rankveil.report.attacks import attack_page

        check_writable(path, table=False)
        page = attack_page(self.to_dict(), self.pictures(), command=command, public=public)
        with Staged() as staged:
            staged.add(path, lambda file: file.write(page.encode("utf-8")))

    def pictures(self) -> Any:
        """What the figures of a page are drawn from."""
        from rankveil.report.attacks import AttackPictures

        made, test = self.finding, self.plaintext
        people = None if made is None else (made.probability, made.right)
        chance = None if test is None else (test.matches.distance, test.null.values, test.null.shares)
        return AttackPictures(people, chance)

    def __repr__(self) -> str:
        return f"Attack({self.sentence})"

    def _repr_html_(self) -> str:
        from rankveil.report.attacks import attack_charts, attack_words
        from rankveil.report.notebook import shown

        content = self.to_dict()
        items = [(each["id"], each["found"], each["certain"]) for each in content.get("evidence", ())]
        grids = [("", ("evidence", "found", "certain"), items)] if items else []
        return shown(attack_words(content), charts=attack_charts(content, self.pictures()), grids=grids)


def attack(
    original: Any,
    masked: Any,
    *,
    manifest: Any = None,
    knows: Sequence[str] | None = None,
    people: float = 1.0,
    at_most: float = LIMIT,
    draws: int = DRAWS,
    subsets: bool = False,
    links: Sequence[tuple[int, int]] | None = None,
    ordered: bool = False,
    progress: Progress | None = None,
    cluster: str | Engine | None = None,
    scratch: str | os.PathLike[str] | None = None,
    memory: str | int | None = None,
    subjects: int | str | None = None,
    resume: bool = False,
    **matching: Any,
) -> Attack:
    """Find people in a release with everything that is public, and count how many links are right.

    Parameters
    ----------
    original, masked
        Tables, or the paths of their files; `masked` may be what `rv.mask` returned, with its manifest and secret, or
        a list of several releases of the same original, whose evidence is used together. `manifest`, `secret` and
        `mapping` may then be lists too.
    manifest
        What was published of the masking: a Manifest, its content, or None to learn from the two tables alone.
    knows
        The columns whose original values the intruder knows; all of both tables unless given.
    people
        The share of the people whom he knows, drawn by the seed; everybody unless given.
    at_most
        The largest share of people found with which the release holds.
    draws, subsets, links
        Of the paper's own test, which stands beside the verdict: random records drawn, whether subsets of the
        attributes are tried, a linkage computed elsewhere (pairs of row numbers from 1).
    ordered
        Whether the rows are those of published files, whose order an intruder sees.
    matching
        How the tables belong together: columns, key, mapping, secret, seed, and the columns' schema.

    Tables may be given by the paths of their files. Parquet ones of any size are linked by distance in parts by the
    workers of a `cluster` ("local", "local:4", "tcp://host:8786"); those that would not fit in memory are by local
    ones. Then so many `subjects` ("all", or 10,000 unless given) are drawn by the seed, each is linked with all masked
    records, and there is no verdict. `scratch`, `memory` and `resume` are as in `audit`.
    """
    check_draws(draws)
    at_most = check_share(at_most, "at_most", such_as=0.09)
    people = check_share(people, "people", such_as=0.1)
    beside: list[str] = []
    if not several(masked):
        masked, manifest = of_release(masked, manifest, matching, beside)
    how = {"subsets": subsets or None, "links": links, **matching}
    how |= {"manifest": manifest, "knows": knows, "people": None if people == 1 else people}
    place, said = place_for(original, masked, cluster, how, done="attacked")
    said = [*beside, *said]
    if place is not None:
        parts = Parts(place, scratch=scratch, memory=memory, subjects=subjects, resume=resume, progress=progress)
        test = plaintext_in_parts(original, masked, parts, how, draws=draws, said=said)
        return Attack(
            None, test, at_most, mapping=test.linkage.mapping, records=test.linkage.of, notes=[_IN_PARTS, *test.notes]
        )
    refuse_unknown(matching, known=("columns", "key", "mapping", "secret", "seed"))
    releases = list(masked) if several(masked) else [masked]
    if not releases:
        raise ParameterError("name at least one release")
    manifests = _one_each(manifest, len(releases))
    if several(masked):
        releases, manifests, matching = of_releases(releases, manifests, matching, said)
    original, *releases = (loaded(table, schema=matching.get("schema")) for table in (original, *releases))
    made = _in_memory(
        original,
        releases,
        manifests=manifests,
        knows=None if knows is None else listed(knows),
        people=people,
        limit=at_most,
        ordered=ordered,
        progress=progress,
        test={"draws": draws, "subsets": subsets, "links": links},
        **matching,
    )
    made.notes += said
    return made


def _in_memory(
    original: Any,
    masked: Sequence[Any],
    *,
    manifests: Sequence[Any],
    knows: Sequence[str] | None,
    people: float,
    limit: float,
    ordered: bool,
    progress: Callable[[int, int], None] | None,
    test: Mapping[str, Any],
    columns: Sequence[str] | None = None,
    key: str | None = None,
    mapping: Any = True,
    secret: Any = None,
    seed: Any = 0,
    **declared: Any,
) -> Attack:
    """The attack on one release, or on several of the same original together."""
    first = Table.of(original, **declared)
    tables = [released_table(each, **declared) for each in masked]
    mappings, secrets = (_one_each(given, len(tables)) for given in (mapping, secret))
    notes: list[str] = []
    matched = [
        true_links(first, table, key=key, mapping=mapped, secret=hidden, notes=notes)
        for table, mapped, hidden in zip(tables, mappings, secrets, strict=True)
    ]
    for number, (each, table) in enumerate(zip(manifests, tables, strict=True), start=1):
        if (said := other_table(each, table)) is not None:
            notes.append(said if len(tables) == 1 else f"release {number}: {said}")
    evidence = listed(columns) if columns is not None else None
    if evidence is None and key is not None:
        evidence = tuple(name for name in first.names if name in tables[0].names and name != key)
        notes.append(f"the key {key} tells the protector who is who; it is no evidence here")
    told: dict[str, Any] = {
        "manifests": [content_of(each, records=len(table)) for each, table in zip(manifests, tables, strict=True)],
        "truths": [truth for truth, _ in matched],
        "columns": evidence,
        "key": key if len(tables) > 1 else None,
        "ordered": ordered,
        "seed": seed,
        "progress": progress,
    }
    scenario = knows is not None or people != 1
    finding = find_people_in(first, tables, knows=knows, people=people, **told)
    worst = find_people_in(first, tables, **told) if scenario else None
    plaintext: PlaintextAttack | None = None
    try:
        both = pair_tables(
            first, tables[0], columns=columns, key=key, mapping=mappings[0], secret=secrets[0], seed=seed
        )
        plaintext = plaintext_attack(both, progress=progress, **test)
    except ParameterError:
        raise
    except RankveilError as error:
        notes.append(f"the paper's own test does not apply: {error}")
    made = Attack(finding, plaintext, limit, worst, matched[0][1], len(first), [*notes, *finding.notes])
    if plaintext is not None:
        own = "the paper's own test" if len(tables) == 1 else "the paper's own test, of the first release"
        made.notes += [f"{own}: {note}" for note in plaintext.notes if note not in made.notes]
    return made


def _one_each(given: Any, count: int) -> list[Any]:
    """What was given for each of several releases, or for all of them."""
    made = list(given) if isinstance(given, list | tuple) else [given] * count
    if len(made) != count:
        raise ParameterError(f"{count} releases need as many manifests, secrets and mappings, not {len(made)}")
    return made


def _of(finding: Finding) -> dict[str, Any]:
    """What an intruder found, for the JSON document."""
    claimed = finding.claimed
    right = None if finding.right is None else _plain(float(finding.right[claimed].sum()))
    found = finding.found_dict()
    return {
        "found": {**found, "right": None if found["right"] is None else _plain(found["right"])},
        "certain": int(finding.certain.sum()),
        "claims": int(claimed.sum()),
        "claims_right": right,
        "evidence": [each.to_dict() for each in finding.evidence],
        "knows": {"columns": list(finding.columns), "people": finding.people, "chosen": finding.chosen},
        "calibrated": finding.calibrated,
        "learned": dict(finding.learned),
    }


def _plain(number: float) -> int | float:
    """A whole number as one; equal records that share a bet make fractions."""
    nearest = round(number)
    return nearest if abs(number - nearest) < 1e-9 else number


def sentence(content: Mapping[str, Any]) -> str:
    """Who can be found, in one sentence.

    >>> found = {"share": 0.31, "right": 336, "guessing": 0.001, "of": 1080}
    >>> sentence({"found": found, "certain": 143, "limit": 0.09, "verdict": "fails"})
    'About 1 person in 3 can be found by somebody who knows all originals; 143 with certainty.'
    """
    found = content["found"]
    if found is None:
        return "Nothing says which links are right, so nobody can be counted as found."
    share, certain = found["share"], content.get("certain", 0)
    if content.get("verdict", "") is None:
        return (
            f"Linking by distance alone finds {portion(share)} of the subjects drawn; this is no verdict: somebody "
            "who uses everything that is public may find more."
        )
    expected = "" if found["right"] is not None else " (his own expectation: which links are right is not known here)"
    who = f"somebody who knows {knowledge(content.get('knows'))}"
    if share == 0 and certain == 0:
        guessed = round(1 / max(found["guessing"], 1e-12))
        return f"Nobody is found by {who}{expected}; blind guessing finds 1 person in {guessed:,}."
    if certain == 0 and share <= max(2.0 * found["guessing"], 0.0) and found["of"] > 20:
        return f"{said_of(share)} can be found by {who}, no more than by blind guessing{expected}."
    sure = f"; {certain:,} with certainty" if certain else ""
    return f"{said_of(share)} can be found by {who}{expected}{sure}."
