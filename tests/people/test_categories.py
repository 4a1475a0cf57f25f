"""Permuted privacy of tables with categories: the protector's certificate and the subject's own check, by hand."""

from __future__ import annotations

import json
from collections import Counter
from math import log2
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil import files
from rankveil.categories import nominal
from rankveil.cli import main
from rankveil.hierarchy import Hierarchy
from rankveil.people.diversity import CRITERIA, Criterion, Diversity
from rankveil.ranks import SortedColumn, average_ranks

REGIONS = Hierarchy(
    [
        ("Ulm", "South", "*"),
        ("Bonn", "West", "*"),
        ("Hagen", "West", "*"),
        ("Köln", "West", "*"),
        ("Jena", "East", "*"),
        ("Gera", "East", "*"),
    ],
    name="regions.csv",
)
NEAR, FAR = log2(1.5), log2(1.8)
"""How far two cities of one region, and of different ones, are apart."""
CITIES = REGIONS.leaves
BY_FREQUENCY = "marginality by equal or different (the most frequent category first)"


def schema(tree: Hierarchy | None = None, **kinds: str) -> rv.Schema:
    return rv.Schema(roles={"CITY": "quasi-identifier"}, hierarchies={"CITY": tree} if tree else {}, kinds=kinds)


def cities(*labels: str | None) -> pa.Table:
    return pa.table({"CITY": pa.array(labels, pa.string())})


def distance(a: str, b: str, tree: Hierarchy | None) -> float:
    return float(a != b) if tree is None else float(tree.distances([a], [b])[0, 0])


def in_order(labels: set[str], values: list[str], tree: Hierarchy | None) -> list[str]:
    """Labels by the sum of their distances to the values, then by the path from the top down, then by the label."""

    def key(label: str) -> tuple[float, tuple[str, ...], str]:
        total = sum(distance(label, value, tree) for value in values)
        return round(total, 6), tuple(reversed(tree.path(label))) if tree else (), label

    return sorted(labels, key=key)


def mean_marginality(window: list[str], tree: Hierarchy | None) -> float:
    return sum(distance(a, b, tree) for a in window for b in window) / len(window)


def nearest(label: str, released: list[str], tree: Hierarchy | None, order: list[str]) -> str:
    """The released category that stands for one: itself, the nearest in meaning, or the nearest place."""
    if tree is not None:
        return min(released, key=lambda each: (round(distance(label, each, tree), 9), order.index(each)))
    if label in released:
        return label
    raise AssertionError("only with a hierarchy")


def test_worked_without_a_hierarchy() -> None:
    original = cities("Ulm", "Ulm", "Ulm", "Bonn", "Bonn", "Jena")
    masked = cities("Ulm", "Bonn", "Ulm", "Ulm", "Jena", "Bonn")
    # by marginality in the original Ulm (3) < Bonn (4) < Jena (5): masked ranks 2, 4.5, 2, 2, 6, 4.5
    found = rv.certify(original, masked, schema=schema())
    assert found.record_d[:, 0].tolist() == [0, 2.5, 0, 2.5, 1.5, 1.5]
    # record 2: rank 2, reach 2.5: Ulm x 3 and Bonn x 2; of their 25 pairs 12 differ, 12 / 5
    assert found.record(2)["v"] == [pytest.approx(12 / 5)]
    # record 5: Bonn at 4.5, reach 1.5: Bonn x 2 and Jena; 4 of 9 pairs, 4 / 3
    assert found.record(5)["v"] == [pytest.approx(4 / 3)]
    assert found.record(1)["v"] == [0]
    plain = found.to_dict()
    assert plain["rankings"] == {"CITY": BY_FREQUENCY}
    assert "the variance of nominal values is their mean marginality within reach (CITY)" in plain["notes"]
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_worked_with_a_hierarchy() -> None:
    original = cities("Ulm", "Bonn", "Bonn", "Köln", "Jena")
    masked = cities("Bonn", "Bonn", "Gera", "Hagen", "Hagen")
    # in the original: Bonn NEAR + 2 FAR, Köln 2 NEAR + 2 FAR, Jena and Ulm 4 FAR (East before South); of the new ones
    # Hagen 3 NEAR + 2 FAR and Gera 4 FAR + NEAR
    found = rv.certify(original, masked, schema=schema(REGIONS))
    # masked in order: Bonn Bonn Hagen Hagen Gera with ranks 1.5, 3.5, 5
    assert found.pair.rankings == {"CITY": "marginality by the hierarchy regions.csv"}
    # Ulm is as far from all three, so Bonn, the first, stands for it; Köln is as near to Bonn as to Hagen: Bonn;
    # Jena is nearest to Gera
    assert found.record_d[:, 0].tolist() == [0, 0, 3.5, 2, 1.5]
    # record 4: rank 1.5, reach 2: Bonn x 2 and Hagen x 2, 8 of 16 ordered pairs NEAR apart
    assert found.record(4)["v"] == [pytest.approx(8 * NEAR / 4)]
    # record 3: all five; 8 pairs NEAR, 8 FAR
    assert found.record(3)["v"] == [pytest.approx((8 * NEAR + 8 * FAR) / 5)]
    assert "column CITY: categories only in the masked table: Hagen, Gera" in " ".join(found.notes)


