"""How many columns are taken for what an official statistician would declare, and whether the wrong guesses do harm.

    .venv/bin/python benchmarks/columns.py [--rows N] [--held-out | --seen] [--data DIR]

Reads the tables that `column_truths.toml` names and compares `rankveil.decisions.decide` with the truths of that file,
by kind, by role, and by both together; a column that stands in several tables of one family counts in each. A wrong
guess is harmful when an identifier or a household's number would be released or taken for a number, when a weight would
be masked as an amount, when codes would be averaged as numbers, or when a column that must be masked would pass through
as it is. All other wrong guesses protect more than is needed, or in another way.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rankveil import files
from rankveil.decisions import Decision, decide
from rankveil.table import Table

TRUTHS = Path(__file__).with_name("column_truths.toml")
DATA = Path(os.environ.get("RANKVEIL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))

RUNS = 10
"""So many runs of rows are read where not all rows are."""

_NAMING, _MASKED = {"identifier", "group"}, {"quasi-identifier", "confidential"}
_PROTECTED = {"leave out", "pseudonymise"}


@dataclass(frozen=True)
class Truth:
    """The kinds and roles of a column that can be defended."""

    kinds: frozenset[str]
    roles: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Truth:
        """From the text in the file of truths.

        >>> sorted(Truth.of("numbers|ordered; other").kinds)
        ['numbers', 'ordered']
        """
        kinds, roles = (frozenset(word.strip() for word in part.split("|")) for part in text.split(";"))
        return cls(kinds, roles)


@dataclass(frozen=True)
class Judged:
    """A decision beside the truth."""

    table: str
    held_out: bool
    decision: Decision
    truth: Truth

    @property
    def kind_right(self) -> bool:
        return self.decision.kind in self.truth.kinds

    @property
    def role_right(self) -> bool:
        return self.decision.role in self.truth.roles

    @property
    def right(self) -> bool:
        return self.kind_right and self.role_right

    @property
    def harm(self) -> str:
        """What harm a wrong decision does, or nothing."""
        made, kinds, roles = self.decision, self.truth.kinds, self.truth.roles
        if roles <= _NAMING:
            if made.action not in _PROTECTED and made.action != "mask":
                return "an identifier would be released"
            return "an identifier is taken for numbers" if made.kind == "numbers" else ""
        if roles == {"weight"} and made.action == "mask":
            return "a weight would be masked"
        if made.kind == "numbers" and not kinds & {"numbers"}:
            return "codes would be averaged as numbers"
        if roles <= _MASKED and made.action == "keep":
            return "it would pass through as it is"
        return ""


@dataclass(frozen=True)
class Source:
    """Tables of which the same is true."""

    name: str
    files: tuple[Path, ...]
    held_out: bool
    truths: dict[str, Truth]


def sources(data: Path = DATA) -> list[Source]:
    """The tables that have declared truths."""
    declared = tomllib.loads(TRUTHS.read_text(encoding="utf-8"))["tables"]
    return [
        Source(
            each["name"],
            tuple(data / path for path in each["files"]),
            each.get("held_out", False),
            {name: Truth.of(text) for name, text in each["columns"].items()},
        )
        for each in declared
    ]


def read(path: Path, *, rows: int | None) -> Table:
    """Some runs of rows of a CSV file, spread evenly over it, in the way in which everybody's files are read."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines, tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part.csv"
        with open(part, "w", encoding="utf-8") as out:
            out.write(next(lines))
            out.writelines(lines if rows is None else _spread(list(lines), rows))
        loaded = files.load(str(part))
        return Table(loaded.data, decimal=loaded.dialect.decimal if loaded.dialect else ".")


def _spread(lines: list[str], rows: int) -> Iterator[str]:
    """Runs of lines, so that households stay together and no part of the file is left out."""
    each = max(1, rows // RUNS)
    for run in range(RUNS) if len(lines) > rows else ():
        start = run * (len(lines) - each) // max(RUNS - 1, 1)
        yield from lines[start : start + each]
    if len(lines) <= rows:
        yield from lines


def judged(given: Iterable[Source], *, rows: int | None = None) -> list[Judged]:
    """Every column of the tables, its decision beside the truth."""
    found = []
    for source in given:
        for path in source.files:
            decisions = decide(read(path, rows=rows))
            if {each.name for each in decisions} != set(source.truths):
                raise ValueError(f"{path}: its columns are not those of which truths are declared")
            found += [Judged(path.name, source.held_out, each, source.truths[each.name]) for each in decisions]
    return found


def share(columns: Sequence[Judged], what: str = "right") -> float:
    """The share of columns that are right: `right`, `kind_right` or `role_right`."""
    return sum(cast(bool, getattr(each, what)) for each in columns) / max(len(columns), 1)


def show(columns: Sequence[Judged], what: str) -> None:
    """A line of shares."""
    kinds, roles, both = (f"{100 * share(columns, word):.1f} %" for word in ("kind_right", "role_right", "right"))
    harmful = sum(bool(each.harm) for each in columns)
    tables = len({each.table for each in columns})
    print(
        f"{what}: {tables} tables, {len(columns)} columns: kind {kinds}, role {roles}, both {both}, harmful {harmful}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, help="about so many rows of each file, spread over it")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the reference data")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--held-out", action="store_true", help="only tables that the rules were not written on")
    which.add_argument("--seen", action="store_true", help="only tables that the rules were written on")
    given = parser.parse_args()
    chosen = [
        each for each in sources(given.data) if not (each.held_out if given.seen else given.held_out > each.held_out)
    ]
    columns = judged(chosen, rows=given.rows)
    for each in columns:
        if not each.right or each.harm:
            made, truth = each.decision, each.truth
            wanted = f"{'|'.join(sorted(truth.kinds))}; {'|'.join(sorted(truth.roles))}"
            harm = f"HARMFUL: {each.harm}" if each.harm else "harmless"
            print(f"{each.table} {made.name}: {made.kind}; {made.role}, not {wanted} ({harm}): {made.reason}")
    show(columns, "all")
    for held_out, what in ((False, "written on"), (True, "held out")):
        some = [each for each in columns if each.held_out == held_out]
        if some:
            show(some, what)


if __name__ == "__main__":
    main()
