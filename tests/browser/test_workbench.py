"""The workbench in a real browser: from a table to a release, cancel, undo, restart, keyboard, a narrow window."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankveil import datasets, files

Shot = Callable[..., None]
TOKEN = "the-token-of-the-tests"


class Visit:
    """The pages of a browser that is at a workbench, and all that they complained of."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self.address = ""
        self.complaints: list[str] = []
        self._contexts: list[Any] = []

    def open(self, *, width: int = 1100, height: int = 900, **options: Any) -> Any:
        """A page that came in by the address with the token."""
        context = self._browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(60_000)
        self._contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(self.address)
        page.wait_for_selector("h1")
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def bench(serving: Callable[..., Any], chromium: Any, tmp_path: Path) -> Iterator[Visit]:
    """A workbench on an empty workspace; at the end no page may have complained of anything."""
    server, visit = serving(tmp_path / "workspace", token=TOKEN), Visit(chromium)
    visit.address = f"{server.origin}/?token={TOKEN}"
    yield visit
    visit.close()
    server.stop()
    assert visit.complaints == []


class Process(Visit):
    """`rankveil serve` as a process, and the pages of a browser that is at it."""

    def __init__(self, workspace: Path, browser: Any) -> None:
        super().__init__(browser)
        self.workspace = workspace
        self.start()

    def start(self) -> None:
        """Start the server; the address that it prints is kept."""
        command = [sys.executable, "-m", "rankveil", "serve", "--no-browser", "--workspace", str(self.workspace)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("Open "):
                self.address = line.split()[1]
                return
        raise AssertionError("rankveil serve printed no address")

    def kill(self) -> None:
        """End the server without a warning."""
        self.process.send_signal(signal.SIGKILL)
        self._gone()

    def stop(self) -> None:
        """Close the pages and end the server as Ctrl-C does."""
        self.close()
        self.process.send_signal(signal.SIGINT)
        self._gone()

    def _gone(self) -> None:
        self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def served(chromium: Any, tmp_path: Path) -> Iterator[Process]:
    """The command itself on an empty workspace; at the end no page may have complained of anything."""
    made = Process(tmp_path / "workspace", chromium)
    yield made
    made.stop()
    assert made.complaints == []


def click(page: Any, role: str, name: str) -> None:
    page.get_by_role(role, name=name, exact=True).first.click()


def drawn(page: Any) -> None:
    """Wait until the first figure is the live one."""
    page.wait_for_selector("figure.rv-drawn .rv-live .main-svg")


def fits(page: Any) -> bool:
    """Whether nothing of the page sticks out of the window sideways, its styles loaded."""
    page.wait_for_load_state()
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def download(page: Any, name: str) -> bytes:
    with page.expect_download() as waiting:
        click(page, "link", name)
    return Path(waiting.value.path()).read_bytes()


def test_from_the_demo_data_to_a_release_in_under_ten_clicks(served: Process, shot: Shot) -> None:
    page = served.open()
    page.evaluate("sessionStorage.setItem('clicks', '0')")
    page.context.add_init_script(
        "addEventListener('click', e => { if (e.isTrusted) "
        "sessionStorage.setItem('clicks', 1 + Number(sessionStorage.getItem('clicks'))); }, true)"
    )
    page.reload()
    shot(page, "1 home")
    click(page, "button", "Use the demo data")
    page.wait_for_selector("text=1000 records, 9 columns")
    shot(page, "2 data")
    click(page, "link", "Next: mask")
    page.wait_for_selector("text=There is no step yet")
    shot(page, "3 mask empty")
    click(page, "button", "Add this step")
    drawn(page)
    shot(page, "4 mask step")
    click(page, "button", "Mask all records")
    page.wait_for_selector("h2:has-text('To publish')")
    table = download(page, "The masked table")
    manifest = download(page, "The manifest")
    assert table.splitlines()[0] == b"AGE,SEX,REGION,SECTOR,EDUCATION,HOURS,INCOME,TAX,SAVINGS"
    assert len(table.splitlines()) == 1001
    assert b'"copula_swap"' in manifest
    assert int(page.evaluate("sessionStorage.getItem('clicks')")) < 10
    page.wait_for_selector("#verdicts >> text=The release holds", timeout=120_000)
    page.wait_for_selector("#public-files >> text=The audit report", timeout=120_000)
    for kind in ("audit", "attack"):
        page.get_by_role("link", name=kind, exact=True).first.click()
        page.wait_for_selector("h2:has-text('Files')", timeout=120_000)
        drawn(page)
        shot(page, f"6 {kind}")
        click(page, "link", "The release itself")
        page.wait_for_selector("h2:has-text('To publish')")
    for name in ("The audit report", "The subject's page"):
        assert b'<meta http-equiv="Content-Security-Policy" content="default-src ' in download(page, name)
    shot(page, "5 release")


@pytest.mark.thorough
def test_a_step_is_undone_and_another_method_brings_its_own_fields(bench: Visit, shot: Shot) -> None:
    page = bench.open()
    click(page, "button", "Use the running example")
    click(page, "link", "Next: mask")
    page.get_by_label("Method", exact=True).select_option("additive_noise")
    page.get_by_label("alpha", exact=True).first.fill("0.4")
    click(page, "button", "Add this step")
    page.wait_for_selector("ol.steps >> text=alpha = 0.4")
    page.get_by_label("Method", exact=True).select_option("round")
    page.get_by_label("decimals", exact=True).first.fill("0")
    click(page, "button", "Add this step")
    page.wait_for_selector("th:has-text('moved after 2: round')")
    shot(page, "two steps")
    page.get_by_role("button", name="Move step 2 up").click()
    page.wait_for_selector("th:has-text('moved after 1: round')")
    click(page, "button", "Undo")
    page.wait_for_selector("th:has-text('moved after 2: round')")
    click(page, "button", "Undo")
    page.wait_for_selector("th:has-text('moved after 1: additive_noise')")
    assert page.locator("ol.steps li").count() == 1
    click(page, "button", "Redo")
    page.wait_for_selector("th:has-text('moved after 2: round')")
    page.get_by_label("Method", exact=True).select_option("mdav")
    page.get_by_label("k", exact=True).first.fill("500")
    click(page, "button", "Add this step")
    page.wait_for_selector("[role=alert]")
    assert page.get_by_label("k", exact=True).first.input_value() == "500"
    assert page.locator("ol.steps li").count() == 2
    shot(page, "error")
    assert bench.complaints == [
        "error: Failed to load resource: the server responded with a status of 400 (Bad Request)"
    ]
    bench.complaints.clear()


def test_an_upload_is_declared_and_masked(bench: Visit, shot: Shot, tmp_path: Path) -> None:
    lines = "".join(f"n{i};{20 + i % 40};{'low' if i % 3 else 'high'};{i * 7 % 100},5\n" for i in range(80))
    (tmp_path / "survey.csv").write_text("NAME;AGE;LEVEL;PAY\n" + lines)
    page = bench.open()
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "survey.csv")
    click(page, "button", "Upload")
    page.wait_for_selector("text=looks like an identifier")
    click(page, "button", "Leave it out")
    page.get_by_label("Kind of LEVEL").select_option("ordinal")
    page.get_by_label("Order of the words of LEVEL").fill("low < high")
    click(page, "button", "Keep what I said")
    page.wait_for_selector("text=3 would be masked")
    shot(page, "declared")
    click(page, "link", "Next: mask")
    click(page, "button", "Add this step")
    page.get_by_label("then audit it").uncheck()
    page.get_by_label("then attack it").uncheck()
    click(page, "button", "Mask all records")
    page.wait_for_selector("h2:has-text('To publish')")
    released = download(page, "The masked table").decode()
    assert released.splitlines()[0] == "AGE;LEVEL;PAY"
    assert ",5" in released


