"""Tables and releases in an object store: a server that speaks S3, on this machine, which can be told to fail."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil import cluster
from rankveil.cli import main
from rankveil.errors import FileError, FormatError
from rankveil.masking.register import REGISTER
from rankveil.partitions import places
from rankveil.partitions.parquet import survey
from rankveil.partitions.places import MARK

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "word", "AWS_DEFAULT_REGION": "us-east-1"}
OUT = "s3://bucket/to/out"
SEED = "5eed0123456789abcdef5eed0123456789abcdef5eed0123456789abcdef5eed"
WHOLE = ["to/out.manifest.json", "to/out/part-00000.parquet", "to/out/part-00001.parquet"]

SLOW = 1.0
"""Seconds that a slow request takes."""

Fails = Callable[[int, str], str | None]
"""What becomes of the write request of a number and a key: None for nothing, `denied`, `lost` (carried out, but the
answer is an error), `slow`, or `gone` with all that come later."""


class Store:
    """An object store in this process, and what becomes of requests that write."""

    def __init__(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        self._moto = DomainDispatcherApplication(create_backend_app)
        self._guard = threading.Lock()
        self.fails: Fails = lambda number, key: None
        self.writes: list[str] = []
        self.gone = False
        """Whether every connection is cut off."""
        self._server = make_server("127.0.0.1", 0, self, threaded=True)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        fate = None
        if environ["REQUEST_METHOD"] in ("PUT", "POST", "DELETE"):
            key = environ["PATH_INFO"].removeprefix("/bucket/")
            with self._guard:
                self.writes.append(f"{environ['REQUEST_METHOD']} {key}")
                number = len(self.writes)
            fate = self.fails(number, key)
            self.gone = self.gone or fate == "gone"
        if self.gone:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            start("500 Nobody hears this", [])
            return []
        if fate == "slow":
            time.sleep(SLOW)
        if fate == "lost":
            list(self._moto(environ, lambda *_: None))
        if fate in ("denied", "lost"):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0) if fate == "denied" else 0)
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]
        found: Iterable[bytes] = self._moto(environ, start)
        return found

    def content(self) -> list[str]:
        """What is in the bucket."""
        import fsspec

        files = fsspec.filesystem("s3")
        files.invalidate_cache()
        return sorted(key.removeprefix("bucket/") for key in files.find("bucket"))

    def begin(self, fails: Fails = lambda number, key: None) -> None:
        """An empty bucket, and what is to fail from here on."""
        import fsspec

        self.fails, self.gone = lambda number, key: None, False
        files = fsspec.filesystem("s3")
        files.invalidate_cache()
        for key in files.find("bucket"):
            files.rm_file(key)
        self.writes, self.fails = [], fails


@pytest.fixture(scope="module")
def running() -> Iterator[Store]:
    """One server for all tests; its address stands in the environment, from which workers have it too."""
    import fsspec

    made = Store()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": made.address, "AWS_MAX_ATTEMPTS": "1"}.items():
            patch.setenv(name, value)
        fsspec.filesystem("s3").mkdir("bucket")
        yield made
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    made.close()


@pytest.fixture
def store(running: Store) -> Store:
    """The server with an empty bucket."""
    running.begin()
    return running


@pytest.fixture(scope="module")
def workers(running: Store, local_cluster: Any) -> Iterator[str]:
    """The address of a scheduler with two workers."""
    with local_cluster(workers=2) as made:
        yield made.scheduler_address


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table that is masked in two parts."""
    path = tmp_path_factory.mktemp("original") / "original.parquet"
    pq.write_table(pa.table({"AGE": np.arange(260_000) % 90}), path, row_group_size=130_000)
    return str(path)


