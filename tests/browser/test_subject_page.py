"""The subject's page in a real browser: the numbers of verify, nothing that leaves, keyboard, narrow window, print."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil.schema import Schema

CHANCES = ("probability", "candidates", "record_probability")
LEVELS = ("none", "primary", "secondary", "degree")
EVIL = "</script><img src=x onerror=alert(1)>"


def third() -> dict[str, Any]:
    original, _ = rv.datasets.running_example()
    return dict(original.slice(2, 1).to_pylist()[0])


@pytest.fixture(scope="module", name="running")
def running_example() -> str:
    _, masked = rv.datasets.running_example()
    return rv.subject_page(masked)


def fill(page: Any, record: dict[str, Any]) -> None:
    for name, value in record.items():
        page.get_by_label(name, exact=True).fill(str(value))


def answer(page: Any) -> str:
    """Ask, wait, and give back the words of the answer."""
    page.get_by_role("button", name="Check").click()
    page.locator("#answer").wait_for(state="visible")
    return str(page.locator("#summary").inner_text())


def rows_of(page: Any, body: str) -> list[list[str]]:
    rows = page.locator(f"#{body} tr").all()
    return [row.locator("th, td").all_text_contents() for row in rows]


def assert_same(got: dict[str, Any], want: dict[str, Any]) -> None:
    """Numbers of the page are those of verify; logarithms and what follows from them may differ in the last digits."""
    apart = dict.fromkeys(("diversity", *CHANCES))
    assert {**got, **apart} == {**want, **apart}
    for name in CHANCES:
        assert got[name] == want[name] or got[name] == pytest.approx(want[name], rel=1e-9, abs=1e-12), name
    assert got["diversity"].keys() == want["diversity"].keys()
    for criterion, values in want["diversity"].items():
        for one, other in zip(got["diversity"][criterion], values, strict=True):  # None where it is too large
            assert one == other or one == pytest.approx(other, rel=1e-12, abs=1e-12), criterion


def test_record_3_of_the_running_example(open_page: Any, shot: Any, running: str) -> None:
    page = open_page(running).page
    fill(page, third())
    said = answer(page)
    assert "How probable it is that a record is yours cannot be told: there is no manifest" in said
    assert "nearest to your values is number 10 of 20. It is 4 ranks away" in said
    assert "in about 81 of 100 cases (probability about 0.8119)" in said
    assert rows_of(page, "distances") == [
        ["X1", "100.87", "100.41", "8", "104.82", "4"],
        ["X2", "902.21", "903.25", "2", "912.77", "1"],
        ["X3", "5108.54", "5087.9", "16", "4997.61", "4"],
    ]
    assert [row[:3] for row in rows_of(page, "diversity")] == [
        ["X1", "9", "24.7"],
        ["X2", "3", "155"],
        ["X3", "9", "20168"],
    ]
    assert "approximate" in page.locator("#notes").inner_text()
    shot(page)
    _, masked = rv.datasets.running_example()
    assert_same(page.evaluate("record => rankveil.check(record)", third()), rv.verify(masked, third()).to_dict())


def test_nothing_can_leave(open_page: Any, running: str) -> None:
    opened = open_page(running)
    fill(opened.page, third())
    answer(opened.page)
    kept = "[localStorage.length, sessionStorage.length, document.cookie]"
    assert opened.page.evaluate(kept) == [0, 0, ""]
    assert (opened.requests, opened.complaints) == ([opened.page.url], [])
    # even a script that got in could not send: the policy refuses, and the browser says so in its console
    tried = opened.page.evaluate(
        """async () => {
            const refused = [];
            addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
            await fetch("https://example.org/?X1=100").catch(() => {});
            document.body.append(Object.assign(new Image(), {src: "https://example.org/?X1=100"}));
            document.body.append(Object.assign(document.createElement("script"), {textContent: "window.ran = 1"}));
            await new Promise((go) => setTimeout(go, 100));
            return [refused.sort(), window.ran ?? null];
        }"""
    )
    assert tried == [["connect-src", "img-src", "script-src-elem"], None]
    opened.complaints.clear()
    del opened.requests[1:]  # what the policy stopped


def test_keyboard_alone(open_page: Any, shot: Any) -> None:
    rng = np.random.default_rng(5)
    table = pl.DataFrame({"AGE": rng.integers(20, 80, 40), "SCHOOL": rng.choice(LEVELS, 40), "PAY": rng.random(40)})
    schema = Schema(levels={"SCHOOL": LEVELS})
    page = open_page(rv.subject_page(table, schema=schema)).page
    keys = page.keyboard
    keys.press("Tab")
    keys.type("44")
    keys.press("Tab")
    keys.type("deg")  # a list of choices is searched by typing
    keys.press("Tab")
    keys.type("0,25")
    shot(page, "focus")
    keys.press("Enter")
    page.locator("#answer").wait_for(state="visible")
    assert page.evaluate("document.activeElement.id") == "verdict"
    assert [row[:2] for row in rows_of(page, "distances")] == [["AGE", "44"], ["SCHOOL", "degree"], ["PAY", "0.25"]]
    record = {"AGE": 44, "SCHOOL": "degree", "PAY": 0.25}
    assert f"is number {rv.verify(table, record, schema=schema).record} of 40" in page.locator("#words").inner_text()
    shot(page)
    keys.press("Shift+Tab")
    assert page.evaluate("document.activeElement.textContent") == "Clear"
    keys.press("Space")
    assert page.locator("#answer").is_hidden()
    assert page.evaluate("document.activeElement.id") == "value-0"
    assert page.get_by_label("AGE").input_value() == ""


def test_every_field_has_its_label(open_page: Any, running: str) -> None:
    page = open_page(running).page
    page.locator("#ways summary").click()
    page.get_by_label("Compare me with").select_option("record")
    unnamed = """() => [...document.querySelectorAll("input, select, button")].filter(
        (one) => !(one.labels?.length || one.textContent.trim())).length"""
    assert page.evaluate(unnamed) == 0
    assert page.get_by_label("X1").get_attribute("aria-describedby") == "value-0-error value-0-hint"
    assert "87.83 to 123.37" in page.locator("#value-0-hint").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window(open_page: Any, shot: Any, scheme: str) -> None:
    rng = np.random.default_rng(3)
    names = ["household_income_before_taxes_and_transfers_2019", "AGE", "Savings of the whole household, in euro"]
    table = pd.DataFrame({name: rng.normal(1e6, 3e5, 60) for name in names})
    page = open_page(rv.subject_page(table), width=400, height=800, color_scheme=scheme).page
    fill(page, {name: repr(float(table[name][7])) for name in names})
    said = answer(page)
    assert "unless it was masked, this record is yours" in said
    assert "Likeliest: record 8 of 60." in said
    assert "is number 8 of 60. It is 0 ranks away" in said
    page.locator("details").last.locator("summary").click()
    wide = """() => [...document.querySelectorAll("main *")].filter(
        (one) => !one.closest("thead") && one.getBoundingClientRect().right > 400).map((one) => one.outerHTML)"""
    assert page.evaluate(wide) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    shot(page)


def test_print(open_page: Any, shot: Any, running: str, tmp_path: Path) -> None:
    page = open_page(running).page
    fill(page, third())
    answer(page)
    page.emulate_media(media="print")
    assert page.get_by_role("button", name="Check").is_hidden()
    assert page.locator("#distances").is_visible()
    shot(page)
    page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


WRONG = (
    ("about 100", "not a number"),
    ("--5", "not a number"),
    ("1.2.3", "between thousands"),
    ("1,234.5", "between thousands"),
    ("1 234", "between thousands"),
    ("31,000", "Does this mean 31000 or 31.000?"),
    ("1e999", "too large"),
    ("Infinity", "not a number"),
)


def test_wrong_input_is_told_beside_its_field(open_page: Any, running: str) -> None:
    page = open_page(running).page
    field = page.get_by_label("X2")
    for text, problem in WRONG:
        fill(page, {"X1": "100", "X2": text})
        page.keyboard.press("Enter")
        assert problem in page.locator("#value-1-error").inner_text(), text
        assert field.get_attribute("aria-invalid") == "true", text
        assert page.evaluate("document.activeElement.id") == "value-1", text
        assert page.locator("#value-0-error").is_hidden(), text
        assert page.locator("#answer").is_hidden(), text
        field.fill("900")
        answer(page)
        assert field.get_attribute("aria-invalid") is None, text
        page.get_by_role("button", name="Clear").click()


def test_other_ways_to_find_the_record(open_page: Any, shot: Any, running: str) -> None:
    page = open_page(running).page
    page.get_by_role("button", name="Check").click()
    assert page.locator("#value-0-error").inner_text() == "Fill in at least one value."
    fill(page, third())
    page.locator("#ways summary").click()
    page.get_by_label("Compare me with").select_option("record")
    page.get_by_label("Number of the released record").fill("21")
    page.locator("#ways summary").click()  # closed again: it opens to show what is wrong
    page.get_by_role("button", name="Check").click()
    assert page.locator("#record-error").inner_text() == "Give the number of a released record, from 1 to 20."
    shot(page)
    page.get_by_label("Number of the released record").fill("3")
    assert "You chose the released record 3 of 20. It is 9 ranks away" in answer(page)
    assert [row[5] for row in rows_of(page, "distances")] == ["5", "1", "9"]
    _, masked = rv.datasets.running_example()
    for f in ("euclidean", "minimax", "3"):
        got = page.evaluate("([record, f]) => rankveil.check(record, {f})", [third(), f])
        assert_same(got, rv.verify(masked, third(), f=f).to_dict())


def test_a_decimal_comma(open_page: Any, running: str) -> None:
    page = open_page(running).page
    for written in ("100.87", "100,87", "+100,87", " 100.87 ", "1.0087e2"):
        fill(page, {"X1": written})
        assert "With one value alone" in answer(page), written
        assert rows_of(page, "distances")[0][1:3] == ["100.87", "100.41"], written
        page.get_by_role("button", name="Clear").click()
        assert page.locator("#answer").is_hidden(), written


def test_the_tables_own_decimal_comma_decides(open_page: Any) -> None:
    table = pl.DataFrame({"A": ["1,5", "31,0", "40,25"], "B": ["-1,5", "2,0", "7,5"]})
    page = open_page(rv.subject_page(table, decimal=",")).page
    fill(page, {"A": "31,000", "B": "\u22122"})
    answer(page)
    assert [row[1:3] for row in rows_of(page, "distances")] == [["31", "31"], ["-2", "-1.5"]]
    fill(page, {"A": "31.000"})
    page.keyboard.press("Enter")
    assert "Does this mean 31000 or 31,000?" in page.locator("#value-0-error").inner_text()


def test_no_complete_record(open_page: Any) -> None:
    page = open_page(rv.subject_page(pa.table({"A": [1.0, None], "B": [None, 2.0]}))).page
    fill(page, {"A": "1", "B": "2"})
    page.keyboard.press("Enter")
    page.get_by_text("no released record has all the columns that were given").wait_for()
    assert page.locator("#answer").is_hidden()
    fill(page, {"B": ""})
    answer(page)
    assert "1 released records have missing values" in page.locator("#notes").inner_text()


def test_names_stay_text(open_page: Any, shot: Any) -> None:
    table = pl.DataFrame({EVIL: [1, 2, 3], "__proto__": [3, 1, 2], "L": ["a", EVIL, "a"]})
    schema = Schema(levels={"L": ("a", EVIL)})
    page = open_page(rv.subject_page(table, schema=schema, title=EVIL)).page
    fill(page, {EVIL: "2", "__proto__": "1"})
    page.get_by_label("L", exact=True).select_option(EVIL)
    answer(page)
    assert [row[:3] for row in rows_of(page, "distances")] == [
        [EVIL, "2", "2"],
        ["__proto__", "1", "1"],
        ["L", EVIL, EVIL],
    ]
    assert page.locator("img").count() == 0
    shot(page)


class Shown:
    """One page in one window, for many questions."""

    def __init__(self, chromium: Any, folder: Path) -> None:
        self.page = chromium.new_page()
        self.path = folder / "page.html"

    def open(self, html: str) -> None:
        self.path.write_text(html, encoding="utf-8")
        self.page.goto(self.path.as_uri())

    def check(self, record: dict[str, Any], f: str) -> dict[str, Any]:
        return dict(self.page.evaluate("([record, f]) => rankveil.check(record, {f})", [record, f]))


@pytest.fixture(scope="module")
def shown(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return Shown(chromium, tmp_path_factory.mktemp("shown"))


VALUES = st.sampled_from([None, 0.0, 1.0, 2.0, 2.5, 9.0, 1e9, 1e9 + 1e-6, -1e300, 1.1, 1.3, 5e-324])
MINE = st.one_of(st.sampled_from([0.0, 1.2, 1.5, 2.0, 5.5, 1e9, -1e300]), st.floats(-10, 20, width=32))

ONE: dict[str, Any] = {"asked": 1, "f": "minimax", "permutation": True}


@settings(max_examples=60, deadline=None)
@given(
    columns=st.integers(1, 12).flatmap(
        lambda n: st.lists(st.lists(VALUES, min_size=n, max_size=n), min_size=1, max_size=4)
    ),
    mine=st.tuples(MINE, MINE, MINE, MINE),
    asked=st.integers(1, 15),
    f=st.sampled_from(["minimax", "euclidean"]),
    permutation=st.booleans(),
)
# equally close as people count, though not in binary; found exactly, though the next value is a rounding away
@example(columns=[[0.3, 0.5]], mine=(0.4, 0, 0, 0), **ONE)
@example(columns=[[0.1, float(np.nextafter(0.1, 1))]], mine=(float(np.nextafter(0.1, 1)), 0, 0, 0), **ONE)
@example(columns=[[2.0**52, 2.0**52 + 2]], mine=(2.0**52 + 1, 0, 0, 0), **ONE)
@example(columns=[[2.0**51, 2.0**51 + 3]], mine=(2.0**51 + 2, 0, 0, 0), **ONE)
@example(columns=[[1.7e308, -1.7e308, 5e-324]], mine=(1e308, 0, 0, 0), **ONE)
@example(columns=[[5e-324, 1e-323, 1.5e-323]], mine=(1e-323, 0, 0, 0), **ONE)
def test_numbers_are_those_of_verify_for_any_small_table(
    shown: Shown, columns: list[list[float | None]], mine: tuple[float, ...], asked: int, f: str, permutation: bool
) -> None:
    present = {f"C{j}": values for j, values in enumerate(columns) if any(value is not None for value in values)}
    record = {name: mine[j] for j, name in enumerate(present) if asked >> j & 1}
    table = pa.table({name: pa.array(values, pa.float64()) for name, values in present.items()})
    if not record or not any(all(row[name] is not None for name in record) for row in table.to_pylist()):
        return
    shown.open(rv.subject_page(table, permutation=permutation))
    assert_same(shown.check(record, f), rv.verify(table, record, f=f, permutation=permutation).to_dict())


def survey() -> tuple[pl.DataFrame, Schema]:
    """150 records of every kind of column: with four columns chance is sampled, with two all combinations are tried."""
    rng = np.random.default_rng(11)
    age = rng.integers(18, 90, 150)
    table = pl.DataFrame(
        {
            "AGE": [None if i % 29 == 3 else int(value) for i, value in enumerate(age)],
            "PAY": np.round(age * 100 + rng.normal(0, 900, 150), 2),
            "SCHOOL": rng.choice(LEVELS, 150),
            "RATE": rng.random(150),
        }
    )
    return table, Schema(levels={"SCHOOL": LEVELS})


@pytest.fixture(scope="module")
def surveyed(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    table, schema = survey()
    page = Shown(chromium, tmp_path_factory.mktemp("surveyed"))
    page.open(rv.subject_page(table, schema=schema))
    return page


@settings(max_examples=40, deadline=None)
@given(
    record=st.fixed_dictionaries(
        {},
        optional={
            "AGE": st.integers(0, 120),
            "PAY": st.floats(-1e4, 2e4),
            "SCHOOL": st.sampled_from(LEVELS),
            "RATE": st.floats(0, 1),
        },
    ),
    f=st.sampled_from(["minimax", "euclidean", "7"]),
)
def test_numbers_are_those_of_verify_for_any_columns_given(surveyed: Shown, record: dict[str, Any], f: str) -> None:
    table, schema = survey()
    values = {name: record[name] for name in table.columns if name in record}  # in the order of the page
    if values:
        assert_same(surveyed.check(values, f), rv.verify(table, values, f=f, schema=schema).to_dict())


MASKED: dict[str, tuple[list[str], Any]] = {
    "noise": (["AGE", "INCOME", "SAVINGS"], rv.Plan.of("additive_noise", alpha=0.2)),
    "coarse": (["AGE", "INCOME"], rv.Plan.of("additive_noise", alpha=0.1).then("round", decimals=-3).then("clip")),
    "relative": (["INCOME", "SAVINGS"], rv.Plan.of("multiplicative_noise", beta=0.3)),
    "laplace": (["AGE"], rv.Plan.of("laplace_dp", epsilon=20.0, lower=0.0, upper=100.0, fast=True)),
    "ranks": (["AGE", "INCOME", "EDUCATION"], rv.Plan.of("rank_swap", p=5.0)),
    "distances": (["INCOME"], rv.Plan.of("distance_swap", d=20)),
    "exchanged": (["SEX", "REGION", "SECTOR"], rv.Plan.of("pram", p=0.3)),
    "response": (["REGION"], rv.Plan.of("randomized_response", p=0.7)),
    "equal": ([], rv.Plan.of("top_bottom_code", columns=["AGE"], top=60.0)),
    "sampled": ([], rv.Plan.of("sample", share=0.5)),
    "suppressed": (["AGE", "REGION"], rv.Plan.of("suppress", k=3)),
    "groups": (["INCOME", "SAVINGS"], rv.Plan.of("mdav", k=5)),
    "permuted": (["AGE", "INCOME"], rv.Plan.of("permute")),
    "synthetic": (["INCOME"], rv.Plan.of("ipso", given=("AGE",))),
}
"""By what it tries, the columns that a plan masks; the page has some that it leaves as they are, too."""


@pytest.mark.parametrize("kind", [*MASKED, "together"])
def test_probabilities_are_those_of_verify(shown: Shown, kind: str) -> None:
    columns = ["AGE", "INCOME", "SAVINGS", "EDUCATION", "SEX", "REGION", "SECTOR"]
    people = rv.datasets.demo().select(columns)
    if kind == "together":  # noise that is drawn for several columns together needs all their cells
        people = people.drop_null()
        release = rv.mask(people, "correlated_noise", seed=3, columns=["INCOME", "SAVINGS"], gamma=0.1)
    else:
        masked, plan = MASKED[kind]
        steps = [rv.Step(step.method, step.parameters, {}, masked) if masked else step for step in plan.steps]
        release = rv.mask(people, rv.Plan(tuple(steps)), seed=3)
    shown.open(rv.subject_page(release.data, columns=columns, manifest=release.manifest))
    known = [row for row in people.to_pylist() if None not in row.values()]
    own = MASKED.get(kind, (["INCOME", "SAVINGS"], None))[0] or ["AGE", "SECTOR"]
    for person, names in ((known[3], own), (known[40], own), (known[5], columns), (known[9], [*own, "SECTOR"])):
        record = {name: person[name] for name in columns if name in names}
        assert_same(
            shown.check(record, "minimax"), rv.verify(release.data, record, manifest=release.manifest).to_dict()
        )


def test_a_record_that_was_not_masked(open_page: Any, shot: Any) -> None:
    people = rv.datasets.demo().select(["AGE", "INCOME", "SAVINGS"]).drop_null()
    release = rv.mask(people, "identity", columns=["AGE"])
    page = open_page(rv.subject_page(release.data, manifest=release.manifest)).page
    fill(page, people.to_pylist()[4])
    assert answer(page).startswith("Your values stand in this release once, unmasked: this record is yours.")
    assert page.locator("#answer").get_attribute("class") == "found"
    shot(page)


REGIONS = (
    ("Ulm", "South", "*"),
    ("Jena", "East", "*"),
    ("Gera", "East", "*"),
    ("Bonn", "West", "*"),
    ("Hagen", "West", "*"),
    ("Essen", "West", "*"),
)
RELEASED = ("Ulm", "Jena", "Bonn", "West")  # one of them a group, and leaves that were not released
JOBS = ("baker", "cook", "judge", EVIL)


def census() -> tuple[pa.Table, Schema]:
    """120 records with categories, with and without a hierarchy, and with dates and times."""
    rng = np.random.default_rng(12)
    pick = rng.choice(len(RELEASED), 120, p=[0.3, 0.3, 0.2, 0.2])
    days = rng.integers(-9_000, 12_000, 120)
    seen = rng.integers(1_600_000_000_000_000, 1_700_000_000_000_000, 120)
    table = pa.table(
        {
            "REGION": pa.array([None if i % 31 == 5 else RELEASED[place] for i, place in enumerate(pick)]),
            "JOB": pa.array([JOBS[place] for place in (pick + rng.integers(0, 2, 120)) % 4]),
            "BORN": pa.array(days).cast(pa.int32()).cast(pa.date32()),
            "SEEN": pa.array(seen).cast(pa.timestamp("us", tz="Europe/Berlin")),
            "WAKES": pa.array(rng.integers(0, 86_400, 120)).cast(pa.int32()).cast(pa.time32("s")),
            "PAY": pa.array(rng.integers(10, 60, 120)),
        }
    )
    roles = {"REGION": "quasi-identifier", "JOB": "confidential"}
    return table, Schema(roles=roles, hierarchies={"REGION": REGIONS})


@pytest.fixture(scope="module")
def categorised(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    table, schema = census()
    page = Shown(chromium, tmp_path_factory.mktemp("categorised"))
    page.open(rv.subject_page(table, schema=schema))
    return page


@settings(max_examples=60, deadline=None)
@given(
    record=st.fixed_dictionaries(
        {},
        optional={
            "REGION": st.sampled_from([*RELEASED, "Gera", "Hagen", "Essen"]),
            "JOB": st.sampled_from(JOBS),
            "BORN": st.dates(date(1, 1, 1), date(9999, 12, 31)).map(str),
            "SEEN": st.sampled_from(
                ["2022-02-28 23:59Z", "2021-07-01T12:30:01.000001+02:00", "2023-01-01 00:00:00-0330"]
            ),
            "WAKES": st.times().map(lambda time: time.isoformat("seconds")),
            "PAY": st.integers(0, 70),
        },
    ),
    f=st.sampled_from(["minimax", "euclidean", "7"]),
)
def test_numbers_are_those_of_verify_for_categories_and_dates(
    categorised: Shown, record: dict[str, Any], f: str
) -> None:
    table, schema = census()
    values = {name: record[name] for name in table.column_names if name in record}
    if values:
        assert_same(categorised.check(values, f), rv.verify(table, values, f=f, schema=schema).to_dict())


CATEGORIES = st.lists(st.sampled_from([None, "Ulm", "Jena", "Gera", "Bonn", "West", "East"]), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None)
@given(values=CATEGORIES, others=CATEGORIES, mine=st.sampled_from([row[0] for row in REGIONS]), known=st.booleans())
def test_categories_of_any_small_table(
    shown: Shown, values: list[str | None], others: list[str | None], mine: str, known: bool
) -> None:
    size = min(len(values), len(others))
    table = pa.table({"REGION": pa.array(values[:size], pa.string()), "JOB": pa.array(others[:size], pa.string())})
    complete = [row for row in table.to_pylist() if None not in row.values()]
    if not complete or (not known and mine not in values[:size]):
        return
    roles = {"REGION": "quasi-identifier", "JOB": "quasi-identifier"}
    schema = Schema(roles=roles, hierarchies={"REGION": REGIONS} if known else {})
    shown.open(rv.subject_page(table, schema=schema))
    record = {"REGION": mine, "JOB": complete[0]["JOB"]}
    assert_same(shown.check(record, "minimax"), rv.verify(table, record, schema=schema).to_dict())


def test_categories_are_chosen_and_dates_typed(open_page: Any, shot: Any) -> None:
    table, schema = census()
    page = open_page(rv.subject_page(table, schema=schema)).page
    offered = page.get_by_label("REGION").locator("option").all_text_contents()
    assert offered == ["(not given)", "Bonn", "Essen", "Gera", "Hagen", "Jena", "Ulm", "West"]
    page.get_by_label("REGION").select_option("Essen")  # not released: its group was
    page.get_by_label("JOB").select_option(EVIL)
    fill(page, {"BORN": "1990-02-30", "SEEN": "2022-02-28 23:59", "WAKES": "6:30"})
    page.keyboard.press("Enter")
    problems = [page.locator(f"#value-{place}-error").inner_text() for place in (2, 3, 4)]
    assert problems == [
        "Write it as in 2024-01-31.",
        "Write it as in 2024-01-31 23:59:30Z or with its offset, as in +01:00.",
        "Write it as in 23:59:30.",
    ]
    shot(page, "wrong")
    fill(page, {"BORN": "1990-02-28", "SEEN": "2022-02-28 23:59Z", "WAKES": "06:30"})
    answer(page)
    record = {"REGION": "Essen", "JOB": EVIL, "BORN": "1990-02-28", "SEEN": "2022-02-28 23:59Z", "WAKES": "06:30"}
    made = rv.verify(table, record, schema=schema)
    rows = rows_of(page, "distances")
    assert [row[1:3] for row in rows] == [
        [value, near] for value, near in zip(record.values(), made.nearest, strict=True)
    ]
    assert rows[0][2] == "West"
    notes = page.locator("#notes").inner_text()
    assert "Column REGION: the value given lies in West, which was released." in notes
    assert "Nominal columns are ranked by marginality in the release, not in the original (REGION, JOB)." in notes
    assert "nan" not in page.locator("#answer").inner_text().lower()
    shot(page)


@pytest.mark.thorough
def test_a_hundred_thousand_records(open_page: Any, shot: Any) -> None:
    rng = np.random.default_rng(2)
    base = rng.normal(size=100_000)
    table = pd.DataFrame({name: np.round(base + rng.normal(size=base.size), 4) for name in "ABCDE"})
    record = {name: 0.25 * place for place, name in enumerate("ABCDE")}
    page = open_page(rv.subject_page(table)).page
    fill(page, record)
    # a timer runs on while the page works, and the progress moves
    page.evaluate(
        """() => {
            window.ticks = 0;
            setInterval(() => { if (!document.getElementById("progress").hidden) window.ticks++; }, 0);
            window.seen = new Set();
            new MutationObserver(() => window.seen.add(document.getElementById("progress").value))
                .observe(document.getElementById("progress"), {attributes: true});
        }"""
    )
    assert "of 100000" in answer(page)
    assert page.evaluate("window.ticks") >= 5
    assert page.evaluate("[...window.seen].filter((share) => share > 0 && share < 1).length") > 0
    assert "a seeded sample of 10000 random records" in page.locator("#notes").inner_text()
    shot(page)
    assert_same(page.evaluate("record => rankveil.check(record)", record), rv.verify(table, record).to_dict())


def test_a_new_question_replaces_the_one_at_work(open_page: Any) -> None:
    rng = np.random.default_rng(4)
    table = pd.DataFrame({name: rng.normal(size=30_000) for name in "ABC"})
    page = open_page(rv.subject_page(table)).page
    fill(page, {"A": "1", "B": "1", "C": "1"})
    page.evaluate(
        """() => {
            document.getElementById("form").requestSubmit();
            document.getElementById("value-0").value = "-2";
            document.getElementById("form").requestSubmit();
        }"""
    )
    page.locator("#answer").wait_for(state="visible")
    assert rows_of(page, "distances")[0][1] == "-2"
    page.evaluate("() => { document.getElementById('form').requestSubmit(); document.getElementById('form').reset(); }")
    assert page.locator("#answer").is_hidden()
    assert page.locator("#status").inner_text() == ""
    assert page.locator("#progress").is_hidden()