def test_what_keeps_a_table_from_being_masked_leads_to_its_remedy(bench: Visit, shot: Shot, tmp_path: Path) -> None:
    ages = [float(i) for i in range(20)]
    pq.write_table(pa.table({"AGE": [*ages, float("inf")], "PAY": [*ages, 7.5]}), tmp_path / "survey.parquet")
    page = bench.open()
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "survey.parquet")
    click(page, "button", "Upload")
    page.wait_for_selector("text=This table cannot be masked yet")
    shot(page)
    click(page, "link", "what stands for a missing cell")
    page.get_by_label("What stands for a missing cell").fill("inf")
    click(page, "button", "Keep what I said")
    page.wait_for_selector("text=cannot be masked yet", state="detached")
    assert "2 would be masked" in page.inner_text("main")


@pytest.mark.thorough
def test_a_plan_is_downloaded_and_loaded_again(bench: Visit, shot: Shot, tmp_path: Path) -> None:
    page = bench.open()
    click(page, "button", "Use the running example")
    click(page, "link", "Next: mask")
    click(page, "button", "Add this step")
    page.wait_for_selector("ol.steps li")
    (tmp_path / "plan.toml").write_bytes(download(page, "Download the plan"))
    page.get_by_role("button", name="Remove step 1").click()
    page.wait_for_selector("text=There is no step yet")
    page.get_by_text("Load a plan from a file").click()
    page.get_by_label("Plan", exact=True).set_input_files(tmp_path / "plan.toml")
    shot(page)
    click(page, "button", "Load it")
    page.wait_for_selector("ol.steps >> text=copula_swap")
    click(page, "button", "Undo")
    page.wait_for_selector("text=There is no step yet")


