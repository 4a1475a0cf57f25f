"""No measure depends on where the calendar begins, or on the unit in which dates and times are kept."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.catalogue import measures

N = 60
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
SHIFT = 10_000


def numbers() -> tuple[dict[str, Any], dict[str, Any]]:
    """An original and a masked table of days, seconds and plain numbers."""
    rng = np.random.default_rng(3)
    x = {"DAY": rng.integers(-9_000, 9_000, N), "SECOND": rng.integers(10**6, 10**8, N), "X": rng.integers(1, 99, N)}
    x["X"] = (x["DAY"] + 9_000) // 200 + rng.integers(1, 9, N)  # something to explain
    y = {"DAY": x["DAY"] + rng.integers(-400, 400, N), "SECOND": x["SECOND"] + rng.integers(-(10**6), 10**6, N)}
    return x, {**y, "X": x["X"] + rng.integers(-3, 4, N)}


def framed(columns: dict[str, Any], *, unit: str = "s", shift: int = 0) -> pa.Table:
    """Dates and moments moved by so many days, times of day as they are; moments and times in a unit."""
    seconds = columns["SECOND"] * UNITS[unit]
    times = seconds % (86_400 * UNITS[unit])
    day = pa.time64(unit) if unit in ("us", "ns") else pa.time32(unit)
    return pa.table(
        {
            "DAY": pa.array((columns["DAY"] + shift).astype(np.int32)).cast(pa.date32()),
            "WHEN": pa.array(seconds + shift * 86_400 * UNITS[unit]).cast(pa.timestamp(unit)),
            "HOUR": pa.array(times if day.bit_width == 64 else times.astype(np.int32)).cast(day),
            "X": pa.array(columns["X"].astype(float)),
            "G": pa.array([("a", "b", "c")[int(each) % 3] for each in columns["X"]]),
            "H": pa.array([("d", "e")[int(each) % 2] for each in columns["DAY"]]),
            "W": pa.array(1.0 + np.arange(N) % 7),
        }
    )


QUASI = dict.fromkeys(("DAY", "G", "H"), "quasi-identifier")
SCHEMA = rv.Schema(roles={**QUASI, "WHEN": "confidential", "W": "weight"})


TARGETED = [name for name, each in measures().items() if "target" in inspect.signature(each.function).parameters]


def audited(x: pa.Table, y: pa.Table) -> rv.Audit:
    """Every measure, those of a stated use too."""
    made = rv.audit(x, y, schema=SCHEMA, use={"means": [{"of": "X", "by": "G"}]})
    use = rv.audit(x, y, target="X", measures=TARGETED, schema=SCHEMA)
    made.values.update(use.values)
    for name in use.values:
        made.not_applicable.pop(name, None)
    return made


def compared(one: rv.Audit, other: rv.Audit) -> None:
    assert set(one.values) == set(other.values)
    assert one.not_applicable == other.not_applicable
    for name, value in one.values.items():
        assert other[name] == pytest.approx(value.value, rel=1e-6, abs=1e-9), name


@pytest.fixture(scope="module")
def plain() -> rv.Audit:
    return audited(*(framed(each) for each in numbers()))


def test_every_measure_is_there(plain: rv.Audit) -> None:
    assert plain.not_applicable == {}
    assert set(plain.values) == set(measures())


def test_a_calendar_that_begins_elsewhere_changes_nothing(plain: rv.Audit) -> None:
    compared(plain, audited(*(framed(each, shift=SHIFT) for each in numbers())))


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_units_change_nothing(plain: rv.Audit, unit: str) -> None:
    compared(plain, audited(*(framed(each, unit=unit) for each in numbers())))


def two_columns(days: list[int], numbers: list[float]) -> pa.Table:
    return pa.table({"DAY": pa.array(days, pa.int32()).cast(pa.date32()), "X": numbers})


BEFORE, AFTER = two_columns([10, 20, 40], [1.0, 2.0, 4.0]), two_columns([12, 20, 41], [1.0, 3.0, 2.0])
LEFT_OUT = "dates and times have no 0 that means nothing, and it divides by values; left out: DAY"


def test_what_divides_by_values_leaves_dates_out_and_says_so() -> None:
    found = rv.audit(BEFORE, AFTER, measures=["il1", "loss_values_mv", "il2", "loss_means_mv", "il3", "il"])
    for name in ("il1", "loss_values_mv"):
        assert found[name] == pytest.approx((0 + 1 / 2 + 1 / 2) / 3)
        assert LEFT_OUT in found.values[name].notes
        assert list(found.values[name].details["per_attribute"]) == ["X"]
    for name in ("il2", "loss_means_mv"):
        assert found[name] == pytest.approx(abs(6 - 7) / 7)
        assert LEFT_OUT in found.values[name].notes
    assert list(found.values["il3"].details["per_attribute"]) == ["DAY", "X"]  # a variance has a zero
    assert any(LEFT_OUT in note for note in found.values["il"].notes)


def test_dates_alone_have_no_relative_change() -> None:
    found = rv.audit(BEFORE.select(["DAY"]), AFTER.select(["DAY"]), measures=["il1", "il2", "il3", "il1s"])
    assert sorted(found.not_applicable) == ["il1", "il2"]
    assert found.not_applicable["il1"].startswith("it divides by values, and dates and times of day have no 0")
    assert sorted(found.values) == ["il1s", "il3"]


def test_a_duration_has_a_zero() -> None:
    x, y = ({"STAY": pa.array(some).cast(pa.duration("s"))} for some in ([60, 120], [90, 120]))
    assert rv.audit(pa.table(x), pa.table(y), measures=["il1"])["il1"] == pytest.approx(0.25)


def test_differences_are_in_days() -> None:
    for kind, unit in ((pa.date32(), 1), (pa.date64(), 86_400_000), (pa.timestamp("ms"), 86_400_000)):
        x, y = (
            pa.table({"DAY": pa.array(np.array(some, np.int32 if unit == 1 else np.int64) * unit).cast(kind)})
            for some in ([10, 20, 40], [12, 20, 41])
        )
        found = rv.audit(x, y, measures=["loss_values_mae", "loss_means_mse"])
        assert found["loss_values_mae"] == pytest.approx((2 + 0 + 1) / 3)
        assert found["loss_means_mse"] == pytest.approx(1)


def test_several_releases_without_mapping_and_by_subdomain() -> None:
    """Columns and records are chosen for both tables alike, whatever the way to the measure."""
    x, y = (framed(each) for each in numbers())
    names = ["il1", "loss_values_mae", "loss_means_mv", "loss_means_mae"]
    alone = rv.audit(x, y, measures=names, schema=SCHEMA)
    several = rv.audit(x, [x, y], measures=names, schema=SCHEMA)
    for name in names:
        assert several[name] == pytest.approx(alone[name] / 2), name
    unpaired = rv.audit(x, y, measures=names[2:], schema=SCHEMA, mapping=False)
    for name in names[2:]:
        assert unpaired[name] == pytest.approx(alone[name]), name
    by = rv.audit(x, y.set_column(4, "G", x["G"]), measures=names, schema=SCHEMA, by="G").values["il1"].details["by"]
    assert set(by) == {"a", "b", "c"}
