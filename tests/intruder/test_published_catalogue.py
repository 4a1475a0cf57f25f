"""Published files of every method at its default strength: he finds what their likelihood implies, and nothing more.

150 records of the demo, Census and CPS1988 each; with `scripts/test --full` 500 of them, with several seeds. The
originals are sorted by a column, so that the order of rows has something to tell.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import rankveil as rv
from rankveil import catalogue, masking
from rankveil.beside import read_secret
from rankveil.intruder.finding import find_people
from rankveil.plans import Plan, Step
from rankveil.seeds import Seed
from rankveil.table import Table

Tally = Callable[..., None]
Array = NDArray[np.float64]

RECORDS = 150
BY_CHANCE = 1e-7
"""What a check may come to by chance; some thousand are made."""
IDLE = ("identity", "record_shuffle")
"""Methods that leave every value in its record."""
MODULI = (2, 3, 5, 7, 10, 16, 100, 256, 1000)
FLAT = 10
"""Changes that are spread over so many times a modulus tell nothing of what is left after division by it."""
NUMBERS = {
    "demo": ["AGE", "HOURS", "INCOME", "TAX", "SAVINGS"],
    "census": ["AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "PTOTVAL"],
    "peers/rdatasets/CPS1988": ["wage", "education", "experience"],
}
WORDS = {
    "demo": ["SEX", "REGION", "SECTOR", "EDUCATION"],
    "peers/rdatasets/CPS1988": ["ethnicity", "smsa", "region", "parttime"],
}
PRIVATE = {"epsilon": 4.0, "lower": 0.0, "upper": 1e5, "fast": True}
GIVEN: dict[str, dict[str, Any]] = {
    "distance_swap": {"d": 15},
    "dp_microaggregation": PRIVATE,
    "laplace_dp": PRIVATE,
    "recode": {"width": 500.0},
    "sample": {"share": 0.5},
    "top_bottom_code": {"top_percent": 10.0, "bottom_percent": 10.0},
}
"""What methods must be told to change something; all others run as they are."""


@dataclass(frozen=True)
class Published:
    """A release as it lies on a disk, and what the protector knows of it."""

    original: pd.DataFrame
    data: pd.DataFrame
    manifest: dict[str, Any]
    order: NDArray[np.int64]
    """The original row of every released one."""


def plan_of(name: str, original: pd.DataFrame) -> Plan:
    """The method alone, or after noise: in all columns before one that is for masked values, in one where it is idle.

    A plan that changes nothing is never written, so that one which leaves every value in its record has a column noisy.
    """
    entry, columns = catalogue.get_method(name), list(original)
    chosen = None if entry.works_on == "records" else columns[:1] if entry.works_on == "names" else columns
    step = Step(name, GIVEN.get(name, {}), columns=chosen)
    idle = name in IDLE or (name == "missing_swap" and not original.isna().any(axis=None))
    if entry.post or idle:
        return Plan((Step("additive_noise", {}, columns=columns if entry.post else columns[:1]), step))
    return Plan((step,))


def published(original: pd.DataFrame, plan: Plan, folder: Path, seed: int = 0, **more: Any) -> Published:
    """Written as CSV, and read from there with all that lies beside it."""
    rv.mask(original, plan, seed=f"{seed + 1:032x}").write(str(folder / "out.csv"), **more)
    secret = read_secret(str(folder / "out.csv.secret.json"))
    data = pd.read_csv(folder / "out.csv")
    order = np.arange(len(data)) if secret.order is None else np.asarray(secret.order, dtype=np.int64)
    return Published(original, data, json.loads((folder / "out.csv.manifest.json").read_text("utf-8")), order)


def faults(made: Published) -> list[str]:
    """What somebody finds in a published file beyond what its likelihood implies."""
    return [*_beyond_the_likelihood(made), *_in_the_order(made), *_in_low_digits(made), *_in_pairs(made)]


def _beyond_the_likelihood(made: Published) -> list[str]:
    found = find_people(
        Table(made.original), Table(made.data), manifest=made.manifest, truth=made.order, ordered=True, seed=500_000
    )
    told = []
    spread = np.sqrt(np.sum(found.probability * (1 - found.probability)))
    assert found.found is not None
    if abs(found.found - found.expected) > 4 * spread + 2:
        told.append(f"likelihood: {found.found:.1f} found where it implies {found.expected:.1f}")
    alone, *others = found.evidence
    for each in others:
        if each.found or each.certain:
            told.append(f"{each.id}: {each.found} found by it alone")
    if alone.found != found.share or alone.certain != found.certain.sum():
        told.append("all evidence together finds others than the likelihood")
    return told


def _in_the_order(made: Published) -> list[str]:
    """Whether the place of a released row tells whose it is."""
    rows = np.arange(made.order.size)
    same = int(np.sum(made.order == rows))
    related = stats.spearmanr(made.order, rows).statistic * np.sqrt(rows.size - 1)
    chance = stats.poisson.sf(same - 1, 1), 2 * stats.norm.sf(abs(related))
    return [f"order: {same} rows in their places"] if min(chance) < BY_CHANCE else []


def _in_low_digits(made: Published) -> list[str]:
    """Whether the last digits of released numbers are related to those of the originals, where changes are wide."""
    told = []
    for column in made.manifest["columns"]:
        name, step = column["name"], column.get("grid")
        if step is None or column["dropped"]:
            continue
        x, y = made.original[name].to_numpy(float)[made.order], made.data[name].to_numpy(float)
        there = ~np.isnan(x) & ~np.isnan(y) & (x != y)  # what stayed is no matter of digits
        x, y = x[there], y[there]
        _, alone = np.unique(y, return_index=True)  # groups that share a value share its draws
        x, y = x[alone], y[alone]
        if x.size < RECORDS / 3:
            continue
        for modulus in MODULI:
            if np.std(y - x) < FLAT * modulus * step or np.median(np.abs(y - x)) < FLAT * modulus * step:
                continue
            left = np.mod(np.rint(y / step) - np.rint(x / step), modulus)
            counts = np.bincount(left.astype(int), minlength=modulus)
            few = x.size < 5 * modulus
            chance = (
                stats.binom.sf(counts.max() - 1, x.size, 1 / modulus) * modulus
                if few
                else stats.chisquare(counts).pvalue
            )
            if chance < BY_CHANCE:
                told.append(f"low digits: {name} modulo {modulus}")
    return told


def _in_pairs(made: Published) -> list[str]:
    """Whether the record that has a person's value mostly is the one whose value the person got."""
    held, checked = 0, 0
    for name in made.data:
        x, y = made.original[name], made.data[name]
        if Counter(x.dropna()) != Counter(y.dropna()):
            continue
        once = x.value_counts()
        owner = {value: row for row, value in enumerate(x) if once.get(value) == 1}
        holder = {value: row for row, value in enumerate(y) if value in owner}
        for row, person in enumerate(made.order):
            mine, got = x.iloc[person], y.iloc[row]
            if mine != got and mine in owner and got in owner:
                checked += 1
                held += made.order[holder[mine]] == owner[got]
    return [f"pairs: {held} of {checked} values"] if checked > 10 and held > checked / 2 else []


