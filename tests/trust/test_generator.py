"""What an intruder who knows some originals learns of the generator: the whole of an ordinary one, nothing of ours.

The noise of a record is what was released minus (or over) what it was, so that whoever knows the originals of some
records knows their draws. With the Mersenne Twister (R, numpy's `RandomState`) the draws of all others follow from
these. PCG64, numpy's default, takes more work: Bouillaguet, Martinez and Sauvage (Practical seed-recovery for the
PCG pseudo-random number generator, IACR Transactions on Symmetric Cryptology 2020(3), 175-196) recover its state and
its seed from 512 bytes of its output in 20,000 hours of one processor at most; its author says no more than that to
predict it should be challenging. AES in counter mode is predicted only by who breaks AES.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

import rankveil as rv
from rankveil.manifest import fingerprint
from rankveil.masking import release_key
from rankveil.seeds import SAFE_BITS, Seed
from rankveil.table import Table

Tally = Callable[..., None]
Words = NDArray[np.uint32]

FALSE_ALARM = 1e-6
BETA = 0.5
KNOWN, OTHERS = 624, 1000
HEX = "6e1f0c35b7a94d28835a17e0d4c9f26bb0715ce83d9642af1e7708dc55b3a964"


def incomes(records: int, seed: int = 3) -> NDArray[np.float64]:
    return np.random.default_rng(seed).lognormal(10, 0.6, records)


def read_off(released: NDArray[np.float64], original: NDArray[np.float64]) -> NDArray[np.float64]:
    """The uniform draws of multiplicative noise, from records whose originals are known."""
    return (released / original - (1 - BETA)) / (2 * BETA)


# ---- Mersenne Twister, from whole words ----


def untempered(words: Words) -> Words:
    """The state behind the words that the Mersenne Twister gave."""
    y = words.copy()
    y ^= y >> np.uint32(18)
    y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
    left = y
    for _ in range(5):  # seven more bits are right each time
        left = y ^ ((left << np.uint32(7)) & np.uint32(0x9D2C5680))
    found = left
    for _ in range(3):
        found = left ^ (found >> np.uint32(11))
    return found


def predicted(words: Words, many: int) -> Words:
    """What a Mersenne Twister gives after these 624 words."""
    twister = np.random.MT19937()
    twister.state = {"bit_generator": "MT19937", "state": {"key": untempered(words), "pos": 624}}
    return twister.random_raw(many).astype(np.uint32)


def attacked(released: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the intruder takes the other originals for, who knows the first 624."""
    words = np.clip(np.rint(read_off(released[:KNOWN], known) * 2.0**32), 0, 2**32 - 1).astype(np.uint32)
    draws = predicted(words, released.size - KNOWN) / 2.0**32
    return released[KNOWN:] / (1 - BETA + 2 * BETA * draws)


def test_noise_of_the_mersenne_twister_is_undone(tally: Tally) -> None:
    """R's runif gives each word of its Mersenne Twister, divided by 2^32, as one draw: so it did here."""
    original = incomes(KNOWN + OTHERS)
    draws = np.random.MT19937(20_240_229).random_raw(original.size) / 2.0**32
    found = attacked(original * (1 - BETA + 2 * BETA * draws), original[:KNOWN])
    tally("records unmasked behind a Mersenne Twister", int(np.sum(np.isclose(found, original[KNOWN:], rtol=1e-12))))
    np.testing.assert_allclose(found, original[KNOWN:], rtol=1e-12)


def test_the_same_attack_on_our_release_gives_nothing(tally: Tally) -> None:
    original = incomes(KNOWN + OTHERS)
    released = rv.mask(pa.table({"INCOME": original}), "multiplicative_noise", beta=BETA, seed=HEX).data["INCOME"]
    released = np.asarray(released, dtype=float)
    # the draws can be read off here too: the attack fails in what it makes of them, not before
    draws = read_off(released, original)
    assert stats.kstest(draws, "uniform").pvalue > FALSE_ALARM
    found = attacked(released, original[:KNOWN])
    right = int(np.sum(np.isclose(found, original[KNOWN:], rtol=1e-12)))
    tally("records unmasked behind our generator", right)
    assert right == 0  # by chance with a probability of 1e-8 it would be one
    taken = (released[KNOWN:] / found - (1 - BETA)) / (2 * BETA)
    assert stats.spearmanr(taken, draws[KNOWN:]).pvalue > FALSE_ALARM


# ---- Mersenne Twister, from one bit of each draw ----


def recurrence(bits: Sequence[int]) -> tuple[int, int]:
    """The shortest linear recurrence that gives these bits (Berlekamp and Massey), and its length."""
    shortest = before = 1
    length, since, seen = 0, 1, 0
    for number, bit in enumerate(bits):
        seen = seen << 1 | bit
        if (shortest & seen).bit_count() % 2:
            longer = shortest ^ before << since
            if 2 * length <= number:
                length, before, since = number + 1 - length, shortest, 0
            shortest = longer
        since += 1
    return shortest, length


def continued(bits: Sequence[int], many: int) -> list[int]:
    """The next bits by the recurrence of those before."""
    rule, length = recurrence(bits)
    seen = int("".join(map(str, bits[-length:])), 2)
    made = []
    for _ in range(many):
        made.append((rule >> 1 & seen).bit_count() % 2)
        seen = (seen << 1 | made[-1]) & ((1 << length) - 1)
    return made


