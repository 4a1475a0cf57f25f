"""The pages of the command line, of Python and of the JSON documents, from the code itself."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import io
import itertools
import json
import os
import re
import tempfile
import textwrap
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import rankveil
from rankveil import datasets, files
from rankveil.cli import main
from rankveil.cli.app import VERBS, command
from sitebuilder.outline import Page
from sitebuilder.reference import grid, prose

FIELDS = Path(__file__).with_name("fields.toml")

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
}


def pages() -> list[Page]:
    """The three pages."""
    return [
        _page("cli", "The command line", command_line()),
        _page("python", "Python", python()),
        _page("json", "The JSON documents", json_documents()),
    ]


def _page(name: str, title: str, text: str) -> Page:
    return Page(PurePosixPath("reference", f"{name}.html"), f"# {title}\n\n{text}", section="Reference")


def command_line() -> str:
    """Every verb with its arguments and options, as `--help` has them."""
    parts = [
        "Every verb has `--help` and `--json`. Exit code 0: done; 1: a check failed; 2: bad input, said in one "
        "sentence. `rankveil --version` tells the version."
    ]
    for verb in VERBS:
        about = command().commands[verb]
        parts += [f"## {verb}", _unwrapped(about.help or "")]
        parts += [grid(("argument or option", "what it is"), [_option(one) for one in about.params])]
        parts += [f"```text\n{_example(about.epilog or '')}\n```"]
    return "\n\n".join(parts)


def _option(given: Any) -> tuple[str, str]:
    shown = given.opts[0] if given.param_type_name == "argument" else " ".join(f"`{name}`" for name in given.opts)
    if given.param_type_name == "argument":
        shown = f"`{given.metavar or given.name.upper()}`"
    elif given.metavar and not given.is_flag:
        shown += f" `{given.metavar}`"
    default = given.default if getattr(given, "show_default", False) and not callable(given.default) else None
    told = f"{given.help or ''}" + (f" Default: {default}." if default not in (None, "", False, ()) else "")
    return shown, prose(re.sub(r"\[(.*?)\]", r"(\1)", told))


def _example(epilog: str) -> str:
    lines = epilog.replace("\b", "").strip().splitlines()
    return "\n".join(line.removeprefix("  ") for line in lines[1:])


def _unwrapped(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def python() -> str:
    """Every public name with its signature and docstring."""
    named = {name: getattr(rankveil, name) for name in rankveil.__all__ if name != "__version__"}
    groups: dict[str, dict[str, Any]] = {
        "Functions": {name: one for name, one in named.items() if inspect.isfunction(one)},
        "Results and other classes": {
            name: one for name, one in named.items() if inspect.isclass(one) and not issubclass(one, Exception)
        },
        "Errors": {name: one for name, one in named.items() if inspect.isclass(one) and issubclass(one, Exception)},
        "Modules": {name: one for name, one in named.items() if isinstance(one, types.ModuleType)},
    }
    parts = [
        "`import rankveil as rv`; then these names. Tables are pandas, polars or pyarrow; what comes out is of the "
        "same kind."
    ]
    for title, members in groups.items():
        parts.append(f"## {title}")
        for name, one in members.items():
            parts += [f"### rv.{name}", *_described(name, one)]
    return "\n\n".join(parts)


def _described(name: str, one: Any) -> Iterator[str]:
    if inspect.isfunction(one):
        yield f"```python\n{_signature(name, one)}\n```"
    yield prose(inspect.getdoc(one) or "")
    if inspect.isclass(one) and not issubclass(one, Exception):
        rows = [(f"`{field}`", told) for field, told in _fields(one).items()]
        rows += [(f"`{member}`", _first(found)) for member, found in _members(one)]
        if rows:
            yield grid(("name", "what it is"), rows)


def _signature(name: str, function: Any) -> str:
    """A signature as it would be written, one parameter to a line."""
    signature = inspect.signature(function)
    lines, starred = [], False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not starred:
            lines.append("    *,")
            starred = True
        shown = one.replace(annotation=inspect.Parameter.empty)
        hint = f": {one.annotation}" if one.annotation is not inspect.Parameter.empty else ""
        default = f" = {one.default!r}" if one.default is not inspect.Parameter.empty else ""
        lines.append(f"    {'**' if shown.kind is shown.VAR_KEYWORD else ''}{one.name}{hint}{default},")
    returned = signature.return_annotation
    return f"def {name}(\n" + "\n".join(lines) + f"\n) -> {returned}: ..."


def _fields(one: Any) -> dict[str, str]:
    """The fields of a class of data: each with its type, and the sentence that stands below it in the code."""
    shown = {field.name for field in dataclasses.fields(one) if field.repr} if dataclasses.is_dataclass(one) else set()
    [whole] = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(one)))).body
    body = whole.body if isinstance(whole, ast.ClassDef) else []
    found = {}
    for here, after in itertools.pairwise([*body, ast.Pass()]):
        if isinstance(here, ast.AnnAssign) and isinstance(here.target, ast.Name) and here.target.id in shown:
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            told = prose(" ".join(str(text).split()))
            found[here.target.id] = f"`{ast.unparse(here.annotation)}` {told}".strip()
    return {name: told for name, told in found.items() if not name.startswith("_")}


def _members(one: Any) -> list[tuple[str, Any]]:
    """Methods and properties of its own that have something to say."""
    found = [(name, value) for name, value in vars(one).items() if not name.startswith("_")]
    return [
        (f"{name}{'' if isinstance(value, property) else '()'}", getattr(value, "__func__", value))
        for name, value in found
        if isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(value)
    ]


def _first(found: Any) -> str:
    text = inspect.getdoc(found) or ""
    return prose(" ".join(text.split("\n\n")[0].split()))


def documents() -> dict[str, Any]:
    """What every verb writes with `--json` on the running example of the paper, and a manifest and a secret."""
    original, masked = datasets.running_example()
    with _elsewhere():
        files.save(original, "original.csv")
        files.save(masked, "masked.csv")
        written = {verb: _said(*words) for verb, words in _COMMANDS.items()}
        for name in ("manifest", "secret"):
            written[name] = json.loads(Path(f"release.csv.{name}.json").read_text(encoding="utf-8"))
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
    if code != 0:
        raise RuntimeError(f"rankveil {' '.join(words)} ended with {code}")
    return json.loads(out.getvalue())


def meanings() -> dict[str, dict[str, str]]:
    """What each field of each document means."""
    read: dict[str, dict[str, str]] = tomllib.loads(FIELDS.read_text(encoding="utf-8"))
    common = read.pop("common")
    return {name: {**common, **fields} for name, fields in read.items()}


def json_documents() -> str:
    """The fields of every document, with an example of each."""
    parts = [
        "With `--json` a verb writes one document to standard output and nothing else there, also when the exit "
        "code is 1. Fields may be added; one that changes its meaning gets a new number in `schema`. The examples are "
        "of the twenty records of *New Directions in Anonymization*. `rankveil methods --json` and "
        "`rankveil measures --json` are lists of what every entry declares, parameters with type, default and range."
    ]
    told = meanings()
    for name, document in documents().items():
        heading = f"{name} (a file)" if name in ("manifest", "secret") else name
        rows = [(f"`{field}`", _type(value), told[name].get(field, "")) for field, value in document.items()]
        parts += [f"## {heading}", grid(("field", "type", "what it is"), rows)]
        if name != "secret":
            parts.append(f"```json\n{json.dumps(_shortened(document), indent=2, ensure_ascii=False)}\n```")
    return "\n\n".join(parts)


def _type(value: Any) -> str:
    names = {bool: "true or false", int: "number", float: "number", str: "text", list: "list", dict: "object"}
    return names.get(type(value), "null or a value")


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
