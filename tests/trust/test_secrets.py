"""Nothing that the product writes, shows or runs holds the seed or what is derived from it, and what is published holds
no original value that the release does not hold.

The table's numbers and names occur nowhere else, so that whatever is found was told by rankveil.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import hmac
import io
import json
import os
import pickle
import re
import stat
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from dataclasses import replace as dataclass_replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import rankveil as rv
from rankveil import files
from rankveil.cli import main
from rankveil.seeds import Seed
from rankveil.web import work

Tally = Callable[..., None]

HEX = "9d3e51c7fa0864b2e18f7c2405d96ab37b40e69c12f8d5a30e67b1944dc2f85e"
RECORDS = 48
NAME = "Quirinella"
NUMBERS = ["INCOME", "RENT", "DEBT"]


def people() -> pa.Table:
    """Numbers of nine digits, names that nobody has, a town for each dozen."""
    rng = np.random.default_rng(11)
    columns: dict[str, Any] = {"PERSON": [f"{NAME} Vossbreck-{k:02d}" for k in range(RECORDS)]}
    columns["TOWN"] = [f"town {k}" for k in rng.integers(0, 4, RECORDS)]
    level = rng.uniform(20_000, 90_000, RECORDS)
    for name in NUMBERS:
        columns[name] = np.round(level + rng.uniform(1_000, 9_000, RECORDS), 4)
    return pa.table(columns)


# ---- what is looked for, and how ----


KEYS: dict[str, set[bytes]] = {}
"""By seed, the keys of the releases that were made with it in this process."""


@pytest.fixture(scope="module", autouse=True)
def keys_of_releases() -> Iterator[None]:
    """Watch which keys are derived; nothing else about that is changed."""
    derive = Seed.derived

    def watched(self: Seed, purpose: str, content: bytes) -> Seed:
        made = derive(self, purpose, content)
        KEYS.setdefault(self.reveal(), set()).add(bytes.fromhex(made.reveal()))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Seed, "derived", watched)
        yield


def spelled(number: float) -> set[str]:
    """A number as people and programs write it: at least six digits of it."""
    plain = {repr(number), f"{number:.4f}", f"{number:.3f}", f"{number:.2f}", f"{number:.6g}", f"{number:.8e}"}
    plain |= {f"{number:,.4f}", f"{number:,.2f}"}
    plain = {word for word in plain if sum(map(str.isdigit, word)) >= 6}  # 32762 may be the number of a process
    return plain | {word.translate(str.maketrans(",.", ".,")) for word in plain}


@dataclass
class Originals:
    """Numbers of the original that the release does not hold, and the names of its people."""

    numbers: set[float]
    released: set[float]

    @classmethod
    def behind(cls, released: pa.Table) -> Originals:
        known = {float(value) for name in NUMBERS for value in np.asarray(released[name], dtype=float)}
        secret = {float(value) for name in NUMBERS for value in people()[name].to_pylist()} - known
        return cls(secret, known)

    @cached_property
    def words(self) -> dict[str, float]:
        public = {word for number in self.released for word in spelled(number)}
        return {word: number for number in self.numbers for word in spelled(number) if word not in public}

    @cached_property
    def packed(self) -> dict[bytes, float]:
        return {np.array(number, kind).tobytes(): number for number in self.numbers for kind in ("<f8", ">f8")}

    def found_in(self, layer: bytes) -> set[str]:
        told = {f"a name ({NAME})"} if NAME.encode() in layer or NAME.encode("utf-16-le") in layer else set()
        words = {word.decode() for word in re.findall(rb"\d[\d.,]*\d(?:e[+-]\d\d)?", layer)}
        told |= {f"the number {self.words[word]}" for word in words & set(self.words)}
        return told | {f"the bytes of {number}" for packed, number in self.packed.items() if packed in layer}


@dataclass
class Derived:
    """The seed and what comes of it: keys of releases, hashes that keys are made with, streams, their first words."""

    seed: str
    streams: set[tuple[str | int, ...]]

    @cached_property
    def secrets(self) -> dict[bytes, str]:
        made = {}
        seed = bytes.fromhex(self.seed)
        roots = {seed: "the seed", **dict.fromkeys(KEYS.get(self.seed, ()), "the key of a release")}
        for root, what in roots.items():
            made |= {root: what, hashlib.sha256(root).digest(): f"the hash of {what}"}
            for name in self.streams:
                stream = Seed(root).stream(*name)
                key = stream._key.to_bytes(16, "little")
                made[key] = f"the key of {name}"
                made[_whole_key(root, name)] = f"the HMAC of {name}"
                made[stream.key()] = f"the words of {name}"
        return made

    @cached_property
    def numbers(self) -> dict[str, str]:
        orders: tuple[Any, ...] = ("big", "little")
        return {str(int.from_bytes(raw, order)): what for raw, what in self.secrets.items() for order in orders}

    def found_in(self, layer: bytes) -> set[str]:
        told = {what for raw, what in self.secrets.items() if raw in layer or raw[::-1] in layer}
        hexes = b" ".join(re.findall(rb"[0-9a-f]{24,}", layer.lower()))
        if hexes:
            told |= {f"{what} in hexadecimal" for raw, what in self.secrets.items() if raw.hex().encode() in hexes}
        long = {word.decode() for word in re.findall(rb"\d{30,}", layer)}
        told |= {f"{self.numbers[word]} as a number" for word in long & set(self.numbers)}
        listed = {json.dumps(list(raw)).replace(" ", "").encode(): what for raw, what in self.secrets.items()}
        dense = layer.replace(b" ", b"") if b"[" in layer and len(layer) < 200_000 else b""
        return told | {f"{what} as a list" for words, what in listed.items() if words in dense}


def _whole_key(seed: bytes, name: tuple[str | int, ...]) -> bytes:
    """The HMAC of which a stream's key is the first half, worked out anew."""
    pieces = [f"{type(piece).__name__}:{piece}".encode() for piece in name]
    message = b"".join(len(piece).to_bytes(4, "big") + piece for piece in pieces)
    return hmac.new(hashlib.sha256(seed).digest(), b"rankveil/stream/1" + message, hashlib.sha256).digest()


