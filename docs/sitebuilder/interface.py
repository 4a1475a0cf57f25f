"""The pages of the command line and of Python, from the code itself."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
import textwrap
import types
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import rankveil
from rankveil.cli.app import VERBS, command
from sitebuilder.outline import Page
from sitebuilder.reference import grid, prose


def pages() -> list[Page]:
    """The two pages."""
    return [page("cli", "The command line", command_line()), page("python", "Python", python())]


def page(name: str, title: str, text: str) -> Page:
    """A page of the reference."""
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
