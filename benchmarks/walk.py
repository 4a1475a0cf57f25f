"""What a first-time user meets: every public table through the commands, by their defaults alone.

    .venv/bin/python benchmarks/walk.py [--data DIR] [--only WORDS] [--verbs inspect,mask,audit,attack,compare]
        [--write FILE]

Every table that `column_truths.toml` declares goes through inspect, mask, audit, attack and compare as somebody would
type them who read nothing. One line for each table: how many of the decisions on columns are right, whether a declared
identifier is in the release and whether a weight was changed (both must be 0), the status of the audit, how many people
the attack finds, which plan `compare --at found=0.09` recommends, and how long everything took. Nothing is asserted:
the table is to be read.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from columns import DATA, Source, sources

from rankveil import files

VERBS = ("inspect", "mask", "audit", "attack", "compare")
METHODS = "copula_swap,mdav,additive_noise"
LIMIT = 900.0
"""Seconds after which a command is given up."""


@dataclass(eq=False)
class Walk:
    """What the commands said of one table."""

    name: str
    records: int = 0
    columns: int = 0
    right: int = 0
    identifiers_out: str = ""
    weights: str = ""
    status: str = ""
    found: str = ""
    verdict: str = ""
    pick: str = ""
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)

    def line(self) -> str:
        """A row of the table."""
        return (
            f"| {self.name} | {self.records} | {self.right} of {self.columns} | {self.identifiers_out} | "
            f"{self.weights} | {self.status} | {self.found} | {self.verdict} | {self.pick} | {self.seconds:.0f} | "
            f"{'; '.join(self.failed)} |"
        )


_HEAD = (
    "| table | records | columns right | identifiers released | weights changed | audit | found | attack | "
    "compare --at found=0.09 | seconds | failed |\n" + "|---" * 11 + "|"
)


def run(walk: Walk, *words: str, codes: tuple[int, ...] = (0, 1)) -> dict[str, Any] | None:
    """A command's JSON document, or nothing when it failed."""
    begun = time.perf_counter()
    try:
        made = subprocess.run(
            [sys.executable, "-m", "rankveil", *words, "--json"], capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        walk.failed.append(f"{words[0]}: not done after {LIMIT:.0f} s")
        return None
    finally:
        walk.seconds += time.perf_counter() - begun
    if made.returncode not in codes:
        walk.failed.append(f"{words[0]}: {made.stderr.strip().splitlines()[-1] if made.stderr.strip() else 'no word'}")
        return None
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def walked(source: Source, path: Path, verbs: tuple[str, ...]) -> Walk:
    """One table through the commands."""
    walk = Walk(path.name.removesuffix(".gz").removesuffix(".csv"))
    with tempfile.TemporaryDirectory() as place:
        original, release = Path(place) / "original.csv", Path(place) / "release.csv"
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as given, open(original, "wb") as copy:
            shutil.copyfileobj(given, copy)
        before = files.load(str(original)).data
        seen = run(walk, "inspect", str(original)) if "inspect" in verbs else None
        if seen is not None:
            walk.records, walk.columns = seen["records"], len(seen["columns"])
            for column in seen["columns"]:
                truth, made = source.truths[column["name"]], column["decision"]
                walk.right += made["kind"] in truth.kinds and made["role"] in truth.roles
        if run(walk, "mask", str(original), "-o", str(release), "--method", "copula_swap") is not None:
            after = files.load(str(release)).data
            names = list(after.column_names)
            out = [name for name, truth in source.truths.items() if truth.roles == {"identifier"} and name in names]
            walk.identifiers_out = ", ".join(out) or "0"
            weights = [name for name, truth in source.truths.items() if truth.roles == {"weight"}]
            changed = [
                name
                for name in weights
                if name not in names
                or sorted(map(str, after[name].to_pylist())) != sorted(map(str, before[name].to_pylist()))
            ]
            walk.weights = ", ".join(changed) or f"0 of {len(weights)}"
            if "audit" in verbs and (audit := run(walk, "audit", str(original), str(release))) is not None:
                walk.status = audit.get("status") or "-"
            if "attack" in verbs and (attack := run(walk, "attack", str(original), str(release))) is not None:
                walk.found = f"{100 * attack['found']['share']:.1f} %, {attack['certain']} certain"
                walk.verdict = attack["verdict"]
        if "compare" in verbs:
            asked = ("--methods", METHODS, "--at", "found=0.09")
            if (compared := run(walk, "compare", str(original), *asked)) is not None:
                pick = compared.get("pick")
                walk.pick = "none reaches it" if not pick else _said(pick)
    return walk


def _said(pick: dict[str, Any]) -> str:
    sure = pick.get("confirmed") or {}
    strength = ", ".join(
        f"{name} = {value:.4g}" for name, value in pick["parameters"].items() if isinstance(value, int | float)
    )
    found = 100 * sure.get("found", float("nan"))
    return f"{pick['id']} {strength}: {found:.1f} %, held on {sure.get('held')} of {sure.get('seeds')} seeds"


def main() -> None:
    """Print the table, and write it where asked."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, default=DATA, help="the folder of the reference data")
    options.add_argument("--only", default="", help="tables whose name has one of these words, separated by commas")
    options.add_argument("--verbs", default=",".join(VERBS))
    options.add_argument("--write", type=Path, help="a Markdown file for the table")
    given = options.parse_args()
    words = [word for word in given.only.split(",") if word]
    lines = [_HEAD]
    print(_HEAD, flush=True)
    for source in sources(given.data):
        for path in source.files:
            if not words or any(word in path.name for word in words):
                lines.append(walked(source, path, tuple(given.verbs.split(","))).line())
                print(lines[-1], flush=True)
    if given.write is not None:
        given.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