def test_closeness_is_by_the_order_of_ranks_and_says_so() -> None:
    original = cities("Ulm", "Ulm", "Ulm", "Bonn", "Bonn", "Jena")
    found = rv.certify(original, original, schema=schema(), diversity="closeness")
    # around Jena alone: shares up to Ulm, Bonn, Jena 0, 0, 1 against 3/6, 5/6, 1
    assert found.record(6)["v"] == [pytest.approx((3 / 6 + 5 / 6) / 2)]
    assert "the closeness of nominal values is by the order of their ranks (CITY)" in found.notes
    for criterion in ("distinct", "entropy"):
        assert "nominal values" not in " ".join(
            rv.certify(original, original, schema=schema(), diversity=criterion).notes
        )


LABELS = st.lists(st.sampled_from(CITIES), min_size=1, max_size=10)


@settings(max_examples=80, deadline=None)
@given(LABELS, st.lists(st.sampled_from(CITIES), min_size=10, max_size=10), st.sampled_from([None, REGIONS]))
def test_definition_1_by_hand(x: list[str], y: list[str], tree: Hierarchy | None) -> None:
    y = y[: len(x)]
    order = in_order(set(x) | set(y), x, tree)
    ranks = average_ranks(np.array([float(order.index(label)) for label in y]))
    rank_of = dict(zip(y, ranks.tolist(), strict=True))
    if tree is None:  # nearest by place is tested apart: places between the original's are not spaced evenly
        y = [label if label in set(x) else x[0] for label in y]
        x = [label if label in set(y) else y[0] for label in x]
        order = in_order(set(x) | set(y), x, tree)
        ranks = average_ranks(np.array([float(order.index(label)) for label in y]))
        rank_of = dict(zip(y, ranks.tolist(), strict=True))
    stands = [nearest(label, sorted(set(y)), tree, order) for label in x]
    d = np.array([abs(ranks[i] - rank_of[stands[i]]) for i in range(len(x))])
    windows = [[y[i] for i in range(len(y)) if abs(ranks[i] - rank_of[stands[k]]) <= d[k]] for k in range(len(x))]
    found = rv.certify(cities(*x), cities(*y), schema=schema(tree))
    assert found.record_d[:, 0].tolist() == d.tolist()
    assert found.record_v[:, 0].tolist() == pytest.approx([mean_marginality(window, tree) for window in windows])
    again = rv.certify(cities(*x), cities(*y), schema=schema(tree), diversity="distinct")
    assert again.record_v[:, 0].tolist() == [len(set(window)) for window in windows]


def test_without_a_hierarchy_the_nearest_place_stands_for_a_category_that_was_not_released() -> None:
    original = cities("Ulm", "Ulm", "Ulm", "Bonn", "Bonn", "Jena")
    masked = cities("Ulm", "Ulm", "Ulm", "Jena", "Jena", "Jena")
    # Bonn is place 1, as near to Ulm (0) as to Jena (2): the smaller; Jena released at rank 5
    found = rv.certify(original, masked, schema=schema())
    assert found.record_d[:, 0].tolist() == [0, 0, 0, 3, 3, 0]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from([*CITIES, "West", "*"]), min_size=1, max_size=30),
    st.integers(0, 29),
    st.integers(0, 60),
    st.sampled_from([None, REGIONS]),
    st.sampled_from(CRITERIA),
)
def test_diversity_of_a_window(
    labels: list[str], row: int, reach: int, tree: Hierarchy | None, criterion: Criterion
) -> None:
    counts = Counter(labels)
    known = nominal(list(counts), np.array([float(count) for count in counts.values()]), tree)
    y = np.array([float(known.labels.index(label)) for label in labels])
    ranks = average_ranks(y)
    rank = ranks[row % y.size]
    column = SortedColumn(y, categories=known)
    found = Diversity(column).of(criterion, np.array([rank]), np.array([reach / 2]))[0]
    if criterion == "variance":
        window = [labels[i] for i in range(y.size) if abs(ranks[i] - rank) <= reach / 2]
        assert found == pytest.approx(mean_marginality(window, tree), abs=1e-12)
        if reach >= 2 * y.size:
            assert found == pytest.approx(known.variance)
    else:  # the same as of numbers in that order
        assert found == Diversity(SortedColumn(y)).of(criterion, np.array([rank]), np.array([reach / 2]))[0]


