"""What a paper printed beside what comes out here: rows, tables, figures, and whether they agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rankveil.report.chart import Chart

REPRODUCE_SCHEMA = "rankveil/reproduce/1"

Number = int | float
Content = Number | str | tuple[Number, ...]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Row:
    """One published value (a number, several, or a statement) beside the computed one.

    A row that is not ok but has a remark is explained: by a slip of the paper, or by what the paper does not tell.
    """

    item: str
    published: Content | None
    """None: nothing is, the row is a finding of ours."""
    computed: Content
    ok: bool
    difference: float | None = None
    """The largest absolute difference; None where numbers cannot be compared."""
    remark: str | None = None
    sd: float | None = None
    """The standard deviation over replicates, where the computed value is their mean."""
    decimals: int | None = None
    """Digits after the point in print."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ok", bool(self.ok))  # numpy's bool is no bool to JSON

    @property
    def explained(self) -> bool:
        """Whether it agrees, or why it does not is known."""
        return self.ok or self.remark is not None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain: dict[str, Any] = {
            "item": self.item,
            "published": _plain(self.published),
            "computed": _plain(self.computed),
            "difference": self.difference,
            "ok": self.ok,
        }
        if self.sd is not None:
            plain["sd"] = self.sd
        if self.remark is not None:
            plain["remark"] = self.remark
        return plain


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper, or the numbers in the text of one of its sections."""

    name: str
    rows: Sequence[Row]
    caption: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"name": self.name, "rows": [row.to_dict() for row in self.rows]}


@dataclass(eq=False)
class Reproduction:
    """A paper's tables and figures again; for `all`, those of every paper."""

    paper: str
    tables: tuple[PaperTable, ...] = ()
    figures: Mapping[str, Chart] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    papers: tuple[Reproduction, ...] = ()
    """The single papers, when this is `all` of them."""
    citation: str = ""
    files: tuple[Path, ...] = ()
    """The figures that were written."""

    def __post_init__(self) -> None:
        named = [row.remark for table in self.tables for row in table.rows if row.remark]
        self.remarks = tuple(dict.fromkeys([*named, *self.remarks]))

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every comparison, in order."""
        own = [row for table in self.tables for row in table.rows]
        return (*own, *(row for paper in self.papers for row in paper.rows))

    @property
    def ok(self) -> bool:
        """Whether everything agrees but for differences that are explained."""
        return all(row.explained for row in self.rows)

    def to_dict(self, *, within: Path | None = None) -> dict[str, Any]:
        """The JSON document of `rankveil reproduce`; the paths of figures as written, or as seen from a folder."""
        if self.papers:
            papers = [paper.to_dict(within=within) for paper in self.papers]
            return {"schema": REPRODUCE_SCHEMA, "paper": self.paper, "papers": papers}
        return {
            "schema": REPRODUCE_SCHEMA,
            "paper": self.paper,
            "tables": [table.to_dict() for table in self.tables],
            "figures": [str(path if within is None else path.relative_to(within)) for path in self.files],
            "remarks": list(self.remarks),
        }

    def write(self, out: str | Path) -> tuple[Path, ...]:
        """Write a page, the figures (SVG and HTML) and the JSON document into a folder, together or not at all."""
        from rankveil.papers import writing

        return writing.write(self, Path(out))

    def __repr__(self) -> str:
        agree = sum(row.ok for row in self.rows)
        return f"Reproduction({self.paper}, {agree} of {len(self.rows)} values agree{'' if self.ok else ', NOT ok'})"


class Run(Protocol):
    """Computes a paper's tables and figures; `data` is a folder with what cannot be made up or embedded."""

    def __call__(self, *, data: Path | None = None, progress: Progress | None = None) -> Reproduction: ...


@dataclass(frozen=True)
class Paper:
    """What a module of this room declares as `PAPER`."""

    name: str
    citation: str
    run: Run
    needs: tuple[str, ...] = ()
    """Files that must lie in the folder of data."""

    def lacks(self, data: Path | None) -> str | None:
        """What it cannot run without, in a sentence; None when all is there."""
        missing = [name for name in self.needs if data is None or not (data / name).is_file()]
        if not missing:
            return None
        return f"{self.name} needs {' and '.join(missing)}; give the folder that holds it with --data"


def _plain(content: Content | None) -> Any:
    return list(content) if isinstance(content, tuple) else content
