"""A reproduction as files: a page, the figures, the JSON document; all of them or none."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rankveil.errors import FileError, listing
from rankveil.files import Staged, check_writable
from rankveil.files.atomic import said_of
from rankveil.papers.result import Content, Number, PaperTable, Reproduction, Row
from rankveil.report import static
from rankveil.report.chart import Chart
from rankveil.report.look import number
from rankveil.report.page import Grid, Section, render

_COLUMNS = ("item", "published", "computed", "difference", "agrees")


def check_folder(out: Path) -> None:
    """Fail now, before any work, when files could not be written into that folder; it may be made later."""
    if out.is_dir():
        check_writable(out / "page.html", table=False)
        return
    there = next((folder for folder in (out, *out.absolute().parents) if folder.exists()), out)
    if not there.is_dir():
        what = "is" if there == out else f"{there} is"
        raise FileError(f"{out}: {what} a file, not a folder; give another name")
    if not os.access(there, os.W_OK | os.X_OK):
        raise FileError(f"{out}: cannot be made: {there} is write-protected")


def write(made: Reproduction, out: Path) -> tuple[Path, ...]:
    """Write every file of a reproduction into a folder, which is made if need be."""
    check_folder(out)
    new = not out.exists()
    with said_of(str(out), deed="made"):
        out.mkdir(parents=True, exist_ok=True)
    try:
        contents: dict[Path, str] = {}
        for paper in made.papers or (made,):
            if not paper.tables:  # it was left out of `all`, whose document says why
                continue
            contents |= _figures(paper, out)
            contents[out / f"{paper.paper}.html"] = page(paper)
            contents[out / f"{paper.paper}.json"] = _json(paper, out)
            contents[out / f"{paper.paper}.md"] = markdown(paper)
        if made.papers:
            contents[out / f"{made.paper}.json"] = _json(made, out)
        with Staged() as staged:
            for path, text in contents.items():
                staged.add(path, lambda file, text=text: file.write(text.encode("utf-8")))  # type: ignore[misc]
    except BaseException:
        if new:
            with suppress(OSError):
                out.rmdir()
        raise
    return tuple(contents)


def page(made: Reproduction) -> str:
    """The reproduction of one paper as a self-contained page."""
    sections = [
        Section(table.name, text=table.caption, tables=[_grid(table)], notes=_notes(table)) for table in made.tables
    ]
    if made.figures:
        sections.append(
            Section(
                "Figures",
                charts=[replace(chart, title=f"{name}: {chart.title}") for name, chart in made.figures.items()],
            )
        )
    sections.append(Section("Remarks", notes=list(made.remarks)))
    return render(
        title=f"{made.paper}, reproduced",
        lead=f"{made.citation}\n\n{_summary(made)}",
        sections=sections,
        internal=False,
        command=f"rankveil reproduce {made.paper} -o DIR",
    )


def _figures(made: Reproduction, out: Path) -> dict[Path, str]:
    contents = {}
    for name, chart in made.figures.items():
        stem = _stem(made, name)
        contents[out / f"{stem}.svg"] = static.svg(chart)
        contents[out / f"{stem}.html"] = _alone(made.paper, name, chart)
    made.files = tuple(contents)
    return contents


def _stem(made: Reproduction, figure: str) -> str:
    return f"{made.paper}-{figure.lower().replace(' ', '-')}"


def markdown(made: Reproduction) -> str:
    """The reproduction of one paper as text with tables, its figures beside it as SVG: for documentation."""
    command = f"    rankveil reproduce {made.paper} -o DIR"
    parts = [f"# {made.paper}, reproduced", made.citation, _summary(made), command]
    for name, chart in made.figures.items():
        parts.append(f"![{name}: {chart.title}]({_stem(made, name)}.svg)")
    for table in made.tables:
        rows = [_COLUMNS, tuple("---" for _ in _COLUMNS), *(_cells(row) for row in table.rows)]
        lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
        parts += [f"## {table.name}", table.caption, "\n".join(lines), *(f"- {note}" for note in _notes(table))]
    if made.remarks:
        parts += ["## Remarks", "\n".join(f"- {remark}" for remark in made.remarks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _alone(paper: str, name: str, chart: Chart) -> str:
    return render(
        title=f"{paper}, {name}",
        lead=chart.title,
        sections=[Section(name, charts=[chart])],
        internal=False,
    )


def _json(made: Reproduction, out: Path) -> str:
    return json.dumps(made.to_dict(within=out), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _summary(made: Reproduction) -> str:
    rows = [row for row in made.rows if row.published is not None]
    agree = sum(row.ok for row in rows)
    explained = sum(row.explained and not row.ok for row in rows)
    wrong = len(rows) - agree - explained
    parts = [f"{agree} of {len(rows)} published values and statements agree with what is computed here."]
    if explained:
        parts.append(
            f"{explained} others differ for a reason that is known: a slip of the paper, or what it does not tell. "
            "Each is named where it stands and under Remarks."
        )
    if wrong:
        parts.append(f"{wrong} DO NOT AGREE, for no known reason.")
    if len(rows) < len(made.rows):
        parts.append(f"{len(made.rows) - len(rows)} findings have no published counterpart.")
    return " ".join(parts)


def _grid(table: PaperTable) -> Grid:
    return Grid(_COLUMNS, [_cells(row) for row in table.rows])


def _cells(row: Row) -> tuple[str, ...]:
    computed = shown(row.computed, row.decimals)
    if row.sd is not None:
        computed += f" (sd {number(row.sd)})"
    difference = "" if row.difference is None else number(row.difference)
    verdict = "" if row.published is None else "yes" if row.ok else "explained" if row.explained else "NO"
    return row.item, shown(row.published, row.decimals), computed, difference, verdict


def _notes(table: PaperTable) -> list[str]:
    """The remarks of a table's rows, each once, with the rows that it is about."""
    about: dict[str, list[str]] = {}
    for row in table.rows:
        if row.remark:
            about.setdefault(row.remark, []).append(row.item)
    return [f"{listing(items, most=6)}: {remark}" for remark, items in about.items()]


def shown(content: Content | None, decimals: int | None) -> str:
    """A value for people, with the digits of print, and two more where it is not the same to these digits.

    >>> shown((24.7, 155.0), 2), shown(24.6982, 2), shown("no claim", None)
    ('24.70, 155.00', '24.6982', 'no claim')
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, tuple):
        return ", ".join(_shown(each, decimals) for each in content)
    return _shown(content, decimals)


def _shown(each: Number, decimals: int | None) -> str:
    if decimals is None:
        return number(float(each))
    digits = decimals if round(each, decimals) == each else decimals + 2
    return f"{each:.{digits}f}"
