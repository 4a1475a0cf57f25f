"""Engines: who can be reached and by whom, what workers must be, and what goes wrong with them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankveil import cluster
from rankveil.cluster.addresses import parse
from rankveil.cluster.own import Own
from rankveil.errors import ClusterError, FileError, FormatError, ParameterError
from rankveil.memory import size_of


def test_results_come_in_the_order_of_the_items(engine: Any) -> None:
    def slowly(item: int) -> int:
        time.sleep(0.05 if item == 0 else 0)
        return -item

    arrived: list[int] = []
    assert engine.each(slowly, range(7), done=lambda place, _: arrived.append(place)) == [0, -1, -2, -3, -4, -5, -6]
    assert sorted(arrived) == list(range(7))
    assert engine.each(slowly, []) == []


def test_an_error_of_a_task_is_the_error_of_all(engine: Any) -> None:
    def broken(item: int) -> None:
        raise FormatError(f"file {item} is damaged")

    with pytest.raises(FormatError, match=r"^file \d is damaged$"):
        engine.each(broken, range(5))
    assert engine.each(abs, [-3]) == [3]


def test_local_workers_use_one_core_each_and_keep_to_this_machine(engine: Any) -> None:
    def told(_: int) -> tuple[int, int, str]:
        from rankveil.execute import cores

        return os.getpid(), cores(), os.environ["OPENBLAS_NUM_THREADS"]

    found = engine.each(told, range(20))
    assert {(used, threads) for _, used, threads in found} == {(1, "1")}
    assert {pid for pid, _, _ in found} <= set(engine.local.pids)
    for pid in (*engine.local.pids, os.getpid()):
        for each in psutil.Process(pid).net_connections("inet"):
            if each.status == psutil.CONN_LISTEN:
                assert each.laddr.ip == "127.0.0.1"


def test_others_on_this_machine_cannot_use_the_workers(engine: Any) -> None:
    address = engine.local.cluster.scheduler_address
    assert address.startswith("tls://")
    host, port = address.removeprefix("tls://").split(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, int(port)), timeout=10) as plain:
        assert _heard(plain, context) == b""  # without the certificate


def _heard(plain: socket.socket, context: ssl.SSLContext) -> bytes:
    """What the other side says once a connection is secured; nothing when it ends it."""
    try:
        with context.wrap_socket(plain) as secured:
            return secured.recv(1)
    except (ssl.SSLError, ConnectionError):
        return b""


def test_a_script_is_not_run_again_by_its_workers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"  # without a guard for __main__, as scripts are
    script.write_text(
        "from rankveil import cluster\n"
        "print('begin')\n"
        f"with cluster.open('local:1', scratch={str(tmp_path)!r}) as engine:\n"
        "    print(engine.each(abs, [-1, -2]))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("begin\n[1, 2]\n", "", 0)
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_workers_that_take_too_much_memory_are_named_as_such(tmp_path: Path) -> None:
    def greedy(_: int) -> None:
        held = bytearray(2**30)
        held[:: 2**12] = b"x" * len(held[:: 2**12])
        time.sleep(30)

    with (
        cluster.open("local:1", memory="500MiB", scratch=tmp_path) as small,
        pytest.raises(ClusterError, match=r"task greedy .* takes more memory than the 500 MiB that each may use; give"),
    ):
        small.each(greedy, [1])


@pytest.mark.parametrize(
    "address", ["", "local:0", "local:x", "remote", "tcp://host", "tcp://host:0", "host:8786", "http://host:8786"]
)
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(ParameterError, match=r"cluster .*must be"):
        parse(address)


def test_addresses() -> None:
    assert parse("local").workers is None
    assert parse(" local:12 ").workers == 12
    assert parse("tcp://[::1]:8786/").text == "tcp://[::1]:8786"
    assert not parse("tls://node-7.example.org:8786").local


@pytest.mark.parametrize("given", ["", "3 apples", "-1", "0", "GiB"])
def test_sizes_that_are_none(given: str) -> None:
    with pytest.raises(ParameterError, match="memory must be a size such as 3GiB"):
        size_of(given)


def test_what_is_wrong_with_a_cluster_is_said_before_it_is_reached(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"name a scratch folder that all its workers see \(--scratch\)"):
        cluster.open("tcp://127.0.0.1:8786")
    with pytest.raises(ParameterError, match="memory is for local workers"):
        cluster.open("tcp://127.0.0.1:8786", scratch=tmp_path, memory="1GiB")
    with pytest.raises(FileError, match="there is no such folder for scratch files"):
        cluster.open("local:1", scratch=tmp_path / "nowhere")
    with pytest.raises(ParameterError, match="memory must be a size"):
        cluster.open("local:1", scratch=tmp_path, memory="much")
    assert list(tmp_path.iterdir()) == []


@contextmanager
def silent_place() -> Iterator[int]:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        place.listen()
        yield place.getsockname()[1]


@pytest.fixture
def certificate() -> Iterator[None]:
    """A configuration of Dask with a certificate."""
    import dask

    from rankveil.cluster.local import _credentials

    made = _credentials()
    assert made is not None
    with dask.config.set(tls(made["certificate"], made["key"])):
        yield


def tls(certificate: str, key: str) -> dict[str, str]:
    """What Dask is told of a certificate."""
    told = {"ca-file": certificate, "client.cert": certificate, "client.key": key}
    return {f"distributed.comm.tls.{name}": value for name, value in told.items()}


@pytest.mark.parametrize("scheme", ["tcp", pytest.param("tls", marks=pytest.mark.thorough)])
def test_a_scheduler_that_does_not_answer_is_an_error(scheme: str, certificate: None, tmp_path: Path) -> None:
    with (
        silent_place() as port,
        pytest.raises(ClusterError, match=f"{scheme}://127.0.0.1:{port}: no scheduler answers"),
    ):
        cluster.open(f"{scheme}://127.0.0.1:{port}", scratch=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_place_without_a_scheduler_is_an_error(tmp_path: Path) -> None:
    with silent_place() as port:
        pass  # nobody listens there any more
    with pytest.raises(ClusterError, match=r"no scheduler answers \(connection refused\)"):
        cluster.open(f"tcp://127.0.0.1:{port}", scratch=tmp_path)


def test_tls_without_a_certificate_is_refused_at_once(tmp_path: Path) -> None:
    words = ["audit", "x.parquet", "y.parquet", "--cluster", "tls://127.0.0.1:9", "--scratch", "."]
    for name in ("x", "y"):
        pq.write_table(pa.table({"A": [1.0, 2.0, 3.0]}), tmp_path / f"{name}.parquet")
    command = [sys.executable, "-m", "rankveil", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.startswith("rankveil: cluster tls://127.0.0.1:9: no certificate is configured; set DASK_")
    assert (done.stderr.count("\n"), done.stdout, done.returncode) == (1, "", 2)


def test_a_certificate_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    import dask

    gone = str(tmp_path / "gone.pem")
    with (
        dask.config.set(tls(gone, gone)),
        pytest.raises(ClusterError, match=r"the certificate or key .* cannot be read \(no such file or directory\)"),
    ):
        cluster.open("tls://127.0.0.1:9", scratch=tmp_path)


@pytest.mark.parametrize(("address", "memory"), [("local:1", "100MiB"), ("local:2", "700MiB"), ("local", "1MiB")])
def test_memory_in_which_no_worker_can_work_is_refused(address: str, memory: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"needs at least 400 MiB and .* may be used.*--memory"):
        cluster.open(address, memory=memory, scratch=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_there_are_no_more_workers_than_memory_is_for(tmp_path: Path) -> None:
    with cluster.open("local", memory="500MiB", scratch=tmp_path) as small:
        assert small.workers == 1


def test_what_a_killed_engine_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from rankveil.cluster.own import Own\n"
        "own = Own(sys.argv[1])\n"
        "open(os.path.join(own.path, 'function-1'), 'w').close()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path], timeout=60, check=False)
    [left] = tmp_path.iterdir()
    assert (left / "function-1").exists()
    elsewhere = tmp_path / "rankveil-engine-elsewhere"
    shutil.copytree(left, elsewhere)
    elsewhere.chmod(0o700)
    owner = json.loads((left / "owner").read_text())
    (elsewhere / "owner").write_text(json.dumps({**owner, "host": "another"}))
    first, second = Own(str(tmp_path)), Own(str(tmp_path))  # the second finds the first at work
    assert set(tmp_path.iterdir()) == {elsewhere, Path(first.path), Path(second.path)}
    first.remove()
    second.remove()
    assert set(tmp_path.iterdir()) == {elsewhere}


def test_workers_that_cannot_do_the_work_are_named(local_cluster: Any, tmp_path: Path) -> None:
    other = tmp_path / "other" / "rankveil"  # a worker's own, another version
    other.mkdir(parents=True)
    (other / "__init__.py").write_text('__version__ = "0.0.1"\n')
    with local_cluster(workers=0) as made:
        command = [sys.executable, "-m", "dask", "worker", made.scheduler_address, "--no-nanny", "--no-dashboard"]
        environment = {**os.environ, "PYTHONPATH": str(other.parent)}
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--name", "elder"],
            env=environment,
            cwd=tmp_path,
            stdout=quiet,
            stderr=quiet,
        ) as worker:
            try:
                while not made.scheduler.workers:
                    assert worker.poll() is None
                    time.sleep(0.05)
                [where] = made.scheduler.workers
                with pytest.raises(ClusterError, match=rf"this is rankveil .*, but {where} has 0\.0\.1$"):
                    cluster.open(made.scheduler_address, scratch=tmp_path)
            finally:
                worker.kill()


def test_files_that_workers_do_not_see_are_named(dask: Any, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"the worker .* does not see .*gone\.parquet; the tables must lie where"):
        dask.check_seen([str(tmp_path / "gone.parquet")])
