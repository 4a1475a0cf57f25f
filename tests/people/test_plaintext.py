"""The paper's own attack: nearest records in ranks, chance, matches nearer than it."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import rankveil as rv
from rankveil.pairing import pair_tables
from rankveil.people.chance import Distribution, hellinger, kolmogorov_smirnov
from rankveil.people.plaintext import PlaintextAttack, _claimed, plaintext_attack
from rankveil.ranks import average_ranks

Array = NDArray[np.float64]

TABLE_4 = {
    1: ([1, 7], [4, 1, 3], 4),
    2: ([4], [0, 3, 1], 3),
    3: ([10], [3, 2, 3], 3),
    4: ([4], [2, 0, 4], 4),
    5: ([5], [1, 2, 1], 2),
    6: ([11], [2, 2, 2], 2),
    7: ([7], [2, 2, 1], 2),
    8: ([17], [0, 5, 4], 5),
    9: ([7, 9], [0, 3, 0], 3),  # the paper prints 3, 0, 1 here: the distances of the second match
    10: ([15], [0, 1, 3], 3),
    11: ([2, 6], [2, 2, 4], 4),
    12: ([12], [5, 1, 2], 5),
    13: ([20], [2, 1, 3], 3),
    14: ([14], [3, 2, 1], 3),
    15: ([10], [3, 2, 2], 3),
    16: ([19], [1, 5, 1], 5),
    17: ([13], [1, 2, 1], 2),
    18: ([12], [3, 4, 5], 5),
    19: ([13, 19], [3, 4, 4], 4),
    20: ([20], [0, 0, 3], 3),
}
"""Table 4 of Domingo-Ferrer and Muralidhar (2016): matches, distances of the first match, distance."""

NULL = (0.0025, 0.058625, 0.189875, 0.301375, 0.2595, 0.12875, 0.04275, 0.01425, 0.002375)
"""Their Table 5: the distances of all 8000 random records."""


def paper_attack(
    original: Any, masked: Any, *, draws: int = 10_000, subsets: bool = False, links: Any = None, **matching: Any
) -> PlaintextAttack:
    return plaintext_attack(pair_tables(original, masked, **matching), draws=draws, subsets=subsets, links=links)


def table(values: Any) -> pa.Table:
    return pa.table({f"A{j}": column for j, column in enumerate(np.asarray(values, dtype=float).T)})


def by_hand(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """Distances of all pairs, and of every possible random record to its nearest."""
    rank_x, rank_z = average_ranks(x), average_ranks(z)
    apart = np.abs(rank_x[:, None, :] - rank_z[None, :, :]).max(axis=2)
    every = np.array(list(product(*rank_x.T)))
    null = np.abs(every[:, None, :] - rank_z[None, :, :]).max(axis=2).min(axis=1)
    return apart, null


def benjamini_hochberg(p: Array) -> int:
    ordered = np.sort(p)
    good = [k for k in range(1, p.size + 1) if ordered[k - 1] <= 0.05 * k / p.size + 1e-15]
    return max(good, default=0)


def test_running_example_to_the_last_digit() -> None:
    found = rv.attack(*rv.datasets.running_example()).to_dict()
    assert paper_attack(*rv.datasets.running_example()).to_dict().items() <= found.items()
    chance = found["chance"]
    links = {link["original"]: link for link in found["links"]}
    assert {row: (link["masked"], link["d"][0], link["distance"]) for row, link in links.items()} == TABLE_4
    assert links[9]["d"] == [[0, 3, 0], [3, 0, 1]]
    assert found["counts"] == {"correct": 6, "multiple": 4, "wrong": 10}
    assert found["matched_by_several"] == [4, 7, 10, 12, 13, 19, 20]
    assert found["matched_by_none"] == [3, 8, 16, 18]
    assert list(chance["null"].items()) == [(str(d), share) for d, share in enumerate(NULL)]
    assert (found["draws"], found["exhaustive"], found["mapping"]) == (8000, True, "rows")
    for link in links.values():
        assert link["p_value"] == pytest.approx(sum(NULL[: link["distance"] + 1]), abs=1e-15)
    assert (chance["claims"], chance["claims_right"], chance["withstands"]) == (0, 0, True)
    assert sum(chance["observed"].values()) == pytest.approx(1)
    assert chance["observed"] == {"2": 4 / 20, "3": 8 / 20, "4": 4 / 20, "5": 4 / 20}
    shared = sum(np.sqrt(share * NULL[int(d)]) for d, share in chance["observed"].items())
    assert chance["hellinger"] == pytest.approx(np.sqrt(1 - shared))
    assert json.loads(json.dumps(found, allow_nan=False)) == found


small = st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=1, max_size=9)


@settings(max_examples=40, deadline=None)
@given(small, st.randoms(use_true_random=False), st.integers(0, 3))
def test_links_and_chance_by_hand(rows: list[tuple[int, ...]], random: Any, seed: int) -> None:
    x = np.array(rows, dtype=float)
    y = np.array([[value + random.choice((-1, 0, 0.5, 2)) for value in row] for row in rows])
    found = paper_attack(table(x), table(y), seed=seed)
    assert np.array_equal(np.sort(found.pair.table.z, axis=0), np.sort(x, axis=0))
    apart, null = by_hand(x, y, found.pair.table.z)
    assert found.null.exhaustive
    assert dict(zip(found.null.values, found.null.shares, strict=True)) == {
        value: np.mean(null == value) for value in np.unique(null)
    }
    assert np.array_equal(found.matches.distance, apart.min(axis=1))
    nearest = apart == apart.min(axis=1, keepdims=True)
    assert [link["masked"] for link in found.links()] == [(np.flatnonzero(row) + 1).tolist() for row in nearest]
    p = np.array([np.mean(null <= distance) for distance in apart.min(axis=1)])
    assert found.p_values.tolist() == pytest.approx(p.tolist(), abs=1e-12)
    assert found.claims == benjamini_hochberg(p)
    single = nearest.sum(axis=1) == 1
    assert found.counts == {
        "correct": int((single & np.diag(nearest)).sum()),
        "multiple": int((~single).sum()),
        "wrong": int((single & ~np.diag(nearest)).sum()),
    }
    assert found.claims_right == int((single & np.diag(nearest) & found.claimed).sum())


@pytest.mark.parametrize(
    ("p_values", "claims"),
    [
        ([0.01, 0.02, 0.03, 0.04, 0.05], 5),  # 5th: 0.05 <= 0.05
        ([0.01, 0.02, 0.031, 0.041, 0.051], 2),  # 2nd: 0.02 <= 0.02
        ([0.011, 0.021, 0.031, 0.041, 0.051], 0),
        ([0.04, 0.001, 0.9, 0.039, 0.02], 4),  # the 4th passes (0.04 <= 0.04) and takes the 3rd (0.039 > 0.03) with it
        ([0.05], 1),
        ([0.0500001], 0),
        ([1.0, 1.0], 0),
    ],
)
def test_claims_at_a_false_discovery_rate(p_values: list[float], claims: int) -> None:
    p = np.array(p_values)
    claimed = _claimed(p)
    assert claimed.sum() == claims == benjamini_hochberg(p)
    assert not claimed.any() or p[claimed].max() <= p[~claimed].min(initial=np.inf)


def test_a_sampled_null_counts_the_record_itself() -> None:
    null = Distribution.of(np.array([3.0, 1.0, 3.0, 5.0]))
    assert null.at_most(np.array([0.0, 1.0, 3.0, 4.0, 5.0])).tolist() == [1 / 5, 2 / 5, 4 / 5, 4 / 5, 1.0]
    every = Distribution.of(np.array([3.0, 1.0, 3.0, 5.0]), exhaustive=True)
    assert every.at_most(np.array([0.0, 1.0, 3.0, 5.0])).tolist() == [0.0, 0.25, 0.75, 1.0]


def test_sampled_nulls_are_seeded_and_said() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(120, 3))
    y = x + rng.normal(size=x.shape)
    one, again, other = (paper_attack(table(x), table(y), draws=500, seed=seed) for seed in (1, 1, 2))
    assert not one.null.exhaustive
    assert one.null.draws == 500
    assert one.to_dict() == again.to_dict()
    assert one.null.to_dict() != other.null.to_dict()
    assert np.allclose(one.p_values * 501, np.rint(one.p_values * 501))
    assert one.p_values.min() >= 1 / 501
    assert any("seeded sample of 500" in note for note in one.notes)
    with pytest.raises(rv.ParameterError, match="draws must be a whole number of at least 1"):
        paper_attack(table(x), table(y), draws=0)


def test_many_draws_agree_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = rv.datasets.running_example()
    exact = paper_attack(*tables).null
    monkeypatch.setattr("rankveil.people.chance.EXHAUSTIVE", 0)
    draws = 100_000
    sample = paper_attack(*tables, draws=draws, seed=1).null
    assert not sample.exhaustive
    assert np.array_equal(sample.values, exact.values)
    # nine shares, each within 5.3 standard errors: a false alarm once in a million seeds
    error = np.sqrt(exact.shares * (1 - exact.shares) / draws)
    assert np.all(np.abs(sample.shares - exact.shares) < 5.3 * error)


def test_distances_of_distributions() -> None:
    one, other = Distribution.of(np.array([0.0, 0.0, 1.0, 1.0])), Distribution.of(np.array([1.0, 1.0, 2.0, 2.0]))
    assert hellinger(one, one) == (0.0, None)
    assert hellinger(one, Distribution.of(np.array([5.0]))) == (1.0, None)
    assert hellinger(one, other)[0] == pytest.approx(np.sqrt(0.5))
    fine = Distribution.of(np.arange(200.0))
    assert hellinger(fine, fine) == (pytest.approx(0.0, abs=1e-7), 50)
    assert kolmogorov_smirnov(one, one) == 1.0
    far = Distribution.of(np.arange(1000.0) + 5000)
    assert kolmogorov_smirnov(Distribution.of(np.arange(1000.0)), far) < 1e-100


def test_links_handed_in_are_judged_in_the_same_way() -> None:
    original, masked = rv.datasets.running_example()
    own = paper_attack(original, masked)
    pairs = [(link["original"], row) for link in own.links() for row in link["masked"]]
    same = paper_attack(original, masked, links=pairs)
    assert same.to_dict() == own.to_dict()
    diagonal = paper_attack(original, masked, links=[(row, row) for row in range(1, 21)])
    assert diagonal.counts == {"correct": 20, "multiple": 0, "wrong": 0}
    apart, _ = by_hand(diagonal.pair.x, diagonal.pair.y, diagonal.pair.table.z)
    assert np.array_equal(diagonal.matches.distance, np.diag(apart))
    assert diagonal.matches.wanted_by.tolist() == [1] * 20
    with pytest.raises(rv.ParameterError, match="link 21-1 names records that are not in the tables"):
        paper_attack(original, masked, links=[(21, 1)])
    with pytest.raises(rv.ParameterError, match="the links leave out original record 20; each needs one"):
        paper_attack(original, masked, links=[(row, row) for row in range(1, 20)])
    with pytest.raises(rv.ParameterError, match="links 21-1, 1-0 name records that are not in the tables"):
        paper_attack(original, masked, links=[(21, 1), (1, 0)])
    with pytest.raises(rv.ParameterError, match="leave out original records 2, 3, 4, 5, 6 and 14 more"):
        paper_attack(original, masked, links=[(1, 1)])


def noisy(seed: int, noise: tuple[float, float, float]) -> tuple[pa.Table, pa.Table]:
    """1000 records like the running example's: N(100, 10), N(1000, 50), N(5000, 200), and noise."""
    rng = np.random.default_rng(seed)
    x = np.array([100, 1000, 5000]) + np.array([10, 50, 200]) * rng.normal(size=(1000, 3))
    return table(x), table(x + np.array(noise) * rng.normal(size=x.shape))


