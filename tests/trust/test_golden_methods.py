"""Every method gives, for given draws, what it gave before: with other versions of numpy, scipy and pandas too.

The draws are given, not made from a seed: a stand-in stream hands out bits of SHAKE-256, which are the same wherever
there is Python. Columns whose values were only moved, chosen or exchanged are kept as digests. Those that were computed
are kept as numbers and compared to a part in 10^12, for linear algebra and functions like exp and ndtri may differ in
their last digits from one processor to the next. After a change of results that is meant:

    .venv/bin/python tests/trust/test_golden_methods.py

That workers, chunks and repetition change nothing is tried in tests/contract/test_methods.py (the same seed twice,
threads), tests/partitions/test_masking.py (all methods and plans in several parts, blocks included) and
tests/cluster/test_masks.py (on one and two workers).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import rankveil as rv
from rankveil import catalogue, masking
from rankveil.seeds import Seed, Stream

GOLDEN = Path(__file__).parent / "golden" / "methods.json"
RECORDS = 40
NUMBERS = ["AGE", "INCOME", "DEBT"]

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "distance_swap": ("distance_swap", {"d": 5}),
    "dp_microaggregation": ("dp_microaggregation", {"epsilon": 1.0, "lower": 0, "upper": 1000, "fast": True}),
    "drop": ("drop", {"columns": ["GRADE"]}),
    "laplace_dp": ("laplace_dp", {"epsilon": 1.0, "lower": 0, "upper": 1000, "fast": True}),
    "mdav of categories": ("mdav", {"k": 3, "columns": ["AGE", "TOWN", "GRADE"]}),
    "mdav in order": ("mdav", {"k": 4, "by": "first_component", "columns": NUMBERS}),
    "mdav in blocks": ("mdav", {"k": 3, "kd_blocks": 3, "columns": NUMBERS}),
    "missing_swap": ("missing_swap", {"columns": ["GRADE", "DEBT"]}),
    "pram": ("pram", {"p": 0.4, "columns": ["TOWN", "GRADE"]}),
    "pram, invariant": ("pram", {"p": 0.4, "invariant": True, "columns": ["TOWN", "GRADE"]}),
    "pseudonymise": ("pseudonymise", {"columns": ["AGE", "TOWN"]}),
    "randomized_response": ("randomized_response", {"columns": ["TOWN", "GRADE"]}),
    "rank_swap": ("rank_swap", {"p": 20.0}),
    "rank_swap in a window": ("rank_swap", {"p": 20.0, "scheme": "window"}),
    "rank_swap in pairs": ("rank_swap", {"p": 20.0, "scheme": "pairs"}),
    "recode": ("recode", {"level.TOWN": 1, "width.AGE": 10.0}),
    "sample": ("sample", {"share": 0.4}),
    "suppress": ("suppress", {"k": 3, "columns": ["TOWN", "GRADE"]}),
    "top_bottom_code": ("top_bottom_code", {"top_percent": 10.0, "columns": ["AGE", "INCOME"]}),
}
"""What methods must be told, and ways in which one works that differ; all others run as they are."""


def words(name: str, many: int) -> NDArray[np.uint64]:
    """Given bits, 64 in a word; the first of them are the same however many are asked for."""
    return np.frombuffer(hashlib.shake_256(name.encode()).digest(8 * many), "<u8").astype(np.uint64)


class GivenStream(Stream):
    """A stream with given bits: call c, row i has word i of the call."""

    __slots__ = ("_name",)

    def __init__(self, name: str, *, rows: NDArray[np.intp] | None = None, start: int = 0) -> None:
        super().__init__(0, rows=rows, start=start)
        self._name = name

    def at(self, rows: NDArray[np.intp] | None = None, *, start: int = 0) -> GivenStream:
        return GivenStream(self._name, rows=rows, start=start)

    def bits(self, size: int) -> NDArray[np.uint64]:
        need = size if self._rows is None else (int(self._rows[-1]) + 1 if size else 0)
        found = words(f"{self._name}, call {self._calls}", self._start + need)[self._start :]
        self._calls += 1
        return found if self._rows is None else found[self._rows]


class GivenSeed(Seed):
    """A seed all of whose streams have given bits."""

    def __init__(self) -> None:
        super().__init__(bytes(16))

    def stream(self, *name: str | int) -> Stream:
        return GivenStream("/".join(map(str, name)))

    def derived(self, purpose: str, content: bytes) -> Seed:
        return self  # the streams of a release are the given ones, whatever is masked


def people() -> pa.Table:
    """A table made by whole numbers and divisions by powers of two: the same everywhere, to the last bit."""
    age = words("age", RECORDS) % np.uint64(60) + np.uint64(18)
    skewed = (words("income", RECORDS) % np.uint64(64) + np.uint64(1)) ** np.uint64(2)
    income = (skewed + age * np.uint64(8)).astype(np.float64) / 8
    debt = (words("debt", RECORDS) % np.uint64(4000)).astype(np.float64) / 16 + income / 4
    towns, grades = np.array(["na", "nb", "sa", "sb", "sc"]), np.array(["low", "middle", "high"])
    return pa.table(
        {
            "AGE": age.astype(np.int64),
            "INCOME": income,
            "DEBT": pa.array(debt, mask=words("no debt", RECORDS) % np.uint64(8) == 0),
            "TOWN": towns[words("town", RECORDS) % np.uint64(5)],
            "GRADE": pa.array(grades[words("grade", RECORDS) % np.uint64(3)], mask=words("x", RECORDS) % 9 == 0),
        }
    )


def schema() -> rv.Schema:
    places = [(place, place[0], "*") for place in ("na", "nb", "sa", "sb", "sc")]
    return rv.Schema(kinds={"GRADE": "ordinal"}, hierarchies={"TOWN": rv.Hierarchy(places)})


def released(case: str) -> pa.Table:
    """The release of a case; a post-step follows noise."""
    name, given = CASES.get(case, (case, {}))
    plan = rv.Plan.of(name, **given)
    if catalogue.get_method(name).post:
        plan = rv.Plan.of("additive_noise", alpha=0.5, columns=["INCOME"]).then(name, columns=["INCOME"])
    elif plan.steps[0].columns is None and masking.masks(plan.steps[0]):  # what it takes, and no step besides
        columns = masking.columns_of(plan.steps[0], rv.Table(people(), schema=schema()))
        plan = rv.Plan.of(name, **{**given, "columns": columns})
    data: pa.Table = rv.mask(people(), plan, seed=GivenSeed(), schema=schema()).data
    return data


def kept(data: pa.Table) -> dict[str, Any]:
    """What is kept of a release: for each column a digest, or the numbers where new ones were computed."""
    original, found = people(), {}
    for name in data.column_names:
        cells = data[name].to_pylist()
        computed = pa.types.is_floating(data[name].type) and not set(cells) <= set(original[name].to_pylist())
        found[name] = cells if computed else hashlib.sha256(json.dumps(cells).encode()).hexdigest()
    return found


def every_case() -> list[str]:
    return sorted({*catalogue.methods(), *CASES})


def test_every_method_has_its_golden_release() -> None:
    assert sorted(json.loads(GOLDEN.read_text())) == every_case()


@pytest.mark.parametrize("case", every_case())
def test_given_draws_give_the_same_release_as_ever(case: str, tally: Callable[..., None]) -> None:
    golden, now = json.loads(GOLDEN.read_text())[case], kept(released(case))
    assert list(now) == list(golden)
    for name, expected in golden.items():
        if isinstance(expected, str):
            assert now[name] == expected, name
        else:
            assert [cell is None for cell in now[name]] == [cell is None for cell in expected], name
            found, wanted = (np.array([cell for cell in each if cell is not None]) for each in (now[name], expected))
            assert np.allclose(found, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max()), name
    tally("methods against their golden releases")


if __name__ == "__main__":
    made = {case: kept(released(case)) for case in every_case()}
    GOLDEN.write_text(json.dumps(made).replace("}, ", "},\n") + "\n")