@pytest.fixture
def words(workers: str, original: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command that masks a table into the bucket."""
    monkeypatch.chdir(tmp_path)
    Path("scratch").mkdir()
    Path("seed").write_text(SEED)
    made = ["mask", original, "-o", OUT, "--method", "additive_noise", "--seed-file", "seed", "--cluster", workers]
    return [*made, "--scratch", "scratch"]


def assert_nothing_here() -> None:
    """Neither a secret nor scratch files are left on this machine."""
    assert sorted(os.listdir()) == ["scratch", "seed"]
    assert os.listdir("scratch") == []


def test_tables_are_written_and_read_in_a_bucket(store: Store, tied: Any, tmp_path: Path) -> None:
    bucket = "s3://bucket"
    tables = [pa.table({f"V{j}": values[:, j] for j in range(5)}) for values in tied(200)]
    for name, table in zip(("original", "masked"), tables, strict=True):
        for start in range(0, 200, 70):
            with places.open_output(f"{bucket}/{name}/part-{start:03d}.parquet") as file:
                pq.write_table(table.slice(start, 70), file)

    def half() -> None:
        with places.open_output(f"{bucket}/masked/part-999.parquet") as file:
            file.write(b"half of")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert len(survey(f"{bucket}/masked").files) == 3
    with cluster.open("local:1", scratch=tmp_path) as engine:
        both = f"{bucket}/original", f"{bucket}/masked"
        made = rv.audit(*both, cluster=engine, measures=["cm2", "permutation_linkage"])
        attack = rv.attack(*both, cluster=engine, draws=100, subjects="all")
        with pytest.raises(FileError, match="s3://bucket/nothing: there is no such file or folder"):
            rv.audit(both[0], f"{bucket}/nothing", cluster=engine)
    memory = rv.audit(*tables, measures=["cm2", "permutation_linkage"])
    assert made["cm2"] == pytest.approx(memory["cm2"], rel=1e-12)
    assert made["permutation_linkage"] == memory["permutation_linkage"]
    assert attack.counts == rv.attack(*tables, draws=100).counts
    with places.open_output(f"{bucket}/original/_delta_log/00000000000000000000.json") as file:
        file.write(b"{}")
    for path in (both[0], f"{both[0]}/part-070.parquet"):
        with pytest.raises(FormatError, match=r"a table in the format Delta Lake \(_delta_log\)"):
            survey(path)


def test_a_large_file_of_which_half_was_uploaded_is_not_there(store: Store) -> None:
    import fsspec

    files = fsspec.filesystem("s3")

    def half() -> None:
        with places.open_output("s3://bucket/large") as file:
            for _ in range(3):
                file.write(bytes(files.default_block_size))  # each is uploaded at once
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        half()
    assert sum("large" in write for write in store.writes) > 2
    assert files.list_multipart_uploads("bucket") == []
    assert store.content() == []


def test_a_release_goes_to_a_bucket_with_its_manifest_and_without_its_secret(
    store: Store, words: list[str], original: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--json"]) == 0
    assert store.content() == WHOLE
    assert store.writes.index("PUT to/out.manifest.json") > max(
        store.writes.index(f"PUT {key}") for key in WHOLE if key.endswith(".parquet")
    )
    expected = rv.mask(pq.read_table(original), "additive_noise", seed=SEED).published()
    [first, second] = places.parquet_files(OUT)
    parts = []
    for path in (first, second):
        with places.opened(path) as file:
            parts.append(pq.ParquetFile(file).read())
    assert pa.concat_tables(parts).equals(expected.data)
    assert json.loads(places.read_text(f"{OUT}.manifest.json")) == expected.manifest.content
    assert sorted(os.listdir()) == ["out.secret.json", REGISTER, "scratch", "seed"]
    capsys.readouterr()
    store.writes = []
    assert main(words) == 2
    assert "s3://bucket/to/out: is there already; name another folder" in capsys.readouterr().err
    assert main([*words, "-o", "s3://bucket/to/new", "--manifest", f"{OUT}.manifest.json"]) == 2
    assert "out.manifest.json: is there already; give another name" in capsys.readouterr().err
    assert main([*words, "-o", "s3://bucket"]) == 2
    assert "s3://bucket: is a whole bucket; name a folder in it, as in s3://bucket/release" in capsys.readouterr().err
    assert main([*words, "-o", "s3://nowhere/out"]) == 2
    assert re.search(
        r"^rankveil: s3://nowhere/\S+: cannot be written: .*bucket does not exist", capsys.readouterr().err
    )
    assert [write for write in store.writes if "nowhere" not in write] == []
    assert store.content() == WHOLE


def unlink_kept() -> None:
    """Remove what a release leaves on this machine: its secret and its entry in the register."""
    os.unlink("out.secret.json")
    os.unlink(REGISTER)


def counted(store: Store, words: list[str]) -> int:
    """The write requests of a command that succeeds."""
    store.begin()
    assert main(words) == 0
    unlink_kept()
    return len(store.writes)


@pytest.mark.parametrize("fate", ["denied", "lost"])
def test_a_write_that_fails_leaves_nothing_wherever_it_is(
    fate: str, store: Store, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    writes = counted(store, words)
    ends = []
    for number in range(1 if fate == "denied" else 4, writes + 1):
        capsys.readouterr()
        store.begin(lambda now, _, number=number: fate if now == number else None)
        ends.append(main(words))
        out, said = capsys.readouterr()
        if ends[-1] == 0:  # the release was whole already: what it was copied from could not be removed
            left = [key for key in store.content() if key not in WHOLE]
            assert len(left) == (fate == "denied")
            assert set(WHOLE) <= set(store.content())
            assert ("note: could not be removed, and must be deleted: " in out) == bool(left)
            assert all(f"s3://bucket/{key}" in out.replace("\n", "") for key in left)
            unlink_kept()
            continue
        assert ends[-1] == 2
        assert store.content() == []
        assert re.fullmatch(r"rankveil: s3://bucket/to/\S+: cannot be written: .*; nothing was left there\n", said) or (
            "cannot be removed: " in said and said.endswith("; nothing was left there\n")  # the mark
        )
        assert_nothing_here()
    assert ends == sorted(ends, reverse=True)  # once the manifest is there nothing fails any more
    # trial, two parts; mark, two copies, no mark, manifest; then the trial and two parts are removed
    assert (ends.count(2), ends.count(0)) == (8 if fate == "denied" else 5, 3)


def test_what_cannot_be_removed_is_named(store: Store, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2, 9):  # from there on nothing can be written, and nothing removed
        capsys.readouterr()
        store.begin(lambda now, _, number=number: "denied" if now >= number else None)
        assert main(words) == 2
        said = capsys.readouterr().err
        found = re.fullmatch(r"rankveil: s3://bucket/.*; could not be removed, and must be deleted: (.*)\n", said)
        assert found, said
        assert sorted(found[1].split(", ")) == [f"s3://bucket/{key}" for key in store.content()]
        assert_nothing_here()


def test_a_network_that_is_gone(
    store: Store, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can be asked what is there: all that was begun is named."""
    import s3fs

    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    store.begin(lambda now, _: "gone" if now == 6 else None)  # the second copy
    assert main(words) == 2
    store.gone = False
    said = capsys.readouterr().err
    found = re.fullmatch(
        r"rankveil: s3://bucket/to/out/part-00001.parquet: cannot be written: .*; could not be removed, and must be "
        r"deleted: (.*), any key with the prefix (s3://bucket/to/\.out\..*/)\n",
        said,
    )
    assert found, said
    named = [*found[1].split(", "), found[2]]
    assert named[:-1] == [f"s3://bucket/to/out/{name}" for name in ("part-00000.parquet", "part-00001.parquet", MARK)]
    assert all(f"s3://bucket/{key}".startswith(tuple(named)) for key in store.content())
    assert_nothing_here()


def test_nobody_reads_a_release_that_is_incomplete(
    store: Store, words: list[str], original: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store.begin(lambda now, key: "denied" if now >= 6 else None)  # the second copy, and all that would clean up
    assert main(words) == 2
    store.fails = lambda now, key: None
    assert f"to/out/{MARK}" in store.content()
    assert "to/out/part-00000.parquet" in store.content()
    with pytest.raises(FileError, match=r"s3://bucket/to/out: is incomplete: a release is being written there"):
        rv.audit(original, OUT, cluster=words[words.index("--cluster") + 1], scratch="scratch")
    capsys.readouterr()
    assert main(words) == 2
    assert "s3://bucket/to/out: is there already" in capsys.readouterr().err


def test_a_part_that_is_uploaded_late_does_not_stay(store: Store, words: list[str]) -> None:
    """One worker fails while the other is still at work: its part comes later, and is removed too."""
    begun = threading.Event()

    def fails(_: int, key: str) -> str | None:
        if key.endswith("part-00001.parquet"):
            begun.set()
            return "slow"
        return "denied" if key.endswith("part-00000.parquet") and begun.wait(20) else None

    store.begin(fails)
    assert main(words) == 2
    assert begun.is_set()
    time.sleep(SLOW)
    assert store.content() == []


@pytest.mark.parametrize("sent", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_a_command_that_is_stopped_while_it_copies(sent: signal.Signals, store: Store, words: list[str]) -> None:
    """What was copied is removed, and what was done is kept to be resumed."""
    reached = threading.Event()

    def fails(_: int, key: str) -> str | None:
        if key != WHOLE[2] or reached.is_set():
            return None
        reached.set()
        return "slow"

    store.begin(fails)
    process = subprocess.Popen([sys.executable, "-m", "rankveil", *words], stderr=subprocess.PIPE, text=True)
    assert reached.wait(60)
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[sent]
    assert re.fullmatch(r"rankveil: stopped; what was done is kept in \S+ and s3://bucket/to/\.out\.\S+: .*\n", said)
    time.sleep(SLOW)  # what is still under way would come now
    assert [key for key in store.content() if not key.startswith("to/.out.")] == []
    assert not Path("out.secret.json").exists()
    assert main([*words, "--resume"]) == 0
    assert store.content() == WHOLE
    assert os.listdir("scratch") == []


def test_the_extra_that_is_needed_is_named(tmp_path: Path) -> None:
    """Without s3fs, which an interpreter that finds no such package stands for."""
    code = "import sys; sys.modules['s3fs'] = None; from rankveil.partitions import places; places.exists('s3://b/t')"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "s3:// needs a package that is not installed: pip install 'rankveil[s3]'" in made.stderr
