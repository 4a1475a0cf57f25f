"""Files that are broken, cut, flipped, or something else: read, or refused in one sentence that names the file."""

from __future__ import annotations

import copy
import datetime
import io
import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil import metadata
from rankveil.beside import mapping_beside, parsed_from, read_secret
from rankveil.cli.options import Reading
from rankveil.cli.tables import declared_schema
from rankveil.errors import RankveilError, one_line
from rankveil.files import Loaded, load, save
from rankveil.hierarchy import Hierarchy
from rankveil.plans import Plan
from rankveil.table import Table

pyreadstat = pytest.importorskip("pyreadstat")
pytest.importorskip("openpyxl")
pytest.importorskip("duckdb")

ENDINGS = (".csv", ".parquet", ".feather", ".arrow", ".xlsx", ".dta", ".xpt", ".sas7bdat")
IN_A_PROCESS = (".sav", ".zsav")
"""What is first tried in a process that may crash, which takes its time."""

DATABASES = ("sqlite", "duckdb")
RARE = settings(max_examples=max(2, settings().max_examples // 12), suppress_health_check=list(HealthCheck))
CONTENTS = {
    "nothing": b"",
    "a picture": bytes.fromhex("89504e470d0a1a0a0000000d49484452") + bytes(range(256)),
    "text": b"A,B\n1,2\n3,4\n",
    "an archive": bytes.fromhex("504b0506") + bytes(18),
    "Parquet's first bytes": b"PAR1" + bytes(40) + b"PAR1",
    "Arrow's first bytes": b"ARROW1\0\0" + b"\xff" * 40 + b"ARROW1",
    "SPSS's first bytes": b"$FL2@(#) SPSS DATA FILE" + bytes(400),
    "Stata's first bytes": b"<stata_dta><header><release>118</release></stata_dta>",
    "SQLite's first bytes": b"SQLite format 3\0" + b"\xff" * 200,
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
}


def survey() -> pa.Table:
    """A table with a bit of everything that files hold."""
    rows = 30
    day = datetime.date(2024, 2, 28)
    letters = ["low", "Größe", "=1+1", "x" * 300, None]
    labelled = metadata.Described(label="Sex", value_labels=((1, "one"), (2, "two")), program="spss", format="F8.2")
    fields = [
        pa.field("A", pa.float64()),
        pa.field("B", pa.int64()),
        pa.field("C", pa.string()),
        pa.field("D", pa.date32()),
        metadata.write(pa.field("E", pa.float64()), labelled),
    ]
    columns = [
        [row * 1.5 for row in range(rows)],
        [None if row % 7 == 0 else row for row in range(rows)],
        [letters[row % 5] for row in range(rows)],
        [day + datetime.timedelta(row) for row in range(rows)],
        [float(1 + row % 2) for row in range(rows)],
    ]
    arrays = [pa.array(cells, field.type) for cells, field in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def sas_data_set() -> bytes:
    """A data set of SAS, made as the tests of that format make theirs: rankveil writes none."""
    spec = spec_from_file_location("making_sas", Path(__file__).parents[1] / "files" / "test_sas.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    numbers, letters = [float(row) for row in range(30)], [1.0, ".A", None] * 10
    columns = {"AGE": ("Age", "BEST12", numbers), "DAY": ("", "DATE9", numbers), "M": ("", "", letters)}
    made = module.Maker({**columns, "NAME": ("Name", "$", ["abc", "defgh", "x"] * 10)})
    return bytes(made.content)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """The bytes of a file that is right, by its ending or its kind of database."""
    folder, made = tmp_path_factory.mktemp("whole"), dict[str, bytes]()

    def write(kind: str) -> bytes:
        path = folder / f"t{kind}"
        if kind in DATABASES:
            save(survey(), f"{kind}:///{path}?table=t")
        elif kind == ".xpt":
            frame = survey().to_pandas()
            pyreadstat.write_xport(frame.drop(columns="D"), str(path))
        elif kind == ".sas7bdat":
            path.write_bytes(sas_data_set())
        elif kind == ".arrow":
            with pa.ipc.new_stream(path, survey().schema) as target:
                target.write_table(survey())
        else:
            save(survey(), path)
        return path.read_bytes()

    def content(kind: str) -> bytes:
        if kind not in made:
            made[kind] = write(kind)
        return made[kind]

    return content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The bytes of a file after an accident: cut, flipped, overwritten, with bytes lost or put in."""
    raw = bytearray(content)
    if draw(st.integers(0, 4)) == 0:
        return bytes(raw[: draw(st.integers(0, len(raw) - 1))])
    # most of what a file says of itself stands at its ends
    places = st.one_of(st.integers(0, min(400, len(raw) - 1)), st.integers(0, len(raw) - 1)).map(
        lambda place: place if place % 3 else len(raw) - 1 - place
    )
    for _ in range(draw(st.integers(1, 6))):
        at, size = min(draw(places), len(raw) - 1), draw(st.sampled_from([1, 1, 2, 4, 8]))
        how = draw(st.sampled_from(["flip", "flip", "zero", "ones", "some", "lose", "add"]))
        if how == "flip":
            raw[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "lose":
            del raw[at : at + size]
        else:
            new = bytes(size) if how == "zero" else b"\xff" * size if how == "ones" else draw(st.binary(max_size=12))
            raw[at : at if how == "add" else at + len(new)] = new
        if not raw:
            return b""
    return bytes(raw)


def refused(read: Callable[[], object], path: Path) -> bool:
    """Whether a file is refused, which must be in one sentence that names the file."""
    sentence = ""
    try:
        read()
    except RankveilError as error:
        sentence = str(error)
    assert not sentence or str(path) in sentence or "unknown encoding" in sentence
    assert one_line(sentence) == sentence
    return bool(sentence)


def read_or_refused(address: str | Path, path: Path, **how: Any) -> Loaded | None:
    """What was read, whole and usable; None when it was refused."""
    found: list[Loaded] = []
    if refused(lambda: found.append(load(address, **how)), path):
        return None
    loaded = found[0]
    loaded.data.validate(full=True)
    with suppress(RankveilError):
        table = Table(loaded.data)
        assert all(table.columns[name].kind for name in table.names)
    return loaded


def tried(data: st.DataObject, folder: Path, kind: str, content: bytes) -> None:
    """Damage a file and read it."""
    path = folder / f"t{kind if kind.startswith('.') else '.db'}"
    path.write_bytes(data.draw(damaged(content)))
    read_or_refused(f"{kind}:///{path}?table=t" if kind in DATABASES else path, path)


@pytest.mark.parametrize("ending", ENDINGS)
@given(data=st.data())
def test_damaged_files(
    data: st.DataObject, ending: str, whole: Callable[[str], bytes], folder: Path, tally: Callable[..., None]
) -> None:
    tried(data, folder, ending, whole(ending))
    tally("damaged files read or refused")


@pytest.mark.parametrize("ending", IN_A_PROCESS)
@RARE
@given(data=st.data())
def test_damaged_files_whose_library_may_crash(
    data: st.DataObject, ending: str, whole: Callable[[str], bytes], folder: Path, tally: Callable[..., None]
) -> None:
    tried(data, folder, ending, whole(ending))
    tally("damaged files read or refused")


@pytest.mark.parametrize("kind", DATABASES)
@given(data=st.data())
def test_damaged_databases(
    data: st.DataObject, kind: str, whole: Callable[[str], bytes], folder: Path, tally: Callable[..., None]
) -> None:
    tried(data, folder, kind, whole(kind))
    tally("damaged files read or refused")


@given(data=st.data())
def test_workbooks_with_a_damaged_part(
    data: st.DataObject, whole: Callable[[str], bytes], folder: Path, tally: Callable[..., None]
) -> None:
    # a damaged byte of the archive itself is found by its checksum, so the part is packed anew
    with zipfile.ZipFile(io.BytesIO(whole(".xlsx"))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = data.draw(st.sampled_from(sorted(parts)))
    words = [b'r="', b"<v>", b't="', b's="', b"<row", b"<c ", b'="', b"</c>", b"ref"]
    word = data.draw(st.sampled_from([each for each in words if each in parts[name]] or [b"<"]))
    if data.draw(st.booleans()) and word in parts[name]:
        new = data.draw(
            st.sampled_from([b"", b'r="ZZZ9', b"1e999", b"9" * 400, b"-1", b't="d"', b't="e"', b"<", b"&x;"])
        )
        many = data.draw(st.integers(1, 3))
        parts[name] = parts[name].replace(word, word + new if data.draw(st.booleans()) else new, many)
    else:
        parts[name] = data.draw(damaged(parts[name]))
    path = folder / "part.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        for each, content in parts.items():
            archive.writestr(each, content)
    read_or_refused(path, path)
    tally("damaged files read or refused")


PIECES = [
    b'"', b'""', b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b"\0", b" ", b"a", b"B", b"1.5", b"-2", b"1,5",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", "ä".encode(), "ä".encode("latin-1"), b"\x81", b"=1+1",
    b"a,b\n", b'"a,b"', b'"a\nb",', b"\xed\xa0\x80", b"\\", b"'", b"#", b"NA", b"\x85", b"\x0b", b"\x1a",
]  # fmt: skip


@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=40),
    times=st.sampled_from([1, 1, 1, 2, 50]),
    header=st.sampled_from([b"", b"", b"a,b\n", b"a;b\r\n", b"a\r"]),
    separator=st.sampled_from([None, None, None, ",", ";", "tab", ".", "'"]),
    encoding=st.sampled_from(
        [None, None, None, None, "utf-8", "utf-16", "latin-1", "utf-7", "shift_jis", "idna", "x\0"]
    ),
)
def test_broken_csv(
    pieces: list[bytes],
    times: int,
    header: bytes,
    separator: str | None,
    encoding: str | None,
    folder: Path,
    tally: Callable[..., None],
) -> None:
    path = folder / "broken.csv"
    path.write_bytes(header + b"".join(pieces) * times)
    loaded = read_or_refused(path, path, separator=separator, encoding=encoding)
    assert loaded is None or "" not in [name.strip() for name in loaded.data.column_names]
    tally("damaged files read or refused")


@pytest.mark.parametrize("content", CONTENTS)
def test_files_that_are_something_else(
    content: str, tmp_path: Path, tally: Callable[..., None], pytestconfig: pytest.Config
) -> None:
    slow = IN_A_PROCESS if pytestconfig.getoption("--thorough") or content == "SPSS's first bytes" else ()
    for ending in (*ENDINGS[1:], *slow):
        path = tmp_path / f"t{ending}"
        path.write_bytes(CONTENTS[content])
        assert read_or_refused(path, path) is None, ending
        tally("files of another kind refused")
    for kind in DATABASES:
        path = tmp_path / "t.db"
        path.write_bytes(CONTENTS[content])
        assert read_or_refused(f"{kind}:///{path}?table=t", path) is None, kind
        tally("files of another kind refused")


@pytest.mark.parametrize("ending", [*ENDINGS, *IN_A_PROCESS])
def test_folders_instead_of_files(ending: str, tmp_path: Path, tally: Callable[..., None]) -> None:
    path = tmp_path / f"t{ending}"
    path.mkdir()
    assert read_or_refused(path, path) is None
    tally("files of another kind refused")


@st.composite
def odd(draw: st.DrawFn) -> Any:
    """What may stand in a JSON or TOML document where something else should."""
    plain = st.one_of(
        st.integers(-(10**20), 10**20), st.just(10**400), st.floats(-1e300, 1e300), st.booleans(),
        st.text(max_size=4), st.sampled_from(["none", "mdav", "AGE", "\u202e", "0" * 40, "ff" * 16]),
    )  # fmt: skip
    return draw(
        st.one_of(
            plain, st.none(), st.lists(plain, max_size=3), st.dictionaries(st.text(max_size=3), plain, max_size=2)
        )
    )


@st.composite
def altered(draw: st.DrawFn, document: Any) -> Any:
    """A document of plain data in which something was replaced, left out or put in."""
    whole = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        place = whole
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and place[key] and draw(st.integers(0, 2)):
                place = place[key]
                continue
            if draw(st.integers(0, 3)) == 0:
                del place[key]
            else:
                place[key] = draw(odd())
            break
    return whole


def release() -> rv.Release:
    table = pa.table({"AGE": [float(20 + row) for row in range(12)], "SEX": ["f", "m"] * 6})
    plan = rv.Plan.of("additive_noise", columns=["AGE"], alpha=0.2).then("pram", columns=["SEX"])
    return rv.mask(table, plan, seed="ab" * 16)


MASKED = release()
MANIFEST = dict(MASKED.manifest.content)
SECRET = {**json.loads(MASKED.secret.to_json()), "mapping": [2, 1, 3]}
PLAN = rv.Plan.of("additive_noise", columns=["AGE"], alpha=0.2).then("round").to_dict()


@given(data=st.data())
def test_damaged_manifests(data: st.DataObject, folder: Path, tally: Callable[..., None]) -> None:
    text = json.dumps(data.draw(altered(MANIFEST)))
    path = folder / "release.csv.manifest.json"
    path.write_text(text, encoding="utf-8")
    with suppress(RankveilError):
        assert mapping_beside(folder / "release.csv", [], records=12)[1] in (True, False)
    with suppress(RankveilError):
        rv.correct(MASKED.data, text)
    tally("damaged manifests, secrets, plans, roles and hierarchies")


@given(data=st.data())
def test_damaged_secrets(data: st.DataObject, folder: Path, tally: Callable[..., None]) -> None:
    path = folder / "secret.json"
    path.write_text(json.dumps(data.draw(altered(SECRET))), encoding="utf-8")
    refused(lambda: read_secret(str(path)), path)
    tally("damaged manifests, secrets, plans, roles and hierarchies")


@given(data=st.data())
def test_damaged_plans(data: st.DataObject, folder: Path, tally: Callable[..., None]) -> None:
    path = folder / "plan.json"
    path.write_text(json.dumps(data.draw(altered(PLAN))), encoding="utf-8")
    refused(lambda: parsed_from(str(path), "plan", Plan.from_json), path)
    tally("damaged manifests, secrets, plans, roles and hierarchies")


ROLES = b'missing = ["n/a", -9]\n[columns.AGE]\nkind = "ordinal"\nlevels = ["low", "high"]\nrole = "other"\n'
TREE = "Ulm;South;*\nBonn;West;*\nKöln;West;*\n".encode()


@example(raw=b"missing = " + b"[" * 100_000)
@example(raw=b"missing = " + b"9" * 100_000)
@example(raw=b"[columns.AGE]\nhierarchy = 'none.csv'\n")
@given(raw=damaged(ROLES))
def test_damaged_roles(raw: bytes, folder: Path, tally: Callable[..., None]) -> None:
    path = folder / "roles.toml"
    path.write_bytes(raw)
    with suppress(RankveilError):
        declared_schema(Reading(roles=str(path)))
    tally("damaged manifests, secrets, plans, roles and hierarchies")


@example(raw=b"a;" * 50_000)
@example(raw=b"a\r;b\r")
@example(raw=b"a;b\n\0;c")
@example(raw=b"x" * 200_000)
@given(raw=damaged(TREE))
def test_damaged_hierarchies(raw: bytes, folder: Path, tally: Callable[..., None]) -> None:
    path = folder / "tree.csv"
    path.write_bytes(raw)
    refused(lambda: Hierarchy.from_csv(path), path)
    tally("damaged manifests, secrets, plans, roles and hierarchies")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 100_000, '"\\ud800"', "", "NaN", "nul"])
def test_documents_that_nobody_would_write(text: str, tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    path.write_text(text)
    for read in (lambda: read_secret(str(path)), lambda: parsed_from(str(path), "plan", Plan.from_json)):
        with pytest.raises(RankveilError, match=r"document\.json: "):
            read()
    for read_plan in (Plan.from_toml, rv.Manifest.from_json):
        with pytest.raises(RankveilError):
            read_plan(text)


@given(data=st.data())
def test_what_a_damaged_file_says_of_its_columns(data: st.DataObject, tally: Callable[..., None]) -> None:
    said = {
        "label": "Age", "value_labels": [[1, "one"], ["-9", "refused"]], "missing_codes": [-9], "level": "ordinal",
        "missing_ranges": [[90, "inf"]], "program": "spss", "format": "F8.2", "storage": "", "width": 8,
    }  # fmt: skip
    content = json.dumps(data.draw(altered(said))).encode()
    if data.draw(st.integers(0, 3)) == 0:
        content = data.draw(damaged(content))
    field = pa.field("A", pa.float64(), metadata={metadata.KEY: content})
    table = Table(pa.table([pa.array([1.0, -9.0, None])], schema=pa.schema([field])))
    with suppress(RankveilError):
        assert table.columns["A"].kind in ("numeric", "ordinal", "nominal")
    whole = {"label": "Survey", "notes": ["a", "b"], "encoding": "UTF-8", "program": "stata"}
    schema = pa.schema([field], metadata={metadata.KEY: json.dumps(data.draw(altered(whole))).encode()})
    assert isinstance(metadata.read_table(schema).label, str)
    tally("damaged descriptions of columns")