@pytest.mark.thorough
def test_a_run_and_a_table_are_deleted_after_a_question(bench: Visit, shot: Shot) -> None:
    page = bench.open()
    compare(page, points=3, replicates=1)
    page.wait_for_selector("h2:has-text('Take a plan')", timeout=120_000)
    click(page, "link", "Delete this run")
    shot(page, "run")
    click(page, "link", "Keep it")
    page.wait_for_selector("h2:has-text('Take a plan')")
    click(page, "link", "Delete this run")
    click(page, "button", "Delete")
    page.wait_for_selector("h1:has-text('Compare methods')")
    assert "Comparisons on this table" not in page.inner_text("main")
    click(page, "link", "all tables and runs")
    click(page, "link", "Delete running-example.csv")
    shot(page, "table")
    click(page, "button", "Delete")
    page.wait_for_selector("h1:has-text('Data')")
    assert "Tables of this workspace" not in page.inner_text("main")


def compare(page: Any, *, points: int, replicates: int) -> None:
    """Begin a comparison on the running example."""
    click(page, "button", "Use the running example")
    click(page, "link", "Compare methods first")
    page.get_by_label("Strengths of each method on the map").fill(str(points))
    page.get_by_label("Maskings of each random method").fill(str(replicates))
    click(page, "button", "Compare")


def test_the_map_fills_and_a_click_on_it_takes_a_plan(bench: Visit, shot: Shot) -> None:
    page = bench.open()
    compare(page, points=6, replicates=4)
    page.wait_for_selector("figure[data-map] .main-svg")
    shot(page, "filling")
    page.wait_for_selector("h2:has-text('Take a plan')", timeout=120_000)
    drawn(page)
    shot(page, "done")
    page.wait_for_selector(".rv-live[data-followed]")
    point = page.locator("figure .scatterlayer .points path").first
    point.scroll_into_view_if_needed()
    point.hover(force=True)
    point.click(force=True)
    page.wait_for_selector("ol.steps li")
    assert page.url.endswith("/mask")
    click(page, "button", "Undo")
    page.wait_for_selector("text=There is no step yet")


@pytest.mark.thorough
def test_work_is_cancelled(bench: Visit, shot: Shot) -> None:
    page = bench.open()
    compare(page, points=40, replicates=60)
    page.wait_for_selector("figure[data-map] .main-svg")
    click(page, "button", "Cancel")
    page.wait_for_selector("text=This was cancelled.")
    shot(page)
    assert page.get_by_role("button", name="Resume").is_visible()


@pytest.mark.thorough
def test_a_killed_server_loses_nothing(served: Process, shot: Shot) -> None:
    page = served.open()
    compare(page, points=7, replicates=6)
    page.wait_for_selector("figure[data-map] .main-svg")
    served.kill()
    page.wait_for_selector("text=The workbench does not answer")
    shot(page, "gone")
    page.context.close()
    assert served.complaints
    assert all("ERR_CONNECTION_REFUSED" in each or "ERR_CONNECTION_RESET" in each for each in served.complaints)
    served.complaints.clear()
    served.start()
    page = served.open()
    click(page, "link", "resume")
    page.wait_for_selector("text=The server was stopped before this was done.")
    before = page.get_by_role("button", name="Take ").count()
    assert before > 0
    drawn(page)
    shot(page, "interrupted")
    click(page, "button", "Resume")
    page.wait_for_selector("h2:has-text('Take a plan')", timeout=120_000)
    assert page.get_by_role("button", name="Take ").count() > before


