"""Embedded data: the running example of the literature, and made-up people for demonstrations."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rankveil.seeds import Seed

_RUNNING_EXAMPLE = (
    # X1, X2, X3, Y1, Y2, Y3
    (103.69, 981.80, 4928.80, 108.18, 972.62, 4876.73),
    (93.13, 980.97, 4931.16, 96.60, 1020.73, 5005.04),
    (100.87, 902.21, 5108.54, 105.26, 882.92, 4900.68),
    (95.24, 953.37, 5084.18, 88.02, 944.54, 4949.78),
    (96.18, 1086.34, 5212.25, 91.57, 1057.83, 5267.57),
    (93.16, 986.70, 5232.96, 100.41, 991.34, 5230.64),
    (95.50, 952.13, 4824.95, 100.31, 959.89, 4824.03),
    (115.53, 988.44, 5437.43, 123.37, 1061.23, 5450.70),
    (98.99, 941.48, 4835.05, 103.12, 903.25, 4752.03),
    (109.96, 984.87, 4950.48, 104.82, 912.77, 4997.61),
    (99.72, 1005.19, 5158.64, 87.83, 1025.01, 5166.63),
    (116.75, 1057.63, 4986.25, 112.21, 1082.43, 4988.44),
    (107.62, 1025.13, 4954.28, 114.29, 988.93, 4889.75),
    (87.62, 1031.74, 4905.71, 90.83, 1049.58, 4902.04),
    (109.81, 971.09, 4941.81, 113.64, 1002.19, 5020.71),
    (110.63, 1052.34, 4495.19, 103.07, 1052.03, 4519.26),
    (113.76, 972.20, 4893.50, 117.00, 962.84, 5087.90),
    (105.59, 1027.64, 5143.05, 89.43, 1049.97, 5072.79),
    (108.21, 990.58, 4714.76, 115.79, 1036.10, 4662.73),
    (104.74, 1023.96, 4900.79, 104.00, 1037.00, 4931.99),
)
"""Table 1 of Domingo-Ferrer and Muralidhar (2016): 20 original records and their masked versions."""

_REGIONS = ("North", "East", "South", "West")
_SECTORS = ("farming", "industry", "services", "public", "none")
_EDUCATION = ("primary", "secondary", "tertiary")


def running_example() -> tuple[pa.Table, pa.Table]:
    """The 20 original records (X1, X2, X3) of `new-directions` and the masked ones, under the same column names.

    >>> original, masked = running_example()
    >>> original.num_rows, original.column_names
    (20, ['X1', 'X2', 'X3'])
    """
    values = np.array(_RUNNING_EXAMPLE)
    names = ("X1", "X2", "X3")
    return (
        pa.table({name: values[:, j] for j, name in enumerate(names)}),
        pa.table({name: values[:, j + 3] for j, name in enumerate(names)}),
    )


def demo(records: int = 1000, *, seed: int = 2016) -> pa.Table:
    """People who never were: ages, regions, sectors, education, incomes, taxes and savings, some cells missing.

    >>> demo(3).column_names
    ['PERSON', 'AGE', 'SEX', 'REGION', 'SECTOR', 'EDUCATION', 'HOURS', 'INCOME', 'TAX', 'SAVINGS']
    """
    source = Seed.of(seed)

    def draw(name: str, kind: str = "random") -> np.ndarray:
        stream = source.stream("demo", name)
        return stream.normal(records) if kind == "normal" else stream.random(records)

    def pick(name: str, words: tuple[str, ...], shares: tuple[float, ...]) -> np.ndarray:
        return np.array(words)[np.searchsorted(np.cumsum(shares)[:-1], draw(name))]

    age = np.clip(np.rint(18 + 72 * draw("age") ** 1.3), 18, 95).astype(np.int64)
    level = np.searchsorted((0.25, 0.7), draw("education"))
    working = age < 67
    hours = np.where(working, np.clip(np.rint(38 + 8 * draw("hours", "normal")), 0, 80), 0).astype(np.int64)
    career = 1 - ((np.minimum(age, 67) - 52) / 60) ** 2
    wage = np.exp(9.6 + 0.35 * level + 0.5 * career + 0.45 * draw("income", "normal"))
    income = np.rint(wage * np.where(working, 1, 0.6))
    rate = (0.18 + 0.04 * (income > 40000)) * np.exp(0.08 * draw("tax", "normal"))
    tax = np.rint(np.maximum(income - 9000, 0) * rate)
    savings = np.round(income * np.exp(-1.2 + 1.1 * draw("savings", "normal")) * (age / 50), 2)
    return pa.table(
        {
            "PERSON": [f"P{number:06d}" for number in range(1, records + 1)],
            "AGE": age,
            "SEX": pick("sex", ("female", "male"), (0.51, 0.49)),
            "REGION": pick("region", _REGIONS, (0.35, 0.25, 0.25, 0.15)),
            "SECTOR": np.where(working, pick("sector", _SECTORS, (0.05, 0.25, 0.4, 0.2, 0.1)), "none"),
            "EDUCATION": pa.DictionaryArray.from_arrays(level.astype(np.int8), list(_EDUCATION), ordered=True),
            "HOURS": hours,
            "INCOME": pa.array(income.astype(np.int64), mask=draw("no income") < 0.03),
            "TAX": pa.array(tax.astype(np.int64)),
            "SAVINGS": pa.array(savings, mask=draw("no savings") < 0.06),
        }
    )
