"""Every method against Definition 4: is the user told everything but the seed, and what still protects then?"""

from __future__ import annotations

import tomllib
from pathlib import Path

from rankveil import catalogue
from rankveil.catalogue import Method
from sitebuilder.reference import grid

WHY: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""A sentence or two for each method; one that is not here is shown with what it tells users."""


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
            method.transparent.split(",")[0],
            secret_of(method),
            WHY.get(method.id, method.tells),
        )
        for method in catalogue.methods().values()
        if method.random is random
    ]
    return grid(("method", "transparent", "secret", "why"), rows)