def test_windows_of_a_long_column_are_counted_exactly() -> None:
    rng = np.random.default_rng(3)
    labels = [CITIES[place] for place in rng.choice(6, 100_000, p=[0.9, 0.05, 0.04, 0.006, 0.003, 0.001])]
    table = rv.Table(cities(*labels), schema=schema(REGIONS))
    column = SortedColumn(table.values("CITY"), categories=table.categories("CITY"))
    last = np.array([column.ranks[-1]])
    counts = (column.ends - column.starts).tolist()
    names = table.labels("CITY")
    two = {name: counts[-2 + place] for place, name in enumerate(names[-2:])}
    apart = distance(names[-2], names[-1], REGIONS)
    reach = last - column.ranks[-2]
    found = Diversity(column).of("variance", last, reach)[0]
    a, b = two.values()
    assert found == pytest.approx(2 * a * b * apart / (a + b), rel=1e-14)
    assert Diversity(column).of("variance", last, np.zeros(1))[0] == 0


def test_every_label_has_a_verification_of_its_own() -> None:
    masked = pa.table({"CITY": ["Ulm", "Bonn", "Bonn", "Köln", "Jena"], "PAY": [1, 2, 3, 4, 5]})
    record = {"CITY": "Hagen", "PAY": 3}
    found = rv.verify(masked, record, schema=schema(REGIONS))
    # in the release: Bonn (NEAR + 2 FAR) < Köln (2 NEAR + 2 FAR) < Jena, Ulm (4 FAR, East before South)
    assert rv.Table(masked, schema=schema(REGIONS)).labels("CITY") == ("Bonn", "Köln", "Jena", "Ulm")
    assert found.nearest == ("Bonn", 3)  # as near as Köln, and before it
    assert found.ranks.tolist() == [1.5, 3]
    assert (found.record, found.d.tolist()) == (3, [0, 0])
    assert rv.verify(masked, {"CITY": "Gera"}, schema=schema(REGIONS)).nearest == ("Jena",)
    assert rv.verify(masked, {"CITY": "West"}, schema=schema(REGIONS)).nearest == ("Bonn",)
    plain = found.to_dict()
    assert plain["rankings"] == {"CITY": "marginality by the hierarchy regions.csv"}
    assert plain["notes"][:3] == [
        "nominal columns are ranked by marginality in the release, not in the original (CITY)",
        "the variance of nominal values is their mean marginality within reach (CITY)",
        "the closeness of nominal values is by the order of their ranks (CITY)",
    ]
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_the_subject_ranks_by_the_release_and_the_protector_by_the_original() -> None:
    original = cities("Ulm", "Ulm", "Ulm", "Bonn", "Jena", "Jena")
    masked = cities("Bonn", "Bonn", "Bonn", "Bonn", "Ulm", "Jena")
    assert rv.verify(masked, {"CITY": "Bonn"}, schema=schema()).ranks.tolist() == [2.5]  # the most frequent is first
    made = rv.certify(original, masked, schema=schema())
    assert made.pair.table.rank_y[:, 0].tolist() == [4.5, 4.5, 4.5, 4.5, 1, 2]  # Ulm, Jena, Bonn in the original


def test_rankings_of_levels_and_none_of_numbers() -> None:
    table = pa.table({"CITY": ["Ulm", "Bonn", "Ulm"], "SIZE": ["small", "large", "medium"], "PAY": [1, 2, 3]})
    record = {"PAY": 2, "SIZE": "large", "CITY": "Ulm"}
    found = rv.verify(table, record, schema=schema(SIZE="ordinal"))
    assert found.rankings == {"SIZE": "the order of its levels", "CITY": BY_FREQUENCY}
    assert found.diversity["variance"][1] == 0.25  # of the places of medium and large, one rank apart
    assert rv.verify(table, {"PAY": 2}, schema=schema()).rankings == {}


