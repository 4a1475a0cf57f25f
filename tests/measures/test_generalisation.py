"""Losses by generalisation and suppression: by hand, and ARX's figures for Adult."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv

ADULT = Path(__file__).parents[3] / "shared" / "data" / "peers" / "arx-adult"
MEASURES = ["ncp", "suppressed_share", "discernibility", "average_class_size"]
TREE = [("Ulm", "South", "*"), ("Bonn", "West", "*"), ("Köln", "West", "*"), ("Kiel", "North", "*")]


def audited(before: Any, after: Any, schema: rv.Schema, **more: Any) -> Any:
    return rv.audit(pa.table(before), pa.table(after), measures=MEASURES, schema=schema, **more)


def test_six_records_by_hand() -> None:
    before = {
        "AGE": [20.0, 25.0, 30.0, 35.0, 55.0, 60.0],
        "TOWN": ["Ulm", "Bonn", "Köln", "Kiel", "Bonn", "Köln"],
        "PAY": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
    after = {
        "AGE": ["[20,30)", "[20,30)", "[30,50)", "[30,50)", "50+", None],
        "TOWN": ["South", "West", "West", "North", "*", None],
        "PAY": before["PAY"],
    }
    schema = rv.Schema(
        hierarchies={"TOWN": rv.Hierarchy(TREE)}, roles={"AGE": "quasi-identifier", "TOWN": "quasi-identifier"}
    )
    made = audited(before, after, schema)
    # AGE, range 40: 10 10 20 20 10 (50 to 60) and 1 for the suppressed one; TOWN: South and North are one leaf of 4
    ages, towns = (10 + 10 + 20 + 20 + 10 + 40) / 40 / 6, (0 + 2 / 4 + 2 / 4 + 0 + 1 + 1) / 6
    assert made.values["ncp"].details["per_attribute"] == {"AGE": pytest.approx(ages), "TOWN": pytest.approx(towns)}
    assert made["ncp"] == pytest.approx((ages + towns) / 2)
    # 3 of 18 cells
    assert made["suppressed_share"] == pytest.approx(3 / 18)
    assert made.values["suppressed_share"].details["per_attribute"] == {
        "AGE": pytest.approx(1 / 6),
        "TOWN": pytest.approx(2 / 6),
        "PAY": 0.0,
    }
    # every record is alone, and one is suppressed: 5 + 6
    assert made["discernibility"] == 11.0
    assert made.values["discernibility"].details["without"] == 5
    assert made["average_class_size"] == 1.0


def test_classes_by_hand() -> None:
    data = {"A": [1.0, 1.0, 1.0, 2.0, 2.0, 3.0]}
    made = audited(data, data, rv.Schema(roles={"A": "quasi-identifier"}))
    assert made["discernibility"] == 9 + 4 + 1
    assert made.values["discernibility"].details["per_record"] == pytest.approx(14 / 6)
    assert made["average_class_size"] == 2.0
    assert (made["ncp"], made["suppressed_share"]) == (0.0, 0.0)


def test_what_was_missing_before_was_not_suppressed() -> None:
    before, after = {"A": [1.0, 2.0, None, None]}, {"A": [1.0, None, None, None]}
    made = audited(before, after, rv.Schema())
    assert made["suppressed_share"] == 0.5
    assert made["ncp"] == 0.5
    assert made.values["suppressed_share"].details["cells"] == 2.0
    assert "quasi-identifier" in made.not_applicable["discernibility"]


def test_noise_leaves_nothing_open_and_the_top_everything() -> None:
    rng = np.random.default_rng(0)
    before = {"A": rng.normal(size=50)}
    assert audited(before, {"A": before["A"] + 1}, rv.Schema())["ncp"] == 0.0
    towns = {"T": ["Ulm", "Bonn"] * 25}
    made = audited(towns, {"T": ["*"] * 50}, rv.Schema(), columns=["T"])
    assert (made["ncp"], made["suppressed_share"]) == (1.0, 1.0)


def test_groups_that_nobody_described() -> None:
    before = {"T": ["a", "b", "c", "d"] * 5}
    after = {"T": ["x", "x", "c", "d"] * 5}
    made = audited(before, after, rv.Schema(), columns=["T"])
    assert made["ncp"] == pytest.approx(0.5 * 2 / 4)
    apart = audited(before, after, rv.Schema(), columns=["T"], mapping=False)
    assert "what x stands for is not known" in apart.not_applicable["ncp"]


@pytest.mark.skipif(not ADULT.exists(), reason="the figures of ARX are not here")
def test_adult_has_the_losses_that_arx_computes() -> None:
    with gzip.open(ADULT / "adult.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    names = [name for name in rows[0] if name != "occupation"]
    trees = {}
    for name in names:
        with open(ADULT / "hierarchies" / f"adult_hierarchy_{name}.csv", encoding="utf-8") as file:
            trees[name] = {line[0]: line for line in csv.reader(file, delimiter=";")}
    with open(ADULT / "node_losses.csv", encoding="utf-8") as file:
        losses = [line for line in csv.DictReader(file) if line["models"] == "KAnonymity(5)"]
    checked = 0
    for line in losses:
        if line["metric"] not in ("AECS()", "Discernability(false)") or checked >= 6:
            continue
        levels = dict(zip(names, map(int, line["levels"].split()), strict=True))
        released = {name: [trees[name][row[name]][levels[name]] for row in rows] for name in names}
        keys = list(zip(*released.values(), strict=True))
        sizes: dict[Any, int] = {}
        for key in keys:
            sizes[key] = sizes.get(key, 0) + 1
        after = {
            name: [word if sizes[key] >= 5 else None for word, key in zip(column, keys, strict=True)]
            for name, column in released.items()
        }
        table = pa.table({name: pa.array(column, pa.string()) for name, column in after.items()})
        schema = rv.Schema(roles=dict.fromkeys(names, "quasi-identifier"), kinds=dict.fromkeys(names, "nominal"))
        name = "average_class_size" if line["metric"] == "AECS()" else "discernibility"
        made = rv.audit(table, table, measures=[name], schema=schema, columns=["sex"])
        assert made[name] == pytest.approx(float(line["loss"]), rel=1e-9), line
        checked += 1
    assert checked == 6