@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_records_with_much_noise_withstand(seed: int) -> None:
    found = paper_attack(*noisy(seed, (5, 25, 100)))
    assert found.claims == 0
    assert found.withstands
    assert found.hellinger < 0.15


@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_records_with_little_noise_are_claimed(seed: int) -> None:
    found = paper_attack(*noisy(seed, (0.05, 0.25, 1)))
    assert np.mean(found.matches.distance < 10) > 0.95
    assert found.null.shares[found.null.values >= 15].sum() >= 0.95
    assert found.claims > 950
    assert found.claims_right is not None
    assert found.claims_right > 0.98 * found.claims
    assert not found.withstands


def test_without_a_mapping_nobody_knows_what_is_right() -> None:
    original, masked = rv.datasets.running_example()
    found = paper_attack(original, masked, mapping=False, subsets=True)
    assert found.counts == {"correct": None, "multiple": 4, "wrong": None}
    assert found.claims_right is None
    assert found.subsets is not None
    assert found.subsets["best"]["claims_right"] is None
    assert found.linkage.mapping == "none"


def test_every_subset_is_tried_and_paid_for() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(300, 3))
    y = np.column_stack((x[:, :2] + 0.001 * rng.normal(size=(300, 2)), rng.permutation(x[:, 2])))
    found = paper_attack(table(x), table(y), subsets=True)
    assert found.subsets is not None
    assert (found.subsets["tried"], found.subsets["every_subset"]) == (7, True)
    best = found.subsets["best"]
    assert best["attributes"] == ["A0", "A1"]
    assert best["claims"] > found.claims
    assert best["claims_right"] > 0.9 * best["claims"]
    assert not found.withstands
    assert repr(found) == f"PlaintextAttack(300 records, {best['claims']} matches nearer than chance)"
    # the correction: seven times the p-value of this subset alone
    alone = paper_attack(table(x[:, :2]), table(y[:, :2]))
    assert alone.null.exhaustive
    assert best["claims"] == benjamini_hochberg(np.minimum(7 * alone.p_values, 1))


