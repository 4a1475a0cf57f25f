"""Measures of partitioned tables are those of tables in memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil import catalogue
from rankveil.errors import NotApplicableError, PairError, ParameterError, TableError
from rankveil.measuring import Measuring
from rankveil.pairs import Pair
from rankveil.partitions.layout import Sizes
from rankveil.partitions.measured import measured
from rankveil.partitions.measures import Findings, alphas_of, ask_order
from rankveil.partitions.stages import Job, ranked
from rankveil.seeds import Seed

ASKED = (
    "cm1",
    "cm2",
    "mutual_information",
    "um",
    "spearman_risk",
    "interval_disclosure",
    "power_mean",
    "power_mean_loss",
    "permutation_level",
    "il",
    "il1",
    "il1s",
    "il2",
    "il3",
    "il4",
    "il5",
    "loss_values_mse",
    "loss_values_mae",
    "loss_values_mv",
    "pil",
    "pil_mean",
    "pil_variance",
    "pil_covariance",
    "pil_correlation",
    "pil_quantile",
)
EXACT = ("cm1", "cm2", "mutual_information", "um", "spearman_risk", "permutation_level")
"""From whole numbers alone: the same bits as in memory."""
TINY = Sizes(interval=8, span=25)


def in_memory(x: Any, y: Any, settings_: Mapping[str, Any], seed: int) -> tuple[dict[str, Any], dict[str, str]]:
    rows = np.arange(len(x))
    names = tuple(f"V{j}" for j in range(x.shape[1]))
    pair = Pair(names, x, y, rows, rows, "rows", Seed.of(seed), [])
    return Measuring(pair, settings=settings_).all(ASKED)


def on_disk(job: Any, each: Any, settings_: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    columns = ranked(job, each, ask=partial(ask_order, settings_))
    found = measured(job, each, columns, alphas=alphas_of(settings_))
    return Findings(job.names, columns, found, settings=settings_).all(ASKED)


def same(found: Any, wanted: Any, *, near: float, path: str) -> None:
    """Details are alike: numbers near each other, everything else the same."""
    if isinstance(wanted, Mapping):
        assert found.keys() == wanted.keys(), path
        for key in wanted:
            same(found[key], wanted[key], near=near, path=f"{path}.{key}")
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted), path
        for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
            same(a, b, near=near, path=f"{path}[{k}]")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=near, abs=near), path
    else:
        assert found == wanted, path


def agree(job: Any, each: Any, x: Any, y: Any, settings_: Mapping[str, Any], *, seed: int = 0) -> None:
    found, not_found = on_disk(job, each, settings_)
    wanted, not_wanted = in_memory(x, y, settings_, seed)
    assert not_found == not_wanted
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        near = 0.0 if name in EXACT else 1e-9 if name.startswith(("il", "pil", "loss")) else 1e-12
        assert found[name].value == pytest.approx(value.value, rel=near, abs=near), name
        assert found[name].notes == value.notes, name
        pairs = "per_pair" in value.details  # pairs of the same loss may come in another order
        if not pairs:
            same(found[name].details, value.details, near=near, path=name)


def mixed(n: int, seed: int) -> tuple[Any, Any]:
    """A column with rounding, one with zeros, one of few values, one without ties."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)) / 2)
    y = x + 0.5 * rng.normal(size=x.shape)
    x[:, 0], y[:, 0] = x[:, 0].round(1), y[:, 0].round(1)
    y[x[:, 1] < 0.8, 1], x[x[:, 1] < 0.8, 1] = 0.0, 0.0
    x[:, 2], y[:, 2] = np.floor(4 * x[:, 2]), np.floor(y[:, 2])
    return np.asfortranarray(x), np.asfortranarray(y)


@settings(deadline=None, max_examples=15)
@given(
    n=st.integers(12, 90),
    seed=st.integers(0, 10_000),
    shares=st.lists(st.floats(0, 1), max_size=6),
    sizes=st.sampled_from([TINY, Sizes(interval=2, span=7), Sizes(interval=64, span=64)]),
)
def test_measures_of_any_partitioning(
    n: int, seed: int, shares: list[float], sizes: Sizes, partitioned: Any, each: Any
) -> None:
    x, y = mixed(n, seed)
    cuts = [int(share * n) for share in shares]
    with partitioned(x, y, cuts=cuts, sizes=sizes, seed=seed) as job:
        agree(job, each, x, y, {}, seed=seed)


@pytest.mark.parametrize("cuts", [[], [10_000], [1, 7_000, 7_001, 20_000, 29_999, 30_000]])
def test_measures_of_many_records(cuts: list[int], partitioned: Any, each: Any) -> None:
    x, y = mixed(30_000, 1)
    with partitioned(x, y, cuts=cuts, sizes=Sizes(interval=5_500, span=12_000)) as job:
        agree(job, each, x, y, {})


