"""Tables in a place of objects: a server that speaks S3, on this machine. It needs s3fs and moto[server]."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil import cluster
from rankveil.errors import FileError
from rankveil.partitions import places

pytest.importorskip("s3fs")
pytest.importorskip("moto")

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "word", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty bucket."""
    import fsspec

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FSSPEC_S3_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": f"http://127.0.0.1:{port}"})
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < end, "the server did not begin"
                time.sleep(0.1)
        fsspec.filesystem("s3", skip_instance_cache=True).mkdir("bucket")
        yield "s3://bucket"
    finally:
        server.kill()
        server.wait()


def test_tables_are_written_and_read_in_a_bucket(bucket: str, tied: Any, tmp_path: Path) -> None:
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
    assert len(places.parquet_files(f"{bucket}/masked")) == 3
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
