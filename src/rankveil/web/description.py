"""What the workbench takes and answers, as an OpenAPI document: every page, its form, and how it can be refused.

The pages themselves check what a form holds and answer with a sentence, so nothing here checks anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from rankveil import catalogue
from rankveil.catalogue import Entry
from rankveil.people.diversity import CRITERIA
from rankveil.schema import Kind, Role
from rankveil.web import forms
from rankveil.web.pages.compare import TARGETS
from rankveil.web.sources import EXAMPLES

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_FILE: Schema = {"type": "string", "format": "binary"}
_PAGE = {"text/html": {"schema": _TEXT}}
_SENTENCE = {"text/plain": {"schema": _TEXT}}
_ON = {"303": {"description": "Done; on to the page that shows it."}}
_ID = {"type": "string", "pattern": "^[0-9a-f]{16}$"}


def describe(routes: Sequence[BaseRoute], *, title: str, version: str) -> Schema:
    """The document of some routes."""
    document = get_openapi(title=title, version=version, routes=routes)
    document.pop("components", None)  # of the answers to a check by FastAPI, which finds nothing to refuse here
    forms_by_path = _forms()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            form = forms_by_path.get(path) if method == "post" else None
            answer = _ON if method == "post" else {"200": operation["responses"]["200"]}
            operation["responses"] = {**answer, **_refusals(path, form=form is not None)}
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = _ID if parameter["name"] == "id" else _TEXT
            if form is not None:
                operation["requestBody"] = _body(**form)
    return document


def _refusals(path: str, *, form: bool) -> Schema:
    """How a request to a page can be refused."""
    told = {
        "400": {"description": "What was asked cannot be done; the page says why.", "content": _PAGE | _SENTENCE},
        "403": {"description": "The request has no session, or comes from another site.", "content": _SENTENCE},
    }
    if "{" in path:
        told["404"] = {"description": "There is nothing of that name.", "content": _PAGE}
    if form:
        told["413"] = {"description": "More was sent than may come.", "content": _PAGE}
    return told


def _body(
    fields: Mapping[str, Schema], *, needs: Iterable[str] = (), patterns: Mapping[str, Schema] | None = None
) -> Schema:
    """A form, sent in either of the two ways in which browsers send one."""
    schema: Schema = {"type": "object", "properties": dict(fields), "required": list(needs)}
    schema |= {"patternProperties": dict(patterns or {}), "additionalProperties": False}
    kinds = ["multipart/form-data"]
    if _FILE not in [*fields.values(), *(patterns or {}).values()]:
        kinds.append("application/x-www-form-urlencoded")
    return {"required": bool(schema["required"]), "content": {kind: {"schema": schema} for kind in kinds}}


def _forms() -> dict[str, dict[str, Any]]:
    """The form of each page that has one."""
    methods, measures = catalogue.methods(), catalogue.measures()
    maskings = {id: entry for id, entry in methods.items() if not entry.post}
    tick, columns = _one(["yes"]), _several(_TEXT)
    matching = {"release": _TEXT, "key": _TEXT, "secret": _FILE, "no_mapping": tick, "columns": columns}
    return {
        "/data": {
            "fields": {
                "file": _FILE,
                "manifest": _FILE,
                "example": _one(EXAMPLES),
                "picked": _TEXT,
                "address": _TEXT,
            }
        },
        "/data/{id}": {
            "fields": {"shown": _several(_TEXT), "missing": _TEXT},
            "patterns": {
                "^kind-[0-9]+$": _one(["", *get_args(Kind)]),
                "^role-[0-9]+$": _one(["", *get_args(Role)]),
                "^order-[0-9]+$": _TEXT,
                "^hierarchy-[0-9]+$": _FILE,
                "^(out|without)-[0-9]+$": tick,
            },
        },
        "/data/{id}/mask": {"fields": {"audit": tick, "attack": tick, "publish": _several(_one(measures))}},
        "/data/{id}/mask/step": {
            "fields": {
                "method": _one(methods),
                "edit": _TEXT,
                "columns": columns,
                **_parameters(methods.values(), "p-"),
            },
            "needs": ["method"],
            "patterns": {"^own-[0-9]+-": _TEXT},
        },
        "/data/{id}/mask/change": {
            "fields": {"do": {"type": "string", "pattern": "^(undo|redo|(remove|up|down)-[0-9]{1,5})$"}},
            "needs": ["do"],
        },
        "/data/{id}/mask/plan": {"fields": {"plan": _FILE}, "needs": ["plan"]},
        "/data/{id}/audit": {
            "fields": {
                **matching,
                "measures": _several(_one(measures)),
                "fail_if": _TEXT,
                "by": _TEXT,
                "target": _TEXT,
                **_of_each(measures, "s-"),
            },
            "needs": ["release"],
        },
        "/data/{id}/attack": {
            "fields": {**matching, "draws": {"type": "integer", "minimum": 1}, "subsets": tick},
            "needs": ["release", "draws"],
        },
        "/data/{id}/compare": {
            "fields": {
                "methods": _several(_one(maskings), least=1),
                "utility": _several(_one(measures), least=1),
                "risk": _one(measures),
                "at": _one(TARGETS),
                "value": {"type": "number"},
                "replicates": {"type": "integer", "minimum": 1, "maximum": 100},
                "points": {"type": "integer", "minimum": 3, "maximum": 40},
                "target": _TEXT,
                "columns": columns,
                **_of_each(maskings, "f-"),
            },
            "needs": ["methods", "utility", "replicates", "points"],
        },
        "/runs/{id}/take": {"fields": {"place": {"type": "integer", "minimum": 0}}, "needs": ["place"]},
        "/runs/{id}/certify": {
            "fields": {name: {"type": "number", "minimum": 0} for name in ("d", "v")} | {"diversity": _one(CRITERIA)}
        },
    }


def _one(words: Iterable[str]) -> Schema:
    return {"type": "string", "enum": list(words)}


def _several(each: Schema, *, least: int = 0) -> Schema:
    return {"type": "array", "items": each, "minItems": least}


def _of_each(entries: Mapping[str, Entry[Any]], prefix: str) -> dict[str, Schema]:
    """The fields of all parameters of several methods or measures."""
    return {
        name: field for id, entry in entries.items() for name, field in _parameters([entry], f"{prefix}{id}-").items()
    }


def _parameters(entries: Iterable[Entry[Any]], prefix: str) -> dict[str, Schema]:
    """The fields of parameters; one that several methods have may be of several sorts."""
    found: dict[str, list[Schema]] = {}
    for entry in entries:
        for name, parameter in entry.parameters.items():
            sorts = found.setdefault(f"{prefix}{name}", [])
            field = _field(forms.field_of(parameter, name=name))
            if field not in sorts:
                sorts.append(field)
    return {name: sorts[0] if len(sorts) == 1 else {"anyOf": sorts} for name, sorts in found.items()}


def _field(field: forms.Field) -> Schema:
    if field.sort == "select":
        return _one(field.choices)
    if field.sort == "check":
        return _one(["true"])
    if field.sort == "columns":
        return _several(_TEXT)
    if field.sort == "text":
        return _TEXT
    made: Schema = {"type": "integer" if field.step == "1" else "number"}
    made |= {"minimum": float(field.least)} if field.least else {}
    return made | ({"maximum": float(field.most)} if field.most else {})
