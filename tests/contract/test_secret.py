"""What the secret of a release would tell others is said for the plan, and no more than is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil.catalogue import get_method, methods
from rankveil.cli import main
from rankveil.manifest import said_of_secret
from rankveil.seeds import Seed

SILENT = {"shuffle", "ipso", "microhybrid", "distribution_distortion", "record_shuffle", "sample", "reverse_map"}
"""Methods whose draws say nothing of who has which value, or only in which order the rows are: the secret's mapping."""
UNDOES_NOTHING = "it undoes nothing of this masking"


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(50, 10, (60, 3)), columns=["A", "B", "C"])
    table["T"] = rng.choice(["x", "y", "z"], 60)
    return table


def said(plan: rv.Plan | str, **parameters: Any) -> str:
    release = rv.mask(people(), plan, seed=1, **parameters)
    return said_of_secret(release.manifest, release.secret)


def test_a_method_that_draws_nothing_tells_nothing_by_its_seed() -> None:
    for method in methods().values():
        if not method.random:
            assert method.seed_tells == "", method.id
        elif method.id not in SILENT:
            assert method.seed_tells, f"{method.id}: say what who has the seed can do (seed_tells), or add it here"


@pytest.mark.parametrize(
    "plan",
    [
        rv.Plan.of("mdav", k=3),
        rv.Plan.of("recode", width=10.0, columns=["A"]),
        rv.Plan.of("suppress", k=2, columns=["T"]),
        rv.Plan.of("top_bottom_code", top_percent=10),
        rv.Plan.of("lossy_compression"),
        rv.Plan.of("shuffle"),
        rv.Plan.of("distribution_distortion"),
        rv.Plan.of("laplace_dp", epsilon=1, lower=0, upper=100),
        rv.Plan.of("dp_microaggregation", epsilon=1, lower=0, upper=100),
    ],
    ids=lambda plan: plan.steps[0].method,
)
def test_the_secret_of_what_cannot_be_undone(plan: rv.Plan) -> None:
    schema = {"roles": {"T": "other"}}  # else pram would exchange the categories where a plan names no columns
    release = rv.mask(people(), plan, seed=1, shuffled=False, schema=schema)
    words = said_of_secret(release.manifest, release.secret)
    assert words.startswith(UNDOES_NOTHING)
    assert "fingerprint" in words
    shuffled = rv.mask(people(), plan.then("record_shuffle"), seed=1, schema=schema)
    assert said_of_secret(shuffled.manifest, shuffled.secret) == "with it it is known which record is whose"


def test_the_secret_of_what_can() -> None:
    fast = {"epsilon": 1, "lower": 0, "upper": 100, "fast": True}
    for plan, words in (
        (rv.Plan.of("additive_noise"), "the noise can be subtracted (additive_noise)"),
        (rv.Plan.of("laplace_dp", **fast), "the noise can be subtracted (laplace_dp)"),
        (rv.Plan.of("permute").then("round"), "every value can be put back (permute)"),
        (rv.Plan.of("mdav").then("pram", columns=["T"]), "it can be told which categories are the true ones (pram)"),
        (rv.Plan.of("pseudonymise", columns=["T"]), "the pseudonym of every value can be computed (pseudonymise)"),
    ):
        assert words in said(plan)


def test_with_the_draws_noise_and_permutations_are_undone() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(50, 10, 200)

    def draws() -> Any:
        return Seed.of(1).stream("a")

    unit = get_method("additive_noise")(np.zeros(200), sd=5.0, rng=draws())
    assert np.allclose(get_method("additive_noise")(x, sd=5.0, rng=draws()) - unit, x, atol=1e-4)
    unit = get_method("multiplicative_noise")(np.ones(200), beta=0.5, rng=draws())
    assert np.allclose(get_method("multiplicative_noise")(x, beta=0.5, rng=draws()) / unit, x, rtol=1e-4)
    places = get_method("permute")(np.arange(200.0), rng=draws()).astype(int)
    back = np.empty(200)
    back[places] = get_method("permute")(x, rng=draws())
    assert np.array_equal(back, x)


@pytest.mark.parametrize("method", ["ipso", "shuffle"])
def test_with_the_draws_nothing_is_known_of_who_had_which_value(method: str) -> None:
    # whoever stood where: the same draws make the same release of the people in any order
    rng = np.random.default_rng(1)
    x = rng.normal(50, 10, (200, 3)) @ rng.normal(size=(3, 3))
    entry = get_method(method)

    def released(values: Any) -> Any:
        wanted = {"x": values, "given": values[:, :0], "missing": np.isnan(values)}
        made = entry(*(wanted[need] for need in entry.needs), rng=Seed.of(1).stream("a"), attributes=3)
        return made.values

    assert np.allclose(released(x), released(rng.permutation(x)), rtol=1e-8)


def test_the_command_line_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people().to_csv(tmp_path / "x.csv", index=False)
    files = ["mask", str(tmp_path / "x.csv"), "-o", str(tmp_path / "y.csv"), "--columns", "A,B,C"]

    def shown(method: str) -> str:
        assert main([*files, "--method", method]) == 0
        return " ".join(capsys.readouterr().out.split())

    assert "the masking can be undone" not in shown("mdav")
    assert "can be subtracted" not in shown("mdav")
    assert "y.csv.secret.json (keep it: " in shown("mdav")
    assert "the noise can be subtracted (additive_noise)" in shown("additive_noise")
