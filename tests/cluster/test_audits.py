"""Measures by the workers of a cluster are those of tables in memory, however the tables are cut."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil.cluster import audits
from rankveil.cluster.audits import measure_tables
from rankveil.cluster.tables import given_tables
from rankveil.errors import NotApplicableError, PairError, ParameterError
from rankveil.measuring import Measuring
from rankveil.pairing import pair_tables
from rankveil.seeds import Seed

BY_RANKS = ("cm1", "cm2", "mutual_information", "um", "spearman_risk", "permutation_level")
LINKED = ("rank_linkage", "permutation_linkage")
OTHERS = ("interval_disclosure", "power_mean", "power_mean_loss", "il", "pil", "loss_factor_scores_mse")
OTHERS += ("propensity", "emd")


def table(values: Any) -> pa.Table:
    return pa.table({f"V{j}": values[:, j] for j in range(values.shape[1])})


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_values_are_those_in_memory(partitions: int, dask: Any, tied: Any, write: Any) -> None:
    n = 420
    x, y = tied(n)
    rows = n // partitions
    names = (*BY_RANKS, *LINKED, *OTHERS)
    found = measure_tables(dask, given_tables(*write(x, y, rows=rows)), names=names, seed=Seed.of(3), rows=rows)
    assert f"measured in {partitions} part" in found.notes[0]
    assert not found.not_applicable
    memory = Measuring(pair_tables(table(x), table(y), seed=3))
    for name in names:
        expected, value = memory.value(name), found.values[name]
        near = 1e-12 if name in ("interval_disclosure", "power_mean", "power_mean_loss") else 1e-9
        assert value.value == pytest.approx(expected.value, rel=near, abs=0), name
        assert value.notes == expected.notes
        assert value.details.keys() == expected.details.keys()
    # whole numbers are added up, and nothing is drawn when all are asked: the same to the last bit
    for name in (*BY_RANKS, *LINKED):
        assert found.values[name].value == memory.value(name).value
        assert found.values[name].details == memory.value(name).details
    assert os.listdir(dask.scratch) == [os.path.basename(dask._own)]


def test_the_whole_audit_has_the_form_of_one_in_memory(engine: Any, tied: Any, write: Any) -> None:
    x, y = tied(300)
    original, masked = write(x, y, rows=100)
    steps: list[tuple[int, int]] = []
    made = rv.audit(
        original, masked, cluster=engine, fail_if=["cm2<0.9", "um<0"], progress=lambda *at: steps.append(at)
    )
    memory = rv.audit(table(x), table(y))
    assert made.values.keys() | made.not_applicable.keys() == memory.values.keys() | memory.not_applicable.keys()
    missing = memory.values.keys() - made.values.keys()
    secret = {"l_diversity", "entropy_l_diversity", "recursive_l_diversity", "t_closeness"}
    assert all("not on a cluster" in made.not_applicable[name] for name in missing - secret)
    # numbers are counted one by one only where somebody says that they are confidential
    assert all("name confidential columns with --role" in made.not_applicable[name] for name in secret)
    assert made.to_dict()["measures"].keys() == made.values.keys()
    assert [gate["ok"] for gate in made.gates] == [False, True]
    assert made.mapping == "rows"
    assert made.attributes == memory.attributes
    done = [at for at, _ in steps]
    assert done == sorted(done)
    assert {of for _, of in steps} == {1000}
    assert done[-1] > 950
    with pytest.raises(NotApplicableError, match="not on a cluster"):
        made["cm3"]


def test_a_sample_of_subjects_is_stated_and_has_an_interval(engine: Any, tied: Any, write: Any) -> None:
    x, y = tied(600)
    paths = write(x, y, rows=200)
    some = rv.audit(*paths, cluster=engine, measures=LINKED, subjects=300, seed=1)
    everyone = rv.audit(*paths, cluster=engine, measures=LINKED, subjects="all", seed=1)
    memory = rv.audit(table(x), table(y), measures=LINKED)
    for name in LINKED:
        assert everyone[name] == memory[name]
        details = some.values[name].details
        assert (details["subjects"], details["of"]) == (300, 600)
        low, high = details["interval"]
        assert low < some[name] < high
        assert low <= memory[name] <= high
        assert any("for 300 of 600 subjects, drawn by the seed" in note for note in some.notes)


def test_a_drawn_sample_is_the_one_that_is_drawn_in_memory(engine: Any, tied: Any, write: Any) -> None:
    x, y = tied(500)
    settings = {"propensity": {"most": 200}}
    made = rv.audit(*write(x, y, rows=90), cluster=engine, measures=["propensity"], settings=settings, seed=4)
    memory = rv.audit(table(x), table(y), measures=["propensity"], settings=settings, seed=4)
    assert made["propensity"] == pytest.approx(memory["propensity"], rel=1e-9)
    assert made.values["propensity"].details["sample"] == 200
    assert "on 200 of 500 records" in made.notes[-1]


def test_the_earth_movers_distance_of_a_sample(
    engine: Any, tied: Any, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audits, "CARRIED", 1000)
    x, y = tied(1200)
    x[0] = 50.0  # by its range the whole table is scaled, drawn or not
    made = rv.audit(*write(x, y, rows=500), cluster=engine, measures=["emd"])
    details = made.values["emd"].details
    assert (details["sample"], details["of"]) == (1000, 1200)
    low, high = details["interval"]
    assert low < made["emd"] < high
    memory = rv.audit(table(x), table(y), measures=["emd"])
    assert low <= memory["emd"] <= high


def test_what_a_measure_cannot_have_is_said(engine: Any, tied: Any, write: Any) -> None:
    x, y = tied(100)
    settings = {"pil_quantile": {"density": "kernel"}, "power_mean": {"alpha": 0.5}}
    names = ["pil_quantile", "power_mean", "score", "k_anonymity", "contingency"]
    numbers = [f"V{j}" for j in range(5)]  # named, they are read as they look
    made = rv.audit(*write(x, y, rows=60), cluster=engine, measures=names, settings=settings, columns=numbers)
    memory = rv.audit(table(x), table(y), measures=["power_mean"], settings=settings, columns=numbers)
    assert made["power_mean"] == pytest.approx(memory["power_mean"], rel=1e-12)
    assert made.not_applicable["contingency"].startswith("it needs a column that is ordinal or nominal")
    assert made.not_applicable["score"].startswith("distance_linkage does not apply: not on a cluster")
    assert "needs the whole sorted column" in made.not_applicable["pil_quantile"]
    assert "quasi-identifiers" in made.not_applicable["k_anonymity"]


def test_columns_that_are_not_compared_are_named(engine: Any, tied: Any, tmp_path: Path) -> None:
    x, y = tied(80)
    paths = []
    for name, values in (("o.parquet", x), ("m.parquet", y)):
        whole = table(values).append_column("NAME", pa.array([str(i) + "x" for i in range(80)]))
        whole = whole.append_column("LONG", pa.array([2**60 + i for i in range(80)], pa.int64()))
        pq.write_table(whole, tmp_path / name)
        paths.append(tmp_path / name)
    made = rv.audit(*paths, cluster=engine, measures=["cm1"], schema=rv.Schema(roles={"V0": "identifier"}))
    assert made.attributes == ("V1", "V2", "V3", "V4")
    assert "not compared: V0, NAME, LONG" in made.notes
    only = rv.audit(*paths, cluster=engine, measures=["spearman_risk"], columns=["V1", "V3"])
    assert only.attributes == ("V1", "V3")


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"by": "V0"}, "by is not for a cluster"),
        ({"target": "V0"}, "target is not for a cluster"),
        ({"subjects": "many"}, "subjects must be a whole number or all"),
        ({"subjects": 1}, "subjects must be 2 or more"),
        ({"settings": {"um": {"basis": "nothing"}}}, "basis must be"),
    ],
)
def test_what_is_not_for_a_cluster_is_refused(how: Any, what: str, engine: Any, tied: Any, write: Any) -> None:
    with pytest.raises(ParameterError, match=what):
        rv.audit(*write(*tied(50), rows=50), cluster=engine, **how)
    assert len(os.listdir(engine.scratch)) == 1


@pytest.mark.parametrize("share", [1.0, 0.7])
def test_the_mapping_of_a_secret_brings_records_together(share: float, engine: Any, tied: Any, write: Any) -> None:
    """As in memory: rows in another order, and some of them left out."""
    first, second = tied(300)
    secret = rv.mask(table(first), rv.Plan.of("sample", share=share).then("record_shuffle"), seed=1).secret
    paths = write(first, second[secret.order], rows=70)
    how: dict[str, Any] = {"measures": ["cm1", "cm2", "permutation_level", "rank_linkage"], "secret": secret}
    made = rv.audit(*paths, cluster=engine, subjects="all", **how)
    memory = rv.audit(table(first), table(second[secret.order]), **how)
    assert (made.mapping, memory.mapping) == ("secret", "secret")
    for name in memory:
        assert made[name] == pytest.approx(memory[name], rel=1e-9), name
    shuffled = rv.audit(*paths, cluster=engine, measures=["permutation_level"], mapping=False)
    assert "permutation_level" in shuffled.not_applicable
    with pytest.raises(PairError, match="the secret maps 5 records"):
        rv.audit(*paths, cluster=engine, secret=rv.mask(table(first[:5]), "record_shuffle", seed=1).secret)


def test_several_masked_tables_are_for_memory(engine: Any, tied: Any, write: Any) -> None:
    original, masked = write(*tied(50), rows=50)
    with pytest.raises(ParameterError, match="one masked table is measured at a time"):
        rv.audit(original, [masked, masked], cluster=engine)
    both = rv.audit(original, [masked, masked], measures=["cm1"])  # tables given by their paths, in memory
    assert both["cm1"] == pytest.approx(rv.audit(original, masked, cluster=engine, measures=["cm1"])["cm1"])


def test_tables_that_do_not_fit_in_memory_go_to_local_workers(
    tied: Any, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = write(*tied(60), rows=30)
    assert not any("cluster" in note for note in rv.audit(*paths, measures=["cm1"]).notes)
    container = tmp_path / "container"  # one that may use 512 MiB
    container.mkdir()
    (container / "memory.max").write_text(f"{2**30}\n")
    (container / "memory.current").write_text(f"{2**29}\n")
    monkeypatch.setattr("rankveil.memory.GROUP", str(container))
    made = rv.audit(*paths, measures=["cm1"], scratch=tmp_path)
    assert "in memory the tables may need 1.0 GiB, and 512 MiB are free" in made.notes[0]
    assert "as with --cluster local" in made.notes[0]
    aside = rv.audit(*paths, measures=["cm1"], mapping=True, target="V0")
    assert "not measured in parts, as target is not for a cluster" in aside.notes[-1]
    assert made["cm1"] == pytest.approx(aside["cm1"], rel=1e-12)


def test_people_in_tables_in_parts_are_not_decided_about(engine: Any, tied: Any, write: Any) -> None:
    paths = write(*tied(50), rows=50)
    made = rv.audit(*paths, cluster=engine, measures=["permutation_level"], fail_if=["red", "amber"])
    assert made.status == "amber"
    assert [(item.id, item.value, item.status) for item in made.headline[:2]] == [
        ("people_found", None, "amber"),
        ("certain", None, "amber"),
    ]
    assert [(gate["value"], gate["ok"]) for gate in made.gates] == [("amber", True), ("amber", False)]
    with pytest.raises(ParameterError, match="knows is not for a cluster"):
        rv.audit(*paths, cluster=engine, knows=["V1"])
