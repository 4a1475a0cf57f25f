"""The contract of a measure, run over every one in the catalogue."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.catalogue import measures
from rankveil.intruder.finding import find_people
from rankveil.measures._estimates import Stated
from rankveil.measuring import Measuring
from rankveil.uses import Means


def target(measure: Any) -> str | None:
    """A column to explain, for measures of a stated use."""
    return "A" if "target" in inspect.signature(measure.function).parameters else None


OF_ROLES = ("quasi_y", "confidential_y", "survey_y")


def of_cells(measure: Any) -> bool:
    """Whether it is about what released cells leave open, whatever their values."""
    return "released" in measure.needs


def by_roles(measure: Any) -> bool:
    """Whether it is about the roles of columns, and so about all records, missing values being values there."""
    return any(need in OF_ROLES for need in measure.needs)


def declared(measure: Any, names: Any) -> rv.Schema:
    """What a measure must know of the columns: the kinds that it takes, or roles."""
    kinds = {} if "numeric" in measure.kinds else dict.fromkeys((name for name in names if name != "W"), "ordinal")
    if not by_roles(measure):  # a column of one value, or of numbers like 1e300, is one to measure, too
        return rv.Schema(kinds=kinds, roles=dict.fromkeys(names, "confidential"))
    roles = {"A": "quasi-identifier", "W": "weight"} | dict.fromkeys(set(names) - {"A", "W"}, "confidential")
    return rv.Schema(roles={name: roles[name] for name in names})


def weighed(measure: Any, columns: Any) -> Any:
    """The columns, with weights for a measure that asks for them."""
    if "survey_y" not in measure.needs:
        return columns
    return {**columns, "W": 1.0 + np.arange(len(next(iter(columns.values())))) % 7}


def few_folds(measure: Any) -> dict[str, dict[str, Any]]:
    """As few folds as a measure of models allows: the contract is not about their number, and each takes time."""
    return {measure.id: {"folds": measure.parameters["folds"].range.low}} if "folds" in measure.parameters else {}


def stated(measure: Any, names: Any) -> Any:
    """A use of the columns, for a measure of stated uses."""
    names = [name for name in names if name != "W"]
    return {"means": {"of": names}, "table": {"columns": names[:2]}} if "use" in measure.needs else None


def audit(measure: Any, original: Any, masked: Any, **matching: Any) -> rv.Audit:
    tables = pa.table(weighed(measure, original)), pa.table(weighed(measure, masked))
    schema = declared(measure, tables[0].column_names)
    made = rv.audit(
        *tables,
        measures=[measure.id],
        target=target(measure),
        use=stated(measure, tables[0].column_names),
        schema=schema,
        settings=few_folds(measure),
        **matching,
    )
    # a reason like that is a mistake of the measure that the audit survives
    assert not any("could not be computed" in why for why in made.not_applicable.values()), made.not_applicable
    return made


def applies(measure: Any, original: Any, masked: Any) -> bool:
    return measure.id in audit(measure, original, masked).values


def masked_by(method: str, table: Any, **parameters: Any) -> dict[str, Any]:
    data = rv.mask(pa.table(table), method, seed=1, **parameters).data
    return {name: data[name].to_numpy() for name in data.column_names}


def permuted(table: Any) -> dict[str, Any]:
    """Every column in a random order of its own in which no value stays where it was."""
    rng = np.random.default_rng(7)
    made = {}
    for name, column in table.items():
        order = rng.permutation(column.size)
        while np.any(order == np.arange(column.size)):
            order = rng.permutation(column.size)
        made[name] = column[order]
    return made


def releases(table: Any) -> dict[str, dict[str, Any]]:
    """From nothing done to everything lost."""
    made = _releases(tuple(table), tuple(column.tobytes() for column in table.values()))
    return {name: {each: column.copy() for each, column in release.items()} for name, release in made.items()}


@cache
def _releases(names: tuple[str, ...], columns: tuple[bytes, ...]) -> dict[str, dict[str, Any]]:
    """The same for every measure: masking takes longer than measuring."""
    table = {name: np.frombuffer(column) for name, column in zip(names, columns, strict=True)}
    return {
        "identity": {name: column.copy() for name, column in table.items()},
        "little noise": masked_by("additive_noise", table, alpha=0.01),
        "noise": masked_by("additive_noise", table, alpha=1.0),
        "swapped": masked_by("rank_swap", table, p=20),
        "permuted": permuted(table),
        "turned round": {name: -column for name, column in table.items()},
        "constant": {name: np.full(column.size, 2.0) for name, column in table.items()},
        "elsewhere": {name: 1e9 + 1e6 * column for name, column in table.items()},
        "ruined": {name: 1e3 + column**2 for name, column in permuted(table).items()},
    }


def test_values_lie_in_the_bounds(measure: Any, table: Any, within: Any) -> None:
    for name, release in releases(table).items():
        made = audit(measure, table, release)
        if measure.id in made.not_applicable:
            assert made.not_applicable[measure.id].strip()
            continue
        assert within(measure, made[measure.id]), name
        json.dumps(made.to_dict(), allow_nan=False)
        for value in made.values[measure.id].details.get("per_attribute", {}).values():
            assert within(measure, value), name


def mixed(measure: Any) -> bool:
    """Whether it weighs protection against usefulness: then neither nothing nor everything done is good."""
    families = {measures()[need].family for need in measure.needs if need in measures()}
    return bool(families & {"risk", "confidentiality"}) and bool(families & {"loss", "utility"})


def test_measures_of_roles_know_which_way_is_better() -> None:
    """Coarser quasi-identifiers protect, and lose: every such measure must say so, whatever it looks at."""
    rng = np.random.default_rng(5)
    fine = {"A": np.arange(60.0) // 2, "B": rng.integers(0, 9, 60).astype(float)}
    coarse = {**fine, "A": fine["A"] // 10}
    for measure in (each for each in measures().values() if by_roles(each)):
        good, bad = audit(measure, fine, coarse)[measure.id], audit(measure, fine, fine)[measure.id]
        if measure.id == "sample_uniques":
            bad = audit(measure, fine, {**fine, "A": np.arange(60.0)})[measure.id]
        if measure.family in ("loss", "utility"):
            good, bad = bad, good
        assert (good > bad) if measure.better == "higher" else (good < bad), measure.id


@pytest.mark.only(where=of_cells)
def test_measures_of_cells_know_which_way_is_better(measure: Any, table: Any) -> None:
    kept, some = audit(measure, table, table), {name: column.copy() for name, column in table.items()}
    some["A"][:20] = np.nan
    lost = audit(measure, table, some)
    good, bad = (kept, lost) if measure.family in ("loss", "utility") else (lost, kept)
    better = good[measure.id] > bad[measure.id] if measure.better == "higher" else good[measure.id] < bad[measure.id]
    assert better


@pytest.mark.only(where=lambda measure: not (mixed(measure) or by_roles(measure) or of_cells(measure)))
def test_it_knows_which_way_is_better(measure: Any, table: Any) -> None:
    if "numeric" not in measure.kinds:  # a few categories, which can hang together
        table = {name: np.floor(np.argsort(np.argsort(column)) / 12) for name, column in table.items()}
    made = releases(table)
    protects = measure.family in ("risk", "confidentiality")
    # infinite where nothing is done, for some: then next to nothing
    kept = audit(measure, table, made["identity" if applies(measure, table, made["identity"]) else "little noise"])
    lost = audit(measure, table, made["permuted" if protects else "ruined"])
    good, bad = (lost, kept) if protects else (kept, lost)
    if measure.better == "higher":
        assert good[measure.id] > bad[measure.id]
    else:
        assert good[measure.id] < bad[measure.id]


def test_the_tables_given_stay_as_they_are(measure: Any, table: Any) -> None:
    original, masked = (pd.DataFrame(weighed(measure, each)) for each in (table, releases(table)["noise"]))
    for frame in (original, masked):
        for name in frame:
            frame[name].to_numpy().flags.writeable = False
    before = original.copy(deep=True), masked.copy(deep=True)
    schema = declared(measure, list(original))
    asked = {"measures": [measure.id], "target": target(measure), "schema": schema, "settings": few_folds(measure)}
    rv.audit(original, masked, use=stated(measure, original), **asked)
    pd.testing.assert_frame_equal(original, before[0])
    pd.testing.assert_frame_equal(masked, before[1])


def test_the_arrays_given_stay_as_they_are(measure: Any, table: Any) -> None:
    release = releases(table)["noise"]
    original, masked = (pd.DataFrame(weighed(measure, each)) for each in (table, release))
    schema = declared(measure, list(original))
    both = rv.audit(original, masked, measures=[], schema=schema).pair
    assert both is not None
    tables = (rv.Table.of(original), rv.Table.of(masked))
    measuring = Measuring(
        both,
        intruder=lambda: find_people(*tables, truth=np.arange(len(tables[0]))),
        use=lambda: [Stated(Means(tuple(table)), both)],
    )
    view = both.table if measure.per == "table" else both.columns[0]
    data = [measuring._need(need, view) for need in measure.needs]
    data = [np.array(each) if isinstance(each, np.ndarray) else each for each in data]
    arrays = [each for each in data if isinstance(each, np.ndarray)]
    for array in arrays:
        array.setflags(write=False)
    before = [array.tobytes() for array in arrays]
    measure(
        *data,
        rng=both.seed.stream("measure"),
        names=both.names,
        target=0,
        kinds=both.kinds if measure.per == "table" else both.kinds[:1],
        categories=both.categories if measure.per == "table" else both.categories[:1],
        **few_folds(measure).get(measure.id, {}),
    )
    assert [array.tobytes() for array in arrays] == before


def test_the_same_seed_gives_the_same_value(measure: Any, table: Any) -> None:
    rounded = {name: np.round(column, -1) for name, column in releases(table)["noise"].items()}  # ties
    made = [audit(measure, table, rounded, seed=3).to_dict() for _ in range(2)]
    assert made[0] == made[1]


@pytest.mark.only(where=lambda measure: measure.per == "column")
def test_attributes_do_not_depend_on_each_other(measure: Any, table: Any) -> None:
    release = releases(table)["noise"]
    whole = audit(measure, table, release).values[measure.id].details["per_attribute"]
    for names in (["C", "A"], ["B"], ["C", "B", "A"]):
        part = [{name: side[name] for name in names} for side in (table, release)]
        assert audit(measure, *part).values[measure.id].details["per_attribute"] == {n: whole[n] for n in names}
    headline = {"mean": np.mean, "max": np.max, "min": np.min}[measure.headline]
    assert audit(measure, table, release)[measure.id] == pytest.approx(headline(list(whole.values())), rel=1e-12)


@pytest.mark.only(where=lambda measure: measure.per == "column")
def test_threads_change_nothing(measure: Any, large: Any) -> None:
    release = masked_by("additive_noise", large)
    together = audit(measure, large, release).values[measure.id].details["per_attribute"]  # on all cores
    for name in large:  # one column: no threads
        alone = audit(measure, {name: large[name]}, {name: release[name]})
        assert alone[measure.id] == together[name]


def test_the_order_of_the_records_does_not_matter(measure: Any, table: Any) -> None:
    release = releases(table)["noise"]
    order = np.random.default_rng(0).permutation(60)
    turned = [{name: column[order] for name, column in side.items()} for side in (table, release)]
    assert audit(measure, *turned)[measure.id] == pytest.approx(audit(measure, table, release)[measure.id], rel=1e-9)


def of_others(measure: Any) -> bool:
    """Whether it is made of other measures, each of which has its own records."""
    return any(need in measures() for need in measure.needs)


@pytest.mark.only(
    where=lambda measure: (
        not by_roles(measure) and not of_others(measure) and not {"intruder", "use", "released"} & set(measure.needs)
    )
)
def test_incomplete_records_are_left_out_and_counted(measure: Any, table: Any) -> None:
    release = releases(table)["noise"]
    there = np.ones(60, dtype=bool)
    there[[3, 4, 50]] = False
    holes = [{name: column.copy() for name, column in side.items()} for side in (table, release)]
    for name in table:
        holes[0][name][[3, 4]] = np.nan
        holes[1][name][[4, 50]] = np.nan
    complete = [{name: column[there] for name, column in side.items()} for side in (table, release)]
    made = audit(measure, *holes)
    expected = audit(measure, *complete)
    if not measure.equal:  # distributions are those of all that are complete on their own side
        sides = [np.delete(np.arange(60), gone) for gone in ([3, 4], [4, 50])]
        own = [
            {name: column[rows] for name, column in side.items()}
            for side, rows in zip((table, release), sides, strict=True)
        ]
        expected = audit(measure, *own, mapping=False)
        if measure.records == "together":
            assert any("over all" in note for note in made.notes)
    used = 57 if measure.equal else 58
    assert made.to_dict()["measures"][measure.id]["records"] == {"used": used, "most": used, "of": 60}
    assert made[measure.id] == pytest.approx(expected[measure.id], rel=1e-12)
    assert any("3 of 60 records have missing values" in note for note in made.notes)
    if measure.per == "column" and measure.equal:
        assert made.values[measure.id].details["left_out"] == {"A": 3, "B": 3, "C": 3}


def test_without_a_mapping_it_says_that_it_needs_one(measure: Any, table: Any) -> None:
    made = audit(measure, table, releases(table)["noise"], mapping=False)
    assert (measure.id in made.not_applicable) == measure.mapping
    if measure.mapping:
        assert measure.equal
        with pytest.raises(rv.NotApplicableError, match="which masked record"):
            made[measure.id]


CHANGES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda present: present,
    "turned round": lambda present: present[::-1],
    "permuted": lambda present: np.roll(present, 1),
    "constant": lambda present: np.full(present.size, present[-1]),
}


def test_degenerate_tables_give_a_value_in_the_bounds_or_a_reason(measure: Any, degenerate: Any, within: Any) -> None:
    for release, change in CHANGES.items():
        masked = {name: column.copy() for name, column in degenerate.items()}
        for name, column in degenerate.items():
            there = ~np.isnan(column)
            masked[name][there] = change(column[there])
        made = audit(measure, degenerate, masked)
        if measure.id in made.not_applicable:
            assert made.not_applicable[measure.id].strip(), release
        else:
            assert within(measure, made[measure.id]), release
            json.dumps(made.to_dict(), allow_nan=False)


def test_magnitudes_that_have_nothing_in_common(measure: Any, table: Any, within: Any) -> None:
    for a, b in ((1e300, 1.0), (1e-300, 1e300), (1e300, -1e300), (1e-12, 1e12)):
        one = [{name: scale * column for name, column in table.items()} for scale in (a, b)]
        made = audit(measure, *one)
        if measure.id in made.not_applicable:
            assert made.not_applicable[measure.id].strip()
        else:
            assert within(measure, made[measure.id])


@pytest.mark.only(where=lambda measure: not measure.equal)
def test_tables_of_different_length_are_measured_whole(measure: Any, table: Any, within: Any) -> None:
    some = {name: column[:47] for name, column in releases(table)["little noise"].items()}
    made = audit(measure, table, some, mapping=False)
    assert within(measure, made[measure.id])
    assert within(measure, audit(measure, some, table, mapping=False)[measure.id])


@pytest.mark.only(where=lambda measure: measure.family == "loss" and measure.mapping)
def test_losses_can_pair_each_record_with_the_nearest(measure: Any, table: Any, within: Any) -> None:
    order = np.random.default_rng(5).permutation(60)
    shuffled = {name: column[order] for name, column in table.items()}
    made = audit(measure, table, shuffled, mapping=False, pair="nearest")
    if measure.id in made.not_applicable:  # a score also asks how many records an intruder links
        assert "which masked record" in made.not_applicable[measure.id]
        return
    assert within(measure, made[measure.id])
    assert any(note.endswith("is paired with the nearest original one") for note in made.notes)
    assert made[measure.id] == pytest.approx(audit(measure, table, table)[measure.id], abs=1e-12)
