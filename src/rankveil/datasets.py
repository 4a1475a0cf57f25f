"""Embedded data: the running example of the literature, made-up people, and a made-up census for demonstrations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


# A census of persons in households. Whatever is drawn for a household comes from streams addressed by the number of the
# household, whatever is drawn for a person from streams addressed by the number of the person.

_PROVINCES: dict[str, dict[str, tuple[str, ...]]] = {
    "North": {
        "Skarn": ("Hovnes", "Alvik", "Birkby", "Tarnholm"),
        "Vesterland": ("Morvik", "Ekeby", "Lunde", "Stenby"),
        "Isfjord": ("Norby", "Granvik", "Ulvsund"),
    },
    "Centre": {
        "Kronau": ("Kronau City", "Altmark", "Lindau", "Seedorf", "Waldheim"),
        "Mittelbach": ("Bachstadt", "Auental", "Hagen am See", "Rodenau"),
        "Ostern": ("Osterburg", "Kirchfeld", "Muhlau", "Steinach"),
    },
    "South": {
        "Valdoro": ("Porto Valdo", "Altavilla", "Castelnovo", "Pieve"),
        "Marena": ("Marena City", "Campora", "Lido Marena", "Roccabella"),
        "Costavera": ("Veranza", "Montefino", "San Rocco", "Torrebassa"),
    },
}
"""Municipalities of each province of each part of the country, the largest of a province first."""

_OCCUPATIONS = {
    "professional": ("physician", "teacher", "engineer", "lawyer"),
    "clerical": ("clerk", "accountant", "civil servant"),
    "services": ("shop assistant", "cook", "carer", "hairdresser"),
    "trades": ("carpenter", "electrician", "mechanic", "farmer"),
    "elementary": ("cleaner", "labourer", "driver"),
    "not employed": ("pupil", "student", "unemployed", "homemaker", "pensioner"),
}

_SCHOOLING = ("none", "primary", "lower secondary", "upper secondary", "bachelor", "master or higher")
_WORK_BY_SCHOOLING = (  # shares of the groups of occupations that are work, for each level of education
    (0.00, 0.03, 0.22, 0.25, 0.50),
    (0.00, 0.05, 0.25, 0.28, 0.42),
    (0.01, 0.12, 0.32, 0.32, 0.23),
    (0.05, 0.30, 0.30, 0.27, 0.08),
    (0.45, 0.35, 0.12, 0.06, 0.02),
    (0.80, 0.15, 0.03, 0.01, 0.01),
)
_WAGES = (0.35, 0.1, -0.2, 0.0, -0.3)  # of the groups, in logarithms
_DWELLINGS = ("flat", "terraced house", "detached house", "other")
_CENSUS_YEAR = 2024
"""Ages are those of the first day of it."""


def census(records: int = 10_000, *, seed: int = 2024) -> pa.Table:
    """Persons in households who never were, as a census counts them: exactly so many, the last household cut to fit.

    Of the household: REGION, DWELLING, HOUSEHOLD_INCOME and WEIGHT. EDUCATION is ordered. Some cells of INCOME,
    OCCUPATION and EDUCATION are missing. `census_hierarchies` has what REGION and OCCUPATION belong to.

    >>> people = census(500)
    >>> people.num_rows, len(people["HOUSEHOLD"].unique())
    (500, 213)
    >>> people.column_names[:8]
    ['PERSON', 'HOUSEHOLD', 'REGION', 'DWELLING', 'HOUSEHOLD_INCOME', 'AGE', 'SEX', 'MARITAL']
    >>> people.column_names[8:]
    ['OCCUPATION', 'EDUCATION', 'BIRTH', 'INCOME', 'TAX', 'HOURS', 'WEIGHT']
    """
    source = Seed.of(seed)

    def of_person(name: str, kind: str = "random") -> Any:
        stream = source.stream("census", "person", name)
        return stream.normal(records) if kind == "normal" else stream.random(records)

    def of_household(name: str, kind: str = "random") -> Any:
        stream = source.stream("census", "household", name)
        return stream.normal(sizes.size) if kind == "normal" else stream.random(sizes.size)

    sizes = _household_sizes(source.stream("census", "household", "size").random(records), records)
    home = np.repeat(np.arange(sizes.size), sizes)
    person = _family(sizes, home, of_household, of_person)
    person |= _working_life(person, home, of_household, of_person)
    household = _housing(sizes, of_household)
    children = np.bincount(home[person["AGE"] < 18], minlength=sizes.size)
    household["HOUSEHOLD_INCOME"] = np.bincount(home, weights=person["INCOME"], minlength=sizes.size) + 2400 * children
    born = (_CENSUS_YEAR - person["AGE"] - 1970).astype("datetime64[Y]").astype("datetime64[D]")
    no_income = of_person("no income") < np.where(person["INCOME"] > 60000, 0.08, 0.03)
    return pa.table(
        {
            "PERSON": [f"P{number:07d}" for number in range(1, records + 1)],
            "HOUSEHOLD": np.array([f"H{number:07d}" for number in range(1, sizes.size + 1)], dtype="U8")[home],
            "REGION": household["REGION"][home],
            "DWELLING": household["DWELLING"][home],
            "HOUSEHOLD_INCOME": household["HOUSEHOLD_INCOME"][home].astype(np.int64),
            "AGE": person["AGE"],
            "SEX": person["SEX"],
            "MARITAL": person["MARITAL"],
            "OCCUPATION": pa.array(person["OCCUPATION"], mask=of_person("no occupation") < 0.04),
            "EDUCATION": pa.DictionaryArray.from_arrays(
                pa.array(person["EDUCATION"].astype(np.int8), mask=of_person("no education") < 0.05),
                list(_SCHOOLING),
                ordered=True,
            ),
            "BIRTH": pa.array(born - np.floor(365 * of_person("birthday")).astype("timedelta64[D]")),
            "INCOME": pa.array(person["INCOME"], mask=no_income),
            "TAX": person["TAX"],
            "HOURS": person["HOURS"],
            "WEIGHT": household["WEIGHT"][home],
        }
    )


def census_hierarchies() -> dict[str, tuple[tuple[str, ...], ...]]:
    """What each REGION and OCCUPATION of the census belongs to: a row for each, from itself to all together.

    >>> census_hierarchies()["REGION"][0], census_hierarchies()["OCCUPATION"][0]
    (('Hovnes', 'Skarn', 'North', '*'), ('physician', 'professional', '*'))
    """
    return {
        "REGION": tuple(
            (place, province, part, "*")
            for part, provinces in _PROVINCES.items()
            for province, places in provinces.items()
            for place in places
        ),
        "OCCUPATION": tuple((work, group, "*") for group, works in _OCCUPATIONS.items() for work in works),
    }


Draw = Callable[..., Any]
Columns = dict[str, Any]


def _household_sizes(draws: Any, records: int) -> Any:
    """Sizes of 1 to 7 persons that sum to so many records."""
    sizes = 1 + np.searchsorted((0.34, 0.64, 0.79, 0.92, 0.97, 0.99), draws)
    upto = np.cumsum(sizes)
    households = int(np.searchsorted(upto, records)) + 1 if records else 0
    sizes = sizes[:households]
    if households:
        sizes[-1] -= upto[households - 1] - records
    return sizes


def _family(sizes: Any, home: Any, of_household: Draw, of_person: Draw) -> Columns:
    """Who lives together: a head, often a partner of about the same age, and children younger than both."""
    place = np.arange(home.size) - (np.cumsum(sizes) - sizes)[home]
    couple = (sizes >= 2) & (of_household("couple") < 0.85)
    typical = np.minimum(sizes, 4) - 1
    middle, spread = np.array([54, 56, 45, 42])[typical], np.array([20, 16, 11, 8])[typical]
    head = np.clip(np.rint(middle + spread * of_household("age", "normal")), 18, 96)
    partner = np.clip(np.rint(head - 1 + 4 * of_household("age of partner", "normal")), 18, 96)
    parent = np.where(couple, np.minimum(head, partner), head)
    youngest = np.maximum(parent - 45, 0)
    child = np.floor(youngest[home] + (parent - 18 - youngest)[home] * of_person("age"))
    is_partner = couple[home] & (place == 1)
    adult = (place == 0) | is_partner
    age = np.where(is_partner, partner[home], np.where(place == 0, head[home], child)).astype(np.int64)
    woman = of_household("sex of head") < 0.5
    other = woman ^ (of_household("sex of partner") < 0.97)
    female = np.where(place == 0, woman[home], np.where(is_partner, other[home], of_person("sex") < 0.49))
    married = np.where(of_household("married") < 0.78, "married", "never married")[home]
    past = of_person("marital")
    widowed = past < np.clip((age - 50) / 55, 0.01, 0.7) * np.where(female, 1.2, 0.6)
    apart = np.where(widowed, "widowed", np.where(past > 1 - np.clip((age - 22) / 70, 0, 0.35), "divorced", ""))
    alone = np.where(apart == "", "never married", apart)
    return {
        "AGE": age,
        "SEX": np.where(female, "female", "male"),
        "MARITAL": np.where(adult, np.where(couple[home], married, alone), "never married"),
    }


def _working_life(person: Columns, home: Any, of_household: Draw, of_person: Draw) -> Columns:
    """Education, occupation, hours, income and tax; those who live together have had similar chances."""
    age = person["AGE"]
    chances = 0.6 * of_household("chances", "normal")[home] + 0.8 * of_person("chances", "normal")
    level = np.searchsorted((-1.9, -1.3, -0.5, 0.6, 1.3), chances + (45 - np.maximum(age, 25)) / 60)
    level = np.minimum(level, np.searchsorted((12, 16, 19, 22, 24), age, side="right"))
    idle = of_person("work")
    pensioner = (age >= 67) | ((age >= 60) & (idle < 0.35))
    student = (age >= 16) & (age < 26) & (of_person("student") < 0.55 - (age - 16) / 25)
    homemaker = (person["SEX"] == "female") & (idle > 0.93)
    not_working = np.select(
        [age < 16, pensioner, student, homemaker, idle > 0.95 - 0.01 * (5 - level)],
        ["pupil", "pensioner", "student", "homemaker", "unemployed"],
        default="",
    )
    at_work = not_working == ""
    shares = np.cumsum(_WORK_BY_SCHOOLING, axis=1)[level, :-1]
    group = np.sum(shares <= of_person("group")[:, None], axis=1)
    works = [np.array(each) for each in _OCCUPATIONS.values()]
    which = of_person("occupation")
    occupation = np.choose(group, [each[(which * each.size).astype(np.intp)] for each in works[:-1]])
    part_time = of_person("part time") < np.where(person["SEX"] == "female", 0.35, 0.1)
    hours = np.rint(np.where(part_time, 22, 39) + 5 * of_person("hours", "normal"))
    hours = np.where(at_work, np.clip(hours, 4, 75), 0)
    career = 0.5 - ((np.minimum(age, 67) - 50) / 45) ** 2
    luck = of_person("income", "normal")
    wage = np.exp(9.9 + np.array(_WAGES)[group] + 0.12 * level + 0.5 * career + 0.35 * luck) * hours / 38
    benefit = np.select(
        [not_working == "pensioner", not_working == "student", not_working == "unemployed"],
        [np.exp(9.3 + 0.12 * level + 0.35 * luck), np.exp(8.2 + 0.6 * luck), np.exp(9.0 + 0.2 * luck)],
        default=0.0,
    )
    income = np.rint(np.where(at_work, wage, benefit))
    due = 0.2 * np.maximum(income - 10000, 0) + 0.15 * np.maximum(income - 45000, 0)
    tax = np.rint(due * np.exp(0.06 * of_person("tax", "normal")))
    return {
        "EDUCATION": level,
        "OCCUPATION": np.where(at_work, occupation, not_working),
        "HOURS": hours.astype(np.int64),
        "INCOME": income.astype(np.int64),
        "TAX": tax.astype(np.int64),
    }


def _housing(sizes: Any, of_household: Draw) -> Columns:
    """Where and how a household lives, and how many of the population it stands for."""
    rows = census_hierarchies()["REGION"]
    parts = list(_PROVINCES)
    order = [_PROVINCES[part][province].index(place) for place, province, part, _ in rows]
    people = np.array([(0.7, 1.8, 1.2)[parts.index(row[2])] for row in rows]) / (1 + np.array(order)) ** 1.2
    region = np.searchsorted(np.cumsum(people / people.sum())[:-1], of_household("region"))
    town = np.array(order)[region] == 0
    roof = of_household("dwelling") + np.where(town, -0.25, 0.15) + 0.06 * (np.minimum(sizes, 5) - 2)
    rate = np.array([25.0, 90.0, 60.0])[np.array([parts.index(row[2]) for row in rows])[region]]
    answered = np.where(sizes == 1, 1.3, 1.0) * np.exp(0.2 * of_household("weight", "normal"))
    return {
        "REGION": np.array([row[0] for row in rows])[region],
        "DWELLING": np.array(_DWELLINGS)[np.searchsorted((0.45, 0.75, 1.1), roof)],
        "WEIGHT": np.round(rate * answered, 2),
    }
