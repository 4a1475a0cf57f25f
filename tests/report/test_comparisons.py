"""The page of a comparison."""

from __future__ import annotations

import pyarrow as pa

import rankveil as rv
from rankveil import datasets
from rankveil.report.comparisons import compare_charts, compare_sections

ORIGINAL: pa.Table = datasets.running_example()[0]


def compared(**more: object) -> dict[str, object]:
    asked = {"utility": ["ci_overlap"], "replicates": 1, "points": 3, "workers": 1}
    return rv.compare(ORIGINAL, ["rank_swap"], sweep=True, **(asked | more)).to_dict()


def test_a_map_without_a_known_utility_is_not_drawn() -> None:
    assert len(compare_charts(compared(target="X3"))) == 1
    without = compared()  # no target: the measure does not apply
    assert compare_charts(without) == []
    assert "one masking of each method" in compare_sections(without)[0].text


def test_several_maskings_are_counted() -> None:
    assert "means of 2 maskings" in compare_sections(compared(replicates=2, target="X3"))[0].text