def test_the_keyboard_is_enough(bench: Visit) -> None:
    page = bench.open()

    def to(what: str, *, most: int = 80) -> None:
        """Tab until the thing of that name has the focus."""
        for _ in range(most):
            page.keyboard.press("Tab")
            focused = page.evaluate(
                "(e => (e.getAttribute('aria-label') || (e.labels && e.labels[0] || e).textContent || '').trim())"
                "(document.activeElement)"
            )
            if focused == what:
                # A busy browser may draw it a moment later; wait_for_function would evaluate a string, and pages
                # allow none.
                for _ in range(100):
                    if page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none":
                        return
                    page.wait_for_timeout(50)
                raise AssertionError(f"{what} has the focus and does not show it")
        raise AssertionError(f"no way to {what} by the keyboard")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    to("Use the running example")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Next: mask")
    to("Next: mask")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=There is no step yet")
    to("Method")
    page.keyboard.type("Microagg")
    page.wait_for_selector("#field-p-k")
    to("k")
    page.keyboard.press("Control+A")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    page.wait_for_selector("ol.steps >> text=k = 4")
    to("then audit it")
    page.keyboard.press("Space")
    to("then attack it")
    page.keyboard.press("Space")
    to("Mask all records")
    page.keyboard.press("Enter")
    page.wait_for_selector("h2:has-text('To publish')")
    to("The masked table")
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    assert Path(waiting.value.path()).read_bytes().startswith(b"X1,X2,X3")


def test_a_narrow_window_shows_everything(bench: Visit, shot: Shot) -> None:
    page = bench.open(width=400, height=800)
    assert fits(page)
    shot(page, "home")
    click(page, "button", "Use the demo data")
    page.wait_for_selector("text=1000 records")
    assert fits(page)
    shot(page, "data")
    table = page.url
    page.goto(f"{table}/mask")
    click(page, "button", "Add this step")
    drawn(page)
    assert fits(page)
    shot(page, "mask")
    page.get_by_label("then audit it").uncheck()
    page.get_by_label("then attack it").uncheck()
    click(page, "button", "Mask all records")
    page.wait_for_selector("h2:has-text('To publish')")
    assert fits(page)
    shot(page, "release")
    for tab in ("audit", "attack", "compare"):
        page.goto(f"{table}/{tab}")
        assert fits(page), tab
        shot(page, tab)


@pytest.mark.thorough
def test_without_scripts_the_way_is_the_same(bench: Visit) -> None:
    page = bench.open(java_script_enabled=False)
    click(page, "button", "Use the running example")
    click(page, "link", "Next: mask")
    page.get_by_label("Method", exact=True).select_option("mdav")
    click(page, "button", "Show its settings")
    page.get_by_label("k", exact=True).first.fill("3")
    click(page, "button", "Add this step")
    page.wait_for_selector("ol.steps >> text=k = 3")
    page.wait_for_selector("img.rv-still")
    page.get_by_label("then audit it").uncheck()
    page.get_by_label("then attack it").uncheck()
    click(page, "button", "Mask all records")
    page.wait_for_selector("h2:has-text('To publish')")
    assert download(page, "The masked table").startswith(b"X1,X2,X3")


LEVELS = "none < primary < lower secondary < upper secondary < bachelor < master or higher"
CENSUS_ROLES = {
    "PERSON": "identifier",
    "HOUSEHOLD": "group",
    "REGION": "quasi-identifier",
    "SEX": "quasi-identifier",
    "AGE": "quasi-identifier",
    "OCCUPATION": "confidential",
    "INCOME": "confidential",
    "WEIGHT": "weight",
}


def _census(folder: Path) -> None:
    """A census of 300 persons and what its regions and occupations belong to, as files."""
    files.save(datasets.census(300), folder / "census.csv")
    for column, rows in datasets.census_hierarchies().items():
        text = "".join(";".join(row) + "\n" for row in rows)
        (folder / f"{column.lower()}.csv").write_text(text, encoding="utf-8")


