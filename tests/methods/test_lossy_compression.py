"""Lossy compression on five records, its pictures, and its ends."""

from __future__ import annotations

import numpy as np
import pytest

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.methods import lossy_compression as module

compress = get_method("lossy_compression")


def test_five_records_by_hand() -> None:
    # 10..60 as greys; JPEG repeats the last row and column until the square of 8 by 8 is full, takes the cosine
    # transform of grey - 128 (along the rows all is equal, so only one column of it is not zero) and rounds it to
    # multiples of the first column of the standard table, which is for quality 50
    x = np.array([10.0, 60.0, 20.0, 30.0, 30.0])
    grey = np.array([0, 255, 51, 102, 102, 102, 102, 102])
    cosine = np.array([[np.cos((2 * i + 1) * f * np.pi / 16) for i in range(8)] for f in range(8)])
    weight = np.array([np.sqrt(1 / 8)] + [0.5] * 7)
    table = np.array([16, 12, 14, 14, 18, 24, 49, 72])
    transformed = np.sqrt(8) * weight * (cosine @ (grey - 128))
    rounded = np.round(transformed / table) * table
    back = np.clip(np.round(cosine.T @ (weight * rounded) / np.sqrt(8) + 128), 0, 255)
    made = compress(x[:, None], quality=50).values[:, 0]
    assert np.allclose(
        made, 10 + 50 * back[:5] / 255, rtol=0, atol=1.001 * 50 / 255
    )  # a step of grey: libjpeg's rounding
    assert not np.allclose(made, x, atol=0.5)


def test_lower_quality_changes_more() -> None:
    x = np.random.default_rng(0).normal(size=(400, 5))
    far = [float(np.mean((compress(x, quality=quality).values - x) ** 2)) for quality in (1, 25, 50, 75, 100)]
    assert far == sorted(far, reverse=True)
    assert np.abs(compress(x, quality=100).values - x).max() < 6 * np.ptp(x) / 255


def test_values_stay_between_the_ends_and_constant_columns_stay() -> None:
    x = np.random.default_rng(0).exponential(size=(100, 3))
    x[:, 1] = 0.1
    made = compress(x, quality=10).values
    assert np.array_equal(made[:, 1], x[:, 1])
    assert np.all(made.min(axis=0) >= x.min(axis=0))
    assert np.all(made.max(axis=0) <= x.max(axis=0))
    # left out of the picture: the others are as if it were not there
    assert np.array_equal(made[:, [0, 2]], compress(x[:, [0, 2]], quality=10).values)
    alone = compress(x[:, [1]])
    assert np.array_equal(alone.values, x[:, [1]])
    assert alone.notes == ("all columns are constant: they stay as they are",)


def test_cutting_the_rows_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).uniform(size=(60_000, 3))  # fits one picture
    x[0], x[1] = 0.0, 1.0
    cut = compress(x, quality=30).values
    monkeypatch.setattr(module, "_BLOCK", 65_496)
    assert np.array_equal(compress(x, quality=30).values, cut)
    monkeypatch.setattr(module, "_BLOCK", 8)
    assert np.array_equal(compress(x[:9_000], quality=30).values[:8_992], cut[:8_992])


def test_more_rows_than_a_jpeg_has() -> None:
    x = np.random.default_rng(0).normal(size=(70_001, 2))
    made = compress(x).values
    assert made.shape == x.shape
    assert np.all(np.isfinite(made))
    assert np.array_equal(made[65_536:], compress(_between(x, x[65_536:])).values[2 * 8 :])


def _between(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows with the ends of x above them, in two squares of their own, so that the scale is that of x."""
    low, high = np.tile(x.min(axis=0), (8, 1)), np.tile(x.max(axis=0), (8, 1))
    return np.concatenate([low, high, rows])


def test_a_wide_table() -> None:
    x = np.random.default_rng(0).normal(size=(3, 40_000))
    assert compress(x).values.shape == x.shape
    with pytest.raises(rv.ParameterError, match="a JPEG has at most 65500 columns; mask fewer at a time"):
        compress(np.random.default_rng(0).normal(size=(2, 65_501)))


def test_the_ends_of_the_numbers() -> None:
    large = np.array([[1.7e308], [-1.7e308], [0.0], [1.6e308]])
    assert np.abs(compress(large, quality=100).values - large).max() < 1.7e308 / 20
    small = np.array([[5e-324], [0.0], [1e-323]])
    made = compress(small, quality=100).values
    assert made.min() >= 0
    assert made.max() <= 1e-323


def test_a_table_in_any_memory_order_gives_the_same() -> None:
    x = np.random.default_rng(0).normal(size=(50, 4))
    assert np.array_equal(compress(x).values, compress(np.asfortranarray(x)).values)
