"""Who comes in, who is refused, and what every answer says."""

from __future__ import annotations

import http.client
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from rankveil.errors import FileError
from rankveil.web.workspace import Workspace

TOKEN = "the-token-of-the-tests"


@pytest.fixture
def stranger(settled: Any) -> Any:
    """A browser without a session, at the same workbench."""
    return settled.user.server.client()


@pytest.fixture
def inside(settled: Any) -> Any:
    """Somebody who may look at a workbench that others use too."""
    return settled.user


@pytest.mark.parametrize("address", ["/", "/data", "/assets/app.js", "/runs/0123456789abcdef/files/secret.json", "/x"])
def test_without_the_token_everything_is_refused(inside: Any, stranger: Any, address: str) -> None:
    answer = stranger.get(address)
    assert answer.status_code == 403
    assert answer.text.startswith("Refused: open the workbench by the address")
    assert stranger.post(address, headers={"Origin": inside.server.origin}).status_code == 403


def test_a_token_works_once(start: Any) -> None:
    renewed: list[str] = []
    server = start(token="first", renewed=renewed.append)
    one, other = server.client(), server.client()
    assert one.get("/?token=wrong").status_code == 403
    assert one.get("/?token=first").status_code == 200
    assert one.get("/").status_code == 200
    assert other.get("/?token=first").status_code == 403
    assert other.get("/").status_code == 403
    assert other.get(f"/?token={renewed[0]}").status_code == 200
    assert other.get("/").status_code == 200


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(start: Any, tmp_path: Path) -> None:
    client = start(tmp_path / "w", token="first").client()
    cookie = client.get("/?token=first").headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    value = cookie.partition("=")[2].partition(";")[0]
    assert value not in (tmp_path / "w" / "sessions.json").read_text()


def test_a_restarted_server_knows_its_browsers(start: Any, tmp_path: Path) -> None:
    server = start(tmp_path / "w", token="first")
    client = server.client()
    client.get("/?token=first")
    cookies = dict(client.cookies)
    server.stop()
    assert start(tmp_path / "w", token="second").client(cookies=cookies).get("/").status_code == 200
    assert start(tmp_path / "v", token="third").client(cookies=cookies).get("/").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.1:1", "localhost:1", "x"])
def test_a_wrong_host_is_refused(inside: Any, host: str) -> None:
    host = host.replace("PORT", str(inside.server.port))
    answer = inside.client.get("/", headers={"Host": host})
    assert answer.status_code == 403
    assert inside.client.get(f"/?token={TOKEN}", headers={"Host": host}).status_code == 403


def test_localhost_is_this_machine_too(inside: Any) -> None:
    assert inside.client.get("/", headers={"Host": f"localhost:{inside.server.port}"}).status_code == 200


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1:PORT"]
)
def test_a_form_of_another_site_is_refused(inside: Any, origin: str | None) -> None:
    headers = {} if origin is None else {"Origin": origin.replace("PORT", str(inside.server.port))}
    answer = inside.client.post("/data", data={"example": "demo"}, headers=headers)
    assert answer.status_code == 403
    assert answer.text == "Refused: the request comes from another site.\n"
    assert len(inside.bench.sources.all()) == 1


def test_another_site_cannot_even_read(inside: Any) -> None:
    assert inside.client.get("/", headers={"Origin": "http://evil.example"}).status_code == 403


def test_every_answer_is_guarded(inside: Any, stranger: Any) -> None:
    for answer in (
        inside.get("/"),
        inside.get("/nothing", status=404),
        inside.get("/assets/app.js"),
        stranger.get("/"),
    ):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-eval" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert inside.get("/").headers["cache-control"] == "no-store"


def test_no_page_holds_a_script(settled: Any) -> None:
    id = settled.table
    tabs = [f"/data/{id}/{tab}" for tab in ("mask", "audit", "attack", "compare", "release")]
    for address in ("/", f"/data/{id}", f"/runs/{settled.run}", *tabs):
        text = settled.user.get(address).text
        for part in text.split("<script")[1:]:
            assert part.startswith((' src="/assets/', ' type="application/json"')), part[:80]
        assert " onclick=" not in text