def test_results_of_ranks_do_not_depend_on_the_partitioning_at_all(partitioned: Any, each: Any) -> None:
    x, y = mixed(500, 3)
    seen = []
    for cuts in ([], [250], [3, 70, 71, 400]):
        with partitioned(x, y, cuts=cuts, sizes=Sizes(interval=50, span=150)) as job:
            found, _ = on_disk(job, each, {})
            seen.append([found[name].value for name in (*EXACT, "interval_disclosure")])
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.full((30, 2), 4.0), np.arange(60.0).reshape(30, 2)),
        (np.arange(60.0).reshape(30, 2), np.full((30, 2), 4.0)),
        (np.column_stack((np.arange(30.0), np.full(30, 1.0))), np.column_stack((np.arange(30.0), np.arange(30.0) % 3))),
        (np.arange(60.0).reshape(30, 2), np.arange(60.0).reshape(30, 2)),
        (np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]])),
        (np.array([[0.0, 1e300], [1e300, 0.0], [2e300, 5.0]]), np.array([[1.0, 1e300], [1e300, 1.0], [1e300, 5.0]])),
        (np.arange(20.0)[:, None], np.arange(20.0)[::-1, None]),
    ],
    ids=["original constant", "masked constant", "one constant", "equal", "one record", "huge", "one column"],
)
def test_tables_at_the_edge(x: Any, y: Any, partitioned: Any, each: Any) -> None:
    x, y = np.asfortranarray(x), np.asfortranarray(y)
    with partitioned(x, y, cuts=[len(x) // 2], sizes=TINY) as job:
        agree(job, each, x, y, {})


def test_parameters_of_measures(partitioned: Any, each: Any) -> None:
    x, y = mixed(80, 5)
    asked = {"power_mean": {"alpha": 0.5}, "power_mean_loss": {"alpha": 30.0}, "um": {"basis": "ranks"}}
    assert alphas_of(asked) == (0.5, 30.0)
    with partitioned(x, y, cuts=[30], sizes=TINY) as job:
        agree(job, each, x, y, asked)


def test_what_needs_all_records_says_so(partitioned: Any, each: Any) -> None:
    x, y = mixed(60, 5)
    with partitioned(x, y, sizes=TINY) as job:
        columns = ranked(job, each)
        found = Findings(job.names, columns, measured(job, each, columns), settings={"um": {"basis": "values"}})
    assert all(found.can(name) for name in ASKED)
    assert not any(found.can(name) for name in ("cm3", "rank_linkage", "emd", "propensity", "k_anonymity"))
    with pytest.raises(ParameterError, match="emd is not a measure of tables larger than memory"):
        found.value("emd")
    with pytest.raises(NotApplicableError, match="larger than memory"):
        found.value("um")
    with pytest.raises(NotApplicableError, match="more of the sorted column than was kept"):
        found.value("pil_quantile")  # nobody asked the sorted columns in time
    with pytest.raises(NotApplicableError, match="pil_quantile does not apply"):
        found.value("pil")


def test_a_kernel_density_needs_the_whole_column(partitioned: Any, each: Any) -> None:
    x, y = mixed(60, 5)
    with (
        partitioned(x, y, sizes=TINY) as job,
        pytest.raises(NotApplicableError, match="larger than memory"),
    ):
        ranked(job, each, ask=partial(ask_order, {"pil_quantile": {"density": "kernel"}}))


def test_missing_values_are_named(partitioned: Any, each: Any) -> None:
    x, y = mixed(60, 5)
    y[41, 2] = np.nan
    with (
        partitioned(x, y, cuts=[20, 40], sizes=TINY) as job,
        pytest.raises(TableError, match=r"y: column V2 has missing values \(row 42\)"),
    ):
        ranked(job, each)


def test_a_job_is_checked_before_it_begins(partitioned: Any, tmp_path: Any, each: Any) -> None:
    x, y = mixed(60, 5)
    with partitioned(x, y, cuts=[20, 40]) as given_:
        original, masked, scratch = given_.original.path, given_.masked.path, given_.scratch.folder
        job = Job.of(original, masked, scratch=scratch, seed=Seed.of(0), columns=["V3", "V0"], rows=25)
        assert job.bounds == (0, 20, 40, 60)
        assert job.sizes == Sizes()
        assert [column.reversed for column in ranked(job, each)] == [False, True]
        with pytest.raises(TableError, match="has no column V9"):
            Job.of(original, masked, scratch=scratch, seed=Seed.of(0), columns=["V9"])
        with pytest.raises(PairError, match=r"60 records and .* 20"):
            Job.of(original, given_.original.files[0].path, scratch=scratch, seed=Seed.of(0))


def test_with_many_partitions_intervals_are_wider() -> None:
    assert Sizes.of(80) == Sizes()
    assert Sizes.of(1000) == Sizes(interval=1000 * 512)
    assert Sizes.of(8000) == Sizes(interval=8000 * 512, span=8000 * 512)
    assert [Sizes().every(partitions) for partitions in (1, 10, 1000)] == [2**16, 6553, 1024]


def test_every_measure_that_can_be_computed_is_known() -> None:
    assert set(ASKED) <= set(catalogue.measures())