def test_categories_that_nobody_knows() -> None:
    masked = cities("Ulm", "Bonn", "Bonn")
    with pytest.raises(rv.ParameterError, match="column CITY: 'Köln' is not among its categories Bonn, Ulm"):
        rv.verify(masked, {"CITY": "Köln"}, schema=schema())
    with pytest.raises(rv.ParameterError, match=r"'Bon' is not among .*, nor in its hierarchy; did you mean Bonn"):
        rv.verify(masked, {"CITY": "Bon"}, schema=schema(REGIONS))


def test_missing_categories_are_left_out() -> None:
    masked = pa.table({"CITY": ["Ulm", None, "Bonn", "Bonn"], "PAY": [1, 2, 3, None]})
    found = rv.verify(masked, {"CITY": "Ulm", "PAY": 1}, schema=schema(REGIONS))
    assert (found.record, found.d.tolist()) == (1, [0, 0])
    assert "2 released records have missing values there and are left out" in found.notes
    # among the complete records Köln's nearest is still Bonn; if none has it, the nearest of those there
    assert rv.verify(masked, {"CITY": "Köln", "PAY": 1}, schema=schema(REGIONS)).nearest == ("Bonn", 1)
    alone = pa.table({"CITY": ["Ulm", "Bonn"], "PAY": [1, None]})
    assert rv.verify(alone, {"CITY": "Köln", "PAY": 1}, schema=schema(REGIONS)).nearest == ("Ulm", 1)


def test_dates_and_times_of_the_subject() -> None:
    masked = pa.table(
        {
            "BORN": ["1990-02-28", "1985-05-05", "2001-12-31"],
            "SEEN": pa.array([0, 3_600, 90_000]).cast(pa.timestamp("s", tz="Europe/Berlin")),
            "STAY": pa.array([60, 3_600, 90_000]).cast(pa.duration("s")),
        }
    )
    found = rv.verify(masked, {"BORN": "1990-03-01", "SEEN": "1970-01-01T02:00+01:00", "STAY": "4000"})
    assert found.nearest == ("1990-02-28", "1970-01-01 01:00:00Z", 3600)
    assert found.ranks.tolist() == [2, 2, 2]
    assert json.loads(json.dumps(found.to_dict()))["nearest"] == ["1990-02-28", "1970-01-01 01:00:00Z", 3600]
    with pytest.raises(rv.ParameterError, match="column BORN: '1/3/1990' is not a date or time such as 1990-02-28"):
        rv.verify(masked, {"BORN": "1/3/1990"})
    assert rv.verify(masked, {"BORN": "1.3.1990"}).nearest == ("1990-02-28",)  # a dot puts the day first


def test_whole_mixed_tables_through_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(8)
    data = pa.table(
        {
            "CITY": [CITIES[place] for place in rng.integers(0, 6, 80)],
            "JOB": [f"job {place}" for place in rng.integers(0, 4, 80)],
            "PAY": rng.integers(10, 90, 80),
        }
    )
    files.save(data, "original.csv")
    (tmp_path / "regions.csv").write_text("\n".join(";".join(row) for row in REGIONS.rows), encoding="utf-8")
    reading = ["--hierarchy", "CITY=regions.csv", "--role", "CITY=quasi-identifier", "--role", "JOB=confidential"]
    assert main(["mask", "original.csv", "-o", "masked.csv", "--method", "permute", "--seed", "01" * 16, *reading]) == 0
    capsys.readouterr()
    assert main(["certify", "original.csv", "masked.csv", *reading, "--json"]) == 1  # every d is 0
    certificate = json.loads(capsys.readouterr().out)
    assert certificate["rankings"] == {"CITY": "marginality by the hierarchy regions.csv", "JOB": BY_FREQUENCY}
    words = ["verify", "masked.csv", "--record", "CITY=Ulm,JOB=job 1,PAY=30", *reading]
    assert main([*words, "--manifest", "masked.csv.manifest.json", "--json"]) == 0
    check = json.loads(capsys.readouterr().out)
    assert check["rankings"] == certificate["rankings"]
    assert not check["chance"]["approximate"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "ranked by marginality in the release" in said
    assert main(["subject-page", "masked.csv", "-o", "page.html", *reading]) == 0
    assert "80 released records with 3 columns (CITY, JOB, PAY)" in " ".join(capsys.readouterr().out.split())
