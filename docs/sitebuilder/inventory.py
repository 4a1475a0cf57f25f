"""Every method against Definition 4: is the user told everything but the seed, and what still protects then?"""

from __future__ import annotations

import tomllib
from pathlib import Path

from rankveil import catalogue
from rankveil.catalogue import Method
from sitebuilder.reference import grid

_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
IN_PART: dict[str, str] = _TOLD.pop("in_part")
"""What the user is not given, though it is no seed."""
WHY: dict[str, str] = _TOLD
"""A sentence or two for each method; one that is not here is shown with what it tells users."""


def verdict(method: Method) -> str:
    """Whether the user is given everything but the seed."""
    return "in part" if method.id in IN_PART else method.transparent.split(",")[0]


def secret_of(method: Method) -> str:
    """What stays secret when everything is published that Definition 4 asks for."""
    if method.id == "pseudonymise":
        return "the key"
    if method.reproducible_with:
        return "the noise"
    return "the seed" if method.random else "nothing"


def table(*, random: bool) -> str:
    """The methods with a secret, or those without one, as a table in Markdown."""
    rows = [
        (
            f"[{method.id}](reference/methods/{method.id}.html)",
            verdict(method),
            secret_of(method),
            " ".join(filter(None, (WHY.get(method.id, method.tells), IN_PART.get(method.id)))),
        )
        for method in catalogue.methods().values()
        if method.random is random
    ]
    return grid(("method", "transparent", "secret", "why"), rows)
