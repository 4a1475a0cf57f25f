"""Options that several verbs share are declared once, as the fields of a dataclass.

A verb asks for them by a parameter of that class; `grouped` spreads the fields into the verb's own options and puts
the values together again when it is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints


def grouped(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb with every dataclass among its parameters spread into its fields."""
    hints = get_type_hints(verb, include_extras=True)
    spread: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    for name, parameter in inspect.signature(verb).parameters.items():
        if not is_dataclass(hints[name]):
            spread.append(_keyword(name, hints[name], parameter.default))
            continue
        group = groups[name] = hints[name]
        own = get_type_hints(group, include_extras=True)
        spread += [
            _keyword(each.name, own[each.name], inspect.Parameter.empty if each.default is MISSING else each.default)
            for each in fields(group)
        ]

    def run(**given: Any) -> int:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        return verb(**given)

    run.__name__, run.__doc__, run.__module__ = verb.__name__, verb.__doc__, verb.__module__
    run.__signature__ = inspect.Signature(spread, return_annotation=int)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in spread} | {"return": int}
    return run


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
