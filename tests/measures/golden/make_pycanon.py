"""Writes what pycanon says of the tables of `make_tables.py`: `python make_pycanon.py FOLDER pycanon.json`.

It runs in an environment of its own (`python -m venv pycanon; pycanon/bin/pip install pycanon`), for pycanon pins
old libraries. `recursive` is (c, l) as released. pycanon sorts the counts of the values of a class upwards where
the definition of recursive (c,l)-diversity counts from the most frequent value down: `recursive_downwards` is what the
same code gives with the sort turned round, and nothing else changed. c is null where pycanon has none (l = 1).
"""

from __future__ import annotations

import json
import math
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any


class Downwards:
    """numpy, but sorting from the largest to the smallest."""

    def __getattr__(self, name: str) -> Any:
        import numpy as np

        return getattr(np, name)

    def sort(self, values: Any) -> Any:
        import numpy as np

        return np.sort(values)[::-1]


def figures(table: Any, quasi: list[str], confidential: list[str]) -> dict[str, Any]:
    from pycanon import anonymity
    from pycanon.anonymity import _l_diversity as module

    def recursive() -> list[float | None]:
        c, l_ = anonymity.recursive_c_l_diversity(table, quasi, confidential)
        return [None if math.isnan(c) else int(c), int(l_)]

    made: dict[str, Any] = {
        "k": int(anonymity.k_anonymity(table, quasi)),
        "l": int(anonymity.l_diversity(table, quasi, confidential)),
        "entropy_l": int(anonymity.entropy_l_diversity(table, quasi, confidential)),
        "t": float(anonymity.t_closeness(table, quasi, confidential)),
        "t_of": {name: float(anonymity.t_closeness(table, quasi, [name])) for name in confidential},
        "l_of": {name: int(anonymity.l_diversity(table, quasi, [name])) for name in confidential},
        "recursive": recursive(),
    }
    numpy, module.np = module.np, Downwards()
    try:
        made["recursive_downwards"] = recursive()
    finally:
        module.np = numpy
    return made


def main(folder: Path, golden: Path) -> None:
    import pandas as pd

    tables = {}
    for path in sorted(folder.glob("*.csv")):
        table = pd.read_csv(path, keep_default_na=False)
        roles = [head.split(":") for head in table.columns]
        table.columns = [name for _, name in roles]
        by_role = {role: [name for of, name in roles if of == role] for role in ("quasi", "confidential")}
        tables[path.stem] = {
            **{role: {name: table[name].tolist() for name in names} for role, names in by_role.items()},
            "figures": figures(table, by_role["quasi"], by_role["confidential"]),
        }
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(content)}" for name, content in tables.items())
    golden.write_text(f'{{"pycanon": "{version("pycanon")}", "tables": {{\n{lines}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
