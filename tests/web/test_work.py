"""Work in the background: every kind of run, its end, its interruption and its going on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rankveil as rv
from rankveil import datasets
from rankveil.web import places
from rankveil.web.runs import Runs
from rankveil.web.work import main
from rankveil.web.workspace import Workspace, write_json

MAP = {"methods": ["mdav", "rank_swap"], "utility": ["um"], "replicates": "2", "points": "4", "at": "sweep"}
LONG = MAP | {"methods": ["mdav", "rank_swap", "additive_noise", "resample"], "points": "40", "replicates": "20"}


def test_a_release_is_masked_audited_attacked_and_certified(user: Any) -> None:
    id = user.example()
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap", "p-p": "50"})
    run = user.ask(f"/data/{id}/mask")  # in a process of its own, as people have it
    chosen = {"release": f"run:{run}"}

    audit = user.do(f"/data/{id}/audit", chosen | {"measures": ["cm2", "um"], "fail_if": "cm2>1, um<0"})
    text = user.get(f"/runs/{audit}").text
    original = user.bench.opened(user.bench.source(id)).table
    masked = rv.Table(rv_load(user.bench.workspace.root / "runs" / run / "masked.csv"))
    document = user.get(f"/runs/{audit}/files/audit.json").json()
    secret = rv.Secret.from_json((user.bench.workspace.root / "runs" / run / "secret.json").read_text("utf-8"))
    assert document["mapping"] == "secret"  # what is downloaded is shuffled
    assert document["measures"]["cm2"]["value"] == rv.audit(original, masked, secret=secret)["cm2"]
    assert [gate["ok"] for gate in document["gates"]] == [True, True]
    assert "Every gate held." in text
    assert "--fail-if" in text

    attack = user.do(f"/data/{id}/attack", chosen | {"draws": "500", "subsets": "yes"})
    document = user.get(f"/runs/{attack}/files/attack.json").json()
    expected = rv.attack(original, masked, draws=500, subsets=True, secret=secret).to_dict()
    assert document["counts"] == expected["counts"]
    assert document["subsets"] == expected["subsets"]
    assert 'data-kind="match_distances"' in user.get(f"/runs/{attack}").text

    certificate = user.do(f"/runs/{run}/certify", {"d": "19", "diversity": "distinct"})
    assert "do NOT have the permuted privacy" in user.get(f"/runs/{certificate}").text
    largest = user.do(f"/runs/{run}/certify", {"diversity": "variance"})
    assert user.get(f"/runs/{largest}/files/certificate.json").json()["holds"] is True
    assert user.told(f"/runs/{run}/certify", {"d": "-1"}) == "the distance d must be a number from 0 to 1e+300, not -1"

    release = user.get(f"/runs/{run}").text
    for other in (audit, attack, certificate):
        assert f"/runs/{other}" in release


def rv_load(path: Path) -> Any:
    from rankveil import files

    return files.load(path).data


def test_a_release_made_elsewhere_is_audited(user: Any) -> None:
    id = user.example()
    _, masked = datasets.running_example()
    lines = [",".join(masked.column_names), *(",".join(map(str, row.values())) for row in masked.to_pylist())]
    other = user.upload("released.csv", "\n".join(lines) + "\n")
    run = user.do(f"/data/{id}/audit", {"release": f"data:{other}", "measures": ["permutation_level"]})
    expected = rv.audit(*datasets.running_example())["permutation_level"]
    document = user.get(f"/runs/{run}/files/audit.json").json()
    assert document["measures"]["permutation_level"]["value"] == pytest.approx(expected)
    run = user.do(f"/data/{id}/audit", {"release": f"data:{other}", "no_mapping": "yes", "measures": ["cm3"]})
    assert user.get(f"/runs/{run}/files/audit.json").json()["mapping"] == "none"


@pytest.mark.parametrize(("method", "mapping"), [("record_shuffle", "secret"), ("ipso", "none")])
def test_reordered_and_synthetic_releases_are_matched_as_they_must_be(user: Any, method: str, mapping: str) -> None:
    id = user.example()
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap", "p-p": "30"})
    user.post(f"/data/{id}/mask/step", {"method": method})
    run = user.do(f"/data/{id}/mask")
    audit = user.do(f"/data/{id}/audit", {"release": f"run:{run}", "measures": ["permutation_level", "um"]})
    assert user.get(f"/runs/{audit}/files/audit.json").json()["mapping"] == mapping


def test_a_failure_is_one_sentence(settled: Any) -> None:
    user, id, run = settled.user, settled.table, settled.run
    assert user.do(f"/data/{id}/audit", {"release": f"run:{run}", "measures": ["um"], "target": "X1"})
    other = user.upload("short.csv", "X1,X2,X3\n1,2,3\n")
    failed = user.do(f"/data/{id}/attack", {"release": f"data:{other}", "draws": "10"}, end="failed")
    text = user.get(f"/runs/{failed}").text
    assert "the original has 20 records and the masked table 1" in text
    assert "Try again" in text


def test_a_comparison_fills_a_map_whose_places_can_be_taken(user: Any) -> None:
    id = user.example()
    run = user.do(f"/data/{id}/compare", MAP)
    map_ = user.get(f"/runs/{run}/map").json()
    found = user.bench.runs.folder(user.bench.run(run)) / "places.json"
    known = json.loads(found.read_text())["places"]
    assert map_["places"] == len(known) >= 6
    table = user.bench.opened(user.bench.source(id)).table
    made = rv.compare(table, ["mdav", "rank_swap"], sweep=True, utility=["um"], replicates=2, points=4)
    assert known == places.of_comparison(made)
    assert any(place["front"] for place in known)
    user.post(f"/runs/{run}/take", {"place": "2"})
    assert user.bench.drafts.get(id).plan.to_dict() == known[2]["plan"]
    user.post(f"/runs/{run}/take", {"place": "999"}, status=400)
    text = user.get(f"/runs/{run}").text
    assert text.count("/take") == len(known)
    assert 'data-kind="risk_utility_map"' in text


def test_a_comparison_at_equal_risk(user: Any) -> None:
    id = user.example()
    run = user.do(f"/data/{id}/compare", MAP | {"at": "risk", "value": "0.9", "risk": "rank_linkage"})
    assert "/take" in user.get(f"/runs/{run}").text
    document = user.get(f"/runs/{run}/files/compare.json").json()
    assert document["at"] == {"risk": 0.9}
    assert not any("state" in note for note in document["notes"])


def test_a_comparison_within_a_limit(user: Any) -> None:
    id = user.example()
    asked = MAP | {"methods": ["mdav"], "replicates": "1"}
    for given, at in (
        ({"at": "found", "value": ""}, {"found": 0.09}),
        ({"at": "found", "value": "0.5"}, {"found": 0.5}),
        ({"at": "limit", "value": "0.2", "risk": "permutation_level"}, {"permutation_level": 0.2}),
    ):
        run = user.do(f"/data/{id}/compare", asked | given)
        document = user.get(f"/runs/{run}/files/compare.json").json()
        assert document["at"] == at
        [method] = document["methods"]
        assert method["satisfied"] == (document["pick"] is not None)
    assert document["pick"]["confirmed"]["value"] >= 0.2


def test_a_comparison_has_a_target_for_measures_that_ask_for_one(user: Any) -> None:
    id = user.example()
    asked = MAP | {"methods": ["rank_swap"], "replicates": "1", "utility": ["ci_overlap"]}
    run = user.do(f"/data/{id}/compare", asked | {"target": "X3"})
    [method] = user.get(f"/runs/{run}/files/compare.json").json()["methods"]
    assert any("ci_overlap" in place["utility"] for place in method["points"])
    assert '<span class="word">--target</span> <span class="word">X3</span>' in user.get(f"/runs/{run}").text
    without = user.do(f"/data/{id}/compare", asked)
    [method] = user.get(f"/runs/{without}/files/compare.json").json()["methods"]
    assert not any("ci_overlap" in place["utility"] for place in method["points"])


def test_the_map_that_fills_agrees_with_the_one_that_is_done(tmp_path: Path) -> None:
    original, _ = datasets.running_example()
    asked: dict[str, Any] = {"risk": "rank_linkage", "utility": ("um",), "replicates": 2, "points": 5}
    filling = places.Filling.of(
        rv.Table(original), ["mdav", "permute", "rank_swap"], parameters={}, columns=None, **asked
    )
    state, seen = tmp_path / "state", []

    def told(done: int, total: int) -> None:
        seen.append(filling.places(state))

    made = rv.compare(
        original, ["mdav", "permute", "rank_swap"], sweep=True, state=state, workers=1, progress=told, **asked
    )
    final = {(place["method"], place["label"]): place for place in places.of_comparison(made)}
    counts = [len(each) for each in seen]
    assert counts == sorted(counts)
    assert 0 < counts[len(counts) // 2] < counts[-1] == len(final)
    assert {(place["method"], place["label"]): place for place in seen[-1]} == final
    assert filling.places(tmp_path / "nothing") == []


def test_what_is_cancelled_stops_and_can_go_on(user: Any) -> None:
    id = user.example()
    run = user.post(f"/data/{id}/compare", LONG).headers["location"].rpartition("/")[2]
    while user.wait(run, "running")["done"] < 2:
        time.sleep(0.02)
    working = user.bench.dispatcher._working[run].process
    user.post(f"/runs/{run}/cancel")
    assert user.get(f"/runs/{run}/state").json()["status"] == "cancelled"
    assert working.wait(10) != 0
    folder = user.bench.runs.folder(user.bench.run(run))
    kept = len((folder / "state.jsonl").read_text().splitlines())
    assert kept > 1
    text = user.get(f"/runs/{run}").text
    assert "This was cancelled." in text
    assert "Resume" in text
    while run in user.bench.dispatcher._working:
        time.sleep(0.02)
    user.post(f"/runs/{run}/resume")
    user.wait(run, "running")
    user.post(f"/runs/{run}/cancel")
    user.post(f"/runs/{run}/cancel")
    assert user.get(f"/runs/{run}/state").json()["status"] == "cancelled"


def test_what_waits_is_cancelled_without_having_begun(user: Any) -> None:
    id = user.example()
    first = user.post(f"/data/{id}/compare", LONG).headers["location"].rpartition("/")[2]
    user.bench.dispatcher._at_once = 1
    user.wait(first, "running")
    second = user.post(f"/data/{id}/compare", LONG).headers["location"].rpartition("/")[2]
    assert user.get(f"/runs/{second}/state").json()["status"] == "queued"
    user.post(f"/runs/{second}/cancel")
    user.post(f"/runs/{first}/cancel")
    assert not (user.bench.runs.folder(user.bench.run(second)) / "progress.json").exists()


def test_a_stopped_server_interrupts_and_the_next_one_goes_on(enter: Any, tmp_path: Path) -> None:
    user = enter(tmp_path / "w")
    id = user.example()
    done = user.do(f"/data/{id}/compare", MAP)
    run = user.post(f"/data/{id}/compare", MAP | {"points": "10", "replicates": "8"}).headers["location"]
    while user.wait(run.rpartition("/")[2], "running")["done"] < 3:
        time.sleep(0.02)
    user.server.stop()
    folder = tmp_path / "w" / "runs" / run.rpartition("/")[2]
    kept = (folder / "state.jsonl").read_text().splitlines()

    again = enter(tmp_path / "w")
    assert again.get(f"/runs/{done}/state").json()["status"] == "done"
    assert "The server was stopped before this was done." in again.get(run).text
    assert "resume" in again.get("/").text
    assert again.get(f"{run}/map").json()["places"] > 0
    again.post(f"{run}/resume")
    seen = again.wait(run.rpartition("/")[2], "done", "running")
    assert (folder / "state.jsonl").exists() or seen["status"] == "done"
    again.wait(run.rpartition("/")[2], "done")
    assert len(kept) > 1
    settings = {"utility": ["um"], "replicates": 8, "points": 10}
    table = again.bench.opened(again.bench.source(id)).table
    expected = rv.compare(table, ["mdav", "rank_swap"], sweep=True, **settings).to_dict()
    assert again.get(f"{run}/files/compare.json").json()["methods"] == json.loads(json.dumps(expected["methods"]))


def test_what_a_run_needs_is_resumed_with_it(enter: Any, tmp_path: Path) -> None:
    """An audit that is resumed before the masking it waits for, which was stopped with it."""
    user = enter(tmp_path / "w")
    id = user.example()
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap", "p-p": "20"})
    mask = user.ask(f"/data/{id}/mask", {"audit": "yes"})
    [audit] = [run.id for run in user.bench.runs.all(release=mask) if run.id != mask]
    user.wait(audit, "done")
    user.server.stop()
    for run in (mask, audit):
        folder = tmp_path / "w" / "runs" / run
        told = json.loads((folder / "run.json").read_text("utf-8"))
        (folder / "run.json").write_text(json.dumps({**told, "status": "running", "ended": None}))
        (folder / "result.json").unlink()

    again = enter(tmp_path / "w")
    assert {again.get(f"/runs/{run}/state").json()["status"] for run in (mask, audit)} == {"interrupted"}
    again.post(f"/runs/{audit}/resume")
    again.wait(audit, "done")
    assert again.get(f"/runs/{mask}/state").json()["status"] == "done"


def test_a_process_ends_with_its_server(tmp_path: Path) -> None:
    runs = Runs(Workspace(tmp_path / "w"))
    run = runs.new("compare", "0123456789abcdef", {}, declared={})
    command = [sys.executable, "-m", "rankveil.web.work", str(runs.folder(run))]
    held = open_lock_of(runs.folder(run))  # so that it waits for its turn
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    time.sleep(0.1)
    assert process.poll() is None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(30) == -signal.SIGKILL
    held.close()


def open_lock_of(folder: Path) -> Any:
    import fcntl

    held = open(folder / ".lock", "w")  # noqa: SIM115
    fcntl.flock(held, fcntl.LOCK_EX)
    return held


def test_what_cannot_be_done_says_why(tmp_path: Path) -> None:
    runs = Runs(Workspace(tmp_path / "w"))
    run = runs.new("mask", "0123456789abcdef", {"plan": rv.Plan.of("rank_swap").to_dict()}, declared={})
    assert main(runs.folder(run)) == 1
    assert runs.failure(run) == "the table is not in the workspace any more"
    assert main(tmp_path) == 2


def test_a_killed_process_is_a_failure_that_is_told(user: Any) -> None:
    id = user.example()
    run = user.post(f"/data/{id}/compare", LONG).headers["location"].rpartition("/")[2]
    user.wait(run, "running")
    os.killpg(user.bench.dispatcher._working[run].process.pid, signal.SIGKILL)
    user.wait(run, "failed")
    assert "ended unexpectedly" in user.get(f"/runs/{run}").text


def test_runs_without_their_server_are_settled(tmp_path: Path) -> None:
    runs = Runs(Workspace(tmp_path / "w"))
    waiting = runs.new("mask", "0123456789abcdef", {}, declared={})
    finished = runs.keep(replace(runs.new("mask", "0123456789abcdef", {}, declared={}), status="running"))
    write_json(runs.folder(finished) / "result.json", {})
    runs.settle()
    assert runs.find(waiting.id).status == "interrupted"  # type: ignore[union-attr]
    assert runs.find(finished.id).status == "done"  # type: ignore[union-attr]


def made_elsewhere(user: Any, method: str, **parameters: Any) -> tuple[str, bytes, rv.Release]:
    """The running example in the workspace, and a release of it that was made by a script."""
    id = user.example()
    original = rv_load(user.bench.workspace.root / "data" / id / "table.csv")
    release = rv.mask(original, rv.Plan.of(method, **parameters))
    lines = [release.data.column_names, *(row.values() for row in release.data.to_pylist())]
    return id, "\n".join(",".join(map(str, line)) for line in lines).encode(), release


def upload(user: Any, name: str, content: bytes, manifest: str) -> str:
    files = {"file": (name, content), "manifest": (f"{name}.manifest.json", manifest.encode())}
    return str(user.post("/data", files=files).headers["location"]).rpartition("/")[2]


def test_the_manifest_of_a_release_made_elsewhere_tells_that_records_do_not_correspond(user: Any) -> None:
    id, content, release = made_elsewhere(user, "ipso", given=["X1"])
    other = upload(user, "synthetic.csv", content, release.manifest.to_json())
    run = user.do(f"/data/{id}/audit", {"release": f"data:{other}"})
    document = user.get(f"/runs/{run}/files/audit.json").json()
    assert document["mapping"] == "none"
    sentence = "synthetic.csv: its manifest says that its records do not correspond to original ones (no mapping)"
    assert sentence in document["notes"]
    assert ">--no-mapping<" in user.get(f"/runs/{run}").text
    run = user.do(f"/data/{id}/audit", {"release": f"data:{other}", "key": "X1"}, end="done")
    assert user.get(f"/runs/{run}/files/audit.json").json()["mapping"] == "key"


def test_a_reordered_release_made_elsewhere_needs_its_secret(user: Any) -> None:
    id, content, release = made_elsewhere(user, "record_shuffle")
    (user.bench.workspace.root / "inbox" / "mixed.csv").write_bytes(content)
    (user.bench.workspace.root / "inbox" / "mixed.csv.manifest.json").write_text(release.manifest.to_json())
    other = str(user.post("/data", {"picked": "mixed.csv"}).headers["location"]).rpartition("/")[2]
    chosen = {"release": f"data:{other}", "draws": "50"}
    for tab in ("audit", "attack"):
        told = user.told(f"/data/{id}/{tab}", chosen)
        assert told.startswith("mixed.csv: its rows were reordered, as its manifest says; give its secret")
        assert "“The secret of the release”" in told
    secret = {"secret": ("mixed.csv.secret.json", release.secret.to_json().encode())}
    told = user.told(f"/data/{id}/audit", chosen | {"no_mapping": "yes"}, files=secret)
    assert told.startswith("say in one way which record is which")
    assert "not a secret" in user.told(f"/data/{id}/audit", chosen, files={"secret": ("x.json", b"{}")})
    run = user.do(f"/data/{id}/audit", chosen, files=secret)
    document = user.get(f"/runs/{run}/files/audit.json").json()
    assert document["mapping"] == "secret"
    assert document["measures"]["permutation_level"]["value"] == 0
    assert not any("secret" in note for note in document["notes"])
    user.get(f"/runs/{run}/files/secret.json", status=400)
    seed = release.secret.seed.reveal().encode()
    holding = [path for path in user.bench.workspace.root.rglob("*") if path.is_file() and seed in path.read_bytes()]
    assert [path.name for path in holding] == ["secret.json"]


def test_a_manifest_of_something_else_is_refused(user: Any) -> None:
    _, content, release = made_elsewhere(user, "record_shuffle")
    shorter = b"\n".join(content.split(b"\n")[:-1])
    for manifest, sentence in (
        (b"no manifest", "this is not a manifest"),
        (b"\xff\xfe", "this is not a manifest: it is not UTF-8 text"),
        (release.manifest.to_json().encode(), "the manifest of another release: the table has 19 records"),
    ):
        files = {"file": ("a.csv", shorter), "manifest": ("a.csv.manifest.json", manifest)}
        assert sentence in user.told("/data", files=files)
    assert len(user.bench.sources.all()) == 1
