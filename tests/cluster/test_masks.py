"""Tables masked on two processes: the release of memory, whatever is lost on the way, and no secret told."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil import cluster
from rankveil.cli import main
from rankveil.cluster.masks import MaskedParts, masked_table, open_table
from rankveil.cluster.sending import name_of
from rankveil.deciding import decided_table
from rankveil.errors import ClusterError, FileError, FormatError, ParameterError
from rankveil.manifest import describe
from rankveil.plans import Plan, make_step
from rankveil.seeds import Seed
from rankveil.table import Table

SEED = "5eed0123456789abcdef5eed0123456789abcdef5eed0123456789abcdef5eed"
RECORDS, ROWS = 300, 100


def people() -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "TOWN": pa.array(np.array(["na", "nb", "sa", "sb"])[rng.integers(0, 4, RECORDS)]),
            "AGE": rng.integers(18, 70, RECORDS),
            "INCOME": pa.array(rng.lognormal(10, 1, RECORDS), mask=rng.random(RECORDS) < 0.05),
            "RENT": np.round(rng.normal(500, 90, RECORDS), 1),
        }
    )


def declared() -> rv.Schema:
    rows = [(town, town[0], "*") for town in ("na", "nb", "sa", "sb")]
    roles = {"TOWN": "other", "AGE": "confidential", "INCOME": "confidential", "RENT": "confidential"}
    given = rv.Schema(kinds={"AGE": "numeric"}, roles=roles, hierarchies={"TOWN": rv.Hierarchy(rows)})
    return decided_table(Table(people(), schema=given)).schema


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The table as three files."""
    made = tmp_path / "original"
    made.mkdir()
    for start in range(0, RECORDS, ROWS):
        pq.write_table(people().slice(start, ROWS), made / f"part-{start:03d}.parquet")
    return made


def released(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.ParquetFile(path).read() for path in sorted(folder.iterdir())])


def run(engine: Any, folder: Path, plan: Plan, out: Path, **how: Any) -> MaskedParts:
    """Mask in three parts, a few records put in order together."""
    given = {"schema": declared(), "seed": Seed.of(SEED), "rows": ROWS, "block": 70, **how}
    with masked_table(engine, open_table(folder), plan, out=out, **given) as made:
        made.folder.commit()
    return made


def in_memory(plan: Plan, seed: Any = SEED) -> rv.Release:
    return rv.mask(people(), plan, seed=seed, schema=declared())


def assert_only(place: Path, *names: str) -> None:
    """Nothing else lies there, hidden or not."""
    assert sorted(os.listdir(place)) == sorted(names)


PLANS = {
    "additive_noise": Plan.of("additive_noise", alpha=0.4),
    "rank_swap": Plan.of("rank_swap", p=10),
    "shuffle": Plan.of("shuffle"),
    "ipso": Plan.of("ipso", columns=["INCOME", "RENT"]).in_random_order(),
    "mdav": Plan.of("mdav", k=3, kd_blocks=4),
    "recode": Plan.of("recode", **{"level.TOWN": 1, "width.AGE": 10.0}),
    "sample": Plan.of("sample", share=0.2).then(make_step("permute", {})),
}


@pytest.mark.parametrize("method", PLANS)
def test_the_release_is_that_of_memory(method: str, engine: Any, folder: Path, tmp_path: Path) -> None:
    plan, memory = PLANS[method], in_memory(PLANS[method])
    made = run(engine, folder, plan, tmp_path / "out")
    assert released(tmp_path / "out").equals(memory.data, check_metadata=True)
    assert_only(tmp_path / "out", *(f"part-0000{k}.parquet" for k in range(3)))
    assert json.loads(describe(made.whole, plan, made.account, digest=made.digest).to_json()) == json.loads(
        memory.manifest.to_json()
    )
    assert made.fingerprint == memory.secret.fingerprint
    assert (made.order is None) == (memory.secret.order is None)
    assert made.order is None or np.array_equal(made.order, memory.secret.order)
    assert f"masked in 3 parts on the cluster {engine.address.text}" in made.notes
    assert_only(tmp_path, "original", "out")
    assert_only(Path(engine.scratch), os.path.basename(engine._own))


