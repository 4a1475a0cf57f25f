"""One seed in several releases: they share no draw, so that none of them tells what the others hide."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import rankveil as rv
from rankveil.cli import main
from rankveil.plans import Plan
from rankveil.seeds import CommonSeed

Tally = Callable[..., None]
Array = NDArray[np.float64]

HEX = "3f" * 32
ROUNDED = 1.5
"""How far 2 y1 - y2 is off at most where both are rounded to whole numbers, as incomes are."""
ALIKE = 4.9
"""Standard errors that a correlation of independent draws goes beyond once in a million pairs."""


def survey(records: int = 1500) -> pa.Table:
    rng = np.random.default_rng(11)
    income = np.round(rng.lognormal(10, 0.6, records))
    return pa.table(
        {"INCOME": income, "DEBT": np.round(income * rng.random(records)), "AGE": rng.normal(50, 9, records)}
    )


def pad(data: pa.Table, seed: Any) -> int:
    """How many incomes 2 y1 - y2 gives back, of noise 0.5 and noise 1 with one seed."""
    half, whole = (
        rv.mask(data, "additive_noise", alpha=alpha, seed=seed).data["INCOME"].to_numpy() for alpha in (0.5, 1.0)
    )
    return int(np.sum(np.abs(2 * half - whole - data["INCOME"].to_numpy()) <= ROUNDED))


def test_the_difference_of_two_releases_with_one_seed_gives_no_incomes() -> None:
    data = survey()
    assert pad(data, CommonSeed.of(HEX)) == len(data), "with the same draws it gives all of them"
    assert pad(data, HEX) < 5


def test_the_same_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(survey(), "people.parquet")
    Path("seed").write_text(HEX)
    masked = []
    for alpha in ("0.5", "1"):
        more = ["--method", "additive_noise", "--set", f"alpha={alpha}", "--seed-file", "seed"]
        assert main(["mask", "people.parquet", "-o", f"{alpha}.parquet", *more]) == 0
        released = pq.read_table(f"{alpha}.parquet")["INCOME"].to_numpy()
        mapping = json.loads(Path(f"{alpha}.parquet.secret.json").read_text())["mapping"]
        rows = np.arange(released.size) if mapping is None else np.array(mapping) - 1
        masked.append(released[np.argsort(rows)])
    found = np.abs(2 * masked[0] - masked[1] - survey()["INCOME"].to_numpy()) <= ROUNDED
    assert found.sum() < 5


def noise(release: Any, data: pa.Table) -> Array:
    """The draws for the incomes, in standard deviations, from all that is known of the original."""
    made: Array = release.data["INCOME"].to_numpy() - data["INCOME"].to_numpy()
    return made / made.std()


def variants() -> dict[str, tuple[pa.Table, dict[str, Any]]]:
    """Releases that differ in one thing each."""
    data, plan = survey(), Plan.of("additive_noise", alpha=0.5)
    changed = data.set_column(0, "INCOME", pa.array([1.0, *data["INCOME"].to_pylist()[1:]]))
    made: dict[str, tuple[pa.Table, dict[str, Any]]] = {
        "as it is": (data, {"method": plan}),
        "another column": (data, {"method": Plan.of("additive_noise", alpha=0.5, columns=["INCOME"])}),
        "columns in another order": (data.select(["AGE", "INCOME", "DEBT"]), {"method": plan}),
        "a column less": (data.select(["INCOME", "AGE"]), {"method": plan}),
        "a cell": (changed, {"method": plan}),
        "two rows": (data.take([1, 0, *range(2, len(data))]), {"method": plan}),
        "a replicate": (data, {"method": plan, "replicate": 1}),
        "a step more": (data, {"method": plan.then("clip")}),
        "a role": (data, {"method": plan, "schema": rv.Schema(roles={"AGE": "confidential"})}),
        "one parameter of one column": (
            data,
            {"method": Plan.of("additive_noise", **{"alpha": 0.5, "alpha.AGE": 1.0})},
        ),
    }
    made |= {f"alpha {k}": (data, {"method": Plan.of("additive_noise", alpha=k / 10)}) for k in range(1, 5)}
    made |= {f"gamma {k}": (data, {"method": Plan.of("correlated_noise", gamma=k / 10)}) for k in range(1, 5)}
    return made


def shared(pairs: list[tuple[str, str]], seed: Any) -> list[tuple[str, str]]:
    """The pairs of releases whose draws are alike."""
    drawn = {}
    for name, (data, how) in variants().items():
        if any(name in pair for pair in pairs):
            drawn[name] = noise(rv.mask(data, seed=seed, **how), data)
    limit = ALIKE / np.sqrt(len(survey()))
    return [(a, b) for a, b in pairs if abs(np.corrcoef(drawn[a], drawn[b])[0, 1]) > limit]


def test_releases_that_differ_in_anything_share_no_draw(tally: Tally) -> None:
    pairs = [("as it is", name) for name in variants() if name != "as it is"]
    found = shared(pairs, HEX)
    tally("pairs of releases with one seed that were compared", len(pairs))
    tally("pairs of releases with one seed that share draws", len(found))
    assert found == []
    alike = shared([("as it is", "alpha 3"), ("as it is", "a step more")], CommonSeed.of(HEX))
    assert len(alike) == 2, "the search finds draws that are shared"


@pytest.mark.thorough
def test_no_two_of_them_share_any_with_many_seeds(tally: Tally) -> None:
    pairs = list(combinations(variants(), 2))
    found = [pair for k in range(20) for pair in shared(pairs, f"{k:064x}")]
    tally("pairs of releases with one seed that were compared", 20 * len(pairs))
    tally("pairs of releases with one seed that share draws", len(found))
    assert len(found) <= 1, found  # one pair in a million goes beyond the limit by chance


def test_the_same_of_everything_is_the_same_release() -> None:
    data = survey(200)
    first = rv.mask(data, "additive_noise", seed=HEX)
    again = [
        rv.mask(data, Plan.of("additive_noise"), seed=HEX),
        rv.mask(data, Plan.of("additive_noise", alpha=0.1), seed=first.secret.seed),  # the default
        rv.mask(data.to_pandas(), "additive_noise", seed=HEX),
        rv.mask(pa.concat_tables([data.slice(0, 7), data.slice(7)]), "additive_noise", seed=HEX),
    ]
    for release in again:
        assert np.array_equal(np.asarray(release.data["INCOME"]), np.asarray(first.data["INCOME"]))
        assert release.manifest["digest"] == first.manifest["digest"]


def test_a_shuffle_at_the_end_moves_records_and_changes_no_value() -> None:
    data = survey(200)
    plain = rv.mask(data, "additive_noise", seed=HEX)
    moved = rv.mask(data, Plan.of("additive_noise").then("record_shuffle"), seed=HEX)
    assert moved.data.equals(plain.data.take(pa.array(moved.secret.order)))
    assert moved.manifest["digest"] == plain.manifest["digest"]
