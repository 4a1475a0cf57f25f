"""Tables as people have them, by the workers of a cluster: gaps, categories, dates, keys, and no mapping at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil.cli import main

RANKS = ("cm1", "cm2", "cm3", "spearman_risk", "um")
EXACT = ("k_anonymity", "l_diversity", "t_closeness", "total_variation", "contingency", "cramers_v")
OTHERS = ("il", "pil", "interval_disclosure", "rank_linkage", "permutation_linkage", "propensity", "emd")


def people(n: int, seed: int, *, masked: bool) -> pa.Table:
    """Ages with gaps, regions with codes for missing ones, grades, dates, and a key."""
    rng = np.random.default_rng(seed)
    age, income = rng.integers(18, 90, n).astype(float), np.round(rng.lognormal(8, 1, n), 1)
    region = np.array(["north", "south", "east", "west", "n/a"])[rng.integers(0, 5, n)]
    grade = np.array(["low", "middle", "high"])[rng.integers(0, 3, n)]
    born = np.datetime64("1980-01-01") + rng.integers(0, 9000, n)
    if masked:
        other = np.random.default_rng(seed + 1)
        age, income = age + other.integers(-3, 4, n), income * other.uniform(0.8, 1.2, n)
        born = born + other.integers(-30, 30, n)
        region = np.where(other.random(n) < 0.2, "south", region)
    gone = rng.random(n) < 0.07
    return pa.table(
        {
            "ID": pa.array([f"p{i:04d}" for i in range(n)]),
            "AGE": pa.array(age, mask=gone),
            "INCOME": pa.array(income),
            "REGION": pa.array(region),
            "GRADE": pa.array(grade),
            "BORN": pa.array(born),
        }
    )


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def made(x: pa.Table, y: pa.Table) -> tuple[str, str]:
        paths = []
        for name, each, rows in (("original", x, 70), ("masked", y, 45)):
            (tmp_path / name).mkdir()
            for start in range(0, len(each), rows):
                pq.write_table(each.slice(start, rows), tmp_path / name / f"{start:05d}.parquet")
            paths.append(str(tmp_path / name))
        return paths[0], paths[1]

    return made


SCHEMA = rv.Schema(
    kinds={"GRADE": "ordinal"},
    levels={"GRADE": ["low", "middle", "high"]},
    roles={"ID": "identifier", "REGION": "quasi-identifier", "GRADE": "confidential"},
    missing=("n/a",),
)


@pytest.mark.parametrize("how", ["rows", *(pytest.param(how, marks=pytest.mark.thorough) for how in ("key", "none"))])
def test_an_audit_is_the_one_in_memory(how: str, engine: Any, written: Any) -> None:
    x, y = people(200, 1, masked=False), people(200, 1, masked=True)
    if how != "rows":
        y = y.take(np.random.default_rng(5).permutation(200)[:170])
    told: dict[str, Any] = {"schema": SCHEMA, "seed": 4}
    told |= {"rows": {}, "key": {"key": "ID"}, "none": {"mapping": False}}[how]
    names = [*RANKS, *OTHERS, *EXACT]
    made = rv.audit(*written(x, y), cluster=engine, measures=names, subjects="all", **told)
    memory = rv.audit(x, y, measures=names, **told)
    assert made.records == memory.records
    assert made.attributes == memory.attributes
    assert made.mapping == memory.mapping == how
    assert made.to_dict()["rankings"] == memory.to_dict()["rankings"]
    assert made.not_applicable == memory.not_applicable
    assert set(memory.notes) <= set(made.notes)
    for name, value in memory.values.items():
        near = 1e-12 if name in RANKS else 1e-9
        assert made[name] == pytest.approx(value.value, rel=near, abs=0), name
        assert made.values[name].details.keys() == value.details.keys()
        assert name not in EXACT or made.values[name].details == value.details
    assert len(os.listdir(engine.scratch)) == 1


def test_quasi_identifiers_that_do_not_fit_in_memory(
    engine: Any, written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = people(90, 1, masked=False), people(90, 1, masked=True)
    monkeypatch.setattr("rankveil.cluster.audits.memory.available", lambda: 1000)  # of a machine that is nearly full
    made = rv.audit(*written(x, y), cluster=engine, measures=["k_anonymity", "cm2"], schema=SCHEMA)
    assert made.values.keys() == {"cm2"}
    assert "2 columns of 90 records at once may take" in made.not_applicable["k_anonymity"]


def test_a_measure_with_weights_says_that_it_is_not_for_a_cluster(engine: Any, written: Any) -> None:
    x, y = people(90, 1, masked=False), people(90, 1, masked=True)
    schema = rv.Schema(roles={"ID": "identifier", "INCOME": "weight"})
    made = rv.audit(*written(x, y), cluster=engine, measures=["cm2", "il", "rank_linkage"], schema=schema)
    memory = rv.audit(x, y, measures=["cm2"], schema=schema)
    assert made.attributes == memory.attributes == ("AGE", "REGION", "GRADE", "BORN")
    assert made.values.keys() == {"cm2"}
    assert made["cm2"] == memory["cm2"]
    assert "count the records by their weights" in made.not_applicable["il"]
    assert "count the records by their weights" in made.not_applicable["rank_linkage"]


def test_the_command_line_takes_what_it_takes_in_memory(
    written: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y = people(150, 1, masked=False), people(150, 1, masked=True)
    y = y.take(np.random.default_rng(5).permutation(150))
    paths = written(x, y)
    told = tmp_path / "roles.toml"
    told.write_text('missing = ["n/a"]\n[columns.REGION]\nrole = "quasi-identifier"\nhierarchy = "regions.csv"\n')
    (tmp_path / "regions.csv").write_text("north;cold\neast;cold\nsouth;warm\nwest;warm\n")
    words = ["audit", *paths, "--key", "ID", "--roles", str(told), "--kind", "GRADE=ordinal:low<middle<high"]
    words += ["--measures", "cm2,spearman_risk,il2", "--json"]
    (tmp_path / "scratch").mkdir()
    assert main([*words, "--cluster", "local:1", "--scratch", str(tmp_path / "scratch")]) == 0
    made = json.loads(capsys.readouterr().out)
    memory = rv.audit(
        x,
        y,
        key="ID",
        measures=["cm2", "spearman_risk", "il2"],
        schema=rv.Schema(
            kinds={"GRADE": "ordinal"},
            levels={"GRADE": ["low", "middle", "high"]},
            roles={"REGION": "quasi-identifier"},
            hierarchies={"REGION": str(tmp_path / "regions.csv")},
            missing=("n/a",),
        ),
    )
    assert made["attributes"] == list(memory.attributes)
    assert made["mapping"] == "key"
    assert made["rankings"]["REGION"].startswith("marginality by the hierarchy")
    for name in memory.values:
        assert made["measures"][name]["value"] == pytest.approx(memory[name], rel=1e-9)
    assert os.listdir(tmp_path / "scratch") == []
