"""Papers by name, and what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rankveil import papers
from rankveil.errors import FileError, ParameterError
from rankveil.papers import Reproduction, masking_as_permutation, new_directions, reproduce

NAMES = ["masking-as-permutation", "new-directions"]


@pytest.fixture(scope="module")
def seen() -> list[tuple[int, int]]:
    """The progress that all papers made, once they are written."""
    return []


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, seen: list[tuple[int, int]]) -> tuple[Reproduction, Path]:
    out = tmp_path_factory.mktemp("papers") / "new" / "out"
    return reproduce("all", out=out, progress=lambda done, total: seen.append((done, total))), out


@pytest.fixture
def quick() -> Reproduction:
    return masking_as_permutation.run(replicates=2)


def test_the_papers_are_found_by_their_modules() -> None:
    assert set(NAMES) <= set(papers.papers())
    assert papers.papers()["new-directions"] is new_directions.PAPER


def test_a_new_paper_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "third_paper.py").write_text(
        "from rankveil.papers.compare import printed\n"
        "from rankveil.papers.result import Paper, PaperTable, Reproduction\n"
        "def run(*, data=None, progress=None):\n"
        "    return Reproduction('third', tables=(PaperTable('Table 1', [printed('a', '1.0', 1.04)]),))\n"
        "PAPER = Paper('third', 'Third (2020).', run)\n"
    )
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(tmp_path)])
    papers.papers.cache_clear()
    try:
        assert reproduce("third").ok
    finally:
        papers.papers.cache_clear()


@pytest.mark.parametrize(
    ("name", "hint"),
    [("new-direction", "did you mean new-directions?"), ("New-Directions", "new-directions"), ("", "known")],
)
def test_an_unknown_paper_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(ParameterError) as error:
        reproduce(name)
    assert hint in str(error.value)


def test_a_folder_of_data_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such folder"):
        reproduce("new-directions", data=tmp_path / "missing")


@pytest.mark.thorough
def test_all_holds_a_document_of_each_paper(written: tuple[Reproduction, Path]) -> None:
    made, _ = written
    assert made.ok
    content = made.to_dict()
    assert set(content) == {"schema", "paper", "papers"}
    assert content["paper"] == "all"
    assert set(NAMES) <= {document["paper"] for document in content["papers"]}
    for document in content["papers"]:
        assert list(document) == ["schema", "paper", "tables", "figures", "remarks"]
        assert document["schema"] == "rankveil/reproduce/1"
        for table in document["tables"]:
            assert set(table) == {"name", "rows"}
            for row in table["rows"]:
                assert {"item", "published", "computed", "difference", "ok"} <= set(row)
                assert set(row) <= {"item", "published", "computed", "difference", "ok", "sd", "remark"}


@pytest.mark.thorough
def test_every_file_is_written(written: tuple[Reproduction, Path]) -> None:
    made, out = written
    names = {"all.json"}
    for paper in NAMES:
        names |= {f"{paper}.html", f"{paper}.json", f"{paper}.md"}
        names |= {f"{paper}-figure-{n}.{ending}" for n in (1, 2, 3) for ending in ("svg", "html")}
    assert names <= {path.name for path in out.iterdir()}
    for paper in made.papers:
        assert len(paper.files) == 6 or paper.paper not in NAMES
        assert [Path(path) for path in paper.to_dict()["figures"]] == list(paper.files)
        assert all(path.is_file() for path in paper.files)


@pytest.mark.thorough
def test_all_leaves_out_what_has_no_data_and_says_so(written: tuple[Reproduction, Path]) -> None:
    made, out = written
    left_out = {paper.paper: paper for paper in made.papers if not paper.tables}
    assert {"agreement", "probabilistic-loss"} <= set(left_out)
    for name, paper in left_out.items():
        assert not paper.files
        assert not (out / f"{name}.html").exists()
        [remark] = paper.remarks
        assert remark.startswith(f"left out: {name} needs ")
        assert remark.endswith("with --data")


@pytest.mark.thorough
def test_the_written_document_names_figures_beside_it(written: tuple[Reproduction, Path]) -> None:
    made, out = written
    for paper in (each for each in made.papers if each.tables):
        content = json.loads((out / f"{paper.paper}.json").read_text("utf-8"))
        assert all((out / name).is_file() and "/" not in name for name in content["figures"])
        assert {**content, "figures": None} == {**_plain(paper.to_dict()), "figures": None}
    everything = json.loads((out / "all.json").read_text("utf-8"))
    assert [document["paper"] for document in everything["papers"]] == [paper.paper for paper in made.papers]


@pytest.mark.thorough
def test_the_page_says_what_agrees_and_what_does_not(written: tuple[Reproduction, Path]) -> None:
    _, out = written
    page = (out / "new-directions.html").read_text("utf-8")
    assert "383 of 387 published values and statements agree" in page
    assert page.count("<td>explained</td>") == 4
    assert new_directions.WRONG_COUNTS in page
    assert "<td>NO</td>" not in page
    assert "103.69, 981.80, 4928.80" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


def test_a_disagreement_shows_on_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(masking_as_permutation, "TABLE_2", masking_as_permutation.TABLE_2.replace("2 1000", "2 1900"))
    made = masking_as_permutation.run(replicates=12)
    assert not made.ok
    made.write(tmp_path)
    page = (tmp_path / "masking-as-permutation.html").read_text("utf-8")
    assert "1 DO NOT AGREE" in page
    assert page.count("<td>NO</td>") == 1


def test_files_are_written_together_or_not_at_all(quick: Reproduction, tmp_path: Path) -> None:
    (tmp_path / "masking-as-permutation.html").write_text("before")
    (tmp_path / "masking-as-permutation.json").mkdir()
    with pytest.raises(FileError, match=r"masking-as-permutation\.json"):
        quick.write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"masking-as-permutation.html", "masking-as-permutation.json"}
    assert (tmp_path / "masking-as-permutation.html").read_text() == "before"


def test_writing_again_replaces(quick: Reproduction, tmp_path: Path) -> None:
    first = {path: path.read_bytes() for path in quick.write(tmp_path)}
    assert {path: path.read_bytes() for path in quick.write(tmp_path)} == first


@pytest.mark.parametrize(("below", "said"), [("", "file: is a file"), ("deeper", "deeper: .*file is a file")])
def test_a_file_in_place_of_the_folder_is_refused_before_any_work(below: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match=said):
        reproduce("new-directions", out=tmp_path / "file" / below, progress=_never)
    assert (tmp_path / "file").read_text() == "x"


def test_nothing_is_written_unless_asked_for(quick: Reproduction) -> None:
    assert quick.files == ()
    assert quick.to_dict()["figures"] == []


@pytest.mark.usefixtures("written")
@pytest.mark.thorough
def test_progress_of_all_papers_is_one_progress(seen: list[tuple[int, int]]) -> None:
    done = [each for each, _ in seen]
    assert done == sorted(done)
    assert len({total for _, total in seen}) == 1
    assert seen[-1][0] == seen[-1][1]


def _never(done: int, total: int) -> None:
    raise AssertionError("work began")


def _plain(content: dict[str, Any]) -> Any:
    return json.loads(json.dumps(content))
