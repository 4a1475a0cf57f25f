"""A run at work: its inputs, its outputs, and how far it is."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankveil.errors import FileError
from rankveil.report.page import Section
from rankveil.web.declared import Declared
from rankveil.web.rendering import sections_html
from rankveil.web.runs import Run, Runs
from rankveil.web.sources import Opened, Source, Sources, open_table
from rankveil.web.workspace import Workspace, write_bytes, write_json

_OFTEN = 0.25
"""Seconds between two notes of how far the work is."""


class Progress:
    """Writes down how far the work is, not more often than people can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stage = ""
        self._last = 0.0

    def stage(self, words: str) -> None:
        """A new part of the work."""
        self._stage, self._last = words, 0.0
        self(0, 0)

    def __call__(self, done: int, total: int) -> None:
        """So much is done of so much."""
        now = time.monotonic()
        if now - self._last >= _OFTEN or done == total:
            self._last = now
            write_json(self._path, {"stage": self._stage, "done": done, "total": total})


@dataclass(frozen=True)
class Job:
    """A run at work: where its inputs are and where its outputs go."""

    run: Run
    folder: Path
    sources: Sources
    runs: Runs
    progress: Progress

    @classmethod
    def of(cls, folder: Path, run: Run) -> Job:
        """From the run's folder in the workspace."""
        workspace = Workspace(folder.parent.parent)
        return cls(run, folder, Sources(workspace), Runs(workspace), Progress(folder / "progress.json"))

    def source(self, id: str) -> Source:
        """A table of the workspace."""
        found = self.sources.find(id)
        if found is None:
            raise FileError("the table is not in the workspace any more")
        return found

    def original(self) -> Opened:
        """The table, with what was declared of it when the run was asked for."""
        self.progress.stage("reading the table")
        source = self.source(self.run.source)
        return open_table(self.sources.path(source), Declared.of(self.run.declared), name=source.name)

    def add(self, name: str, content: str) -> None:
        """Write an output."""
        write_bytes(self.folder / name, content.encode("utf-8"))

    def finish(self, content: Mapping[str, Any], outputs: Mapping[str, Mapping[str, Any]], **more: Any) -> None:
        """Write down that the work is done, as the last thing."""
        write_json(self.folder / "result.json", plain({"content": content, "outputs": outputs, **more}))

    def show(self, sections: list[Section]) -> None:
        """Keep what the page shows."""
        self.add("view.html", sections_html(sections))


def output(title: str, name: str, *, private: bool, text: str = "") -> dict[str, Any]:
    """What a page says of an output."""
    return {"title": title, "name": name, "private": private, "text": text}


def plain(value: Any) -> Any:
    """Plain JSON data: infinite and undefined numbers as None."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return [plain(each) for each in (value.tolist() if hasattr(value, "tolist") else value)]
