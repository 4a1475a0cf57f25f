"""new-directions: Domingo-Ferrer and Muralidhar (2016), Tables 1 to 6 and figures 1 to 3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil import datasets
from rankveil.auditing import audit
from rankveil.pairing import pair_tables, reverse_map
from rankveil.papers.compare import lines, misprint, printed, statement
from rankveil.papers.large_example import ATTRIBUTES, NOISE, SMALL_NOISE, SPREAD, Trials, distances
from rankveil.papers.published import new_directions as paper
from rankveil.papers.result import Paper, PaperTable, Progress, Reproduction, Row
from rankveil.people.certificate import certify
from rankveil.people.plaintext import PlaintextAttack, plaintext_attack
from rankveil.people.subject import Verification, verify
from rankveil.ranks import average_ranks

Array = NDArray[np.float64]

REPLICATES = 40

WRONG_COUNTS = (
    "the text counts 5 correct, 4 multiple and 11 wrong links; Table 4 itself shows 6 single correct ones (records 4, "
    "5, 7, 12, 14, 20), 4 multiple (1, 9, 11, 19) and 10 wrong"
)
MATCHED_TWICE = "masked records 19 and 20 are also matched by several originals in Table 4; the text leaves them out"
SECOND_MATCH = (
    "Table 4, row 9 lists the distances 3, 0, 1 of its second match (masked record 9); its first (masked record 7) "
    "has 0, 3, 0"
)
NOT_A_POSTERIOR = (
    "the text calls 0.0011 the probability that a match is random given that its distance is at most 5; it is the "
    "probability of such a distance for a random record"
)
SAME_NOISE = (
    "the text says that X1 got less noise than X2, and X2 than X3; relative to its spread each attribute got the same "
    "(0.5 standard deviations), and only this moves ranks"
)


def run(*, data: Path | None = None, progress: Progress | None = None, replicates: int = REPLICATES) -> Reproduction:
    """The running example exactly, and the random example with 1000 records as `replicates` of it."""
    original, masked = datasets.running_example()
    x, y, z = (_matrix(table) for table in (original, masked, reverse_map(original, masked)))
    third = verify(masked, _record(x[2]))
    intruder = plaintext_attack(pair_tables(original, masked))
    trials = Trials.of(replicates, progress=progress)
    return Reproduction(
        "new-directions",
        citation=PAPER.citation,
        tables=(
            PaperTable("Table 1", _table_1(x, y, z), "Original, masked and reverse-mapped values and their ranks."),
            PaperTable("Section 2", _section_2(original, masked), "Disclosure risk by rank correlation."),
            PaperTable("Table 2", _table_2(x, y, z), "Masking as permutation plus a small noise E' = Y - Z."),
            PaperTable("Table 3", _table_3(y, third), "Rank distances of each masked record from record 3."),
            PaperTable("Section 4", _section_4(original, masked, y, third), "Permuted privacy of record 3."),
            PaperTable("Table 4", _table_4(intruder), "The intruder's links; distances are those of the first match."),
            PaperTable("Section 5.1", _section_5_1(intruder), "What the intruder and the protector see in Table 4."),
            PaperTable("Table 5", _table_5(intruder), "Match distances of real records (X) and of random ones (A)."),
            PaperTable("Section 5.2", _section_5_2(z, intruder), "One random record, and all 8000 of them."),
            PaperTable("Figure 2", trials.figure_2(), trials.caption(NOISE)),
            PaperTable("Table 6", trials.table_6(), trials.caption(SMALL_NOISE)),
            PaperTable("Figure 3", trials.figure_3(remark=NOT_A_POSTERIOR), trials.caption(SMALL_NOISE)),
        ),
        figures={
            "Figure 1": distances(intruder),
            "Figure 2": distances(trials.large[0]),
            "Figure 3": distances(trials.small[0]),
        },
        remarks=(
            f"Table 6 and figures 2 and 3 are random: computed values are means of {replicates} replicates with fixed "
            "seeds, and a published value agrees when it lies within four standard deviations of one more replicate",
            trials.told_apart(),
        ),
    )


def _matrix(table: Any) -> Array:
    return np.column_stack([table[name].to_numpy() for name in ATTRIBUTES])


def _record(values: Array) -> dict[str, float]:
    return dict(zip(ATTRIBUTES, values.tolist(), strict=True))


def _grouped(table: str, groups: Sequence[tuple[str, Array]]) -> list[Row]:
    """A row per record and group of three columns, in the order of print."""
    rows = []
    for number, words in enumerate(lines(table), start=1):
        for place, (name, computed) in enumerate(groups):
            three = " ".join(words[3 * place : 3 * place + 3])
            rows.append(printed(f"record {number}, {name}", three, computed[number - 1]))
    return rows


def _table_1(x: Array, y: Array, z: Array) -> list[Row]:
    ranks = (("ranks of X", average_ranks(x)), ("ranks of Y", average_ranks(y)))
    return _grouped(paper.TABLE_1, (("X", x), ranks[0], ("Y", y), ranks[1], ("Z", z)))


def _section_2(original: Any, masked: Any) -> list[Row]:
    risk = audit(original, masked, measures=["spearman_risk"]).values["spearman_risk"]
    per_attribute = risk.details["per_attribute"]
    return [
        printed("Spearman correlation of X and Z", "0.722 0.844 0.776", [per_attribute[name] for name in ATTRIBUTES])
    ]


def _table_2(x: Array, y: Array, z: Array) -> list[Row]:
    return _grouped(paper.TABLE_2, (("X", x), ("Z", z), ("E' = Y - Z", y - z), ("Y", y), ("E = Y - X", y - x)))


def _table_3(y: Array, third: Verification) -> list[Row]:
    ranks = average_ranks(y)
    apart = np.abs(ranks - third.ranks)
    return _grouped(paper.TABLE_3, (("Y", y), ("ranks of Y", ranks), ("rank distances", apart)))


def _section_4(original: Any, masked: Any, y: Array, third: Verification) -> list[Row]:
    variances = third.diversity["variance"]
    protector = certify(original, masked).record(3)
    limits = {"d": third.d.tolist(), "v": variances, "f": "minimax"}
    certified = certify(original, masked, **limits).record(3)["ok"]
    around = y[np.abs(average_ranks(y)[:, 0] - third.ranks[0]) <= third.d[0], 0]
    return [
        printed("record 3, nearest masked values", "100.41 903.25 5087.90", third.nearest),
        printed("record 3, their ranks", "8 2 16", third.ranks),
        printed("record 3, the subject's f(x)", "10", third.record),
        printed("record 3, d for the subject", "4 1 4", third.d),
        printed("record 3, d for the protector", "5 1 9", protector["d"]),
        printed("record 3, values of S1(4)", "96.60 91.57 100.41 100.31 103.12 104.82 90.83 103.07 104.00", around),
        printed("record 3, variances of S1(4), S2(1), S3(4)", "24.70 155.00 20167.78", [v or 0.0 for v in variances]),
        statement(
            "record 3, (d, v, f)-permuted privacy at these d and v",
            "satisfied",
            "satisfied" if certified else "not satisfied",
            ok=certified,
        ),
    ]


def _table_4(intruder: PlaintextAttack) -> list[Row]:
    rows = []
    for (number, matches, *apart), link in zip(lines(paper.TABLE_4), intruder.links(), strict=True):
        item = f"record {number}, d1, d2, d3 and d"
        computed = [*link["d"][0], link["distance"]]
        rows.append(printed(f"record {number}, matches", matches.replace(",", " "), link["masked"]))
        if number == "9":
            rows.append(misprint(item, " ".join(apart), computed, corrected="0 3 0 3", remark=SECOND_MATCH))
        else:
            rows.append(printed(item, " ".join(apart), computed))
    return rows


def _section_5_1(intruder: PlaintextAttack) -> list[Row]:
    links, seen = intruder.links(), intruder.to_dict()
    several = [link["original"] for link in links if len(link["masked"]) > 1]
    # the paper counts over the distances that it lists, which are the second match's for record 9
    listed = np.array([link["d"][1 if link["original"] == 9 else 0] for link in links])
    counts = [seen["counts"][name] for name in ("correct", "multiple", "wrong")]
    means = listed.mean(axis=0)
    noise = [e / s for e, s in zip(NOISE, SPREAD, strict=True)]
    return [
        printed("original records with several matches", "1 9 11 19", several),
        misprint(
            "masked records matched by several originals",
            "4 7 10 12 13",
            seen["matched_by_several"],
            corrected="4 7 10 12 13 19 20",
            remark=MATCHED_TWICE,
        ),
        printed("masked records matched by none", "3 8 16 18", seen["matched_by_none"]),
        misprint("links correct, multiple, wrong", "5 4 11", counts, corrected="6 4 10", remark=WRONG_COUNTS),
        printed("zeros among d1, d2, d3", "4 3 0", (listed == 0).sum(axis=0)),
        statement("mean of d1, d2, d3", "increasing", means.tolist(), ok=bool(np.all(np.diff(means) > 0))),
        statement(
            "noise of X1, X2, X3 in standard deviations",
            "increasing",
            noise,
            ok=bool(np.all(np.diff(noise) > 0)),
            remark=SAME_NOISE if noise == [0.5, 0.5, 0.5] else None,
        ),
    ]


def _table_5(intruder: PlaintextAttack) -> list[Row]:
    rows = []
    for distance, real, random in lines(paper.TABLE_5):
        for name, share, found in (("X", real, intruder.observed), ("A", random, intruder.null)):
            rows.append(printed(f"distance {distance}, {name}", share, found.to_dict().get(distance, 0.0)))
    return rows


def _section_5_2(z: Array, intruder: PlaintextAttack) -> list[Row]:
    import pyarrow as pa

    released = pa.table({name: z[:, j] for j, name in enumerate(ATTRIBUTES)})
    match = verify(released, _record(np.array([96.18, 990.58, 4950.48])), permutation=True)
    verdict = "withstands" if intruder.withstands else "fails"
    return [
        printed("random record (96.18, 990.58, 4950.48), its match", "2", match.record),
        printed(
            "random record (96.18, 990.58, 4950.48), values of the match", "96.18 988.44 4986.25", z[match.record - 1]
        ),
        printed("random record (96.18, 990.58, 4950.48), d1, d2, d3", "0 1 2", match.d),
        printed("random record (96.18, 990.58, 4950.48), d", "2", match.distance),
        printed("possible random records", "8000", intruder.null.draws),
        printed("random records at distance 0", "20", intruder.null.to_dict()["0"] * intruder.null.draws),
        statement("the known-plaintext attack", "withstands", verdict, ok=intruder.withstands),
    ]


PAPER = Paper(
    name="new-directions",
    citation=(
        "J. Domingo-Ferrer and K. Muralidhar (2016). New directions in anonymization: permutation paradigm, "
        "verifiability by subjects and intruders, transparency to users. Information Sciences 337-338, 11-24."
    ),
    run=run,
)
