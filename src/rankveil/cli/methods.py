"""rankveil methods: the catalogue of masking methods."""

from __future__ import annotations

from rankveil.cli import output
from rankveil.cli.options import AsJson

EXAMPLE = "rankveil methods"


def methods(*, as_json: AsJson = False) -> int:
    """List the masking methods.

    With their parameters and facts, post-steps included.
    """
    from rankveil import catalogue

    described = [entry.describe() for entry in catalogue.methods().values()]
    if as_json:
        output.emit(described)
        return 0
    for title, post in (("Methods", False), ("Steps after a method (--then)", True)):
        output.say(f"{title}:")
        output.grid(
            ("id", "title", "strength", "mapping", "marginals", "random", "transparent", "source"),
            [
                (
                    each["id"],
                    each["title"],
                    each["strength"] or "-",
                    each["mapping"],
                    each["marginals"],
                    each["random"],
                    each["transparent"],
                    each["source"],
                )
                for each in described
                if each["post_step"] is post
            ],
        )
        output.gap()
    output.say("Columns that they take:")
    output.grid(("method", "kinds"), [(each["id"], output.kinds(each["kinds"])) for each in described])
    output.gap()
    output.say("Parameters:")
    output.grid(
        ("method", "parameter", "default", "what it is"),
        [
            (each["id"], given["name"], _default(given), given["text"])
            for each in described
            for given in each["parameters"]
        ],
    )
    return 0


def _default(given: dict[str, object]) -> str:
    if given["required"]:
        return "needed"
    return "none" if given["default"] in (None, ()) else str(given["default"])
