"""Attacks by the workers of a cluster: the paper's own is that on tables in memory, for all subjects or for a stated
sample; a verdict they do not give."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil.cli import main
from rankveil.cluster import attacks
from rankveil.cluster.attacks import link_tables
from rankveil.cluster.sending import name_of
from rankveil.cluster.tables import given_tables
from rankveil.errors import ParameterError
from rankveil.intruder.calibration import wilson
from rankveil.partitions.links import links, released_columns
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Job, ranked
from rankveil.people.chance import Chance
from rankveil.people.linkages import PartsLinkage
from rankveil.seeds import Seed, Stream

OWN = ("subjects", "of", "interval")
VERDICT = ("verdict", "found", "sentence", "records")
OF_MEMORY = ("certain", "claims", "claims_right", "evidence", "knows", "calibrated", "learned")
"""What only the intruder tells who uses everything: he needs the tables in memory."""


def table(values: Any) -> pa.Table:
    return pa.table({f"V{j}": values[:, j] for j in range(values.shape[1])})


def papers(content: dict[str, Any]) -> dict[str, Any]:
    """What the paper's own attack says, whose numbers are the same in parts."""
    return {name: value for name, value in content.items() if name not in ("notes", *OWN, *VERDICT, *OF_MEMORY)}


def papers_notes(made: rv.Attack) -> set[str]:
    assert made.plaintext is not None
    return {note for note in made.plaintext.notes if "not compared" not in note}


def tried(records: int, attributes: int, rng: Stream) -> Chance:
    return Chance.of(records, attributes, draws=500, rng=rng)


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_links_are_those_in_memory(partitions: int, dask: Any, tied: Any, write: Any) -> None:
    x, y = tied(420)
    rows = 420 // partitions
    tables = given_tables(*write(x, y, rows=rows))
    found = link_tables(dask, tables, random=tried, seed=Seed.of(3), subjects=None, draws=500, rows=rows)
    assert f"attacked in {partitions} part" in found.notes[0]
    memory = rv.attack(table(x), table(y), draws=500, seed=3).plaintext
    assert memory is not None
    made = PartsLinkage(found)
    assert made.links(memory.p_values) == memory.links()
    assert made.mean_distances() == memory.mean_distances()
    assert made.matched() == memory.linkage.matched()
    assert os.listdir(dask.scratch) == [os.path.basename(dask._own)]


@pytest.mark.parametrize("columns", [None, ["V2", "V3"], ["V0"]])
def test_the_document_is_that_in_memory_when_all_are_asked(columns: Any, engine: Any, tied: Any, write: Any) -> None:
    x, y = tied(250)
    paths = write(x, y, rows=100)
    steps: list[tuple[int, int]] = []
    how: dict[str, Any] = {"columns": columns, "seed": 5, "draws": 400}
    made = rv.attack(*paths, cluster=engine, subjects="all", progress=lambda *at: steps.append(at), **how).to_dict()
    whole = rv.attack(table(x), table(y), **how)
    memory = whole.to_dict()
    assert json.dumps(papers(made)) == json.dumps(papers(memory))
    assert made.keys() == (memory.keys() | set(OWN)) - set(OF_MEMORY)
    assert (made["subjects"], made["of"], made["interval"]) == (250, 250, None)
    assert papers_notes(whole) <= set(made["notes"])
    assert made["verdict"] is None
    assert any(note.startswith("no verdict: tables in parts are linked by distance alone") for note in made["notes"])
    right = memory["counts"]["correct"]
    assert made["found"] == {
        "share": right / 250,
        "right": right,
        "expected": None,
        "of": 250,
        "interval": list(wilson(right, 250)),
        "guessing": 1 / 250,
    }
    assert "this is no verdict: somebody who uses everything that is public may find more" in made["sentence"]
    done = [at for at, _ in steps]
    assert done == sorted(done)
    assert done[-1] > 950


