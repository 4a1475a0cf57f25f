"""The contract of whatever is in the catalogue: it describes itself, and it refuses what its signature forbids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rankveil import catalogue
from rankveil.catalogue import Method
from rankveil.errors import ParameterError
from rankveil.plans import Step


def others(entry: Any, parameter: Any, allowed: Any) -> dict[str, Any]:
    """Values of the other parameters that must be given."""
    return {p.name: allowed(p)[-1] for p in entry.parameters.values() if p.required and p is not parameter}


def test_it_describes_itself(entry: Any) -> None:
    described = json.loads(json.dumps(entry.describe(), allow_nan=False))
    assert described["id"] == entry.id
    for text in ("title", "summary", "source"):
        assert described[text].strip(), text
    assert "\n" not in described["summary"]
    assert [p["name"] for p in described["parameters"]] == list(entry.parameters)
    get = catalogue.get_method if isinstance(entry, Method) else catalogue.get_measure
    assert get(entry.id) is entry


def test_every_parameter_says_what_it_is_and_has_a_default_that_it_would_accept(declared: Any) -> None:
    entry, parameter = declared
    assert parameter.text.strip()
    assert parameter.expected()
    if not parameter.required:
        assert parameter.check(parameter.default, owner=entry.id) == parameter.default


def test_what_the_signature_allows_is_taken(declared: Any, allowed: Any) -> None:
    entry, parameter = declared
    for value in allowed(parameter):
        bound = entry.bind({**others(entry, parameter, allowed), parameter.name: value})
        assert bound[parameter.name] == value
        assert value is None or type(bound[parameter.name]) is parameter.type
        written = "none" if value is None else str(value)  # as on the command line
        assert entry.bind({**others(entry, parameter, allowed), parameter.name: written})[parameter.name] == value


def test_what_the_signature_forbids_is_refused(declared: Any, allowed: Any, refused: Any) -> None:
    entry, parameter = declared
    for value in refused(parameter):
        with pytest.raises(ParameterError, match=rf"^{entry.id}: {parameter.name} must be ") as caught:
            entry.bind({**others(entry, parameter, allowed), parameter.name: value})
        assert parameter.expected() in str(caught.value)
        if isinstance(entry, Method):
            with pytest.raises(ParameterError, match=f"{parameter.name} of column INCOME"):
                Step(entry.id, per_column={"INCOME": {parameter.name: value}})


def test_an_unknown_parameter_is_refused_with_the_nearest_name(entry: Any) -> None:
    for name in entry.parameters:
        with pytest.raises(ParameterError) as caught:
            entry.bind({f"{name}{name[-1]}": 1})
        assert f"has no parameter {name}{name[-1]}" in str(caught.value)
        # a name of one letter is too short to be recognised when it is mistyped; all names are listed then
        assert f"did you mean {name}?" in str(caught.value) or "; known: " in str(caught.value)
    with pytest.raises(ParameterError, match=rf"^{entry.id} has no parameter zzzzzz; (known: |it has none)"):
        entry.bind({"zzzzzz": 1})


def test_what_must_be_given_is_asked_for(entry: Any) -> None:
    required = [parameter for parameter in entry.parameters.values() if parameter.required]
    if not required:
        assert entry.bind({}) == {name: parameter.default for name, parameter in entry.parameters.items()}
        return
    with pytest.raises(ParameterError, match=rf"^{entry.id} needs {required[0].name} "):
        entry.bind({})