def test_many_attributes_are_tried_from_the_least_moved() -> None:
    rng = np.random.default_rng(9)
    x = rng.normal(size=(100, 11))
    y = x + 0.01 * rng.normal(size=x.shape)
    y[:, 4] = rng.permutation(x[:, 4])
    found = paper_attack(table(x), table(y), subsets=True, draws=1000)
    assert found.subsets is not None
    assert (found.subsets["tried"], found.subsets["every_subset"]) == (11, False)
    means = found.mean_distances()
    assert max(means, key=lambda name: means[name]) == "A4"
    best = found.subsets["best"]
    assert best["attributes"] == [f"A{j}" for j in range(11) if j != 4]
    assert (best["claims"], best["claims_right"]) == (100, 100)
    assert found.claims < 100


def test_one_record() -> None:
    found = paper_attack(table([[5.0, 1.0]]), table([[6.0, 2.0]]))
    assert found.links() == [{"original": 1, "masked": [1], "d": [[0, 0]], "distance": 0, "p_value": 1.0}]
    assert found.counts == {"correct": 1, "multiple": 0, "wrong": 0}
    assert found.withstands
    assert found.null.to_dict() == {"0": 1.0}


def test_all_ties() -> None:
    found = paper_attack(table(np.ones((6, 2))), table(np.full((6, 2), 3.0)), subsets=True)
    assert found.counts == {"correct": 0, "multiple": 6, "wrong": 0}
    assert found.matches.distance.tolist() == [0.0] * 6
    assert found.withstands
    assert found.to_dict()["matched_by_several"] == [1, 2, 3, 4, 5, 6]