@pytest.fixture(scope="session")
def sources(demo: pd.DataFrame, reference_data: Callable[[str], Path]) -> Callable[[str, int], pd.DataFrame]:
    """So many records of a table, sorted by its first column."""

    def find(name: str, records: int) -> pd.DataFrame:
        whole = demo if name == "demo" else pd.read_csv(reference_data(name))
        chosen = whole.sample(records, random_state=1)[[*NUMBERS[name], *WORDS.get(name, [])]]
        for word in WORDS.get(name, []):
            chosen[word] = chosen[word].astype(object)
        return chosen.sort_values(NUMBERS[name][0]).reset_index(drop=True)

    return find


def columns_for(name: str, table: str) -> list[str]:
    """What is published of a table: columns that a method works on, so that none that it leaves tells who is who."""
    return NUMBERS[table] if "numeric" in catalogue.get_method(name).kinds else WORDS.get(table, [])


EVERY = [(name, table) for name in sorted(catalogue.methods()) for table in NUMBERS if columns_for(name, table)]


def test_every_method_is_tried() -> None:
    assert {name for name, _ in EVERY} == set(catalogue.methods())


@pytest.mark.parametrize(("name", "table"), EVERY)
def test_a_published_file_tells_what_its_likelihood_implies(
    name: str, table: str, sources: Callable[[str, int], pd.DataFrame], tmp_path: Path, tally: Tally
) -> None:
    original = sources(table, RECORDS)[columns_for(name, table)]
    made = published(original, plan_of(name, original), tmp_path)
    assert made.manifest["row_order"] == "shuffled"
    assert faults(made) == []
    tally("published files searched for their order, low digits and pairs")


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "table"), EVERY)
def test_larger_ones_with_several_seeds_do_not_either(
    name: str, table: str, sources: Callable[[str, int], pd.DataFrame], tmp_path: Path, tally: Tally
) -> None:
    original = sources(table, 500)[columns_for(name, table)]
    for seed in range(1, 4):
        assert faults(published(original, plan_of(name, original), tmp_path, seed)) == [], seed
        tally("published files searched for their order, low digits and pairs")