def test_mask_on_a_cluster_returns_what_it_returns_in_memory(engine: Any, folder: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    how: dict[str, Any] = {"seed": SEED, "p": 10, "publish": ["cm1", "rank_linkage"], "replicate": 2}
    made = rv.mask(
        folder, "rank_swap", columns=["AGE", "INCOME", "RENT"], cluster=engine, output=tmp_path / "out",
        progress=lambda *at: steps.append(at), **how,
    )  # fmt: skip
    memory = rv.mask(people(), "rank_swap", columns=["AGE", "INCOME", "RENT"], **how).published()
    assert made.data == str(tmp_path / "out")
    assert released(tmp_path / "out").equals(memory.data)
    ours, theirs = (json.loads(each.manifest.to_json()) for each in (made, memory))
    values = [each.pop("measures") for each in (ours, theirs)]
    assert ours == theirs | {"measured_columns": ours["measured_columns"]}
    assert values[0]["cm1"] == pytest.approx(values[1]["cm1"], rel=1e-12)
    assert (made.changed, made.passed_through) == (memory.changed, memory.passed_through)
    assert set(memory.notes) <= set(made.notes)
    assert steps[-1][0] <= steps[-1][1]
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert (tmp_path / "out.secret.json").read_text() == made.secret.to_json()
    assert (tmp_path / "out.manifest.json").read_text() == made.manifest.to_json()
    masked = ["AGE", "INCOME", "RENT"]  # what was published tells of these
    assert rv.audit(folder, made, cluster=engine, measures=["cm1"], columns=masked)["cm1"] == values[0]["cm1"]
    audit = rv.audit(people(), released(tmp_path / "out"), measures=["cm2"], secret=made.secret)
    assert audit["cm2"] == rv.audit(people(), memory.data, measures=["cm2"], secret=memory.secret)["cm2"]


def test_synthetic_records_are_shuffled_on_a_cluster_too(engine: Any, folder: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"columns": ["AGE", "INCOME", "RENT"], "seed": SEED, "publish": ["um", "cm1"]}
    made = rv.mask(folder, "ipso", cluster=engine, output=tmp_path / "out", **how)
    memory = rv.mask(people(), "ipso", **how)
    assert released(tmp_path / "out").equals(memory.data)
    assert np.array_equal(made.secret.order, memory.secret.order)
    assert made.manifest["steps"][-1]["method"] == "record_shuffle"
    assert list(made.manifest["measures"]) == ["um"]  # the others would need the mapping
    assert set(memory.notes) <= set(made.notes)


def test_nothing_tells_the_seed_or_the_original(engine: Any, folder: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []

    def look(*_: int) -> None:
        places = [Path(engine.scratch), *Path(engine.scratch).iterdir()]
        seen.extend((place.name, place.stat().st_mode & 0o077) for place in places[1:])

    made = rv.mask(folder, "rank_swap", seed=SEED, cluster=engine, output=tmp_path / "out", progress=look)
    told = made.manifest.to_json() + repr(made) + repr(made.secret) + " ".join(made.notes)
    assert SEED not in told
    assert made.secret.fingerprint not in told
    assert not re.search(r"[0-9a-f]{24,}", told.replace(made.manifest["digest"], ""))
    assert {mode for _, mode in seen} == {0}  # what lies in scratch is for its owner alone
    assert any(name != os.path.basename(engine._own) for name, _ in seen)
    assert json.loads(made.secret.to_json())["seed"] == SEED


# ---- what is lost on the way ----


class Deadly:
    """An engine on which one task of every kind takes its worker down, and one more when it has written its part."""

    def __init__(self, engine: Any, marks: Path) -> None:
        self._engine, self._marks = engine, marks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def __call__(self, function: Callable[[Any], Any], items: Sequence[Any], **how: Any) -> list[Any]:
        marks, name = str(self._marks), name_of(function)

        def first(mark: str) -> bool:
            try:
                os.close(os.open(os.path.join(marks, mark), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return False
            return True

        def once(item: Any) -> Any:
            if first(name):
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(item)
            if type(result).__name__ == "_Done" and first("written"):
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        once.__name__ = name
        found: list[Any] = self._engine(once, items, **how)
        return found


def test_a_worker_lost_in_every_stage(engine: Any, folder: Path, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    plan = Plan.of("rank_swap", p=10, columns=["RENT", "TOWN"]).then("rank_swap", scheme="pairs", columns=["AGE"])
    run(Deadly(engine, marks), folder, plan, tmp_path / "out")
    assert {"look_at", "attempt", "answer", "make_once", "again", "fingerprint_of", "written"} <= set(os.listdir(marks))
    assert released(tmp_path / "out").equals(in_memory(plan).data)
    assert_only(tmp_path, "marks", "original", "out")


def test_a_lost_scheduler_leaves_nothing_half_written_and_the_work_is_resumed(
    engine: Any, scheduler: Any, folder: Path, tmp_path: Path
) -> None:
    plan = Plan.of("rank_swap", p=10)
    (tmp_path / "cluster").mkdir()
    with scheduler(tmp_path / "cluster", workers=1) as (address, process):

        def lose(done: int, of: int) -> None:
            if done > 0.4 * of and process.poll() is None:
                process.kill()
                process.wait()

        with (
            cluster.open(address, scratch=engine.scratch) as remote,
            pytest.raises(ClusterError, match=r"the scheduler was lost; what was done is kept in .*--resume") as lost,
        ):
            run(remote, folder, plan, tmp_path / "out", progress=lose)
    assert SEED not in str(lost.value)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ParameterError, match="the same job was stopped and left its work here; go on with --resume"):
        run(engine, folder, plan, tmp_path / "out")
    with pytest.raises(ParameterError, match="another job"):
        run(engine, folder, plan, tmp_path / "out", seed=Seed.of("ab" * 32), resume=True)
    made = run(engine, folder, plan, tmp_path / "out", resume=True)
    assert "what an earlier run had done was taken up" in made.notes
    assert released(tmp_path / "out").equals(in_memory(plan).data)
    assert_only(tmp_path, "cluster", "original", "out")
    assert_only(Path(engine.scratch), os.path.basename(engine._own))


def test_work_with_a_fresh_seed_that_was_stopped_anywhere_is_resumed_with_that_seed(
    engine: Any, folder: Path, tmp_path: Path
) -> None:
    plan = Plan.of("sample", share=0.5).then(make_step("rank_swap", {"p": 10}))
    for until in (1, 300, 600, 900):

        def stop(done: int, _: int, until: int = until) -> None:
            if done >= until:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt, match=r"stopped; what was done is kept in .*--resume goes on"):
            run(engine, folder, plan, tmp_path / "out", seed=None, resume=until > 1, progress=stop)
        assert not (tmp_path / "out").exists()
        [journal] = Path(engine.scratch).glob("rankveil-*/journal")
        assert journal.stat().st_mode & 0o777 == 0o600  # it holds the seed
        assert journal.parent.stat().st_mode & 0o777 == 0o700
    made = run(engine, folder, plan, tmp_path / "out", seed=None, resume=True)
    assert released(tmp_path / "out").equals(in_memory(plan, made.seed).data)
    assert_only(tmp_path, "original", "out")
    assert_only(Path(engine.scratch), os.path.basename(engine._own))


# ---- what is refused ----


@pytest.fixture
def refused(engine: Any, tmp_path: Path) -> Any:
    """A masking that must be refused, with nothing left behind."""

    def check(error: type[Exception], match: str, data: Any, method: str = "rank_swap", **how: Any) -> None:
        before = sorted(os.listdir(tmp_path)), sorted(os.listdir(engine.scratch))
        given = {"cluster": engine, "output": tmp_path / "out", "seed": SEED, **how}
        with pytest.raises(error, match=match) as said:
            rv.mask(data, method, **given)
        assert SEED not in str(said.value)
        assert (sorted(os.listdir(tmp_path)), sorted(os.listdir(engine.scratch))) == before

    return check


def test_what_cannot_be_masked_on_a_cluster_is_refused(refused: Any, folder: Path, tmp_path: Path) -> None:
    shuffled = rv.Plan.of("record_shuffle").then("rank_swap")
    refused(ParameterError, "record_shuffle: on a cluster it must be the last step", folder, shuffled)
    refused(ParameterError, "groups are not for a table in parts", folder, schema=rv.Schema(roles={"TOWN": "group"}))
    refused(ParameterError, "a table is a Parquet file or a folder of them", people())
    refused(ParameterError, r"name the folder that the release is written to", folder, output=None)
    refused(ParameterError, "decimal mark", folder, decimal=",")
    refused(FileError, "gone.parquet: there is no such file or folder", tmp_path / "gone.parquet")
    csv = r"out.csv: on a cluster a release is a folder of Parquet files; give it a name that ends in .parquet"
    refused(ParameterError, csv, folder, output=tmp_path / "out.csv")
    (tmp_path / "empty").mkdir()
    refused(FormatError, "empty: the folder has no Parquet files", tmp_path / "empty")
    refused(FileError, "original: the release would overwrite the original", folder, output=folder)
    refused(FileError, "original: the release would overwrite the original", folder, output=folder.as_uri())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-1.parquet").touch()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    refused(FileError, "out: is there already and holds something else than Parquet files; name another", folder)
    assert sorted(os.listdir(tmp_path / "out")) == ["notes.txt", "part-1.parquet"]


def test_a_damaged_file_in_the_middle_is_named(refused: Any, folder: Path) -> None:
    part = folder / "part-100.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:4] + bytes(300) + whole[304:])  # the footer is as it was: a worker finds out
    refused(FormatError, r"part-100.parquet: is not a Parquet file, or is damaged", folder)


def test_scratch_without_space_is_found_ahead(refused: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))  # a disk that is nearly full
    refused(FileError, r"the job may need .* of scratch and .* are free", folder)


def test_a_method_for_which_workers_have_too_little_memory(
    refused: Any, engine: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "memory", 20_000)
    refused(ParameterError, r"mdav needs all records of its columns in one place.*kd_blocks=N", folder, "mdav")
    refused(ParameterError, r"distance_swap needs all records of .* in one place", folder, "distance_swap", d=3)


# ---- the command line ----


def words(folder: Path, out: Path, scratch: Path, *more: str) -> list[str]:
    given = ["mask", str(folder), "-o", str(out), "--method", "rank_swap", "--set", "p=10", "--json", *more]
    return [*given, "--scratch", str(scratch)]


def test_control_c_keeps_what_is_done_and_resume_goes_on(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, scratch = tmp_path / "release.parquet", tmp_path / "scratch"
    scratch.mkdir()
    asked = words(folder, out, scratch, "--cluster", "local:1")
    process = subprocess.Popen(
        [sys.executable, "-m", "rankveil", *asked], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 90
    while not any(path.stat().st_size > 3000 for path in scratch.glob("rankveil-*/journal")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, err = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "")
    assert err.startswith("rankveil: stopped; what was done is kept in ")
    assert err.count("\n") == 1
    [kept] = os.listdir(scratch)
    [hidden] = [name for name in os.listdir(tmp_path) if name not in ("original", "scratch")]
    assert f"{scratch / kept} and {tmp_path / hidden}: " in err
    assert hidden == f".release.parquet.{kept}"
    assert main([*asked, "--resume"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert "what an earlier run had done was taken up" in made["notes"]
    secret = tmp_path / "release.parquet.secret.json"
    assert secret.stat().st_mode & 0o777 == 0o600
    memory = rv.mask(people(), "rank_swap", p=10, seed=json.loads(secret.read_text())["seed"]).published()
    assert released(out).equals(memory.data)
    assert_only(scratch)
    beside = (secret.name, f"{out.name}.manifest.json", "rankveil-register.json")
    assert_only(tmp_path, "original", "scratch", out.name, *beside)


def test_a_table_that_does_not_fit_in_memory_goes_to_local_processes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("rankveil.cluster.masks.memory.available", lambda: 1000)  # of a machine that is nearly full
    asked = words(folder, tmp_path / "release.parquet", scratch, "--seed", SEED, "--memory", "2GiB")
    assert main(asked) == 0
    made = json.loads(capsys.readouterr().out)
    assert re.search(r"may need .* are free: masked in parts by processes of this machine", made["notes"][0])
    memory = rv.mask(people(), "rank_swap", p=10, seed=SEED).published()
    assert released(tmp_path / "release.parquet").equals(memory.data)
    assert SEED not in (tmp_path / "release.parquet.manifest.json").read_text()
