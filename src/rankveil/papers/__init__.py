"""The papers' tables and figures again, published value beside ours: one file per paper.

A module of this room that declares `PAPER` is found by itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from rankveil.errors import FileError, ParameterError, suggestion
from rankveil.papers import writing
from rankveil.papers.result import Paper, PaperTable, Progress, Reproduction, Row

__all__ = ["ALL", "Paper", "PaperTable", "Reproduction", "Row", "papers", "reproduce"]

ALL = "all"
_PARTS = 1000
"""Steps of progress that each of several papers counts for."""


@cache
def papers() -> Mapping[str, Paper]:
    """Every paper that can be reproduced, by its short name."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        paper = getattr(importlib.import_module(f"{__name__}.{info.name}"), "PAPER", None)
        if isinstance(paper, Paper):
            found[paper.name] = paper
    return MappingProxyType(dict(sorted(found.items())))


def reproduce(
    paper: str,
    *,
    data: str | Path | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """A paper's tables and figures by its short name, or those of `all`; with `out`, written into that folder."""
    known = papers()
    if paper != ALL and paper not in known:
        raise ParameterError(f"there is no paper {paper}{suggestion(paper, [*known, ALL])}")
    folder = None if data is None else Path(data)
    if folder is not None and not folder.is_dir():
        raise FileError(f"{folder}: there is no such folder of data")
    if out is not None:
        writing.check_folder(Path(out))
    made = _all(known, folder, progress) if paper == ALL else _one(known[paper], folder, progress)
    if out is not None:
        made.write(out)
    return made


def _one(paper: Paper, folder: Path | None, progress: Progress | None) -> Reproduction:
    lacking = paper.lacks(folder)
    if lacking is not None:
        raise FileError(lacking)
    return paper.run(data=folder, progress=progress)


def _all(known: Mapping[str, Paper], folder: Path | None, progress: Progress | None) -> Reproduction:
    """Every paper whose data are there; of the others, last, what they lack."""
    lacking = {name: paper.lacks(folder) for name, paper in known.items()}
    able = [paper for name, paper in known.items() if lacking[name] is None]
    runs = enumerate(able)
    made = [one.run(data=folder, progress=_part(progress, place, len(able))) for place, one in runs]
    for name, why in lacking.items():
        if why is not None:
            made.append(Reproduction(name, citation=known[name].citation, remarks=(f"left out: {why}",)))
    return Reproduction(ALL, papers=tuple(made))


def _part(progress: Progress | None, place: int, parts: int) -> Progress | None:
    """The progress of one of several papers as progress of the whole."""
    if progress is None:
        return None

    def within(done: int, total: int) -> None:
        progress(_PARTS * place + _PARTS * done // max(total, 1), _PARTS * parts)

    return within