def streams_of(methods: Iterable[str], columns: Iterable[str]) -> set[tuple[str | int, ...]]:
    """The names of all streams that a masking by these steps may draw from."""
    names = list(columns)
    found: set[tuple[str | int, ...]] = set()
    for number, method in enumerate(methods):
        found |= {("mask", number, method, 0), ("mask", number, method, "groups", 0)}
        found |= {("mask", number, method, name, 0) for name in names}
    return found


def layers(content: bytes) -> Iterator[bytes]:
    """An artefact and what is packed in it: archives, Parquet and Feather tables, compressed and encoded pieces."""
    yield content
    if content[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.namelist():
                yield from layers(archive.read(member))
    elif content[:4] == b"PAR1":
        yield from _of_table(pq.read_table(io.BytesIO(content)))
    elif content[:6] == b"ARROW1":
        yield from _of_table(feather.read_table(io.BytesIO(content)))
    elif content[:2] == b"\x1f\x8b":
        yield from layers(gzip.decompress(content))
    for run in re.findall(rb"[A-Za-z0-9+/_-]{40,}={0,2}", content.replace(b"\\/", b"/").replace(b"\\u002f", b"/")):
        plain = run.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
        if len(run) < 200_000:
            for shift in range(4):  # a run of letters may begin before the encoded piece
                piece = plain[shift : len(plain) - ((len(plain) - shift) % 4 == 1)]
                yield base64.b64decode(piece + b"=" * (-len(piece) % 4))


def _of_table(table: pa.Table) -> Iterator[bytes]:
    yield str(table.schema).encode() + repr(table.schema.metadata).encode()
    for column in table.columns:
        yield json.dumps(column.to_pylist(), default=str).encode()
        if pa.types.is_floating(column.type):
            yield column.to_numpy().astype("<f8").tobytes()


@dataclass
class Searcher:
    """Looks through artefacts and counts them."""

    tally: Tally
    found: dict[str, set[str]] = field(default_factory=dict)

    def __call__(self, name: str, content: bytes | str, *wanted: Originals | Derived) -> set[str]:
        raw = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        told: set[str] = set()
        for layer in layers(raw):
            for each in wanted:
                told |= each.found_in(layer)
                self.tally("searches", len(each.secrets) if isinstance(each, Derived) else len(each.words))
        self.tally("artefacts searched for secrets")
        if told:
            self.found[name] = told
        return told


@pytest.fixture
def search(tally: Tally) -> Searcher:
    return Searcher(tally)


def ran(*words: str | Path) -> tuple[int, str]:
    """A command in this process, with its exit code and all that it says."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main([str(word) for word in words])
    return code, said.getvalue()


# ---- the search itself ----


def test_the_search_finds_what_is_there(search: Searcher) -> None:
    """The control: in every form in which a secret could lie about, the same search finds it."""
    derived = Derived(HEX, streams_of(["permute"], ["INCOME"]))
    number = people()["INCOME"][0].as_py()
    originals = Originals({number}, set())
    for raw in derived.secrets:
        forms: list[bytes] = [raw, raw[::-1], raw.hex().encode(), raw.hex().upper().encode(), b"x" + raw.hex().encode()]
        forms += [str(int.from_bytes(raw, "big")).encode(), str(int.from_bytes(raw, "little")).encode()]
        forms += [json.dumps({"key": list(raw)}).encode(), base64.b64encode(b"before it lies some text " + raw)]
        forms += [base64.urlsafe_b64encode(b"before it lies some more text " + raw), gzip.compress(raw.hex().encode())]
        for form in forms:
            assert search("planted", form, derived), form
    for word in (*spelled(number), f"{NAME} Vossbreck-00"):
        assert search("planted", f"<td>{word}</td>", originals), word
    table = pa.table({"A": [number], "B": [f"{NAME} X"]})
    for ending in (".parquet", ".feather", ".xlsx", ".csv"):
        for names in (["A"], ["B"]):
            packed = io.BytesIO()
            files.table_writer(table.select(names), f"x{ending}")(packed)
            assert search("planted", packed.getvalue(), originals), (ending, names)
    figure = json.dumps({"bdata": base64.b64encode(np.array([1.0, number, 3.0]).tobytes() * 3).decode()})
    assert search("planted", figure, originals)
    assert not search("clean", "INCOME 12345.6789, seed 00112233445566778899aabbccddeeff", derived, originals)


def test_the_keys_that_are_looked_for_are_those_that_draw() -> None:
    release = rv.mask(people(), "additive_noise", columns=["INCOME"], alpha=0.5, seed=HEX)
    x = people()["INCOME"].to_numpy()
    [name] = {("mask", 0, "additive_noise", "INCOME", 0)} & streams_of(["additive_noise"], ["INCOME"])
    drawn = {key: Seed(key).stream(*name).normal(RECORDS) for key in KEYS[HEX]}
    noise = (release.data["INCOME"].to_numpy() - x) / (0.5 * x.std())
    [key] = [key for key, draws in drawn.items() if np.allclose(draws, noise, rtol=1e-9)]
    assert Seed(key).stream(*name)._key.to_bytes(16, "little") == _whole_key(key, name)[:16]
    assert {key, _whole_key(key, name)} <= set(Derived(HEX, {name}).secrets)


# ---- the command line ----

PLANS: dict[str, tuple[str, list[str]]] = {
    "noise.csv": ("additive_noise", ["--set", "alpha=0.3"]),
    "swap.parquet": ("rank_swap", ["--set", "p=20", "--then", "record_shuffle"]),
    "ipso.xlsx": ("ipso", []),
    "mdav.feather": ("mdav", ["--set", "k=4", "--publish", "um,cm2,permutation_level"]),
}


def methods_of(out: str) -> list[str]:
    """The steps of a plan, what is added to it with them."""
    method, more = PLANS[out]
    added = [more[k + 1] for k, word in enumerate(more) if word == "--then"]
    return ["pseudonymise", method, *added, *(["record_shuffle"] if method == "ipso" else [])]


def mask(out: str, seed_file: Path) -> str:
    method, more = PLANS[out]
    steps = 'schema = "rankveil/plan/1"\n[[steps]]\nmethod = "pseudonymise"\ncolumns = ["PERSON"]\n'
    parameters = "".join(f"{word.replace('=', ' = ')}\n" for word in more[1:2]) if "--set" in more else ""
    columns = json.dumps(NUMBERS)
    steps += f'[[steps]]\nmethod = "{method}"\ncolumns = {columns}\n[steps.parameters]\n{parameters}'
    Path("plan.toml").write_text(steps)
    rest = more[2:] if "--set" in more else more
    code, said = ran("mask", "people.csv", "-o", out, "--plan", "plan.toml", "--seed-file", seed_file, "--json", *rest)
    assert code == 0, said
    return said


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A folder with all releases; what the commands said, by the name of the release."""
    folder, private = tmp_path_factory.mktemp("secrets"), tmp_path_factory.mktemp("private")
    before = Path.cwd()
    os.chdir(folder)
    try:
        files.save(people(), "people.csv")
        (private / "seed").write_text(HEX)
        yield {out: mask(out, private / "seed") for out in PLANS}
    finally:
        os.chdir(before)


def derived(out: str) -> Derived:
    return Derived(HEX, streams_of(methods_of(out), people().column_names))


@pytest.fixture(scope="session")
def measures(pytestconfig: pytest.Config) -> tuple[str, ...]:
    """Which measures audits are asked for: some of each kind, and all where there is time for them."""
    some = ("--measures", "um,cm2,permutation_level,rank_linkage,emd,interval_disclosure")
    return () if pytestconfig.getoption("--thorough") else some


@pytest.mark.parametrize("out", PLANS)
def test_what_is_published_tells_nothing(
    masked: dict[str, str], search: Searcher, measures: tuple[str, ...], out: str
) -> None:
    """Release, manifest, page for subjects, a subject's check, and public reports: no secret and no original value."""
    release = files.load(out).data
    originals, known = Originals.behind(release), derived(out)
    kept = out == "swap.parquet"  # a permutation: its values are the original's, in other places
    assert (len(originals.numbers) < RECORDS) == kept
    secret = Path(f"{out}.secret.json").read_bytes()
    assert search("the secret", secret, known) >= {"the seed in hexadecimal"}  # the control
    search.found.clear()
    search(out, Path(out).read_bytes(), known, originals)
    search(f"{out}.manifest.json", Path(f"{out}.manifest.json").read_bytes(), known, originals)
    assert ran("subject-page", out, "-o", "subject.html", "--columns", ",".join(NUMBERS))[0] == 0
    search("subject.html", Path("subject.html").read_bytes(), known, originals)
    mine = ",".join(f"{name}={release[name][0].as_py()}" for name in NUMBERS)
    for more in ((), ("--json",)):
        code, said = ran("verify", out, "--record", mine, *more)
        assert code == 0, said
        search("verify", said, known, originals)
    matching = ("--secret", f"{out}.secret.json") if out == "swap.parquet" else ()
    for verb, own in (("audit", measures), ("attack", ("--draws", "30"))):
        words = (verb, "people.csv", out, "--columns", ",".join(NUMBERS), *matching, *own)
        code, said = ran(*words, "--report", f"{verb}.html", "--public")
        stands = verb == "audit" or out.startswith("ipso")  # of a table this small only synthetic records do
        assert code == (0 if stands else 1), said
        search(f"public {verb}", Path(f"{verb}.html").read_bytes(), known, originals)
        search(f"{verb} said", said, known)
    assert search.found == {}


def test_what_stays_inside_tells_no_seed(masked: dict[str, str], search: Searcher, measures: tuple[str, ...]) -> None:
    """All that the commands say, also in JSON, and reports for internal use, which may name records."""
    for out, said in masked.items():
        search(f"mask {out} said", said, derived(out))
    out, known = "noise.csv", derived("noise.csv")
    columns = ("--columns", ",".join(NUMBERS))
    pair = ("people.csv", out, *columns)
    commands: list[tuple[str, ...]] = [
        ("audit", *pair, *measures, "--secret", f"{out}.secret.json", "--report", "internal.html", "--json"),
        ("attack", *pair, "--secret", f"{out}.secret.json", "--draws", "20", "--report", "internal.html", "--json"),
        ("certify", *pair, "--secret", f"{out}.secret.json", "--json"),
        ("certify", *pair),
        ("inspect", "people.csv"),
        ("compare", "people.csv", *columns, "--methods", "additive_noise,mdav", "--at", "risk=0.3", "--replicates", "1",
         "--utility", "um", "--report", "internal.html", "--write-plan", "chosen.toml", "--json"),
    ]  # fmt: skip
    for words in commands:
        code, said = ran(*words)
        assert code in (0, 1), said
        search(f"{words[0]} said", said, known)
        if "--report" in words:
            search(f"report of {words[0]}", Path("internal.html").read_bytes(), known)
    search("chosen.toml", Path("chosen.toml").read_bytes(), known)
    assert search.found == {}
    holding = {path.name for path in Path().iterdir() if search(path.name, path.read_bytes(), known)}
    assert holding == {f"{name}.secret.json" for name in PLANS}


def test_no_error_tells_the_seed(masked: dict[str, str], search: Searcher, tmp_path: Path) -> None:
    seed, out = tmp_path / "seed", tmp_path / "out.csv"
    plain = json.loads(Path("noise.csv.secret.json").read_text())
    damaged = {
        "half": json.dumps(plain)[:-20],
        "schema": json.dumps({**plain, "schema": "rankveil/secret/9"}),
        "mapping": json.dumps({**plain, "mapping": [1, 1]}),
        "seed": json.dumps({**plain, "seed": HEX + "x"}),
        "list": json.dumps([plain]),
    }
    told = []
    mask_it = ("mask", "people.csv", "-o", out, "--method", "additive_noise")
    for content in (HEX + "x", f"seed = {HEX}", HEX[:20], f"\ufeff{HEX}", json.dumps(plain)):
        seed.write_text(content)
        told.append(ran(*mask_it, "--seed-file", seed))
    seed.write_text(HEX)
    good = (*mask_it, "--seed-file", seed)
    told += [ran(*good, *more) for more in (("--set", "alpha=-1"), ("--columns", "NOBODY"), ("--publish", "nothing"))]
    told += [
        ran(*mask_it, *more) for more in (("--seed", f"{HEX}x"), (f"--seeds={HEX}",), ("--seed-file", HEX), (HEX,))
    ]
    told.append(ran(*mask_it[:3], tmp_path / "no" / "out.csv", *mask_it[4:], "--seed-file", seed))
    (tmp_path / "broken.csv").write_text("INCOME,RENT\n1,2\n3,4,5\n6\n")
    told.append(ran("mask", tmp_path / "broken.csv", "-o", out, *mask_it[4:], "--seed-file", seed))
    for name, content in damaged.items():
        (tmp_path / name).write_text(content)
        told.append(ran("audit", "people.csv", "noise.csv", "--secret", tmp_path / name))
    for code, said in told:
        assert code == 2, said
        search("an error", said, Derived(HEX, streams_of(["additive_noise"], NUMBERS)))
        assert HEX[:20] not in said.lower()
    assert search.found == {}
    assert not out.exists()


# ---- Python ----


def test_what_results_show_and_carry_tells_no_seed(search: Searcher) -> None:
    """Representations for people and notebooks, and pickles of results that are handed on."""
    known = Derived(HEX, streams_of(["additive_noise", "record_shuffle"], NUMBERS))
    table = people().drop_columns(["PERSON", "TOWN"])
    release = rv.mask(table, "additive_noise", alpha=0.4, then="record_shuffle", seed=HEX)
    matching: dict[str, Any] = {"secret": release.secret}
    results = [
        rv.audit(table, release.data, measures=["um", "cm2", "permutation_level"], **matching),
        rv.attack(table, release.data, draws=20, **matching),
        rv.certify(table, release.data, **matching),
        rv.verify(release.data, dict.fromkeys(NUMBERS, 50000.0)),
        rv.compare(table, ["additive_noise"], at={"risk": 0.3}, replicates=1, utility=["um"]),
    ]
    for each in (*results, release, release.manifest, release.secret, release.secret.seed):
        search(f"repr of {type(each).__name__}", f"{each!r} {each} {getattr(each, '_repr_html_', str)()}", known)
    for result in (*results, release.manifest):
        search(f"pickle of {type(result).__name__}", pickle.dumps(result), known)
    assert search.found == {}
    assert search("the release carries its secret", pickle.dumps(release), known)  # the control


# ---- files and processes ----


@dataclass
class Watch:
    """Looks, while something runs, at every file below some folders and at every process that it starts."""

    folders: list[Path]
    files: dict[str, set[tuple[int, bytes]]] = field(default_factory=dict)
    processes: dict[int, bytes] = field(default_factory=dict)

    def __enter__(self) -> Watch:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _run(self) -> None:
        while not self._over.wait(0.01):
            self._look()

    def _look(self) -> None:
        for folder in self.folders:
            for where, _, names in os.walk(folder):
                for name in names:
                    with contextlib.suppress(OSError):
                        path = os.path.join(where, name)
                        content = Path(path).read_bytes() if os.path.getsize(path) < 100_000 else b""
                        closed = os.stat(where).st_mode & 0o077 == 0
                        mode = 0 if closed else stat.S_IMODE(os.stat(path).st_mode) & 0o077
                        self.files.setdefault(path, set()).add((mode, content))
        for child in _children(os.getpid()):
            with contextlib.suppress(OSError):
                told = b"".join(Path(f"/proc/{child}/{what}").read_bytes() for what in ("cmdline", "environ"))
                self.processes[child] = told or self.processes.get(child, b"")


def _children(pid: int) -> list[int]:
    """All processes that a process started, and those that they did."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *_children(child)]
    return found


OUTPUTS = ["out.csv", "out.parquet", "out.feather", "out.xlsx", "out.dta", "sqlite:///out.db?table=people"]


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_what_a_file_says_beside_its_cells_does_not_go_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: Searcher, ending: str
) -> None:
    """Comments of columns and of the table, by whatever program: they may quote the original."""
    monkeypatch.chdir(tmp_path)
    data = people().drop_columns(["PERSON"])
    fields = [field.with_metadata({"comment": f"{NAME} told it"}) for field in data.schema]
    schema = pa.schema(fields, {"pandas": json.dumps({"attributes": {"by": NAME}}), "lineage": f"register of {NAME}"})
    files.save(data.cast(schema), f"noted{ending}")
    files.save(data, "plain.csv")
    assert search("the original", Path(f"noted{ending}").read_bytes(), Originals(set(), set()))
    search.found.clear()
    for name in (f"noted{ending}", "plain.csv"):
        out = f"out{ending}"
        assert ran("mask", name, "-o", out, "--method", "additive_noise", "--seed", HEX)[0] == 0
        search(out, Path(out).read_bytes(), Originals.behind(files.load(out).data))
    assert search.found == {}


@pytest.mark.parametrize("where", ["beside", "elsewhere", "replaced", "linked"])
def test_a_secret_is_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: Searcher, where: str
) -> None:
    """Whatever the release is, wherever the secret goes, and while it is written, whatever the umask allows others."""
    monkeypatch.chdir(tmp_path)
    files.save(people(), "people.csv")
    Path("private").mkdir()
    Path("seed").write_text(HEX)
    Path("seed").chmod(0o600)
    before = os.umask(0)
    try:
        for out in OUTPUTS if where == "beside" else OUTPUTS[:1]:
            secret = Path(f"{files.companion(out)}.secret.json")
            own: tuple[str, ...] = ()
            if where == "elsewhere":
                secret, own = Path("private/secret.json"), ("--secret", "private/secret.json")
            elif where == "replaced":
                secret.write_text("{}")
                secret.chmod(0o644)
            elif where == "linked":
                Path("linked").symlink_to("private")
                secret, own = Path("linked/secret.json"), ("--secret", "linked/secret.json")
                secret.write_text("{}")
                secret.chmod(0o666)
            with Watch([tmp_path]) as watch:
                words = ("--method", "additive_noise", "--columns", "INCOME", "--seed-file", "seed", "--json")
                code, said = ran("mask", "people.csv", "-o", out, *words, *own)
            assert code == 0, said
            assert stat.S_IMODE(secret.stat().st_mode) == 0o600
            beside = any(
                note.startswith("the secret lies beside what you publish") for note in json.loads(said)["notes"]
            )
            assert beside is (where != "elsewhere" and where != "linked")
            known = Derived(HEX, streams_of(["additive_noise"], ["INCOME"]))
            seen = [(path, *each) for path, looks in watch.files.items() for each in looks]
            holding = {(path, mode) for path, mode, content in seen if search(path, content, known)}
            assert {mode for _, mode in holding} == {0}
            assert str(secret.resolve()) in {os.path.realpath(path) for path, _ in holding}
    finally:
        os.umask(before)


def test_a_seed_that_others_can_see_is_told_to_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files.save(people(), "people.csv")
    words = ("mask", "people.csv", "-o", "out.csv", "--method", "permute", "--columns", "INCOME")
    Path("seed").write_text(HEX)
    for given, told in ((("--seed", HEX), True), (("--seed-file", "seed"), False), ((), False)):
        said = ran(*words, *given)[1]
        assert ("give it with --seed-file" in " ".join(said.split())) is told
        assert said.count("keep it apart") == 1


# ---- the workbench ----

TOKEN = "the-token-of-the-tests"


@dataclass
class Bench:
    """Somebody at the workbench."""

    server: Any
    client: Any

    def post(self, address: str, data: dict[str, Any] | None = None, **more: Any) -> str:
        answer = self.client.post(address, data=data or {}, headers={"Origin": self.server.origin}, **more)
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"]).rpartition("/")[2]

    def process(self, address: str, data: dict[str, Any] | None = None) -> str:
        """Some work in a process of its own, as always."""
        id = self.post(address, data)
        last = time.monotonic() + 120
        while self.client.get(f"/runs/{id}/state").json()["status"] in ("queued", "running"):
            assert time.monotonic() < last
            time.sleep(0.02)
        return id

    def here(self, address: str, data: dict[str, Any] | None = None) -> str:
        """The same in this process, which is quicker."""
        bench = self.server.app.state.bench
        held, bench.dispatcher._at_once = bench.dispatcher._at_once, 0
        try:
            id = self.post(address, data)
            run = bench.runs.keep(dataclass_replace(bench.run(id), status="running", started=time.time()))
            ended = bench.dispatcher._ended(run, work.main(bench.runs.folder(run)))
            bench.runs.keep(dataclass_replace(run, status=ended, ended=time.time()))
        finally:
            bench.dispatcher._at_once = held
        return id


@pytest.fixture
def bench(serving: Any, tmp_path: Path) -> Iterator[Bench]:
    server = serving(tmp_path / "workspace", token=TOKEN, limit=300_000)
    client = server.client()
    assert client.get(f"/?token={TOKEN}").status_code == 200
    yield Bench(server, client)
    server.stop()


def test_the_workbench_tells_nothing(bench: Bench, search: Searcher, tmp_path: Path) -> None:
    """Pages, workspace, processes with their arguments and environment, and what may be downloaded to be published."""
    csv = io.BytesIO()
    files.table_writer(people().drop_columns(["PERSON"]), "people.csv")(csv)
    table = bench.post("/data", files={"file": ("people.csv", csv.getvalue())})
    bench.post(f"/data/{table}/mask/step", {"method": "additive_noise", "p-alpha": "0.4", "columns": NUMBERS})
    workspace = tmp_path / "workspace"
    with Watch([workspace]) as watch:
        run = bench.process(f"/data/{table}/mask")
    secret = json.loads((workspace / "runs" / run / "secret.json").read_text())
    known = Derived(secret["seed"], streams_of(["additive_noise"], NUMBERS))
    release = files.load(workspace / "runs" / run / "masked.csv").data
    plan = rv.Plan.from_toml((workspace / "runs" / run / "plan.toml").read_text())
    again = rv.mask(people().drop_columns(["PERSON"]), plan, seed=secret["seed"])  # its key is looked for too
    again = again.published()  # in the order of the file
    assert np.allclose(again.data["DEBT"].to_numpy(), np.asarray(release["DEBT"], dtype=float), rtol=1e-12)
    originals = Originals.behind(release)
    which = {"release": f"run:{run}"}
    runs = [
        run,
        bench.here(f"/data/{table}/audit", {**which, "measures": ["um", "cm2", "permutation_level"]}),
        bench.here(f"/data/{table}/attack", {**which, "draws": "20"}),
        bench.here(f"/runs/{run}/certify"),
    ]
    tabs = [f"/data/{table}{tab}" for tab in ("", "/mask", "/audit", "/attack", "/compare", "/release")]
    for address in ("/", "/data", *tabs, *(f"/runs/{each}" for each in runs)):
        search(address, bench.client.get(address).content, known)
    page = bench.client.get(f"/runs/{run}").text
    assert "Keep the secret apart from what you publish: " in page
    published = 0
    for each in runs:
        result = json.loads((workspace / "runs" / each / "result.json").read_text())
        for name, told in result["outputs"].items():
            content = bench.client.get(f"/runs/{each}/files/{name}").content
            if not told["private"]:
                search(f"to publish: {name}", content, known, originals)
                published += 1
    assert published >= 4
    assert watch.processes
    for number, told in enumerate(watch.processes.values()):
        search(f"process {number}", told, known)
        search(f"process {number}", told, originals)
    assert search.found == {}
    assert {mode for looks in watch.files.values() for mode, _ in looks} == {0}
    holding = {path for path in workspace.rglob("*") if path.is_file() and search(str(path), path.read_bytes(), known)}
    assert holding == {workspace / "runs" / run / "secret.json"}


# ---- workers ----


@pytest.mark.thorough
def test_workers_and_scratch_tell_nothing(tmp_path: Path, search: Searcher) -> None:
    """A release in parts: arguments and environment of workers, their logs, and what lies in scratch meanwhile."""
    files.save(people(), tmp_path / "people.parquet")
    scratch, out = tmp_path / "scratch", tmp_path / "out.parquet"
    scratch.mkdir()
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "private" / "seed").write_text(HEX)
    words = ("--method", "rank_swap", "--columns", ",".join(NUMBERS), "--seed-file", tmp_path / "private" / "seed")
    with Watch([scratch]) as watch:
        code, said = ran("mask", tmp_path / "people.parquet", "-o", out, *words, "--cluster", "local:2",
                         "--scratch", scratch, "--secret", tmp_path / "private" / "secret.json")  # fmt: skip
    assert code == 0, said
    known = Derived(HEX, streams_of(["rank_swap"], NUMBERS))
    search("mask said", said, known)
    assert len(watch.processes) >= 2
    for told in watch.processes.values():
        search("a worker", told, known)
    for path in out.iterdir():
        search(path.name, path.read_bytes(), known)
    for (
        name,
        looks,
    ) in watch.files.items():  # the work that workers take up lies here, with the seed, for its owner alone
        assert {mode for mode, _ in looks} == {0}, name
        for _, content in looks if "log" in os.path.basename(name) else ():
            search(name, content, known)
    assert watch.files
    assert search.found == {}
    assert list(scratch.iterdir()) == []  # and is gone with it
