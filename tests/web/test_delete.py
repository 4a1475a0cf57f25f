"""Deleting tables and runs: asked first, refused while something is under way, and then for good."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LONG = {"methods": ["mdav", "rank_swap"], "utility": ["um"], "replicates": "30", "points": "40", "at": "sweep"}


def masked(user: Any) -> tuple[str, str]:
    """The running example and a masking of it."""
    id = user.example()
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap", "p-p": "50"})
    return id, user.do(f"/data/{id}/mask")


def inside(user: Any) -> list[str]:
    """What lies in the rooms of the workspace."""
    root = user.bench.workspace.root
    return sorted(f"{room}/{name}" for room in ("data", "plans", "runs") for name in os.listdir(root / room))


def ended(user: Any, run: str) -> None:
    """Wait until the process of a cancelled run is gone."""
    last = time.monotonic() + 30
    while run in user.bench.dispatcher.at_work:
        assert time.monotonic() < last
        time.sleep(0.05)


def test_a_table_goes_with_its_plan_and_all_that_was_made_of_it(user: Any) -> None:
    kept = user.example()
    id, run = masked(user)
    user.do(f"/data/{id}/audit", {"release": f"run:{run}", "measures": ["um"]})
    page = user.get(f"/data/{id}/delete").text
    assert "This deletes the table, its plan and everything that was made of it" in page
    assert "The secret of a release goes too" in page
    assert page.count("<tr><td>") == 2
    assert len(inside(user)) == 5
    assert user.post(f"/data/{id}/delete").headers["location"] == "/"
    assert inside(user) == [f"data/{kept}"]
    user.get(f"/data/{id}", status=404)
    user.get(f"/runs/{run}/files/secret.json", status=404)
    user.post(f"/data/{id}/delete", status=404)
    assert "rank_swap" not in user.get("/").text


def test_a_run_goes_with_what_is_about_its_release(user: Any) -> None:
    id, run = masked(user)
    other = user.do(f"/data/{id}/mask")
    audit = user.do(f"/data/{id}/audit", {"release": f"run:{run}", "measures": ["um"]})
    assert "The secret" not in user.get(f"/runs/{audit}/delete").text
    assert "also what is about its release" in user.get(f"/runs/{run}/delete").text
    assert user.post(f"/runs/{run}/delete").headers["location"] == f"/data/{id}/release"
    assert inside(user) == [f"data/{id}", f"plans/{id}.json", f"runs/{other}"]
    for gone in (run, audit):
        user.get(f"/runs/{gone}", status=404)
    user.get(f"/runs/{other}")


def test_looking_at_the_question_deletes_nothing(settled: Any) -> None:
    user, id, run = settled.user, settled.table, settled.run
    before = inside(user)
    user.get(f"/data/{id}/delete")
    user.get(f"/runs/{run}/delete")
    assert inside(user) == before


def test_nothing_under_way_is_deleted(user: Any) -> None:
    id = user.example()
    run = str(user.post(f"/data/{id}/compare", LONG).headers["location"]).rpartition("/")[2]
    user.wait(run, "running")
    for address in (f"/data/{id}", f"/runs/{run}"):
        page = user.get(f"{address}/delete").text
        assert "under way; cancel it first" in page
        assert "<button" not in page
        assert "under way; cancel it first" in user.told(f"{address}/delete")
    user.get(f"/runs/{run}")
    user.post(f"/runs/{run}/cancel")
    ended(user, run)
    user.post(f"/runs/{run}/delete")
    user.post(f"/data/{id}/delete")
    assert inside(user) == []


def test_a_table_that_work_on_another_one_needs_is_not_deleted(user: Any) -> None:
    id, other = user.example("demo"), user.example("demo")
    asked = {"release": f"data:{other}", "draws": "10000000"}
    run = str(user.post(f"/data/{id}/attack", asked).headers["location"]).rpartition("/")[2]
    user.wait(run, "running")
    assert "under way" in user.told(f"/data/{other}/delete")
    user.post(f"/runs/{run}/cancel")
    ended(user, run)
    user.post(f"/data/{other}/delete")
    assert inside(user) == [f"data/{id}", f"runs/{run}"]
    assert user.get(f"/runs/{run}").status_code == 200


@pytest.mark.parametrize("origin", [None, "http://evil.example"])
def test_another_site_cannot_delete(settled: Any, origin: str | None) -> None:
    headers = {} if origin is None else {"Origin": origin}
    for address in (f"/data/{settled.table}/delete", f"/runs/{settled.run}/delete"):
        assert settled.user.client.post(address, headers=headers).status_code == 403
    settled.user.get(f"/runs/{settled.run}")


def test_what_was_begun_to_be_deleted_is_gone_after_a_restart(enter: Callable[..., Any], tmp_path: Path) -> None:
    user = enter(tmp_path / "w")
    id, _ = masked(user)
    user.server.stop()
    os.rename(tmp_path / "w" / "data" / id, tmp_path / "w" / "data" / ".gone-0123456789abcdef")
    again = enter(tmp_path / "w")
    assert os.listdir(tmp_path / "w" / "data") == []
    assert "rank_swap" in (home := again.get("/").text)
    run = again.bench.runs.all()[0].id
    assert f"/runs/{run}/delete" in home
    assert again.post(f"/runs/{run}/delete").headers["location"] == "/"
