"""What a column is: kinds, roles and actions from names, values and labels, on made-up columns and on public tables."""

from __future__ import annotations

import datetime
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankveil import metadata
from rankveil.decisions import Decision, decide
from rankveil.schema import Schema
from rankveil.table import Table
from rankveil.vocabulary import topics

N = 240
RNG = np.random.default_rng(5)
CODES = RNG.integers(1, 8, N)
AMOUNTS = np.exp(RNG.normal(8, 1, N)).round(2)
HOUSEHOLDS = np.repeat(np.arange(N // 3) * 7 + 11, 3)
ANY_ORDER = RNG.permutation(HOUSEHOLDS)


def made(schema: Schema | None = None, **columns: Any) -> dict[str, Decision]:
    return {each.name: each for each in decide(Table(pa.table(columns), schema=schema))}


def one(name: str, values: Any) -> Decision:
    return made(**{name: values})[name]


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        *((name, "weight") for name in ("sampling_weight", "Hochrechnungsfaktor", "pondération", "factor_expansion")),
        *((name, "weight") for name in ("peso_campionario", "weegfactor", "ponderação", "waga", "PERWT", "DB090")),
        *((name, "household") for name in ("hhid", "Haushaltsnummer", "id_ménage", "hogar_id", "num_famiglia")),
        *((name, "household") for name in ("huishouden_id", "id_domicilio", "nr_gospodarstwa", "HouseholdID")),
        *((name, "name") for name in ("surname", "Nachname", "prénom", "apellidos", "cognome", "achternaam")),
        *((name, "name") for name in ("sobrenome", "nazwisko", "CustomerName")),
        *((name, "sex") for name in ("gender", "Geschlecht", "sexe", "sexo", "sesso", "geslacht", "gênero", "płeć")),
        *(
            (name, "age")
            for name in ("age", "Lebensalter", "âge", "edad", "età", "leeftijd", "idade", "wiek", "ageGroup")
        ),
        *((name, "place") for name in ("region", "Bundesland", "département", "provincia", "comune", "gemeente")),
        *(
            (name, "place")
            for name in ("concelho", "województwo", "postal code", "PLZ", "código_postal", "kod-pocztowy")
        ),
        *(
            (name, "money")
            for name in ("net income", "Haushaltseinkommen", "salaire", "ingresos", "reddito", "inkomen")
        ),
        *((name, "money") for name in ("rendimento", "dochód", "hhincome", "totalRevenue")),
        *(
            (name, "health")
            for name in ("disease", "Krankheit", "maladie", "enfermedad", "malattia", "ziekte", "doença")
        ),
    ],
)
def test_a_name_speaks_of_a_topic_in_each_language(name: str, topic: str) -> None:
    assert topic in topics(name)


@pytest.mark.parametrize("name", ["capacity", "velocity", "message", "mileage", "COVID", "paidleave", "grid"])
def test_words_within_other_words_say_nothing(name: str) -> None:
    assert not topics(name) & {"id", "place", "age", "sex", "name"}


@pytest.mark.parametrize("name", ["sex", "Geschlecht", "sexe", "sexo", "sesso", "geslacht", "plec", "Q17"])
def test_two_whole_numbers_are_never_averaged(name: str) -> None:
    decision = one(name, 1 + RNG.integers(0, 2, N))
    assert (decision.kind, decision.role, decision.action) == ("unordered", "quasi-identifier", "mask")


@pytest.mark.parametrize("name", ["id_hogar", "Haushaltsnummer", "numéro_ménage", "hhid", "id_gospodarstwa", "HID"])
def test_households_become_pseudonyms_in_any_order_of_the_rows(name: str) -> None:
    decision = one(name, ANY_ORDER)
    assert (decision.kind, decision.role, decision.action) == ("unordered", "group", "pseudonymise")


