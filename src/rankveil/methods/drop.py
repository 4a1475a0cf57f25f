"""Dropping: columns that are not released at all."""

from __future__ import annotations

from typing import Any

from rankveil.catalogue import EVERY_KIND, method
from rankveil.likelihood import Records


@method(
    title="Dropping columns",
    source="common practice",
    works_on="names",
    kinds=EVERY_KIND,
    role="identifier",
    by_parts=True,
    tells="the columns dropped are named in the manifest, with their kinds and nothing else",
)
def drop(names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns are left out of the release: those that were given the role identifier, or those named."""
    return names


@drop.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Records:
    """A column that is not there says nothing."""
    return Records()
