"""Masking as a step of a scikit-learn pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from rankveil import masking
from rankveil.errors import ParameterError
from rankveil.people.protector import mask
from rankveil.plans import Plan, Step
from rankveil.schema import Schema, listed
from rankveil.table import Table

_OWN = ("columns", "method", "release_identifiers", "seed")


class Masker(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A masking method, or a plan, as a scikit-learn transformer.

    `fit` checks the parameters and decides what the columns are, as `rankveil.inspect` shows; it learns no value.
    `transform` masks the table it is given, by itself: the noise or the groups of a test set come from the test set.
    Pandas, polars and pyarrow tables and numpy arrays (columns x0, x1, ..., all numbers and masked) come out as the
    kind they went in. Without `columns` weights are kept, group ids become pseudonyms, and categories that the method
    does not take are exchanged by PRAM, as by `rv.mask`. Missing cells stay missing. What leaves records or columns out
    is refused, and so is an identifier that `release_identifiers` does not name.

    Without a `seed` every `transform` draws afresh. With one, the same table is masked in the same way again, and any
    other table with draws of its own. `rv.mask` gives the manifest and the notes as well.

    >>> import numpy as np
    >>> masker = Masker("rank_swap", p=50, seed=2)
    >>> masker.fit_transform(np.array([[1.0], [2.0], [3.0], [4.0]])).ravel().tolist()
    [1.0, 4.0, 2.0, 3.0]
    >>> masker.set_params(p=0).get_params()
    {'columns': None, 'method': 'rank_swap', 'p': 0, 'release_identifiers': None, 'seed': 2}
    """

    def __init__(
        self,
        method: Any = "copula_swap",
        *,
        columns: Any = None,
        release_identifiers: Any = None,
        seed: Any = None,
        **parameters: Any,
    ) -> None:
        self.method = method
        self.columns = columns
        self.release_identifiers = release_identifiers
        self.seed = seed
        for name, value in parameters.items():  # which ones there are depends on the method: `fit` checks them
            setattr(self, name, value)

    @property
    def _parameters(self) -> dict[str, Any]:
        """Those of the method; what ends or begins with an underscore is scikit-learn's."""
        return {
            name: value
            for name, value in vars(self).items()
            if name not in _OWN and not name.startswith("_") and not name.endswith("_")
        }

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The method, columns, seed and the parameters of the method, as they were given."""
        own = {name: getattr(self, name) for name in _OWN}
        return dict(sorted({**own, **self._parameters}.items()))

    def set_params(self, **params: Any) -> Masker:
        """Set some of them; `fit` checks them."""
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any = None) -> Masker:
        """Check the parameters, and decide what the columns are."""
        from sklearn.utils.validation import validate_data

        plan = self._plan()
        for step in plan.steps:
            _refuse_other_shapes(step, frame=_is_frame(X))
            if y is not None and step.entry.mapping == "reordered":
                raise ParameterError(
                    f"{step.method} changes the order of the rows, and a target would stay behind; use rv.mask"
                )
            if not step.per_column:
                step.bound()
        if _is_frame(X):
            validate_data(self, X, skip_check_array=True)
        else:
            X = validate_data(self, X, ensure_all_finite="allow-nan")
        table = Table(X) if _is_frame(X) else _named(X)
        if self.columns is not None:
            table.usable(self.columns)
        let = listed(self.release_identifiers or ())
        decided = masking.defended(plan, table, release_identifiers=let, pipeline=True)
        self.decisions_ = decided.table.schema.decisions
        return self

    def transform(self, X: Any) -> Any:
        """The table masked; the one given stays as it is."""
        from sklearn.utils.validation import check_is_fitted, validate_data

        check_is_fitted(self, "n_features_in_")
        if _is_frame(X):
            validate_data(self, X, reset=False, skip_check_array=True)
            return self._masked(Table(X))
        array = validate_data(self, X, reset=False, ensure_all_finite="allow-nan")
        masked = self._masked(_named(array))
        return np.column_stack([column.to_numpy() for column in masked.columns])

    def _masked(self, table: Table) -> Any:
        """A table masked as the one of `fit` was decided on."""
        known = replace(table.schema, decisions=self.decisions_)
        how: dict[str, Any] = {
            "seed": self.seed,
            "shuffled": False,
            "release_identifiers": self.release_identifiers or (),
        }
        return mask(table.with_schema(known), self._plan(), **how).data

    def _plan(self) -> Plan:
        return Plan.of(self.method, columns=self.columns, **self._parameters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.seed is None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _refuse_other_shapes(step: Step, *, frame: bool) -> None:
    """A step of a pipeline gives a row for every row and a column for every column, of numbers where it got numbers."""
    entry = step.entry
    if entry.leaves_out:
        raise ParameterError(f"{entry.id} leaves records out, and a pipeline needs a row for every row; use rv.mask")
    if entry.works_on == "names":
        raise ParameterError(
            f"{entry.id} leaves columns out, and a pipeline does that with a ColumnTransformer; or use rv.mask"
        )
    if entry.role is not None and step.columns is None:
        raise ParameterError(
            f"{entry.id} works on columns with the role {entry.role}, and here columns have no roles; name the columns"
        )
    if entry.relabels and not frame:
        raise ParameterError(f"{entry.id} makes labels of numbers, which an array of numbers cannot hold; give a table")


def _is_frame(data: Any) -> bool:
    import narwhals as nw

    return bool(nw.dependencies.is_into_dataframe(data)) and not isinstance(data, np.ndarray)


def _named(array: NDArray[Any]) -> Table:
    """An array as a table with scikit-learn's own names of columns, which tell nothing: all its numbers are masked."""
    import pyarrow as pa

    columns = {f"x{j}": np.ascontiguousarray(array[:, j]) for j in range(array.shape[1])}
    schema = Schema(kinds=dict.fromkeys(columns, "numeric"), roles=dict.fromkeys(columns, "confidential"))
    return Table(pa.table(columns), schema=schema)
