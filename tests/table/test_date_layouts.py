"""Dates and times in text: read in the layouts that leave no doubt, written as they were read."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil import dates
from rankveil.cli import main

DAYS = [dt.datetime(2025, 7, 6, 11, 34), dt.datetime(1999, 12, 31), dt.datetime(2024, 2, 29, 23, 59)]
LAYOUTS = {
    "%d.%m.%Y": pa.date32(),
    "%Y/%m/%d": pa.date32(),
    "%d/%m/%Y": pa.date32(),
    "%m/%d/%Y": pa.date32(),
    "%d-%m-%Y": pa.date32(),
    "%m-%d-%Y": pa.date32(),
    "%Y-%m": pa.date32(),
    "%H:%M": pa.time32("s"),
    "%H:%M:%S": pa.time32("s"),
    "%d.%m.%Y %H:%M": pa.timestamp("s"),
    "%m/%d/%YT%H:%M:%S": pa.timestamp("s"),
}


def table_of(texts: list[str], **declared: Any) -> rv.Table:
    return rv.Table(pa.table({"WHEN": texts, "X": np.arange(len(texts)) / 7}), schema=rv.Schema(**declared))


def unpadded(day: dt.datetime, form: str) -> str:
    return form.replace("%d", str(day.day)).replace("%m", str(day.month)).replace("%Y", str(day.year))


@pytest.mark.parametrize(("form", "kind"), LAYOUTS.items())
def test_they_are_dates_and_come_back_as_they_were_written(form: str, kind: pa.DataType) -> None:
    texts = [day.strftime(form) for day in DAYS]
    data = table_of([*texts, "NA", ""])
    assert data.columns["WHEN"].kind == "numeric"
    assert data.cells("WHEN").temporal == kind
    assert rv.mask(data, "identity", seed=1).data["WHEN"].to_pylist() == [*texts, "NA", ""]
    mixed = rv.mask(data, "permute", columns=["WHEN"], seed=1).data["WHEN"].to_pylist()
    assert sorted(mixed[:3]) == sorted(texts)
    noisy = rv.mask(data, "additive_noise", columns=["WHEN"], sd=5.0, seed=1).data["WHEN"].to_pylist()
    assert noisy[3:] == ["NA", ""]
    assert all(dt.datetime.strptime(text, form).strftime(form) == text for text in noisy[:3])


def test_the_numbers_are_those_of_the_dates() -> None:
    expected = [(day.date() - dt.date(1970, 1, 1)).days for day in DAYS]
    for form, kind in LAYOUTS.items():
        values = table_of([day.strftime(form) for day in DAYS]).values("WHEN").tolist()
        if kind == pa.date32() and "%d" in form:
            assert values == expected
    assert table_of(["1970-02", "1970-01"]).values("WHEN").tolist() == [31, 0]
    assert table_of(["00:01", "12:00"]).values("WHEN").tolist() == [60, 43_200]
    assert table_of(["02.01.1970 00:01", "01.01.1970 00:00"]).values("WHEN").tolist() == [86_460, 0]


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"])
def test_days_and_months_without_zeros_stay_so(form: str) -> None:
    texts = [unpadded(day, form) for day in DAYS]
    data = table_of(texts)
    assert rv.mask(data, "identity", seed=1).data["WHEN"].to_pylist() == texts
    moved = rv.mask(data, "top_bottom_code", columns=["WHEN"], bottom="2003-04-05", seed=1).data["WHEN"].to_pylist()
    assert moved[1] == unpadded(dt.datetime(2003, 4, 5), form)


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["06/07/2025", "01/02/2024"], dates.UNDECIDED),
        (["6-7-2025", "1-2-2024"], dates.UNDECIDED),
        (["13/07/2025", "07/13/2025"], dates.CONTRADICTORY),
        (["6.7.2025", "06.08.2024"], dates.SEVERAL),
        (["06.07.2025", "2025-07-06"], dates.SEVERAL),
        (["06.07.2025"] * 19 + ["soon"], dates.SEVERAL),
        (["soon"] + ["06.07.2025"] * 19, dates.SEVERAL),
        (["06.07.25", "01.02.24"], dates.SHORT_YEARS),
    ],
    ids=str,
)
def test_what_is_in_doubt_is_said_and_not_taken_as_labels(texts: list[str], why: str) -> None:
    data = table_of(texts)
    assert (data.columns["WHEN"].kind, data.columns["WHEN"].why) == ("nominal", why)
    assert "2025-07-06" in why
    assert "--kind NAME=nominal" in why
    assert rv.inspect(data)["WHEN"].why_not_numeric == why
    with pytest.raises(rv.TableError, match=re.escape(f"column WHEN: {why}")):
        data.usable(["WHEN"])
    with pytest.raises(rv.TableError):
        table_of(texts, kinds={"WHEN": "numeric"}).values("WHEN")
    declared = table_of(texts, kinds={"WHEN": "nominal"})
    assert declared.usable(["WHEN"]) == ("WHEN",)
    assert set(declared.labels("WHEN")) == set(texts)


@pytest.mark.parametrize(
    "texts", [["12-34-5678", "45-67-8901"], ["34:50", "99:10"], ["2019-20", "2020-21"], ["10/2025", "3/4"]], ids=str
)
def test_codes_of_other_numbers_are_labels(texts: list[str]) -> None:
    column = table_of(texts).columns["WHEN"]
    assert (column.kind, column.why) == ("nominal", "")


def test_numbers_with_separators_are_still_told_as_such() -> None:
    assert "thousands separators" in table_of(["1.234.567", "2.345.678"]).columns["WHEN"].why


def test_what_lies_between_is_rounded_to_what_is_written_and_said() -> None:
    release = rv.mask(table_of(["2025-01", "2025-02"]), "mdav", k=2, columns=["WHEN"], seed=1)
    assert "column WHEN: masked values were rounded to months" in release.notes
    release = rv.mask(table_of(["11:00", "11:01", "23:59", "23:59"]), "mdav", k=2, columns=["WHEN"], seed=1)
    assert "column WHEN: masked values were rounded to minutes" in release.notes
    late = rv.mask(table_of(["23:58", "23:59"]), "additive_noise", sd=1e6, columns=["WHEN"], seed=3)
    assert set(late.data["WHEN"].to_pylist()) <= {"00:00", "23:59"}
    last = rv.mask(table_of(["9999-12", "0001-01"]), "additive_noise", sd=1e9, columns=["WHEN"], seed=3)
    assert set(last.data["WHEN"].to_pylist()) <= {"9999-12", "0001-01"}


def test_a_day_that_there_is_not() -> None:
    with pytest.raises(rv.TableError, match="column WHEN: a date that there is not"):
        table_of(["28.02.2024", "30.02.2024"]).values("WHEN")


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([form for form, kind in LAYOUTS.items() if kind != pa.time32("s")]),
    st.lists(st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 1)), min_size=1, max_size=5),
)
def test_every_layout_that_is_found_reads_and_writes_the_same(form: str, moments: list[dt.datetime]) -> None:
    texts = pa.array([moment.strftime(form) for moment in moments])
    layout = dates.layout_of(texts)
    if isinstance(layout, dates.Layout):
        assert layout.write(layout.read(texts))[0].to_pylist() == texts.to_pylist()
        assert layout.date == form[:8] if "%d" in form else form
    else:
        assert layout == dates.UNDECIDED
        assert all(moment.day <= 12 for moment in moments)


def test_a_release_that_alone_leaves_the_order_open_is_read_as_the_original() -> None:
    x, y = table_of(["01/02/2025", "25/03/2025", "07/08/2024"]), table_of(["01/02/2025", "03/03/2025", "08/08/2024"])
    assert y.columns["WHEN"].why == dates.UNDECIDED
    found = rv.audit(x, y, columns=["WHEN"], measures=["loss_values_mae"])
    assert found["loss_values_mae"] == pytest.approx((0 + 22 + 1) / 3)


def test_from_csv_to_csv_and_to_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["BORN;MONTH;AT;X", "06.07.1985;2025-07;11:34;1", "13.01.1990;2024-12;09:05;2", ";2020-01;23:59;3"]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in ("out.csv", "out.parquet"):
        arguments = ["mask", str(tmp_path / "in.csv"), "-o", str(tmp_path / name), "--method", "permute", "--seed", "1"]
        assert main(arguments) == 0
        assert main(["audit", str(tmp_path / "in.csv"), str(tmp_path / name), "--measures", "il1s,cm2"]) == 0
    written = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    for j in range(4):
        assert sorted(line.split(";")[j] for line in written) == sorted(line.split(";")[j] for line in lines)
    types = pq.read_schema(tmp_path / "out.parquet")
    assert types.field("BORN").type == pa.date32()
    assert pa.types.is_time(types.field("AT").type)
    capsys.readouterr()


def test_the_subject_writes_dates_as_the_release_does() -> None:
    masked = table_of(["01/02/2025", "25/03/2025", "07/08/2024"])
    assert rv.verify(masked, {"WHEN": "08/08/2024"}).nearest == ("2024-08-07",)
    assert rv.verify(masked, {"WHEN": "2024-08-08"}).nearest == ("2024-08-07",)


UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
SECONDS = np.array([10**9, 10**9 + 61, 10**9 + 7_000, 10**9 + 95_000])


def moments(unit: str, *, zone: str | None = None, library: str = "pyarrow") -> Any:
    column = pa.array(SECONDS * UNITS[unit]).cast(pa.timestamp(unit, tz=zone))
    table = pa.table({"WHEN": column, "X": [1.0, 2.0, 3.0, 5.0]})
    if library == "pandas":
        return table.to_pandas()
    return pl.from_arrow(table) if library == "polars" else table


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
@pytest.mark.parametrize("masked", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("original", ["s", "ms", "us", "ns"])
def test_units_of_timestamps_may_differ(original: str, masked: str, library: str) -> None:
    if library == "polars" and "s" in (original, masked):
        pytest.skip("polars has no seconds")
    schema = rv.Schema(roles={"WHEN": "quasi-identifier"})
    x, y = moments(original, library=library), moments(masked, library=library)
    assert rv.audit(x, y, measures=["loss_values_mae"], schema=schema)["loss_values_mae"] == 0
    assert rv.audit(x, y, columns=["X"], key="WHEN", measures=["loss_values_mae"])["loss_values_mae"] == 0


def test_equal_instants_of_two_zones_are_equal() -> None:
    x, y = moments("us", zone="Europe/Berlin"), moments("ns", zone="America/New_York")
    assert rv.audit(x, y, measures=["loss_values_mae"])["loss_values_mae"] == 0
    with pytest.raises(rv.PairError, match=r"column WHEN: timestamp\[us, tz=Europe/Berlin\] in the original"):
        rv.audit(x, moments("us"), measures=["loss_values_mae"])


def test_finer_units_in_the_release_are_parts_of_the_original_ones() -> None:
    y = pa.table({"WHEN": pa.array(SECONDS * 1_000 + 500).cast(pa.timestamp("ms")), "X": [1.0, 2.0, 3.0, 5.0]})
    found = rv.audit(moments("s"), y, columns=["WHEN"], measures=["loss_values_mae"])
    assert found["loss_values_mae"] * 86_400 == pytest.approx(0.5, rel=1e-3)


def test_dates_and_times_of_day_are_not_compared() -> None:
    x = pa.table({"WHEN": pa.array([0, 1], pa.int32()).cast(pa.date32())})
    y = pa.table({"WHEN": pa.array([0, 1], pa.int32()).cast(pa.time32("s"))})
    with pytest.raises(rv.PairError, match=r"column WHEN: date32\[day\] in the original, time32\[s\] in the masked"):
        rv.audit(x, y)
