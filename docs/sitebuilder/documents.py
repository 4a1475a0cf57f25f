"""The page of the JSON documents: the fields of each from the formal schema, with examples that were made for it."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import rankveil
from rankveil import datasets, files
from rankveil.cli import main
from sitebuilder.interface import page
from sitebuilder.outline import Page
from sitebuilder.reference import grid

SCHEMA = Path(rankveil.__file__).with_name("documents.schema.json")

_COMMANDS: dict[str, tuple[str, ...]] = {
    "inspect": ("inspect", "original.csv"),
    "mask": ("mask", "original.csv", "-o", "release.csv", "--method", "rank_swap", "--set", "p=20", "--publish", "um"),
    "audit": ("audit", "original.csv", "masked.csv", "--measures", "cm2,um", "--fail-if", "cm2<0.01"),
    "attack": ("attack", "original.csv", "masked.csv", "--subsets"),
    "certify": ("certify", "original.csv", "masked.csv", "--record", "3"),
    "verify": ("verify", "masked.csv", "--record", "X1=100.87,X2=902.21,X3=5108.54"),
    "subject-page": ("subject-page", "masked.csv", "-o", "verify.html"),
    "compare": (
        *("compare", "original.csv", "--methods", "mdav,rank_swap", "--at", "risk=0.5"),
        *("--utility", "um", "--workers", "1"),
    ),
    "reproduce": ("reproduce", "masking-as-permutation"),
    "methods": ("methods",),
    "measures": ("measures",),
}

_ALONE = {
    "demo": "What `rankveil demo --json` writes: the documents of other verbs, put together.",
    "serve": "One line when the workbench can be used; the verb goes on until it is stopped.",
    "manifest": "A file, to be published with the release.",
    "secret": "A file, to be kept.",
    "register": "A file beside the secrets, `rankveil-register.json`: which releases there are of which table.",
}
"""Documents that no verb of the above writes, or that have more to be said."""

_WORDS = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    "array": "list",
    "object": "object",
    "null": "null",
}

_LEAD = """With `--json` a verb writes one document to standard output and nothing else there, also with exit code 1.
The fields below, and all else that can be said of them formally, stand in one JSON Schema (draft 2020-12),
[documents.schema.json](documents.schema.json), which comes with the package:

```python
import json
from importlib.resources import files

schema = json.loads((files("rankveil") / "documents.schema.json").read_text(encoding="utf-8"))
```

It takes every document, sees from the field `schema` which it is, and knows no fields but these. A later version may
add some and brings its own schema with it; a field that changes its meaning gets a new number in `schema`. A field that
need not be there is marked *if any*; `[]` stands for each item of a list, `{}` for each value of an object whose names
are not fixed (columns, measures). The examples are of the twenty records of *New Directions in Anonymization*,
shortened."""


def pages() -> list[Page]:
    """The one page."""
    return [page("json", "The JSON documents", json_documents())]


def documents() -> dict[str, Any]:
    """What verbs write with `--json` on the running example of the paper, and a manifest."""
    original, masked = datasets.running_example()
    with _elsewhere():
        files.save(original, "original.csv")
        files.save(masked, "masked.csv")
        written = {verb: _said(*words) for verb, words in _COMMANDS.items()}
        written["manifest"] = json.loads(Path("release.csv.manifest.json").read_text(encoding="utf-8"))
    return written


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _said(*words: str) -> Any:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main([*words, "--json"])
    if code not in (0, 1):  # an attack that finds people ends with 1
        raise RuntimeError(f"rankveil {' '.join(words)} ended with {code}")
    return json.loads(out.getvalue())


@functools.cache
def schema() -> dict[str, Any]:
    """The formal schema."""
    read: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return read


def names() -> list[str]:
    """All documents, in the order of the schema."""
    return [name for name in schema()["$defs"] if name in _COMMANDS or name in _ALONE]


def json_documents() -> str:
    """The fields of every document, with an example of each."""
    parts, shown = [_LEAD], documents()
    for name in names():
        parts += [f"## {name}", *([_ALONE[name]] if name in _ALONE else [])]
        parts += [grid(("field", "type", "what it is"), list(fields(name)))]
        if name in shown:
            parts.append(f"```json\n{json.dumps(_shortened(shown[name]), indent=2, ensure_ascii=False)}\n```")
    return "\n\n".join(parts)


def fields(name: str) -> Iterator[tuple[str, str, str]]:
    """Path, type and meaning of every field of a document, those inside others too."""
    defs = schema()["$defs"]
    yield from _inside(_resolved(defs[name], defs), "", defs)


def _inside(node: Mapping[str, Any], path: str, defs: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, given in node.get("properties", {}).items():
        one = _resolved(given, defs)
        here = f"{path}.{name}" if path else name
        told = one.get("description", "")
        yield f"`{here}`", _type(one, defs), told if name in node.get("required", ()) else f"{told} (*if any*)"
        yield from _inside(_untold(given, defs), here, defs)
    for mark, given in (("[]", node.get("items")), ("{}", node.get("additionalProperties"))):
        if isinstance(given, dict):
            yield from _inside(_untold(given, defs), path + mark, defs)


def _untold(node: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of the schema; of one that is a document with a table of its own only what it adds to that."""
    return node if node.get("$ref", "").rpartition("/")[2] in {*names(), "verified"} else _resolved(node, defs)


def _resolved(node: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    """A part of the schema with what it refers to; what it says itself goes first."""
    there = _resolved(defs[node["$ref"].removeprefix("#/$defs/")], defs) if "$ref" in node else {}
    return {**there, **{key: value for key, value in node.items() if key != "$ref"}}


def _type(node: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    if "anyOf" in node:
        return " or ".join(_type(_resolved(one, defs), defs) for one in node["anyOf"])
    allowed = node.get("enum", [node["const"]] if "const" in node else [])
    given = node.get("type", [])
    found = [given] if isinstance(given, str) else given
    if allowed:
        found = dict.fromkeys({str: "string", bool: "boolean"}.get(type(one), "null") for one in allowed)
    return " or ".join(_WORDS[one] for one in found) or "any"


def _shortened(value: Any, *, deep: int = 0) -> Any:
    """The first of every list and the first few of every object, with an ellipsis for the rest."""
    if isinstance(value, list):
        return [*(_shortened(one, deep=deep + 1) for one in value[:2]), *(["..."] if len(value) > 2 else [])]
    if isinstance(value, dict):
        most = 100 if deep == 0 else 5
        kept = {name: _shortened(one, deep=deep + 1) for name, one in list(value.items())[:most]}
        return kept | ({"...": "..."} if len(value) > most else {})
    if isinstance(value, float):
        return float(f"{value:.4g}")
    return value if not isinstance(value, str) or len(value) < 120 else value[:117] + "..."
