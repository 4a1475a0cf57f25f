"""Dropping: columns that are not released at all."""

from __future__ import annotations

from rankveil.catalogue import EVERY_KIND, method


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
