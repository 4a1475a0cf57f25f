"""Runs: one piece of work each, in a folder that says what was asked, how far it is, and what came out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from rankveil.errors import FileError
from rankveil.web.workspace import Workspace, is_file_name, new_id, read_json, write_json

Kind = Literal["mask", "audit", "attack", "compare", "certify"]
Status = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]

UNDER_WAY = ("queued", "running")
CAN_RESUME = ("interrupted", "cancelled", "failed")


@dataclass(frozen=True)
class Run:
    """What was asked, and how it stands."""

    id: str
    kind: Kind
    source: str
    """The table."""
    settings: Mapping[str, Any]
    status: Status = "queued"
    made: float = 0.0
    started: float | None = None
    ended: float | None = None
    release: str | None = None
    """The masking whose release this is about, when it is one of this workspace."""
    after: str | None = None
    """The run that must be done first."""
    declared: Mapping[str, Any] = field(default_factory=dict)
    """What was declared of the table when this was asked."""

    @property
    def under_way(self) -> bool:
        """Whether it is waiting or working."""
        return self.status in UNDER_WAY

    @property
    def can_resume(self) -> bool:
        """Whether it could go on."""
        return self.status in CAN_RESUME


class Runs:
    """All runs of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def new(
        self,
        kind: Kind,
        source: str,
        settings: Mapping[str, Any],
        *,
        declared: Mapping[str, Any],
        release: str | None = None,
        after: str | None = None,
    ) -> Run:
        """Keep what is asked; it waits until it is started."""
        run = Run(
            id=new_id(),
            kind=kind,
            source=source,
            settings=settings,
            made=time.time(),
            release=release,
            after=after,
            declared=declared,
        )
        self.folder(run).mkdir(mode=0o700)
        self.keep(run)
        return run

    def folder(self, run: Run) -> Path:
        """Where everything of a run lies."""
        return self._workspace.folder("runs", run.id)

    def keep(self, run: Run) -> Run:
        """Write down how a run stands."""
        write_json(self.folder(run) / "run.json", asdict(run))
        return run

    def find(self, id: str) -> Run | None:
        """The run of that ID, or None."""
        try:
            return read_run(self._workspace.folder("runs", id))
        except FileError:
            return None

    def all(self, *, source: str | None = None, kind: Kind | None = None, release: str | None = None) -> list[Run]:
        """The latest first; all, or those of one table, kind or release."""
        found = [run for id in self._workspace.ids("runs") if (run := self.find(id)) is not None]
        wanted = [
            run
            for run in found
            if source in (None, run.source) and kind in (None, run.kind) and release in (None, run.release)
        ]
        return sorted(wanted, key=lambda run: -run.made)

    def progress(self, run: Run) -> dict[str, Any]:
        """How far it is: stage, done, total."""
        return read_json(self.folder(run) / "progress.json") or {}

    def result(self, run: Run) -> dict[str, Any]:
        """What came out."""
        return read_json(self.folder(run) / "result.json") or {}

    def failure(self, run: Run) -> str | None:
        """Why it failed, in one sentence."""
        told = read_json(self.folder(run) / "failure.json")
        return str(told["sentence"]) if told and "sentence" in told else None

    def text(self, run: Run, name: str) -> str:
        """A text among its files, empty when it is not there."""
        try:
            return (self.folder(run) / name).read_text(encoding="utf-8")
        except OSError:
            return ""

    def output(self, run: Run, name: str) -> tuple[Path, dict[str, Any]] | None:
        """The file of an output that the run declares, and what it says of it; nothing else is ever handed out."""
        declared = self.result(run).get("outputs", {})
        if not is_file_name(name) or name not in declared:
            return None
        path = self.folder(run) / name
        if path.is_symlink() or not path.is_file():
            return None
        return path, declared[name]

    def about(self, run: Run) -> list[Run]:
        """The audits, attacks and certificates of a masking, which mean nothing without it."""
        return [other for other in self.all(source=run.source) if run.id in (other.release, other.after)]

    def remove(self, run: Run) -> None:
        """Delete a run and whatever came out of it."""
        self._workspace.remove("runs", run.id)

    def settle(self) -> None:
        """After a restart: what has its result is done, and what was waiting or working was interrupted."""
        for run in self.all():
            if run.under_way:
                done = (self.folder(run) / "result.json").exists()
                self.keep(replace(run, status="done" if done else "interrupted", ended=time.time()))


def read_run(folder: Path) -> Run | None:
    """The run in a folder, or None when there is none."""
    plain = read_json(folder / "run.json")
    if plain is None or plain.get("id") != folder.name or plain.get("kind") not in get_args(Kind):
        return None
    return Run(**{name: plain[name] for name in Run.__dataclass_fields__ if name in plain})