def test_a_sample_of_subjects_is_stated_and_has_intervals(engine: Any, tied: Any, write: Any) -> None:
    x, y = tied(600)
    paths = write(x, y, rows=200)
    made = rv.attack(*paths, cluster=engine, subjects=300, draws=2000, seed=1)
    memory = rv.attack(table(x), table(y), draws=2000, seed=1)
    content, whole = made.to_dict(), memory.to_dict()
    assert (content["subjects"], content["of"], content["records"]) == (300, 600, 600)
    assert sum(content["counts"].values()) == 300
    assert content["chance"]["null"] == whole["chance"]["null"]  # of all records, drawn or not
    links = {link["original"]: link for link in whole["links"]}
    assert len(content["links"]) == 300
    assert content["links"] == [links[link["original"]] for link in content["links"]]
    for name, count in memory.counts.items():
        low, high = content["interval"][name]
        assert low < content["counts"][name] / 300 < high
        assert low <= count / 600 <= high
    assert content["interval"].keys() == {"correct", "multiple", "wrong", "claims", "claims_right"}
    assert (content["matched_by_several"], content["matched_by_none"]) == (None, None)
    assert any("for 300 of 600 subjects, drawn by the seed, each against all" in note for note in made.notes)
    assert (made.finding, made.holds, made.verdict) == (None, None, None)
    assert made.found == content["counts"]["correct"] / 300
    with pytest.raises(ParameterError, match="tables in parts have no record of every person"):
        made.rows()


def test_links_of_the_most_exposed_are_listed_when_there_are_many(
    engine: Any, tied: Any, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attacks, "LINKS", 40)
    x, y = tied(200)
    paths = write(x, y, rows=90)
    made = rv.attack(*paths, cluster=engine, subjects="all", draws=300)
    memory = rv.attack(table(x), table(y), draws=300).plaintext
    assert memory is not None
    content = made.to_dict()
    nearest = np.sort(np.argsort(memory.matches.distance, kind="stable")[:40])
    assert content["links"] == [memory.links()[i] for i in nearest]
    assert content["counts"] == memory.counts
    assert content["mean_distance"] == memory.mean_distances()
    assert "the links of the 40 most exposed subjects are listed; all 200 are counted" in made.notes
    assert content["matched_by_none"] is None


def mixed(n: int) -> tuple[pa.Table, pa.Table]:
    """Two tables with a key, numbers, gaps, categories and dates, the masked one in another order and with one more."""
    rng = np.random.default_rng(8)
    keys, order = rng.permutation(10 * n)[: n + 1], rng.permutation(n + 1)
    numbers = np.round(rng.normal(size=n + 1), 1)
    levels = np.array(["Ulm", "Jena", "Bonn", "Kiel"])[rng.integers(0, 4, n + 1)]
    days = rng.integers(10_000, 10_050, n + 1)
    gaps = rng.random(n + 1) < 0.1

    def made(rows: Any, noise: int) -> pa.Table:
        size = len(rows)
        return pa.table(
            {
                "KEY": keys[rows],
                "NUMBER": np.round(numbers[rows] + noise * 0.2 * rng.normal(size=size), 1),
                "GAPS": pa.array(rng.normal(size=size), mask=gaps[rows]),
                "CITY": levels[np.roll(rows, noise)],
                "DAY": pa.array(days[rows] + noise * rng.integers(0, 3, size), pa.int32()).cast(pa.date32()),
            }
        )

    return made(np.arange(n), 0), made(order, 1)


