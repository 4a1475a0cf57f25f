"""rankveil measures: the catalogue of measures."""

from __future__ import annotations

from rankveil.cli import output
from rankveil.cli.options import AsJson

EXAMPLE = "rankveil measures"


def measures(*, as_json: AsJson = False) -> int:
    """List the measures of a release.

    With their bounds, which direction is better, the kinds of columns they take, and whether they use weights.
    """
    from rankveil import catalogue

    described = [entry.describe() for entry in catalogue.measures().values()]
    if as_json:
        output.emit(described)
        return 0
    output.grid(
        ("id", "title", "family", "better", "bounds", "columns", "needs mapping", "uses weights", "source"),
        [
            (
                each["id"],
                each["title"],
                each["family"],
                each["better"],
                " to ".join("no limit" if bound is None else f"{bound:g}" for bound in each["bounds"]),
                output.kinds(each["kinds"]),
                each["needs_mapping"],
                each["weighted"],
                each["source"],
            )
            for each in described
        ],
    )
    return 0
