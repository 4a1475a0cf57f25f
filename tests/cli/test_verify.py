"""What `rankveil verify` says on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rankveil import datasets


def grid(out: str) -> list[list[str]]:
    """The cells of the table that was printed, the heading first."""
    lines = out.splitlines()
    first = next(number for number, line in enumerate(lines) if line.lstrip().startswith("attribute"))
    rows = [line.split() for line in lines[first + 1 :]]
    return [lines[first].split(), *rows[: rows.index([]) if [] in rows else None]]


def test_the_values_of_the_matched_record_stand_beside_hers(example: Path, run: Any) -> None:
    mine = ("verify", "masked.csv", "--record", "X1=4,X2=1,X3=4")
    record = run(*mine, "--json").json["record"]
    _, masked = datasets.running_example()
    released = masked.to_pylist()[record - 1]
    heading, *rows = grid(run(*mine).out)
    assert f"record {record} has" in " ".join(heading)
    assert {row[0]: row[4] for row in rows if row[0] in released} == {name: str(released[name]) for name in released}


def test_they_are_as_the_file_has_them(write: Callable[[str, str], str], run: Any) -> None:
    write("out.csv", "LEVEL;PAY\nlow;1,50\nhigh;7,25\nlow;9,00\n")
    _, *rows = grid(run("verify", "out.csv", "--kind", "LEVEL=ordinal:low<high", "--record", "LEVEL=high,PAY=7").out)
    assert [row[4] for row in rows[:2]] == ["high", "7,25"]
