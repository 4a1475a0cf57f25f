"""Tables at addresses of files: read by the workers through fsspec as if they lay on a disk.

The addresses are those of a disk (file://), which two processes can reach; s3:// and others differ in the package that
fsspec takes for them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil.cli import main
from rankveil.errors import ClusterError, FileError, ParameterError
from rankveil.partitions import places

NAMES = ["cm2", "spearman_risk", "pil", "permutation_linkage"]


def table(values: Any) -> pa.Table:
    return pa.table({f"V{j}": values[:, j] for j in range(values.shape[1])})


def test_audits_and_attacks_are_those_of_tables_on_a_disk(engine: Any, tied: Any, write: Any) -> None:
    paths = write(*tied(300), rows=100)
    addresses = [path.as_uri() for path in paths]
    audits = [rv.audit(*both, cluster=engine, measures=NAMES) for both in (paths, addresses)]
    assert audits[0].to_dict() == audits[1].to_dict()
    assert audits[1].values.keys() == set(NAMES)
    attacks = [rv.attack(*both, cluster=engine, draws=200, subjects=90) for both in (paths, addresses)]
    assert attacks[0].to_dict() == attacks[1].to_dict()
    assert attacks[0].to_dict()["subjects"] == 90


def test_a_file_that_changed_is_not_taken_for_the_same(engine: Any, tied: Any, write: Any) -> None:
    paths = write(*tied(60), rows=60)
    addresses = [path.as_uri() for path in paths]

    def stop(_: int, __: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rv.audit(*addresses, cluster=engine, measures=["cm1"], progress=stop)
    [file] = paths[0].iterdir()
    os.utime(file, ns=(1, 1))
    made = rv.audit(*addresses, cluster=engine, measures=["cm1"], resume=True)
    assert "what an earlier run had done was taken up" not in made.notes
    for folder in Path(engine.scratch).glob("rankveil-*/journal"):
        for left in folder.parent.iterdir():
            left.unlink()
        folder.parent.rmdir()


def test_what_is_wrong_is_said(engine: Any, tied: Any, write: Any, tmp_path: Path) -> None:
    original, masked = (path.as_uri() for path in write(*tied(60), rows=60))
    with pytest.raises(FileError, match=r"file://.*nobody: there is no such file or folder"):
        rv.audit(original, f"{tmp_path.as_uri()}/nobody", cluster=engine)
    with pytest.raises(ParameterError, match="where they are read in parts alone, and target is not for a cluster"):
        rv.audit(original, masked, target="V0")


def test_workers_that_do_not_see_an_address_are_named(engine: Any, tied: Any) -> None:
    x, y = tied(30)
    for name, values in (("x", x), ("y", y)):
        with places.open_output(f"memory://unseen/{name}.parquet") as file:
            pq.write_table(table(values), file)
    with pytest.raises(ClusterError, match=r"does not see memory://unseen/x\.parquet.*same packages, keys and"):
        rv.audit("memory://unseen/x.parquet", "memory://unseen/y.parquet", cluster=engine)


def test_the_command_line(tied: Any, write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, masked = (path.as_uri() for path in write(*tied(90), rows=40))
    (tmp_path / "scratch").mkdir()
    words = [original, masked, "--scratch", str(tmp_path / "scratch"), "--json"]
    assert main(["attack", *words, "--draws", "100"]) == 0  # no --cluster: where else
    said = capsys.readouterr()
    assert said.err == ""
    made = json.loads(said.out)
    assert "the tables lie at addresses: attacked in parts by processes of this machine" in made["notes"][0]
    Path(f"{masked.removeprefix('file://')}.manifest.json").write_text(
        rv.mask(table(tied(90)[0]), "record_shuffle", seed=1).manifest.to_json()
    )
    assert main(["audit", *words]) == 2
    assert "masked-40: its rows were reordered, as its manifest says" in capsys.readouterr().err


def test_the_command_line_masks_to_an_address(
    tied: Any, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original, _ = write(*tied(90), rows=40)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    Path("seed").write_text("ab" * 32)
    out = f"{tmp_path.as_uri()}/there/out.parquet"
    words = ["mask", str(original), "-o", out, "--method", "additive_noise", "--seed-file", "seed", "--json"]
    assert main(words) == 0  # no --cluster: an address is written to in parts
    said = capsys.readouterr()
    assert said.err == ""
    made = json.loads(said.out)
    assert "the release goes to an address: masked in parts by processes of this machine" in made["notes"][0]
    assert f"the secret stays on this machine: {here / 'out.parquet.secret.json'}" in made["notes"]
    assert (made["output"], made["manifest"]) == (out, f"{out}.manifest.json")
    assert sorted(os.listdir(tmp_path / "there")) == ["out.parquet", "out.parquet.manifest.json"]
    assert sorted(os.listdir(here)) == ["out.parquet.secret.json", "rankveil-register.json", "seed"]
    assert os.stat("out.parquet.secret.json").st_mode & 0o777 == 0o600
    expected = rv.mask(pq.read_table(original), "additive_noise", seed="ab" * 32).published()
    assert pq.read_table(tmp_path / "there" / "out.parquet").equals(expected.data)
    assert json.loads(Path(tmp_path / "there" / "out.parquet.manifest.json").read_text()) == expected.manifest.content

    def refused(*words: str) -> str:
        assert main(list(words)) == 2
        return capsys.readouterr().err

    assert "is there already; name another folder" in refused(*words)
    other = [f"{out}2" if word == out else word for word in words]
    assert "the secret cannot be an address" in refused(*other, "--secret", f"{out}.secret")
    said = refused(*other, "--manifest", f"{tmp_path.as_uri()}/missing/manifest.json")
    assert "missing/manifest.json: cannot be written: no such file or directory; nothing was left there" in said
    assert sorted(os.listdir(tmp_path / "there")) == ["out.parquet", "out.parquet.manifest.json"]
    assert sorted(os.listdir(here)) == ["out.parquet.secret.json", "rankveil-register.json", "seed"]
    again = [original.as_uri() if word == out else word for word in words]
    assert "the release would overwrite the input" in refused(*again)
    Path("t.csv").write_text("A\n1\n")
    words[1] = "t.csv"
    assert "a release at an address is masked in parts, from a Parquet table" in refused(*words)


def test_the_command_line_compares_a_table_at_an_address(
    tied: Any, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original, _ = write(*tied(60), rows=40)
    monkeypatch.chdir(tmp_path)
    how = ["--methods", "rank_swap", "--sweep", "--points", "3", "--replicates", "1", "--workers", "1", "--json"]
    how += ["--utility", "um"]
    found = []
    for path in (str(original), original.as_uri()):
        assert main(["compare", path, *how]) == 0
        found.append(json.loads(capsys.readouterr().out)["methods"])
    assert found[0] == found[1]
    assert main(["compare", f"{tmp_path.as_uri()}/nobody", *how]) == 2
    assert "nobody: there is no such file or folder" in capsys.readouterr().err
