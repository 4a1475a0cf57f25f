"""Masking inside scikit-learn: its own checks, kinds of tables, every method."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankveil as rv
from rankveil import catalogue

X = np.random.default_rng(0).lognormal(size=(60, 3))

PART = "a part of a table is masked by itself, not as it is in the whole"
ORDER = "draws and neighbours belong to rows, so that another order of the rows gives other values"
AFRESH = "without a seed every transform draws afresh"
OPEN = "which parameters there are depends on the method"


def expected(masker: Any) -> dict[str, str]:
    """The checks of scikit-learn that cannot hold, and why."""
    failing = {}
    method = catalogue.get_method(masker.method)
    if method.works_on == "columns" or method.id == "rank_swap":
        failing["check_methods_subset_invariance"] = PART
    if method.works_on == "columns":
        failing["check_methods_sample_order_invariance"] = ORDER
    if method.random and masker.seed is None:
        failing |= dict.fromkeys(("check_estimators_pickle", "check_fit_idempotent"), AFRESH)
    if set(masker.get_params()) - {"method", "columns", "release_identifiers", "seed"}:
        failing["check_no_attributes_set_in_init"] = OPEN
    return failing


@parametrize_with_checks(
    [
        rv.Masker("identity", seed=1),
        rv.Masker(seed=1),
        rv.Masker("multiplicative_noise", beta=0.2),
        rv.Masker("lossy_compression", seed=1),
    ],
    expected_failed_checks=expected,
)
def test_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


AS_ARRAYS = {f"x{j}": "confidential" for j in range(3)}
"""What is known of the columns of an array."""


def given_to(method: catalogue.Method) -> dict[str, Any]:
    """What must be given for columns between -5 and 100."""
    fitting = {"d": 2, "epsilon": 5.0, "lower": -5.0, "upper": 100.0}
    return {name: fitting[name] for name, parameter in method.parameters.items() if parameter.required}


def fits(method: catalogue.Method) -> bool:
    """Whether it makes an array of numbers of one, row for row and column for column."""
    others = method.leaves_out or method.relabels or method.works_on == "names" or method.role is not None
    return "numeric" in method.kinds and not others


@pytest.mark.parametrize(
    "method", [method for method in catalogue.methods().values() if not fits(method)], ids=lambda method: method.id
)
def test_what_does_not_fit_a_pipeline_is_refused(method: catalogue.Method) -> None:
    with pytest.raises(rv.RankveilError, match=rf"\b{method.id}\b") as caught:
        rv.Masker(method.id, seed=5, **given_to(method)).fit_transform(X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", list(filter(fits, catalogue.methods().values())), ids=lambda method: method.id)
def test_every_other_method_works_in_a_pipeline(method: catalogue.Method) -> None:
    given = given_to(method)
    if method.reproducible_with:
        given[method.reproducible_with] = True
    if {"lower", "upper"} <= set(method.parameters):
        given |= {"lower": -5.0, "upper": 100.0}
    masker = rv.Masker(method.id, seed=5, **given)
    made = masker.fit_transform(X)
    assert isinstance(made, np.ndarray)
    assert made.shape == X.shape
    frame = pa.table({f"x{j}": X[:, j] for j in range(3)})
    numbers = rv.Schema(kinds=dict.fromkeys(frame.column_names, "numeric"), roles=AS_ARRAYS)
    masked = rv.mask(frame, method.id, seed=5, shuffled=False, schema=numbers, **given).data
    assert np.array_equal(made, np.column_stack([masked[name].to_numpy() for name in masked.column_names]))
    assert np.array_equal(clone(masker).fit(X).transform(X), made)
    assert np.array_equal(pickle.loads(pickle.dumps(masker)).transform(X), made)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_table_comes_out_as_the_kind_it_went_in(library: Any) -> None:
    frame = library({"A": X[:, 0], "T": list("abcdef") * 10, "N": np.arange(60)})
    chosen: dict[str, Any] = {"columns": ["A", "N"], "release_identifiers": ["N"], "seed": 1}
    masker = rv.Masker("rank_swap", **chosen)
    made = masker.fit_transform(frame)
    assert type(made) is type(frame)
    assert list(masker.get_feature_names_out()) == ["A", "T", "N"]
    assert np.array_equal(np.asarray(made["T"]), np.asarray(frame["T"]))
    assert np.asarray(made["N"]).dtype.kind == "i"
    assert np.array_equal(np.asarray(made["A"]), np.asarray(rv.mask(frame, "rank_swap", **chosen).data["A"]))


def test_arrays_have_the_names_of_scikit_learn_and_keep_their_type() -> None:
    masker = rv.Masker("permute", columns=["x1"], seed=1).fit(X)
    assert list(masker.get_feature_names_out()) == ["x0", "x1", "x2"]
    made = masker.transform(X)
    assert np.array_equal(made[:, [0, 2]], X[:, [0, 2]])
    assert not np.array_equal(made[:, 1], X[:, 1])
    assert np.array_equal(np.sort(made[:, 1]), np.sort(X[:, 1]))
    assert rv.Masker("permute").fit_transform(X.astype(np.float32)).dtype == np.float32
    assert rv.Masker("permute").fit_transform(np.arange(8).reshape(4, 2)).dtype == np.int64
    assert rv.Masker("permute").fit(X).set_output(transform="pandas").transform(X).columns.tolist() == [
        "x0",
        "x1",
        "x2",
    ]


def test_missing_cells_stay_missing() -> None:
    holes = X.copy()
    holes[[1, 5], [0, 2]] = np.nan
    made = rv.Masker("additive_noise", seed=1).fit_transform(holes)
    assert np.array_equal(np.isnan(made), np.isnan(holes))


def test_the_seed_and_its_absence() -> None:
    seeded = rv.Masker("additive_noise", seed=1).fit(X)
    assert np.array_equal(seeded.transform(X), seeded.transform(X))
    fresh = rv.Masker("additive_noise").fit(X)
    assert not np.array_equal(fresh.transform(X), fresh.transform(X))


def test_fit_learns_nothing() -> None:
    masker = rv.Masker("additive_noise", seed=1)
    here, there = masker.fit(X).transform(X), masker.fit(1000 * X).transform(X)
    assert np.array_equal(here, there)


def test_a_plan_of_several_steps() -> None:
    plan = rv.Plan.of("additive_noise", alpha=0.5).then("round", decimals=0)
    masker = clone(rv.Masker(plan, seed=1))
    assert masker.get_params()["method"] == plan
    made = masker.fit_transform(X)
    assert np.array_equal(made, np.round(made))


def test_parameters_are_set_and_searched() -> None:
    masker = rv.Masker("additive_noise", alpha=0.1, seed=1)
    own = {"columns": None, "method": "additive_noise", "release_identifiers": None, "seed": 1}
    assert masker.get_params() == {"alpha": 0.1, **own}
    assert masker.set_params(alpha=0.3) is masker
    assert masker.alpha == 0.3
    assert repr(masker) == "Masker(alpha=0.3, method='additive_noise', seed=1)"
    model = make_pipeline(rv.Masker("additive_noise", alpha=0.1, seed=1), Ridge())
    search = GridSearchCV(model, {"masker__alpha": [0.0, 5.0]}, cv=3).fit(X, X.sum(axis=1))
    assert search.best_params_ == {"masker__alpha": 0.0}


def test_some_columns_in_a_column_transformer() -> None:
    frame = pd.DataFrame(X, columns=["A", "B", "C"])
    both = make_column_transformer((rv.Masker("permute", seed=1), ["A"]), remainder="passthrough")
    made = both.set_output(transform="pandas").fit_transform(frame)
    assert sorted(made["masker__A"]) == sorted(frame["A"])
    assert made["remainder__B"].tolist() == frame["B"].tolist()


@pytest.mark.parametrize(
    ("masker", "said"),
    [
        (rv.Masker("rank_swop"), "there is no method rank_swop; did you mean rank_swap?"),
        (rv.Masker("additive_noise", alhpa=1), "additive_noise has no parameter alhpa"),
        (rv.Masker("additive_noise", alpha=-1), "alpha must be a number at least 0"),
        (rv.Masker("distance_swap"), "distance_swap needs d"),
        (rv.Masker("permute", columns=["y9"]), "there is no column y9"),
    ],
)
def test_fit_checks(masker: Any, said: str) -> None:
    with pytest.raises(rv.RankveilError, match=said.replace("?", r"\?")):
        masker.fit(X)


def test_rows_are_not_reordered_beside_a_target() -> None:
    assert sorted(rv.Masker("record_shuffle").fit_transform(X)[:, 0]) == sorted(X[:, 0])
    with pytest.raises(
        rv.ParameterError, match="record_shuffle changes the order of the rows, and a target would stay"
    ):
        rv.Masker("record_shuffle").fit(X, X[:, 0])


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_scikit_learn_is_loaded_only_for_it() -> None:
    assert run("import sys, rankveil as rv; rv.mask, rv.Plan; print('sklearn' in sys.modules)") == "False\n"


def test_a_table_is_masked_as_it_was_decided_where_it_was_fitted() -> None:
    rng = np.random.default_rng(3)
    people = pd.DataFrame({"SEX": rng.integers(1, 3, 80), "INCOME": rng.normal(5e4, 9e3, 80).round(2)})
    masker = rv.Masker("additive_noise", seed=1).fit(people)
    made = masker.transform(people.iloc[:9])
    assert set(made["SEX"]) <= {1, 2}  # a category is none between two
    assert not np.array_equal(made["INCOME"], people["INCOME"].iloc[:9])
    people["PERSON_ID"] = rng.permutation(80)
    with pytest.raises(rv.ParameterError, match="column PERSON_ID: an identifier"):
        rv.Masker("additive_noise").fit(people)