def test_numbers_of_people_and_households_are_recognised_without_a_name() -> None:
    seen = made(A=np.arange(N) + 1, B=HOUSEHOLDS, C=HOUSEHOLDS + np.arange(N), wage=np.sort(AMOUNTS.round()))
    assert [(each.role, each.action) for each in seen.values()] == [
        ("identifier", "leave out"),
        ("group", "pseudonymise"),
        ("identifier", "leave out"),
        ("confidential", "mask"),
    ]
    assert one("student", RNG.permutation(N // 4).repeat(4)).role == "group"
    assert one("students", RNG.integers(100, 900, N)).kind == "numbers"


@pytest.mark.parametrize(
    "values",
    [
        [f"person{place}@example.org" for place in range(N)],
        [f"+49 30 {100000 + place}" for place in range(N)],
        [f"DE{10 + place % 80} 3704 0044 0532 {1000 + place}" for place in range(N)],
        [f"123e4567-e89b-12d3-a456-{426614174000 + place % 90}" for place in range(N)],
        [f"192.168.{place // 200}.{place % 200}" for place in range(N)],
        [f"A{place:05d}" for place in RNG.permutation(N)],
        [f"{place:07d}" for place in RNG.permutation(N)],
        [f"she said that row {place // 2} is not quite right" for place in range(N)],
        2_000_000 + 37 * RNG.permutation(N),
    ],
)
def test_values_that_name_people_are_left_out_whatever_the_column_is_called(values: Any) -> None:
    decision = one("V1", values)
    assert (decision.role, decision.action) == ("identifier", "leave out")
    assert decision.kind in ("text", "unordered")


def test_a_name_that_repeats_is_a_name_still() -> None:
    seen = made(nombre=[f"Ana {place % 90}" for place in range(N)], nombre_de_personnes=RNG.integers(1, 60, N))
    assert (seen["nombre_de_personnes"].kind, seen["nombre_de_personnes"].action) == ("numbers", "mask")
    assert one("Vorname", [f"Ana{place % 90}" for place in range(N)]).role == "identifier"
    assert one("country_name", [f"Land{place % 90}" for place in range(N)]).role == "quasi-identifier"


@pytest.mark.parametrize("name", ["weight", "Gewicht", "peso", "poids", "waga", "PWGTP", "w", "fnlwgt"])
def test_a_weight_is_kept(name: str) -> None:
    decision = one(name, RNG.integers(100, 900, N))
    assert (decision.kind, decision.role, decision.action) == ("numbers", "weight", "keep")


def test_the_weight_of_a_body_is_none_of_the_records() -> None:
    seen = made(weight=RNG.integers(45, 120, N), height=RNG.integers(150, 200, N), survey_weight=AMOUNTS)
    assert [each.role for each in seen.values()] == ["confidential", "confidential", "weight"]
    assert one("birth_weight", RNG.integers(900, 4500, N)).role == "confidential"
    assert one("weight", -AMOUNTS).role != "weight"
    assert one("weight", RNG.choice(["light", "heavy"], N)).role != "weight"


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("Q1", CODES, "unordered"),
        ("Q1", CODES * 1.0, "unordered"),
        ("Q1", [str(code) for code in CODES], "unordered"),
        ("Q1", [f"0{code}" for code in CODES], "unordered"),
        ("Q1", RNG.poisson(1.2, N), "ordered"),
        ("Q1", RNG.integers(1960, 2005, N), "ordered"),
        ("Q1", RNG.choice([0.0, 0.5, 1.0], N), "ordered"),
        ("Q1", RNG.integers(0, 900, N), "numbers"),
        ("Q1", RNG.integers(1, 48, N), "unordered"),
        ("Q1", RNG.choice(RNG.integers(1000, 9999, 30), N), "unordered"),
        ("Q1", AMOUNTS, "numbers"),
        ("Q1", RNG.choice([True, False], N), "unordered"),
        ("Q1", RNG.choice(["low", "medium", "high"], N), "ordered"),
        ("Q1", RNG.choice(["<10", "10-19", "20+"], N), "ordered"),
        ("Q1", RNG.choice(["red", "green", "blue"], N), "unordered"),
        ("Q1", [datetime.date(2020, 1, 1 + code) for code in CODES], "dates"),
        ("Q1", [f"2020-01-0{code}" for code in CODES], "dates"),
        ("income", RNG.integers(0, 90, N) * 100, "numbers"),
        ("income", RNG.integers(1, 11, N), "ordered"),
        ("edad", RNG.integers(16, 30, N), "numbers"),
        ("altersgruppe", CODES, "ordered"),
        ("Anzahl_Kinder", RNG.poisson(1.2, N), "numbers"),
        ("région", RNG.integers(1, 95, N), "unordered"),
        ("nace", RNG.integers(1, 95, N), "unordered"),
        ("PLZ", RNG.integers(10000, 99999, N), "unordered"),
        ("mes", RNG.integers(1, 13, N), "ordered"),
        ("quintil", RNG.integers(1, 6, N), "ordered"),
        ("Bildungsabschluss", CODES, "ordered"),
    ],
)
def test_kinds(name: str, values: Any, kind: str) -> None:
    assert one(name, values).kind == kind