def _add_step(page: Any, method: str, *, columns: tuple[str, ...] = (), **given: str) -> None:
    page.get_by_label("Method", exact=True).select_option(method)
    page.wait_for_selector(f"#method[data-shown={method}]")
    for name, value in given.items():
        page.fill(f"#field-p-{name}", value)
    for column in columns:
        page.locator(f"#step-fields input[name=columns][value={column}]").check()
    click(page, "button", "Add this step")
    page.wait_for_selector(f".steps code:text-is('{method}')")


def test_a_census_goes_through_every_page(bench: Visit, shot: Shot, tmp_path: Path) -> None:
    _census(tmp_path)
    page = bench.open(width=1280)
    page.set_input_files("#file", tmp_path / "census.csv")
    click(page, "button", "Upload")
    page.wait_for_selector("text=300 records, 15 columns")
    for column, role in CENSUS_ROLES.items():
        page.get_by_label(f"Role of {column}", exact=True).select_option(role)
    page.get_by_label("Leave PERSON out", exact=True).check()
    page.get_by_label("Kind of EDUCATION", exact=True).select_option("ordinal")
    page.get_by_label("Order of the words of EDUCATION", exact=True).fill(LEVELS)
    for column in ("REGION", "OCCUPATION"):
        page.set_input_files(f"[aria-label='Hierarchy of {column}']", tmp_path / f"{column.lower()}.csv")
    click(page, "button", "Keep what I said")
    page.wait_for_selector("summary:has-text('region.csv')")
    assert page.locator("summary", has_text="occupation.csv").count() == 1
    assert fits(page)
    shot(page, "1 data")

    click(page, "link", "Next: mask")
    _add_step(page, "rank_swap", p="10")
    _add_step(page, "pram", columns=("SEX",), p="0.2")
    _add_step(page, "recode", columns=("REGION",), level="1")
    click(page, "link", "Picture of BIRTH")
    drawn(page)
    assert page.locator("tr:has(th:text-is('BIRTH')) td").first.inner_text().startswith("19")  # a mean is a date
    click(page, "link", "Picture of REGION")
    drawn(page)
    assert "Skarn" in page.locator("#picture script.rv-data").inner_text()
    shot(page, "2 mask")
    click(page, "button", "Mask all records")
    page.wait_for_selector("h2:has-text('To publish')", timeout=180_000)
    assert b"ranked_by" in download(page, "The manifest")
    page.wait_for_selector("#verdicts >> text=Audit:", timeout=300_000)
    page.wait_for_selector("#verdicts >> text=Attack:", timeout=300_000)
    shot(page, "3 release")
    release = page.url

    click(page, "link", "audit")
    page.wait_for_selector("h2:has-text('Who can be told apart')")
    drawn(page)
    assert page.locator("caption:has-text('Quasi-identifiers: REGION, AGE, SEX')").count() == 1
    assert "--hierarchy REGION=region.csv" in page.locator("pre").last.inner_text()
    shot(page, "4 audit")
    page.goto(release)
    click(page, "link", "attack")
    page.wait_for_selector("h2:has-text('Which attributes moved least')")
    shot(page, "5 attack")

    page.goto(release)
    page.locator("summary", has_text="Ask for a certificate of your own").click()
    click(page, "button", "Certify")
    page.wait_for_selector("h2:has-text('Permuted privacy')", timeout=180_000)
    shot(page, "6 certificate")

    click(page, "link", "Compare")
    for method in ("mdav", "rank_swap", "additive_noise", "pram"):
        page.locator(f"input[name=methods][value={method}]").set_checked(method in ("rank_swap", "pram"))
    page.fill("#replicates", "1")
    page.fill("#points", "3")
    page.locator("summary", has_text="Utility and loss").click()
    page.locator("input[name=utility][value=um]").uncheck()
    page.locator("input[name=utility][value=total_variation]").check()
    click(page, "button", "Compare")
    page.wait_for_selector("h2:has-text('Take a plan')", timeout=300_000)
    drawn(page)
    assert page.locator("#places >> text=pram").count() > 0
    shot(page, "7 compare")