# -- the same search finds what is there


def found_in(made: Published) -> set[str]:
    return {told.partition(":")[0] for told in faults(made)}


@pytest.fixture
def open_(sources: Callable[[str, int], pd.DataFrame], tmp_path: Path) -> Callable[..., Published]:
    """A release of the demo's numbers."""

    def make(name: str, **more: Any) -> Published:
        plan = Plan((Step(name, more.pop("given", {}), columns=NUMBERS["demo"]),))
        return published(sources("demo", RECORDS)[NUMBERS["demo"]], plan, tmp_path, **more)

    return make


def test_an_order_that_was_kept_is_found(open_: Callable[..., Published]) -> None:
    found = found_in(open_("copula_swap", keep_order=True))
    assert {"order", "row_order"} <= found


def test_pairs_are_found(open_: Callable[..., Published]) -> None:
    found = found_in(open_("rank_swap", given={"scheme": "pairs", "p": 20.0}))
    assert {"structure", "pairs"} <= found


def test_numbers_without_a_grid_are_found_by_their_low_bits(open_: Callable[..., Published]) -> None:
    made = open_("additive_noise", given={"alpha": 5.0})
    drawn = masking.apply(Table(made.original), Plan.of("additive_noise", alpha=5.0), seed=Seed.of(1), grid=False)
    data = Table(made.original).replaced(drawn.values)[0].iloc[made.order].reset_index(drop=True)
    columns = [{key: value for key, value in each.items() if key != "grid"} for each in made.manifest["columns"]]
    manifest = {**made.manifest, "columns": columns}
    assert "low_bits" in found_in(replace(made, data=data, manifest=manifest))


def test_last_digits_that_survive_are_found(open_: Callable[..., Published]) -> None:
    """Noise in whole tens leaves every last digit as it was."""
    made = open_("additive_noise", given={"alpha": 1.0})
    x = made.original["INCOME"].iloc[made.order].reset_index(drop=True)
    tens = x + 10 * np.rint((made.data["INCOME"] - x) / 10)
    assert "low digits" in found_in(replace(made, data=made.data.assign(INCOME=tens)))


def test_weaker_noise_than_the_manifest_says_is_found(open_: Callable[..., Published]) -> None:
    made = open_("additive_noise", given={"alpha": 0.3})
    told = [{**each, "parameters": {"alpha": 2.0}} for each in made.manifest["steps"][:1]]
    manifest = {**made.manifest, "steps": [*told, *made.manifest["steps"][1:]]}
    assert "likelihood" in found_in(replace(made, manifest=manifest))
