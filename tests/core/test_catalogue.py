"""The catalogue: what is read from a signature, what is checked, what is found."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from rankveil import catalogue
from rankveil.catalogue import Array, Method, Outcome, Parameter, Range, measure, method
from rankveil.errors import ParameterError
from rankveil.seeds import Seed, Stream

METHODS_OF_THE_FIRST_ISSUE = {
    *("additive_noise", "multiplicative_noise", "rank_swap", "distance_swap", "permute", "record_shuffle", "identity"),
    *("reverse_map", "rescale", "clip", "round"),
}


@method(title="A sample", source="a test", strength="size", local_with="fixed", tells="nothing")
def sample_(
    x: Array,
    *,
    size: Annotated[float, Range(0, 2, above=True), "how much"],
    count: Annotated[int, Range(1), "how many"] = 3,
    how: Annotated[Literal["up", "down"], "which way"] = "up",
    exact: bool = False,
    fixed: Annotated[float | None, Range(-1, 1), "itself"] = None,
    rng: Stream,
) -> Array:
    """A sample: x moved.

    More is said here.
    """
    return x + size * rng.random(x.size) * count


def test_a_method_is_read_from_its_signature() -> None:
    assert isinstance(sample_, Method)
    assert sample_.id == "sample"
    assert sample_.summary == "A sample: x moved."
    assert sample_.needs == ("x",)
    assert sample_.random
    assert list(sample_.parameters) == ["size", "count", "how", "exact", "fixed"]
    assert sample_.parameters["size"] == Parameter(
        name="size",
        type=float,
        default=catalogue.REQUIRED,
        optional=False,
        range=Range(0, 2, above=True),
        choices=(),
        text="how much",
    )
    assert sample_.parameters["how"].choices == ("up", "down")
    assert sample_.parameters["fixed"].optional
    assert sample_.parameters["exact"].type is bool


def test_facts_depend_on_the_parameters_where_they_say_so() -> None:
    assert not sample_.facts()["local"]
    assert not sample_.facts({"fixed": None})["local"]
    assert sample_.facts({"fixed": 0.0})["local"]


def test_a_method_runs_on_arrays_with_its_parameters_checked() -> None:
    x = np.arange(5.0)
    made = sample_(x, rng=Seed.of(1).stream("a"), size=2, count="2")
    assert np.array_equal(made, x + 4 * Seed.of(1).stream("a").random(5))
    with pytest.raises(ParameterError, match="sample: size must be a number above 0 to 2, not 0"):
        sample_(x, rng=Seed.of(1).stream("a"), size=0)
    with pytest.raises(ParameterError, match="sample needs size"):
        sample_(x, rng=Seed.of(1).stream("a"))


def test_binding_fills_in_the_defaults_and_keeps_types() -> None:
    bound = sample_.bind({"size": "1.5", "count": 4.0, "exact": "yes", "fixed": "None"})
    assert bound == {"size": 1.5, "count": 4, "how": "up", "exact": True, "fixed": None}
    assert type(bound["count"]) is int


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 1, "cuont": 2}, "sample has no parameter cuont; did you mean count?"),
        ({"size": 1, "zzz": 2}, "sample has no parameter zzz; known: count, exact, fixed, how, size"),
        ({"size": 3}, "sample: size must be a number above 0 to 2, not 3"),
        ({"size": None}, "sample: size must be given (a number above 0 to 2)"),
        ({"size": 1, "count": 0}, "sample: count must be a whole number at least 1, not 0"),
        ({"size": 1, "count": 1.5}, "sample: count must be a whole number at least 1, not 1.5"),
        ({"size": 1, "how": "left"}, "sample: how must be up or down, not 'left'"),
        ({"size": 1, "exact": "maybe"}, "sample: exact must be true or false, not 'maybe'"),
        ({"size": 1, "fixed": 2}, "sample: fixed must be a number from -1 to 1, not 2"),
        ({}, "sample needs size (a number above 0 to 2): --set size=..."),
    ],
)
def test_errors_say_what_would_be_right(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        sample_.bind(given)
    assert str(caught.value) == message


def test_whole_numbers_keep_all_their_digits() -> None:
    assert sample_.bind({"size": 1, "count": "9007199254740993"})["count"] == 9007199254740993
    assert sample_.bind({"size": 1, "count": "5.0"})["count"] == 5


@pytest.mark.parametrize("flag", [np.True_, np.False_, True])
def test_true_is_not_a_number(flag: Any) -> None:
    for name in ("size", "count"):
        with pytest.raises(ParameterError, match=f"{name} must be"):
            sample_.bind({"size": 1, name: flag})


def test_ranges() -> None:
    assert 0 in Range(0, 1)
    assert 1 in Range(0, 1)
    assert 0 not in Range(0, 1, above=True)
    assert 1.0000001 not in Range(0, 1)
    assert math.nan not in Range(0, 1)
    assert str(Range(0)) == "at least 0"
    assert str(Range(0, above=True)) == "above 0"
    assert str(Range(0, 100)) == "from 0 to 100"


def test_a_described_method_is_plain_data() -> None:
    described = sample_.describe()
    assert described["parameters"][0] == {
        "name": "size",
        "type": "float",
        "text": "how much",
        "required": True,
        "range": [0, 2],
        "above": True,
    }
    assert described["parameters"][1]["range"] == [1, None]
    assert described["parameters"][2]["choices"] == ["up", "down"]
    assert described["strength"] == "size"
    assert described["risk_falls_when_strength_is"] == "higher"


def test_the_methods_of_the_specification_are_there() -> None:
    assert set(catalogue.methods()) >= METHODS_OF_THE_FIRST_ISSUE
    assert {m.id for m in catalogue.methods().values() if m.post} >= {"reverse_map", "rescale", "clip", "round"}
    assert set(catalogue.measures()) >= {"spearman_risk", "permutation_level", "difference_variance"}
    assert list(catalogue.methods()) == sorted(catalogue.methods())


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("additive_noise.alpha", 0.1),
        ("additive_noise.sd", None),
        ("multiplicative_noise.beta", 0.1),
        ("rank_swap.p", None),
    ],
)
def test_defaults_are_those_of_the_specification(name: str, default: Any) -> None:
    of, _, parameter = name.partition(".")
    assert catalogue.get_method(of).parameters[parameter].default == default


def test_nothing_else_must_be_given() -> None:
    required = {m.id: [p.name for p in m.parameters.values() if p.required] for m in catalogue.methods().values()}
    assert required["distance_swap"] == ["d"]
    allowed_to_be_required = {"d", "epsilon", "lower", "upper"}
    assert all(set(names) <= allowed_to_be_required for names in required.values())


@pytest.mark.parametrize(
    ("get", "name", "message"),
    [
        (catalogue.get_method, "rank_swop", "there is no method rank_swop; did you mean rank_swap?"),
        (catalogue.get_method, "RANK_SWAP", "there is no method RANK_SWAP; did you mean rank_swap?"),
        (catalogue.get_measure, "permutation_levl", "did you mean permutation_level?"),
        (catalogue.get_measure, "zzz", "there is no measure zzz; known: "),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(get: Any, name: str, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        get(name)
    assert message in str(caught.value)


def test_two_entries_may_not_share_a_name(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "twins_of_a_test"
    package.mkdir()
    text = "from rankveil.catalogue import method\n@method(title='t', source='s')\ndef twin(x):\n    return x.copy()\n"
    for name in ("__init__", "one", "two"):
        (package / f"{name}.py").write_text("" if name == "__init__" else text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TypeError, match="two entries of the catalogue are called twin"):
        catalogue._discover("twins_of_a_test", Method)
    (package / "two.py").unlink()
    assert list(catalogue._discover("twins_of_a_test", Method)) == ["twin"]


def test_a_measure_takes_parameters_too() -> None:
    @measure(title="Share", source="a test", bounds=(0.0, 1.0))
    def share(x: Array, y: Array, *, least: Annotated[float, Range(0), "how far"] = 0.5) -> float:
        """The share of values that moved by more than `least`."""
        return float(np.mean(np.abs(x - y) > least))

    assert share(np.zeros(4), np.array([0.0, 1.0, 2.0, 0.4])) == 0.5
    assert share(np.zeros(4), np.array([0.0, 1.0, 2.0, 0.4]), least=1) == 0.25
    with pytest.raises(ParameterError, match="share: least must be a number at least 0"):
        share(np.zeros(4), np.zeros(4), least=-1)


def test_an_outcome_holds_values_counts_and_notes() -> None:
    made = Outcome(np.zeros(2))
    assert dict(made.counts) == {}
    assert made.notes == ()
