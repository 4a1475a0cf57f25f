"""Files of the scratch folder are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from rankveil.errors import FileError
from rankveil.partitions.scratch import Scratch, room


def test_what_is_put_is_taken(tmp_path: Path) -> None:
    scratch = Scratch(str(tmp_path))
    scratch.put("a", np.arange(10, dtype=np.uint32))
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").stat().st_size == 40
    assert scratch.take("a", np.uint32).tolist() == list(range(10))
    assert scratch.take("a", np.uint32, start=3, stop=5).tolist() == [3, 4]
    assert scratch.take("a", np.uint32, start=3, stop=3).tolist() == []
    assert scratch.glance("a", np.uint32)[7] == 7
    assert (tmp_path / "a").read_bytes()[:8] == b"\0\0\0\0\1\0\0\0"


def test_an_empty_array_is_an_empty_file(tmp_path: Path) -> None:
    scratch = Scratch(str(tmp_path))
    scratch.put("a", np.empty(0, np.uint64))
    assert scratch.take("a", np.uint64).size == scratch.glance("a", np.uint64).size == 0


def test_other_byte_orders_and_layouts_are_written_alike(tmp_path: Path) -> None:
    scratch = Scratch(str(tmp_path))
    scratch.put("a", np.arange(6, dtype=">u8")[::2])
    assert scratch.take("a", np.uint64).tolist() == [0, 2, 4]


def test_a_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    scratch = Scratch(str(tmp_path))
    scratch.put("a", np.arange(4, dtype=np.uint64))
    with pytest.raises(FileError, match=r"a: is cut short"):
        scratch.take("a", np.uint64, start=2, stop=6)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    scratch = Scratch(str(tmp_path))
    for look in (scratch.take, scratch.glance):
        with pytest.raises(FileError, match=r"b: cannot be read"):
            look("b", np.uint64)
    scratch.remove("b", "c")


def test_a_folder_that_is_gone_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"a: cannot be written"):
        Scratch(str(tmp_path / "gone")).put("a", np.arange(4))
    assert os.listdir(tmp_path) == []


def test_a_job_without_space_is_refused_ahead(tmp_path: Path) -> None:
    scratch = Scratch(str(tmp_path))
    scratch.check_room(records=10, attributes=3, together=2)
    with pytest.raises(FileError, match=r"of scratch and .* are free"):
        scratch.check_room(records=10**14, attributes=3, together=2)


def test_large_tables_need_wider_ranks() -> None:
    assert room(records=2**31, attributes=5, together=2) > 1.9 * room(records=2**31 - 1, attributes=5, together=2)