@pytest.mark.parametrize("how", [{"key": "KEY"}, {"mapping": False}, {"mapping": False, "columns": ["NUMBER", "DAY"]}])
def test_gaps_categories_dates_and_keys_are_as_in_memory(
    how: dict[str, Any], engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankveil.cluster.tables._FEWEST", 1)
    monkeypatch.setattr("rankveil.cluster.tables._MOST", 60)
    paths, tables = [], mixed(150)
    for name, whole in zip(("original", "masked"), tables, strict=True):
        folder = tmp_path / name
        folder.mkdir()
        paths.append(folder)
        for start in range(0, len(whole), 60):
            pq.write_table(whole.slice(start, 60), folder / f"{start:03d}.parquet")
    schema = rv.Schema(roles={"KEY": "identifier", "CITY": "quasi-identifier"})
    asked: dict[str, Any] = {"schema": schema, "draws": 300, **how}
    made = rv.attack(*paths, cluster=engine, subjects="all", **asked)
    memory = rv.attack(*tables, **asked)
    assert papers(made.to_dict()) == papers(memory.to_dict())
    assert list(made.to_dict()["rankings"]) == ([] if "columns" in how else ["CITY"])
    assert papers_notes(memory) <= set(made.notes)
    assert "attacked in 3 parts on the cluster local:2" in made.notes


def deadly(engine: Any, marks: Path) -> Callable[..., Any]:
    """An engine on which the first task of every list takes its worker down, after its work."""

    def each(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        mark = str(marks / name_of(function))

        def once(item: Any) -> Any:
            result = function(item)
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return result
            os.kill(os.getpid(), signal.SIGKILL)

        found: list[Any] = engine(once, items)
        return found

    return each


def test_a_worker_lost_on_the_way_costs_time_alone(
    engine: Any, tied: Any, write: Any, tmp_path: Path, each: Any
) -> None:
    tables = given_tables(*write(*tied(200), rows=70))
    marks = tmp_path / "marks"
    marks.mkdir()
    found = []
    for number, run in enumerate((deadly(engine, marks), each)):
        folder = tmp_path / f"scratch-{number}"
        folder.mkdir()
        job = Job(
            tables.original, tables.masked, tables.original.names, (0, 70, 140, 200), Scratch(str(folder)), Seed.of(0)
        )
        released = released_columns(ranked(job, each))
        made, distance = links(job, run, released, np.arange(0, 200, 2), tried(200, 5, Seed.of(0).stream("chance")))
        found.append((made.answers.distance, made.answers.count, made.answers.row, distance))
        found[-1] += tuple(np.concatenate(part) for part in zip(*made.of(np.arange(100)), strict=True))
    assert {"gather_subjects", "gather_random", "answer_links", "merge_links", "merge_random"} == {*os.listdir(marks)}
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def test_an_attack_that_was_stopped_is_resumed(engine: Any, tied: Any, write: Any) -> None:
    paths = write(*tied(200), rows=70)
    attack = partial(rv.attack, *paths, cluster=engine, draws=300, subjects=90)
    expected = attack().to_dict()
    for until in (1, 300, 700, 950):

        def stop(done: int, _: int, until: int = until) -> None:
            if done >= until:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt, match=r"stopped; what was done is kept in .*--resume goes on"):
            attack(resume=until > 1, progress=stop)
    made = attack(resume=True).to_dict()
    assert papers(made) == papers(expected)
    assert made["found"] == expected["found"]
    assert "what an earlier run had done was taken up" in made["notes"]
    assert len(os.listdir(engine.scratch)) == 1


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"subsets": True}, "subsets is not for a cluster; leave it out"),
        ({"links": [(1, 1)]}, "links is not for a cluster; leave it out"),
        ({"knows": ["V0"]}, "knows is not for a cluster; leave it out"),
        ({"people": 0.5}, "people is not for a cluster; leave it out"),
        ({"subjects": 0}, "subjects must be 1 or more, or all"),
        ({"subjects": "some"}, "subjects must be a whole number or all"),
        ({"draws": 0}, "draws must be a whole number of at least 1"),
    ],
)
def test_what_is_not_for_a_cluster_is_refused(how: Any, what: str, engine: Any, tied: Any, write: Any) -> None:
    with pytest.raises(ParameterError, match=what):
        rv.attack(*write(*tied(30), rows=30), cluster=engine, **how)
    assert len(os.listdir(engine.scratch)) == 1


def test_tables_that_do_not_fit_in_memory_go_to_local_workers(
    tied: Any, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = write(*tied(60), rows=30)
    memory = rv.attack(*paths, draws=100)
    assert memory.verdict is not None
    container = tmp_path / "container"  # one that may use 512 MiB
    container.mkdir()
    (container / "memory.max").write_text(f"{2**30}\n")
    (container / "memory.current").write_text(f"{2**29}\n")
    monkeypatch.setattr("rankveil.memory.GROUP", str(container))
    made = rv.attack(*paths, draws=100, scratch=tmp_path)
    assert any("attacked in parts by processes of this machine, as with --cluster local" in x for x in made.notes)
    assert papers(made.to_dict()) == papers(memory.to_dict())
    aside = rv.attack(*paths, draws=100, subsets=True)
    assert "not attacked in parts, as subsets is not for a cluster" in aside.notes[-1]


def test_the_command_line(tied: Any, write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, masked = map(str, write(*tied(300), rows=100))
    words = ["attack", original, masked, "--cluster", "local:1", "--scratch", str(tmp_path), "--draws", "200"]
    assert main([*words, "--subjects", "80", "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    made = json.loads(said.out)
    assert (made["subjects"], made["of"]) == (80, 300)
    page = tmp_path / "attack.html"
    assert main([*words, "--subjects", "80", "--report", str(page)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Linking by distance alone finds ")
    assert "this is no verdict" in shown
    assert "The 95 % interval of that share is " in shown
    assert "FAILS" not in shown
    assert "holds" not in shown
    assert "Drawn were 80 of 300 records" in page.read_text()
    assert main([*words, "--subsets"]) == 2
    assert "subsets is not for a cluster; leave it out" in capsys.readouterr().err