@pytest.mark.parametrize("name", ["../evil.csv", "..\\evil.csv", "/etc/passwd.csv", "a/b.csv", "x..csv", ".csv"])
def test_a_name_that_is_a_path_is_refused(inside: Any, name: str) -> None:
    told = inside.told("/data", files={"file": (name, b"A,B\n1,2\n")})
    assert "must not be a path" in told or told == "choose a file first"
    assert len(inside.bench.sources.all()) == 1


@pytest.mark.parametrize(
    "address",
    [
        "/runs/../data",
        "/runs/{run}/files/../run.json",
        "/runs/{run}/files/..%2frun.json",
        "/runs/{run}/files/%2e%2e%2frun.json",
        "/runs/{run}/files/..%5crun.json",
        "/runs/{run}/files/a%00b",
        "/data/..%2f..%2fetc",
        "/assets/..%2fapp.py",
    ],
)
def test_a_path_in_the_address_is_refused(settled: Any, address: str) -> None:
    # httpx would tidy the address up
    line = http.client.HTTPConnection("127.0.0.1", settled.user.server.port)
    cookies = "; ".join(f"{name}={value}" for name, value in settled.user.client.cookies.items())
    line.request("GET", address.replace("{run}", settled.run), headers={"Cookie": cookies})
    answer = line.getresponse()
    assert answer.status == 400
    assert answer.read() == b"Refused: the address holds a name that is a path.\n"
    line.close()


@pytest.mark.parametrize("name", ["run.json", "progress.json", "result.json", ".lock", "view.html", "nothing.csv"])
def test_only_what_a_run_declares_is_handed_out(settled: Any, name: str) -> None:
    settled.user.get(f"/runs/{settled.run}/files/{name}", status=400)
    settled.user.get(f"/runs/{settled.run}/files/masked.csv")


def test_a_link_out_of_the_workspace_is_not_followed(user: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside.csv"
    outside.write_text("A\n1\n")
    inbox = user.bench.workspace.root / "inbox"
    os.symlink(outside, inbox / "linked.csv")
    assert user.bench.sources.inbox() == []
    assert user.told("/data", {"picked": "linked.csv"}) == "there is no such file in the inbox"
    assert user.told("/data", {"picked": "../../outside.csv"}) == "there is no such file in the inbox"
    id = user.example()
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap"})
    run = user.do(f"/data/{id}/mask")
    masked = user.bench.workspace.root / "runs" / run / "masked.csv"
    masked.unlink()
    os.symlink(outside, masked)
    user.get(f"/runs/{run}/files/masked.csv", status=400)


@pytest.mark.parametrize("id", ["x", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdef"])
def test_what_is_not_there_is_not_found(inside: Any, id: str) -> None:
    assert "There is no such" in inside.get(f"/data/{id}", status=404).text
    assert "There is no such" in inside.get(f"/runs/{id}", status=404).text


def test_what_is_too_large_is_refused(inside: Any) -> None:
    large = b"A,B\n" + b"1,2\n" * 100_000
    answer = inside.post("/data", status=413, files={"file": ("large.csv", large)})
    assert "larger than 300 kB" in answer.text
    assert "inbox" in answer.text
    assert len(inside.bench.sources.all()) == 1


def test_what_does_not_tell_its_size_is_counted(inside: Any) -> None:
    def parts() -> Any:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(20_000):
            yield b"1,2\n" * 25

    headers = {"Origin": inside.server.origin, "Content-Type": "multipart/form-data; boundary=x"}
    answer = inside.client.post("/data", content=parts(), headers=headers)
    assert answer.status_code == 413
    assert len(inside.bench.sources.all()) == 1


def test_the_workspace_is_closed_to_others(settled: Any) -> None:
    user, run = settled.user, settled.run
    root = user.bench.workspace.root
    for path in (root, *root.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE((root / "runs" / run / "secret.json").stat().st_mode) == 0o600
    seed = json.loads((root / "runs" / run / "secret.json").read_text())["seed"]
    holding = [path.name for path in root.rglob("*") if path.is_file() and seed.encode() in path.read_bytes()]
    assert holding == ["secret.json"]


def test_two_servers_cannot_share_a_workspace(inside: Any) -> None:
    other = Workspace(inside.bench.workspace.root)
    with pytest.raises(FileError, match="another rankveil serve uses this workspace"):
        other.hold()


def test_a_folder_of_something_else_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(FileError, match="neither empty nor a workspace"):
        Workspace(tmp_path)
    with pytest.raises(FileError, match="is not a folder"):
        Workspace(tmp_path / "mine.txt")