def test_roles_follow_the_topic_and_else_the_kind() -> None:
    seen = made(
        wohnort=RNG.choice(["Ulm", "Bonn", "Kiel"], N),
        geburtsdatum=[datetime.date(1970, 1, 1 + code) for code in CODES],
        religion=CODES,
        rauchen=RNG.choice(["ja", "nein"], N),
        icd=RNG.choice(["J45.0", "E11", "I10"], N),
        Q1=RNG.choice(["J45.0", "E11", "I10"], N),
        Q2=RNG.choice(["00-950", "31-001", "80-288"], N),
        Q3=AMOUNTS,
        Q4=np.full(N, 7),
        Q5=pa.nulls(N, pa.float64()),
    )
    assert {name: each.role for name, each in seen.items()} == {
        **dict.fromkeys(("wohnort", "geburtsdatum", "Q2"), "quasi-identifier"),
        **dict.fromkeys(("religion", "rauchen", "icd", "Q1", "Q3"), "confidential"),
        **dict.fromkeys(("Q4", "Q5"), "other"),
    }


def test_words_for_no_value_among_numbers() -> None:
    income = ["N" if place % 3 else str(1000 + 13 * place) for place in range(N)]
    seen = made(income=income, age=[str(18 + place % 60) for place in range(N)])
    assert (seen["income"].kind, seen["income"].role, seen["income"].missing) == ("numbers", "confidential", ("N",))
    assert '"N" among them reads as a missing value' in seen["income"].reason
    seen = made(income=income, smoker=RNG.choice(["Y", "N"], N))
    assert (seen["income"].undecided, seen["income"].missing) == (True, ())
    seen = made(months=np.where(np.arange(N) % 3 == 0, -8, RNG.integers(0, 90, N)))
    assert "--missing -8" in seen["months"].reason
    assert "--missing" not in one("months", RNG.integers(-8, 90, N)).reason


def test_numbers_that_cannot_be_read_are_not_taken_for_names() -> None:
    decision = one("turnover", [f"{1 + place % 9},{100 + place},000" for place in range(N)])
    assert (decision.kind, decision.role, decision.undecided) == ("text", "confidential", True)
    assert "thousands separators" in decision.reason


def labelled(name: str, values: Any, described: metadata.Described) -> Decision:
    field = metadata.write(pa.field(name, pa.int64()), described)
    return decide(Table(pa.Table.from_arrays([pa.array(values)], schema=pa.schema([field]))))[0]