def answers(draws: NDArray[np.float64]) -> list[int]:
    """Randomised response by a fair coin: who has a draw below a half answers at random, the others the truth."""
    made: list[int] = (draws < 0.5).astype(int).tolist()
    return made


COINS, UNSEEN = 40_000, 500


def test_one_bit_of_each_draw_of_the_mersenne_twister_is_enough() -> None:
    """Rounding or coarse categories do not help: each bit is a linear function of 19,937 bits of state."""
    coins = answers(np.random.RandomState(77).random_sample(COINS + UNSEEN))
    assert recurrence(coins[:COINS])[1] < 19_937 + 32
    assert continued(coins[:COINS], UNSEEN) == coins[COINS:]


def test_our_bits_have_no_short_recurrence() -> None:
    coins = answers(Seed.of(HEX).stream("mask", 0, "randomized_response", "ANSWER", 0).random(COINS + UNSEEN))
    # of random bits half as many are needed, and one more or less is four times rarer (Rueppel 1986)
    assert abs(recurrence(coins[:COINS])[1] - COINS / 2) < 12
    right = int(np.sum(np.equal(continued(coins[:COINS], UNSEEN), coins[COINS:])))
    assert stats.binomtest(right, UNSEEN).pvalue > FALSE_ALARM


# ---- seeds that can be tried ----

DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=k) for k in range(366)]
DATES = [int(day.strftime("%Y%m%d")) for day in DAYS]


def tried(made: Callable[[int], float], wanted: float) -> list[int]:
    """The days that give the draw of the one record that the intruder knows."""
    return [date for date in DATES if abs(made(date) - wanted) < 1e-12]


def test_a_small_seed_is_found_by_trying_whatever_the_generator(tally: Tally) -> None:
    """A date as a seed of numpy's PCG64, and of ours: so a release with a short seed is told not to be one."""
    original = incomes(3)
    table = Table(pa.table({"INCOME": original}))
    plan, told = rv.Plan.of("multiplicative_noise", beta=BETA), fingerprint(table)

    def of_release(date: int) -> float:
        """The first draw of a release, for whoever knows the whole table (three records) and guesses the seed."""
        key = release_key(Seed.of(date), table, plan, fingerprint=told)
        return float(key.stream("mask", 0, "multiplicative_noise", "INCOME", 0).random(1)[0])

    pcg: dict[str, Callable[[int], float]] = {
        "numpy": lambda date: float(np.random.default_rng(date).random()),
        "ours": of_release,
    }
    for made in pcg.values():
        assert tried(made, made(20_240_704)) == [20_240_704]
    tally("small seeds tried", 2 * len(DATES))
    short = rv.mask(table, plan, seed=20_240_704)
    read = read_off(np.asarray(short.data["INCOME"], dtype=float), original)[0]
    assert tried(pcg["ours"], float(read)) == [20_240_704]
    fresh = rv.mask(table, plan)
    read = read_off(np.asarray(fresh.data["INCOME"], dtype=float), original)[0]
    assert tried(pcg["ours"], float(read)) == []


@pytest.mark.parametrize(
    ("seed", "short"),
    [(7, True), (20_240_704, True), ("ab" * 15, True), ("ab" * 16, False), (HEX, False), (bytes(15), True)],
)
def test_a_short_seed_is_told_to_be_one(seed: Any, short: bool) -> None:
    notes = rv.mask(pa.table({"A": [1.0, 2.0, 3.0, 4.0]}), "permute", seed=seed).notes
    assert any(f"fewer than {SAFE_BITS} bits" in note for note in notes) is short


def test_without_a_seed_a_release_has_one_of_256_bits() -> None:
    made = [rv.mask(pa.table({"A": [1.0, 2.0, 3.0, 4.0]}), "permute") for _ in range(3)]
    assert {release.secret.seed.bits for release in made} == {256}
    assert len({release.secret.seed.reveal() for release in made}) == 3
    assert not any("bits" in note for release in made for note in release.notes)


# ---- streams beside each other ----

NAMES: list[tuple[str | int, ...]] = [
    ("mask", 0, "additive_noise", "INCOME", 0),
    ("mask", 0, "additive_noise", "INCOME", 1),  # another replicate
    ("mask", 1, "additive_noise", "INCOME", 0),  # another step
    ("mask", 0, "additive_noise", "RENT", 0),  # another column
    ("mask", 0, "rank_swap", "INCOME", 0),  # another method
]


def test_streams_of_different_names_are_unrelated(tally: Tally) -> None:
    """Over pairs of names, seeds that differ in one bit, and rows: no correlation, and half of all bits agree."""
    near = f"{int(HEX, 16) ^ 1:064x}"
    words = [Seed.of(HEX).stream(*name).bits(4000) for name in NAMES]
    words.append(Seed.of(near).stream(*NAMES[0]).bits(4000))
    words.append(np.roll(words[0], 1))  # the next row
    pairs = [(a, b) for k, a in enumerate(words) for b in words[:k]]
    tally("pairs of streams compared", len(pairs))
    for a, b in pairs:
        agree = int(np.unpackbits((~(a ^ b)).view(np.uint8)).sum())
        assert stats.binomtest(agree, 64 * a.size).pvalue > FALSE_ALARM / len(pairs)
        related = stats.pearsonr(a.astype(float), b.astype(float)).pvalue
        assert related > FALSE_ALARM / len(pairs)
    assert np.unique(np.concatenate(words[:-1])).size == 4000 * (len(words) - 1)
