"""One secret seed, named streams: the cipher, the addressing of rows, the distributions, and the silence about it."""

from __future__ import annotations

import copy
import pickle
import traceback
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankveil.errors import ParameterError
from rankveil.seeds import Seed, Stream

FALSE_ALARM = 1e-6

FIPS_197 = [
    ("2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734", "3925841d02dc09fbdc118597196a0b32"),
    ("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a"),
]
SP_800_38A = [  # F.1.1 and the output blocks of F.5.1
    ("2b7e151628aed2a6abf7158809cf4f3c", "6bc1bee22e409f96e93d7e117393172a", "3ad77bb40d7a3660a89ecaf32466ef97"),
    ("2b7e151628aed2a6abf7158809cf4f3c", "ae2d8a571e03ac9c9eb76fac45af8e51", "f5d3d58503b9699de785895a96fdbaaf"),
    ("2b7e151628aed2a6abf7158809cf4f3c", "30c81c46a35ce411e5fbc1191a0a52ef", "43b1cd7f598ece23881b00e3ed030688"),
    ("2b7e151628aed2a6abf7158809cf4f3c", "f69f2445df4f9b17ad2b417be66c3710", "7b0c785e27e8ad3f8223207104725dd4"),
    ("2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "ec8cdf7398607cb0f2d21675ea9ea1e4"),
    ("2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfdff00", "362b7c3c6773516318a077d7fc5073ae"),
]


def little(hexadecimal: str) -> int:
    """The generator reads keys and counters with their lowest byte first."""
    return int.from_bytes(bytes.fromhex(hexadecimal), "little")


@pytest.mark.parametrize(("key", "plain", "cipher"), FIPS_197 + SP_800_38A)
def test_a_stream_is_aes_128_as_the_standards_have_it(key: str, plain: str, cipher: str) -> None:
    call, block = divmod(little(plain), 2**64)
    stream = Stream(little(key), start=2 * block)  # a block holds two rows
    stream._calls = call
    assert stream.bits(2).astype("<u8").tobytes().hex() == cipher


def test_the_counter_is_which_call_and_which_row() -> None:
    stream = Stream(little(FIPS_197[0][0]))
    for call in range(3):
        words = stream.bits(6)
        for block in range(3):
            alone = Stream(little(FIPS_197[0][0]), start=2 * block)
            alone._calls = call
            assert np.array_equal(alone.bits(2), words[2 * block : 2 * block + 2])


DRAWS: dict[str, Any] = {
    "bits": lambda stream, size: stream.bits(size),
    "random": lambda stream, size: stream.random(size),
    "normal": lambda stream, size: stream.normal(size),
    "integers": lambda stream, size: stream.integers(size, below=1000),
}


@pytest.mark.parametrize("draw", DRAWS)
@given(start=st.integers(0, 300), size=st.integers(0, 50), calls=st.integers(0, 2))
def test_a_chunk_draws_what_the_whole_draws_there(draw: str, start: int, size: int, calls: int) -> None:
    whole, chunk = Seed.of(3).stream("a"), Seed.of(3).stream("a").at(start=start)
    for _ in range(calls):
        whole.bits(5)
        chunk.bits(5)
    assert np.array_equal(DRAWS[draw](whole, 350)[start : start + size], DRAWS[draw](chunk, size))


def test_a_row_far_away_is_reached_at_once() -> None:
    far = Seed.of(3).stream("a").at(start=10**15 + 1).bits(3)
    assert np.array_equal(far[1:], Seed.of(3).stream("a").at(start=10**15 + 2).bits(2))


@pytest.mark.parametrize("draw", DRAWS)
@given(present=st.lists(st.booleans(), max_size=60), start=st.sampled_from([0, 1, 7]))
def test_rows_left_out_shift_nothing(draw: str, present: list[bool], start: int) -> None:
    rows = np.flatnonzero(np.array(present, dtype=bool))
    whole = DRAWS[draw](Seed.of(3).stream("a").at(start=start), len(present))
    assert np.array_equal(DRAWS[draw](Seed.of(3).stream("a").at(rows, start=start), rows.size), whole[rows])


def test_a_stream_at_rows_draws_one_value_for_each() -> None:
    with pytest.raises(ValueError, match="exactly one value"):
        Seed.of(3).stream("a").at(np.array([1, 2])).random(3)


def test_loose_draws_belong_to_the_column_and_do_not_depend_on_its_rows() -> None:
    whole, some = Seed.of(3).stream("a"), Seed.of(3).stream("a").at(np.array([1, 5]))
    assert np.array_equal(whole.bits(6)[[1, 5]], some.bits(2))
    assert np.array_equal(whole.loose(9), some.loose(9))
    assert np.array_equal(whole.bits(6)[[1, 5]], some.bits(2))


def test_loose_draws_are_calls_of_their_own() -> None:
    stream = Seed.of(3).stream("a")
    drawn = [stream.random(5), stream.loose(5), stream.loose(5), stream.random(5)]
    assert np.unique(np.concatenate(drawn)).size == 20


def test_calls_of_a_stream_differ_and_a_new_view_starts_again() -> None:
    stream = Seed.of(3).stream("a")
    first, second = stream.bits(4), stream.bits(4)
    assert not np.intersect1d(first, second).size
    assert np.array_equal(stream.at().bits(4), first)


def test_streams_differ_by_name_and_by_seed() -> None:
    names: list[tuple[str | int, ...]] = [
        *[(), ("a",), ("b",), ("a", "b"), ("ab",), ("b", "a"), ("a", ""), ("", "a"), ("a", 1), ("a", "1"), ("a1",)],
        *[("mask", 0, "rank_swap", "A", 0), ("mask", 0, "rank_swap", "A", 1), ("mask", 1, "rank_swap", "A", 0)],
        *[("é",), ("e\u0301",), ("a,b",), (12,), (1, 2)],
    ]
    first = [int(Seed.of(3).stream(*name).bits(1)[0]) for name in names]
    assert len(set(first)) == len(names)
    assert np.array_equal(Seed.of(3).stream("a", 1).bits(9), Seed.of(3).stream("a", 1).bits(9))


def test_small_numbers_are_different_seeds() -> None:
    # 1 and 256 are b"\x01" and b"\x01\x00": a key padded with zeros would make them the same
    seeds = [*range(600), 2**16, 2**24, 2**64, b"\x00\x00", b"\x07\x00", "0" * 64]
    first = {int(Seed.of(seed).stream("a").bits(1)[0]) for seed in seeds}
    assert len(first) == len(seeds)


def test_a_seed_takes_several_forms() -> None:
    forms: list[Any] = [255, np.int64(255), "ff", "FF", "0xff", " f f\n", b"\xff", Seed.of(255)]
    first = {int(Seed.of(form).stream("a").bits(1)[0]) for form in forms}
    assert len(first) == 1
    assert Seed.of("5").reveal() == Seed.of(5).reveal() == "05"
    assert Seed.of(0).reveal() == "00"
    assert Seed.of("00" * 16).bits == 128


def test_a_fresh_seed_is_long_and_new() -> None:
    assert Seed.fresh().bits >= 256
    assert Seed.of(None).reveal() != Seed.of(None).reveal()


WRONG: list[Any] = ["5ecre7", "", "   ", "0x", b"", -987654321, 987.654321, True, [987654321], "12 34 zz"]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_seed_is_refused_and_not_repeated(wrong: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        Seed.of(wrong)
    assert "seed" in str(caught.value)
    shown = "".join(traceback.format_exception_only(caught.value))
    assert caught.value.__cause__ is None
    for part in ("5ecre7", "987", "12 34", "zz"):
        assert part not in shown


def test_nothing_shows_a_seed() -> None:
    seed = Seed.of("00112233445566778899aabbccddeeff")
    stream = seed.stream("a")
    for shown in (repr(seed), str(seed), f"{seed}", repr([seed]), repr(stream), f"{stream}"):
        assert "hidden" in shown
        assert "1122" not in shown
        assert str(stream._key) not in shown
    assert seed.reveal() == "00112233445566778899aabbccddeeff"


def test_seeds_and_streams_travel_to_other_processes() -> None:
    seed = Seed.of("00112233445566778899aabbccddeeff")
    for travelled in (pickle.loads(pickle.dumps(seed)), copy.deepcopy(seed)):
        assert np.array_equal(travelled.stream("a").bits(5), seed.stream("a").bits(5))
    stream = seed.stream("a")
    stream.bits(3)
    assert np.array_equal(pickle.loads(pickle.dumps(stream)).bits(5), stream.bits(5))


def test_random_is_uniform_and_never_0_or_1() -> None:
    draws = Seed.of(1).stream("uniform").random(200_000)
    assert stats.kstest(draws, "uniform").pvalue > FALSE_ALARM
    assert 0 < draws.min() < 1e-4
    assert 1 - 1e-4 < draws.max() < 1
    pairs = np.histogram2d(draws[::2], draws[1::2], bins=10)[0]  # neighbours are independent
    assert stats.chisquare(pairs.ravel()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_the_extreme_words_give_numbers_inside_the_interval(word: int) -> None:
    class Extreme(Stream):
        def bits(self, size: int) -> Any:
            return np.full(size, word, dtype=np.uint64)

    stream = Extreme(0)
    assert 0 < stream.random(1)[0] < 1
    assert np.isfinite(stream.normal(1)[0])
    assert stream.integers(1, below=7)[0] == (6 if word else 0)


def test_normal_is_normal() -> None:
    draws = Seed.of(1).stream("normal").normal(200_000)
    assert stats.kstest(draws, "norm").pvalue > FALSE_ALARM
    tail = int(np.sum(np.abs(draws) > 4))
    assert stats.binomtest(tail, draws.size, 2 * stats.norm.sf(4)).pvalue > FALSE_ALARM


def test_integers_are_uniform() -> None:
    drawn = Seed.of(1).stream("integers").integers(70_000, below=7)
    assert stats.chisquare(np.bincount(drawn, minlength=7)).pvalue > FALSE_ALARM
    wide = Seed.of(1).stream("integers").integers(20_000, below=2**32)
    assert stats.kstest(wide / 2**32, "uniform").pvalue > FALSE_ALARM
    assert stats.binomtest(int(np.sum(wide % 2)), wide.size).pvalue > FALSE_ALARM
    for below in (0, -1, 2**32 + 1):
        with pytest.raises(ValueError, match="below"):
            Seed.of(1).stream("integers").integers(1, below=below)


def test_order_is_a_uniform_permutation() -> None:
    seed = Seed.of(1)
    counts: dict[tuple[int, ...], int] = {}
    for replicate in range(6_000):
        drawn = tuple(seed.stream("order", replicate).order(4).tolist())
        counts[drawn] = counts.get(drawn, 0) + 1
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM
