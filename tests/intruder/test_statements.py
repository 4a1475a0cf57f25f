"""What methods tell an intruder: every method says it, and what it says is true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rankveil import catalogue
from rankveil.intruder.draws import statement
from rankveil.intruder.low_bits import reached
from rankveil.intruder.model import stated_model
from rankveil.intruder.shared import SharedColumns
from rankveil.intruder.simulation import Simulator, Told
from rankveil.likelihood import Noise, NoiseTerm, Recomputed, SignedTerm, Term
from rankveil.plans import Plan, Step
from rankveil.seeds import Seed
from rankveil.table import Table

_NUMBERS: dict[str, dict[str, Any]] = {
    "clip": {},
    "identity": {},
    "lossy_compression": {},
    "mdav": {"k": 3},
    "round": {"decimals": -2},
    "top_bottom_code": {"top": 0.05},
}


def _simulator(table: pd.DataFrame, plan: Plan) -> Simulator:
    shared = SharedColumns.of(Table(table), Table(table))
    return Simulator(shared, Told(plan, {}), Seed.of(3))


@pytest.mark.parametrize("name", sorted(catalogue.methods()))
def test_every_method_has_a_statement(name: str) -> None:
    assert catalogue.get_method(name).intruder is not None


@pytest.mark.parametrize("name", sorted(_NUMBERS))
def test_what_is_recomputed_is_a_function_of_the_original(name: str, people: Callable[..., pd.DataFrame]) -> None:
    table = people(60)
    simulator = _simulator(table, Plan((Step(name, _NUMBERS[name]),)))
    said = statement(catalogue.get_method(name), table["A"].to_numpy(), {}, attributes=4, labels=(), categories=None)
    assert isinstance(said, Recomputed)
    first, second = simulator.release(1), simulator.release(2)
    for column in table:
        np.testing.assert_array_equal(first.aligned(column, 60), second.aligned(column, 60))


def test_methods_that_draw_are_not_said_to_be_recomputed(people: Callable[..., pd.DataFrame]) -> None:
    """A method that draws and says that it is a function of the original would make every link impossible."""
    x = people(60)["A"].to_numpy()
    for name, entry in catalogue.methods().items():
        if not entry.random or entry.post or entry.works_on != "column" or "numeric" not in entry.kinds:
            continue  # a post-step draws for ties alone
        given = {each: parameter.default for each, parameter in entry.parameters.items()}
        given |= {"epsilon": 1.0, "lower": 0.0, "upper": 1e4} if name == "laplace_dp" else {}
        said = statement(entry, x, given, attributes=1, labels=(), categories=None)
        assert not isinstance(said, Recomputed), name


def _likelihood(term: Term, origin: np.ndarray) -> float:
    """The mean log-likelihood of the true links."""
    return float(term.weights(origin.astype(np.int64), np.arange(origin.size)).mean())


@pytest.mark.parametrize(
    ("method", "parameters", "wrong"),
    [
        ("additive_noise", {"alpha": 0.3}, "alpha"),
        ("multiplicative_noise", {"beta": 0.3}, "beta"),
        ("correlated_noise", {"gamma": 0.3}, "gamma"),
        ("hohne_noise", {"s": 0.2}, "s"),
        ("microhybrid", {"k": 8}, "k"),
        ("dp_microaggregation", {"k": 5, "epsilon": 3000.0, "lower": 0.0, "upper": 9000.0, "fast": True}, "epsilon"),
        ("laplace_dp", {"epsilon": 50.0, "lower": 0.0, "upper": 9000.0, "fast": True}, "epsilon"),
    ],
)
def test_a_closed_form_is_likelier_than_one_of_other_parameters(
    method: str, parameters: dict[str, Any], wrong: str, people: Callable[..., pd.DataFrame]
) -> None:
    """The mean log-likelihood of draws is highest under the parameters that they were drawn with."""
    table = people(400)
    right = _simulator(table, Plan((Step(method, parameters),)))
    made = right.release(7)

    def under(given: dict[str, Any]) -> float:
        simulator = _simulator(table, Plan((Step(method, given),)))
        model, open_ = stated_model(simulator.columns, simulator, [simulator.release(0)], list(table))
        assert not open_
        values = [_joint(term) + _likelihood(term, made.origin) for term in model.terms(made.values)]
        return float(np.sum(values))

    mine = under(parameters)
    for factor in (2, 4) if wrong == "k" else (0.6, 1.6):
        other = parameters[wrong] * factor
        if method == "multiplicative_noise" and factor < 1:
            assert under({**parameters, wrong: other}) == -np.inf
        else:
            assert mine > under({**parameters, wrong: other}), (wrong, other)


def _joint(term: Term) -> float:
    """What Gaussian points leave out because it is the same for all links: the logarithm of the scale."""
    from rankveil.likelihood import Points

    if not isinstance(term, Points):
        return 0.0
    # the columns of whitened points are as much wider as the noise is narrower
    return float(np.log(np.linalg.svd(term.x - term.x.mean(axis=0), compute_uv=False)).sum())


def test_the_density_of_noise_on_a_grid_sums_to_one() -> None:
    grid = np.arange(-2000, 2001, 50, dtype=float)
    for law in ("normal", "laplace", "uniform"):
        term = NoiseTerm(np.array([13.0]), grid, Noise(law, 130.0), grid=50.0)
        made = term.weights(np.zeros(grid.size, dtype=np.int64), np.arange(grid.size))
        assert np.exp(made).sum() * 50 == pytest.approx(1.0, abs=1e-6)


def test_one_sign_for_a_record_is_used() -> None:
    """Two columns that grow together are likelier than one that grows while the other shrinks."""
    x = np.abs(np.random.default_rng(0).normal(5, 1, size=(500, 2)))
    y = np.vstack([x[0] * 1.2, x[0] * (1.2, 0.8)])
    centred = SignedTerm(x, y, np.array([0.2, 0.2]), np.full((2, 2), 0.01))
    both, apart = centred.weights(np.zeros(2, dtype=np.int64), np.arange(2))
    assert both > apart + 10


def test_every_double_of_a_release_is_reachable_and_most_others_are_not() -> None:
    rng = Seed.of(5).stream("noise")
    x = np.round(np.random.default_rng(1).normal(40_000, 9_000, 4000))
    noise = Noise("normal", 5 * float(x.std()))
    y = x + noise.scale * rng.normal(x.size)
    assert np.isfinite(reached(x, y, noise)).all()
    assert np.isfinite(reached(np.roll(x, 1), y, noise)).mean() < 0.5
    factor = Noise("uniform", 0.2, relative=True)
    y = x * (1 + 0.2 * (2 * rng.random(x.size) - 1))
    assert np.isfinite(reached(x, y, factor)).all()
