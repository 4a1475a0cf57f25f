"""Releases whose truth is known, and attacks on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil.intruder.finding import Finding, find_people
from rankveil.plans import Plan
from rankveil.table import Table


def as_they_look(table: pd.DataFrame) -> rv.Schema:
    """All columns are confidential, and numbers are numbers, however few there are of them."""
    numbers = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    return rv.Schema(kinds=dict.fromkeys(numbers, "numeric"), roles=dict.fromkeys(map(str, table), "confidential"))


class Masked:
    """A release with its rows shuffled, its manifest, and the original row of every released one."""

    def __init__(self, original: pd.DataFrame, plan: str | Plan, seed: int, parameters: dict[str, Any]) -> None:
        schema = as_they_look(original)
        release = rv.mask(original, plan, seed=seed, schema=schema, **parameters)
        order = np.arange(len(release.data)) if release.secret.order is None else release.secret.order
        rows = np.random.default_rng(1000 + seed).permutation(len(release.data))
        self.original = original
        self.data = release.data.iloc[rows].reset_index(drop=True)
        self.manifest = release.manifest.content
        self.truth = order[rows].astype(np.int64)

    def attacked(self, *, manifest: bool = True, **more: Any) -> Finding:
        """With the manifest or without, by an intruder whose draws have nothing to do with the release's."""
        given = self.manifest if manifest else None
        table, original = (Table(data, schema=as_they_look(data)) for data in (self.data, self.original))
        return find_people(original, table, manifest=given, truth=self.truth, **{"seed": 500_000, **more})


@pytest.fixture(scope="session")
def masked() -> Callable[..., Masked]:
    """A release of a table by a method or a plan."""

    def make(original: pd.DataFrame, plan: str | Plan, *, seed: int = 1, **parameters: Any) -> Masked:
        return Masked(original, plan, seed, parameters)

    return make


@pytest.fixture(scope="session")
def census(reference_data: Callable[[str], Any]) -> Callable[[int], pd.DataFrame]:
    """The first m columns of Census."""
    table = pd.read_csv(reference_data("census"))
    return lambda m: table.iloc[:, :m]


@pytest.fixture(scope="session")
def demo() -> pd.DataFrame:
    """The demo's people, without their names."""
    return rv.datasets.demo().to_pandas().drop(columns="PERSON")


@pytest.fixture(scope="session")
def people() -> Callable[..., pd.DataFrame]:
    """Correlated lognormal columns."""

    def make(records: int, columns: Sequence[str] = ("A", "B", "C", "D"), seed: int = 0) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        common = rng.normal(size=(records, 1))
        made = np.exp(0.5 * common + 0.7 * rng.normal(size=(records, len(columns)))) * 1000
        return pd.DataFrame(np.round(made), columns=list(columns))

    return make