def test_a_constant_column_changes_nothing() -> None:
    original, masked = rv.datasets.running_example()
    plain = paper_attack(original, masked)
    more = paper_attack(
        original.append_column("C", pa.array([1.0] * 20)), masked.append_column("C", pa.array([1.0] * 20))
    )
    assert np.array_equal(plain.matches.distance, more.matches.distance)
    assert more.null.to_dict() == pytest.approx(plain.null.to_dict())
    assert [link["d"][0][3] for link in more.links()] == [0] * 20


def test_masked_equal_to_the_original_is_claimed() -> None:
    x = np.random.default_rng(1).normal(size=(200, 3))
    found = paper_attack(table(x), table(x))
    assert found.counts == {"correct": 200, "multiple": 0, "wrong": 0}
    assert found.matches.distance.max() == 0
    assert (found.claims, found.claims_right) == (200, 200)


def test_duplicate_rows_are_matched_together() -> None:
    x = np.repeat(np.arange(5.0), 2)[:, None] * [1.0, 2.0]
    found = paper_attack(table(x), table(x), seed=3)
    z = found.pair.table.z
    assert np.array_equal(z, x)
    assert all(link["masked"] == [2 * (i // 2) + 1, 2 * (i // 2) + 2] for i, link in enumerate(found.links()))
    assert found.counts == {"correct": 0, "multiple": 10, "wrong": 0}


def test_records_with_missing_values_are_left_out_and_rows_keep_their_numbers() -> None:
    original, masked = rv.datasets.running_example()
    hole = pa.table({"X1": [None], "X2": [1.0], "X3": [2.0]}).cast(original.schema)
    found = paper_attack(pa.concat_tables([hole, original]), pa.concat_tables([hole, masked]))
    shifted = {row + 1: [match + 1 for match in matches] for row, (matches, _, _) in TABLE_4.items()}
    assert {link["original"]: link["masked"] for link in found.links()} == shifted
    assert any(note.startswith("1 of 21 records") for note in found.notes)
    assert len(found.p_values) == 20
    assert found.to_dict()["matched_by_none"] == [4, 9, 17, 19]


def test_reordered_releases_need_the_key_or_the_secret() -> None:
    original, _ = rv.datasets.running_example()
    keyed = original.append_column("key", pa.array(range(20)))
    release = rv.mask(keyed, "record_shuffle", seed=4, release_identifiers=["key"])
    for found in (
        paper_attack(keyed, release.data, secret=release.secret, columns=["X1", "X2", "X3"]),
        paper_attack(keyed, release.data, key="key"),
    ):
        assert found.counts == {"correct": 20, "multiple": 0, "wrong": 0}
        order = release.secret.order
        assert order is not None
        assert {link["original"]: link["masked"] for link in found.links()} == {
            int(row) + 1: [place + 1] for place, row in enumerate(order)
        }


def test_more_equal_matches_than_are_listed_are_counted() -> None:
    found = paper_attack(table(np.ones((150, 1))), table(np.ones((150, 1))))
    link = found.links()[0]
    assert (len(link["masked"]), link["matches"]) == (100, 150)
    assert any("150 records have more than 100 equally near matches" in note for note in found.notes)