@pytest.mark.parametrize(
    ("label", "role", "kind"),
    [
        ("Household identification number", "group", "unordered"),
        ("Numer gospodarstwa domowego", "group", "unordered"),
        ("Geschlecht der befragten Person", "quasi-identifier", "unordered"),
        ("Peso de la persona en la muestra", "weight", "numbers"),
        ("Revenu annuel du ménage", "confidential", "numbers"),
    ],
)
def test_labels_tell_what_a_bare_name_does_not(label: str, role: str, kind: str) -> None:
    values = CODES if "Geschlecht" in label else ANY_ORDER
    decision = labelled("V17", values, metadata.Described(label=label))
    assert (decision.role, decision.kind) == (role, kind)


def test_labels_of_values_and_levels_of_measurement() -> None:
    ordered = ((1, "low"), (2, "medium"), (3, "high"))
    grades = RNG.integers(1, 4, N)
    assert labelled("V1", grades, metadata.Described(value_labels=ordered)).kind == "ordered"
    mixed = ((1, "medium"), (2, "high"), (3, "low"))
    assert labelled("V1", grades, metadata.Described(value_labels=mixed)).kind == "unordered"
    many = RNG.integers(0, 900, N)
    assert labelled("V1", many, metadata.Described(value_labels=((0, "none"), (899, "most")))).kind == "numbers"
    assert labelled("V1", many, metadata.Described(level="nominal")).kind == "unordered"
    assert labelled("V1", many, metadata.Described(level="ordinal")).kind == "ordered"


def test_what_was_declared_is_kept() -> None:
    schema = Schema(kinds={"sex": "numeric"}, roles={"sex": "other", "pid": "confidential"})
    seen = made(schema, sex=CODES, pid=np.arange(N))
    assert (seen["sex"].kind, seen["sex"].role, seen["sex"].action) == ("numbers", "other", "keep")
    assert (seen["pid"].role, seen["pid"].action) == ("confidential", "mask")
    assert "declared" in seen["pid"].reason


@pytest.mark.parametrize(
    "values", [[], [None, None], [1], ["a"], [float("inf"), 1.0, 2.0], [10.0**300, -1.0], [[1], [2]], [b"a", b"b"]]
)
def test_tables_at_the_edge(values: list[Any]) -> None:
    decision = one("x", pa.array(values, pa.int64()) if not values else pa.array(values))
    assert decision.reason
    assert one("id", pa.array(values, pa.int64()) if not values else pa.array(values)).reason


def _benchmark() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "columns.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_columns", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_public_tables_are_taken_for_what_a_statistician_declares() -> None:
    benchmark = _benchmark()
    sources = benchmark.sources()
    absent = [str(path) for source in sources for path in source.files if not path.exists()]
    if absent:
        pytest.skip(f"the reference data do not lie in ../shared/data beside the project: {absent[0]}")
    columns = benchmark.judged(sources, rows=3000)
    assert (len({each.table for each in columns}), len(columns)) == (25, 380)
    assert [f"{each.table} {each.decision.name}: {each.harm}" for each in columns if each.harm] == []
    assert benchmark.share(columns) >= 0.95
    assert benchmark.share([each for each in columns if each.held_out]) >= 0.95


def test_the_benchmark_knows_harm() -> None:
    benchmark = _benchmark()

    def harm(truth: str, kind: Any, role: Any, action: Any) -> str:
        made = Decision("A", kind, role, action, "so")
        return str(benchmark.Judged("t", False, made, benchmark.Truth.of(truth)).harm)

    assert harm("unordered; identifier", "unordered", "other", "keep") == "an identifier would be released"
    assert harm("unordered; group", "numbers", "confidential", "mask") == "an identifier is taken for numbers"
    assert harm("numbers; weight", "numbers", "confidential", "mask") == "a weight would be masked"
    assert (
        harm("unordered; quasi-identifier", "numbers", "confidential", "mask") == "codes would be averaged as numbers"
    )
    assert harm("unordered; confidential", "unordered", "other", "keep") == "it would pass through as it is"
    assert harm("numbers; confidential", "unordered", "quasi-identifier", "mask") == ""
    assert harm("unordered; group", "unordered", "identifier", "leave out") == ""
