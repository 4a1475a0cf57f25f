"""The plan that is being built for a table, step by step, with every earlier form of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rankveil.errors import FileError, ParameterError
from rankveil.plans import Plan, Step
from rankveil.web.workspace import Workspace, read_json, write_json

_MOST = 200
"""Forms of a plan that are kept."""

Steps = tuple[Step, ...]


class Draft:
    """A plan that may be empty, at one place of its history."""

    def __init__(self, history: Sequence[Sequence[dict[str, Any]]], at: int) -> None:
        self.history = [list(steps) for steps in history] or [[]]
        self.at = min(max(at, 0), len(self.history) - 1)

    @property
    def plan(self) -> Plan | None:
        """The plan as it is now; None when it has no step."""
        steps = self.history[self.at]
        return Plan.from_dict({"steps": steps}) if steps else None

    @property
    def steps(self) -> Steps:
        """Its steps."""
        return self.plan.steps if self.plan else ()

    @property
    def can_undo(self) -> bool:
        """Whether there is an earlier form."""
        return self.at > 0

    @property
    def can_redo(self) -> bool:
        """Whether a form was undone."""
        return self.at < len(self.history) - 1

    def changed(self, steps: Sequence[Step]) -> Draft:
        """With other steps; what was undone before is forgotten."""
        plain = [step.to_dict() for step in steps]
        kept = [*self.history[: self.at + 1], plain][-_MOST:]
        return Draft(kept, len(kept) - 1)

    def moved(self, by: int) -> Draft:
        """Earlier (-1) or later (1) in its history."""
        return Draft(self.history, self.at + by)


class Drafts:
    """The drafts of all tables of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._guard = threading.Lock()

    def get(self, source: str) -> Draft:
        """The draft of a table, empty at first."""
        plain = read_json(self._path(source)) or {}
        return Draft(plain.get("history", [[]]), int(plain.get("at", 0)))

    def change(self, source: str, how: Callable[[Draft], Draft]) -> Draft:
        """Change a draft and keep it, unless its table is gone."""
        with self._guard:
            if not self._workspace.folder("data", source).exists():
                raise FileError("the table is not in the workspace any more")
            made = how(self.get(source))
            write_json(self._path(source), {"history": made.history, "at": made.at})
            return made

    def remove(self, source: str) -> None:
        """Forget the draft of a table."""
        with self._guard:
            self._path(source).unlink(missing_ok=True)

    def _path(self, source: str) -> Path:
        return self._workspace.folder("plans", source).with_suffix(".json")


def added(step: Step, *, at: int | None = None) -> Callable[[Draft], Draft]:
    """One more step at the end, or another one in the place of step `at`."""

    def how(draft: Draft) -> Draft:
        steps = list(draft.steps)
        if at is None:
            return draft.changed([*steps, step])
        steps[_place(draft, at)] = step
        return draft.changed(steps)

    return how


def removed(at: int) -> Callable[[Draft], Draft]:
    """Without a step."""

    def how(draft: Draft) -> Draft:
        steps = list(draft.steps)
        del steps[_place(draft, at)]
        return draft.changed(steps)

    return how


def swapped(at: int, by: int) -> Callable[[Draft], Draft]:
    """A step one place earlier (-1) or later (1)."""

    def how(draft: Draft) -> Draft:
        steps = list(draft.steps)
        one, other = _place(draft, at), _place(draft, at + by)
        steps[one], steps[other] = steps[other], steps[one]
        return draft.changed(steps)

    return how


def _place(draft: Draft, at: int) -> int:
    if not 0 <= at < len(draft.steps):
        raise ParameterError("there is no such step in the plan any more")
    return at
