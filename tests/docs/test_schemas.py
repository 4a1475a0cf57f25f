"""The formal schema of the JSON documents: it holds what the verbs write, and nothing with a field lost or renamed."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from sitebuilder import documents

from rankveil import datasets, files
from rankveil.cli import main
from rankveil.cli.app import VERBS

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = documents.schema()
ANY = jsonschema_rs.Draft202012Validator(SCHEMA)
ONE = {
    name: jsonschema_rs.Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{name}"})
    for name in documents.names()
}

MASKED = {
    "swapped.csv": "people.csv --method rank_swap --set p=20 --publish um,cm3",
    "rounded.parquet": "people.csv --method additive_noise --set alpha.INCOME=0.3 --then round",
    "shuffled.csv": "people.csv --method mdav --role REGION=quasi-identifier --set k=4 --then record_shuffle",
    "suppressed.csv": "people.csv --method suppress --columns SEX,EDUCATION --set k=5",
    "dropped.csv": "people.csv --method drop --columns PERSON",
    "sampled.csv": "weighed.csv --method sample --set share=0.5 --role WEIGHT=weight",
    "households.csv": "weighed.csv --method rank_swap --role HOUSEHOLD=group",
    "banded.csv": "people.csv --method recode --columns AGE --set cuts=30,65",
    "synthetic.csv": "original.csv --method ipso",
    "bounded.csv": "original.csv --method laplace_dp --set epsilon=1 --set lower=0 --set upper=6000",
}
"""Releases, and how they are made; each has a manifest and a secret beside it."""

SEED = "5eed" * 16

COMMANDS = [
    "inspect original.csv",
    "inspect people.csv --hierarchy REGION=region.csv --kind EDUCATION=ordinal --role PERSON=identifier",
    "inspect rounded.parquet",
    "audit original.csv masked.csv",
    "audit original.csv bounded.csv --fail-if um<2 --fail-if k_anonymity<3  # 1",
    "audit people.csv swapped.csv --by SEX --target INCOME --measures cm1,um,pil,ml_efficacy,ci_overlap",
    "audit people.csv swapped.csv --no-mapping --measures cm2,emd,propensity",
    "audit people.csv shuffled.csv --secret shuffled.csv.secret.json --measures um,k_anonymity,rank_linkage "
    "--role REGION=quasi-identifier,SECTOR=confidential --hierarchy REGION=region.csv",
    "audit original.csv masked.csv synthetic.csv --measures cm2,um,emd --fail-if emd>=0  # 1",
    "audit people.csv people.csv --key PERSON --measures cm1,um",
    "attack original.csv masked.csv --subsets  # 1",
    "attack people.csv swapped.csv --knows SEX,EDUCATION --people 0.5 --draws 50",
    "attack original.csv original.csv  # 1",
    "attack people.csv swapped.csv --no-mapping --draws 50  # 1",
    "attack people.csv suppressed.csv --columns SEX,EDUCATION,INCOME  # 1",
    "certify original.csv masked.csv --record 3",
    "certify original.csv masked.csv --d 50  # 1",
    "certify people.csv swapped.csv --columns EDUCATION,INCOME --diversity entropy --f minimax  # 1",
    "certify original.csv masked.csv --no-mapping --d 0 --v 9 --diversity distinct --f euclidean  # 1",
    "verify masked.csv --record X1=100.87,X2=902.21,X3=5108.54",
    "verify swapped.csv --record EDUCATION=primary,INCOME=20000 --f euclidean --draws 50",
    "verify banded.csv --record AGE=44,INCOME=20000 --f 7 --manifest banded.csv.manifest.json",
    "subject-page masked.csv -o verify.html",
    "compare original.csv --methods mdav,rank_swap --at risk=0.5 --utility um,pil --replicates 2 --workers 1",
    "compare original.csv --methods mdav,rank_swap,pram --sweep --utility um --replicates 2 --workers 1",
    "compare original.csv --methods rank_swap,additive_noise --at level=0.2 --utility um --replicates 2 --workers 1",
    "compare original.csv --methods mdav --at found=0.3 --utility um --replicates 1 --workers 1",
    "compare original.csv --methods identity,mdav --at utility=0.9 --utility um --replicates 2 --workers 1",
    "reproduce masking-as-permutation",
    "methods",
    "measures",
]
"""What the verbs are asked; the exit code stands behind the number sign where it is another than 0."""

Made = tuple[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that is the working directory, with the tables."""
    place = tmp_path_factory.mktemp("documents")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        original, masked = datasets.running_example()
        people = datasets.demo().slice(0, 60)
        files.save(original, "original.csv")
        files.save(masked, "masked.csv")
        files.save(people, "people.csv")
        regions = sorted(set(people["REGION"].to_pylist()))
        half = len(regions) // 2
        groups = [f"{name},{'first' if place < half else 'second'},*" for place, name in enumerate(regions)]
        Path("region.csv").write_text("\n".join(groups) + "\n", encoding="utf-8")
        weighed = people.append_column("WEIGHT", [[20.0] * 60])
        files.save(weighed.append_column("HOUSEHOLD", [[row // 3 for row in range(60)]]), "weighed.csv")
        yield place


def said(capsys: pytest.CaptureFixture[str], command: str) -> Made:
    """The verb of a command and the document that it writes."""
    words, _, code = command.partition("#")
    verb, *more = words.split()
    capsys.readouterr()
    ended = main([verb, *more, "--json"])
    out, err = capsys.readouterr()
    assert ended == int(code or 0), err
    assert err == ""
    return verb, json.loads(out)


@pytest.fixture
def holds(tally: Callable[..., None]) -> Callable[[str, Any], None]:
    """Asserts that a document is what the schema says of it, and that a field lost or renamed would be noticed."""

    def check(name: str, document: Any) -> None:
        for schema in (ANY, ONE[name]):
            wrong = [(list(error.instance_path), error.message) for error in schema.iter_errors(document)]
            assert wrong == []
        for path in {path for path, _, _ in documents.fields(name)}:
            for changed in renamed(document, path.strip("`")):
                assert not ONE[name].is_valid(changed), f"{path} can be renamed"
        tally("documents held against their schema")

    return check


def renamed(document: Any, path: str) -> Iterator[Any]:
    """The document with the first field at a path renamed; nothing where it has no such field.

    >>> list(renamed({"a": [{}, {"b": 1}]}, "a[].b"))
    [{'a': [{}, {'_b': 1}]}]
    """
    whole = copy.deepcopy(document)
    *way, last = re.findall(r"[^.\[\]{}]+|\[\]|\{\}", path)
    for inside in places(whole, way):
        if isinstance(inside, dict) and last in inside:
            inside[f"_{last}"] = inside.pop(last)
            yield whole
            return


def places(inside: Any, way: list[str]) -> Iterator[Any]:
    """Where the steps of a path lead."""
    if not way:
        yield inside
    elif way[0] in ("[]", "{}"):
        every = inside.values() if isinstance(inside, Mapping) else inside or ()
        for each in every:
            yield from places(each, way[1:])
    elif isinstance(inside, Mapping) and way[0] in inside:
        yield from places(inside[way[0]], way[1:])


def test_it_is_a_schema() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_document_of_the_code_is_in_it() -> None:
    public = re.compile(r'^(?!JOURNAL|PLAN|WORKSPACE)[A-Z_]+_SCHEMA = "(rankveil/[a-z-]+/\d+)"', re.MULTILINE)
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "rankveil").rglob("*.py")]
    known = SCHEMA["else"]["properties"]["schema"]["enum"]
    assert sorted(name for text in sources for name in public.findall(text)) == sorted(known)
    assert {name.split("/")[1] for name in known} | {"methods", "measures"} == set(documents.names())
    assert set(VERBS) <= set(documents.names())


def test_every_field_is_told_what_it_is() -> None:
    assert [(name, path) for name in documents.names() for path, _, told in documents.fields(name) if not told] == []


def test_something_else_is_no_document() -> None:
    for other in ({}, {"schema": "rankveil/audit/2"}, {"schema": "rankveil/audit/1"}, [{"id": "mdav"}], "audit", None):
        assert not ANY.is_valid(other)


@pytest.mark.parametrize("release", MASKED)
def test_a_masking_its_manifest_and_its_secret_hold(
    release: str, folder: Path, capsys: pytest.CaptureFixture[str], holds: Callable[[str, Any], None]
) -> None:
    holds(*said(capsys, f"mask {MASKED[release]} -o {release} --seed {SEED}"))
    for name in ("manifest", "secret"):
        holds(name, json.loads(Path(f"{release}.{name}.json").read_text(encoding="utf-8")))
    holds("register", json.loads(Path("rankveil-register.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_verb_writes_holds(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str], holds: Callable[[str, Any], None]
) -> None:
    for release in MASKED:
        if release in command and not Path(release).exists():
            said(capsys, f"mask {MASKED[release]} -o {release} --seed {SEED}")
    holds(*said(capsys, command))


def test_what_the_demo_writes_holds(demo: Path, holds: Callable[[str, Any], None]) -> None:
    holds("demo", json.loads(demo.with_suffix(".json").read_text(encoding="utf-8")))


@pytest.mark.thorough
def test_an_attack_in_parts_holds(
    folder: Path, capsys: pytest.CaptureFixture[str], holds: Callable[[str, Any], None]
) -> None:
    for table, name in zip(datasets.running_example(), ("original.parquet", "masked.parquet"), strict=True):
        files.save(table, name)
    verb, document = said(capsys, "attack original.parquet masked.parquet --cluster local:1 --subjects 10")
    assert document["subjects"] == 10
    holds(verb, document)
