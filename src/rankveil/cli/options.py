"""The options that several verbs share, with their help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from rankveil.cli import words

READING, MATCHING = "What the columns are", "Which record is which"

Original = Annotated[str, typer.Argument(metavar="ORIGINAL", help="The original table.", show_default=False)]
Masked = Annotated[str, typer.Argument(metavar="MASKED", help="The released table.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else there.")]
Report = Annotated[str | None, typer.Option("--report", metavar="F.html", help="Also write a page (for internal use).")]
Public = Annotated[
    bool, typer.Option("--public", help="The page without what could harm: no original value, no record named.")
]
Draws = Annotated[
    int | None,
    typer.Option(
        "--draws", metavar="N", help="Random records for the null distribution, when all are too many. [10000]"
    ),
]


@dataclass(frozen=True)
class Reading:
    """How files are read and what a person declares of their columns."""

    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", metavar="A,B", help="The columns to use. [numeric, ordinal; nominal given a role]"),
    ] = None
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="A=KIND",
            help="numeric, ordinal or nominal; the order of words: 'A=ordinal:low<middle<high'.",
        ),
    ] = None
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role", metavar="A=ROLE", help="identifier, quasi-identifier, confidential, weight, group or other."
        ),
    ] = None
    roles: Annotated[
        str | None,
        typer.Option("--roles", metavar="F.toml", help="Kinds and roles from a file; the flags win over it."),
    ] = None
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(
            "--hierarchy",
            metavar="A=F.csv",
            help="What the categories of a nominal column belong to, in lines like Ulm;South;Germany. Repeatable.",
        ),
    ] = None
    missing: Annotated[
        list[str] | None, typer.Option("--missing", metavar="n/a,-9", help="What stands for a missing cell.")
    ] = None
    separator: Annotated[
        str | None, typer.Option("--separator", metavar="SIGN", help="The separator of a CSV file. [detected]")
    ] = None
    decimal: Annotated[
        str | None, typer.Option("--decimal", metavar="SIGN", help="The decimal mark of a CSV file. [detected]")
    ] = None
    encoding: Annotated[
        str | None, typer.Option("--encoding", metavar="NAME", help="The encoding of a CSV file. [detected]")
    ] = None

    @property
    def chosen(self) -> list[str] | None:
        """The columns of --columns."""
        return words.chosen(self.columns, option="--columns")

    @property
    def told(self) -> list[str]:
        """What was declared of the file and its columns, as options of another command; not which columns to use."""
        made: list[str] = []
        for option in ("kind", "role", "hierarchy", "missing"):
            for given in getattr(self, option) or ():
                made += [f"--{option}", given]
        for option in ("roles", "separator", "decimal", "encoding"):
            if getattr(self, option) is not None:
                made += [f"--{option}", getattr(self, option)]
        return made


@dataclass(frozen=True)
class Matching:
    """How original and masked records belong together."""

    key: Annotated[
        str | None, typer.Option("--key", metavar="COL", help="Match records by this column. [by their order]")
    ] = None
    no_mapping: Annotated[bool, typer.Option("--no-mapping", help="Records do not correspond (synthetic data).")] = (
        False
    )
    secret: Annotated[
        str | None,
        typer.Option("--secret", metavar="F", help="The secret of the release: the mapping when rows were reordered."),
    ] = None
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="For ties and samples; not secret.", show_default=True)
    ] = 0


def draws_given(draws: int | None) -> dict[str, Any]:
    """The argument `draws`, or nothing to leave the default to the function."""
    return {} if draws is None else {"draws": draws}


def report_told(path: str, *, public: bool) -> str:
    """Where the page is, and whether it may be shown."""
    return f"report: {path}" + ("" if public else " (for internal use)")
