"""The page of an attack and the part that shows a certificate, from plain data: the finding in words first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankveil.report import figures
from rankveil.report.chart import Array
from rankveil.report.look import number
from rankveil.report.page import Grid, Section, notes_section, render

_MOST_EXPOSED = 50
"""Records listed on a page; all are counted."""
_MOST_DISTANCES = 40
"""Distances listed in a table; with more there is only the figure."""

_UNLIKELY = 0.05
"""A p-value of the comparison as a whole below which a page must not say that all looks like chance."""


def attack_page(
    content: Mapping[str, Any],
    observed: Array,
    null: tuple[Array, Array],
    *,
    command: str | None = None,
    public: bool = False,
) -> str:
    """The page of an attack: its JSON document, a distance per record, and of the random ones (distances, shares)."""
    return render(
        title="A release under attack",
        lead=attack_words(content),
        sections=attack_sections(content, observed, null, public=public),
        internal=not public,
        command=command,
    )


def attack_words(content: Mapping[str, Any]) -> str:
    """An attack in a few sentences."""
    n, claims, right, counts = asked(content), content["claims"], content["claims_right"], content["counts"]
    said = ["The intruder knows every original and every released record, but not which belongs to which."]
    if n < content["records"]:
        said.append(f"Drawn were {n} of {content['records']} records, and each was linked with all released ones.")
    if counts["correct"] is not None:
        said.append(
            f"Of {n} records, {counts['correct']} find their own released record as their only nearest one, "
            f"{counts['multiple']} find several, {counts['wrong']} another one."
        )
    else:
        said.append(f"Of {n} records, {counts['multiple']} find several equally near released records.")
    if claims:
        told = "" if right is None else f", {right} of them rightly"
        said.append(f"The intruder can claim {claims} of {n} matches as closer than chance explains{told}.")
    else:
        said.append("No single match is closer than chance explains, so the intruder can claim none, right or wrong.")
        if content["ks_p"] < _UNLIKELY:
            said.append(
                "All together the real records' distances do differ from those of random ones "
                f"(Kolmogorov-Smirnov p-value {number(content['ks_p'])})."
            )
        said += _without_claims(content)
    subsets = content.get("subsets")
    if subsets:
        best = subsets["best"]
        told = (
            f"by {', '.join(best['attributes'])} alone {best['claims']} can be claimed" if best["claims"] else "nothing"
        )
        said.append(f"With the best of {subsets['tried']} subsets of attributes: {told}.")
    return " ".join([*said, _verdict(content)])


def _without_claims(content: Mapping[str, Any]) -> list[str]:
    """What the links are worth though none can be claimed: how often they are right, beside blind guesses."""
    from scipy.stats import binom

    n, right, records = asked(content), content["counts"]["correct"], content["records"]
    if right is None:
        return []
    bets = f"ets on the nearest record are right for {right} of {n}; blind guesses would be for {number(n / records)}"
    if binom.sf(right - 1, n, 1 / records) > _UNLIKELY:
        return [f"B{bets} on average, so they are no better than chance."]
    return [f"But b{bets} on average: the release does tell who is who for some, though not for whom."]


def asked(content: Mapping[str, Any]) -> int:
    """How many records were linked: all of them, or those that were drawn."""
    return int(content.get("subjects", content["records"]))


def _verdict(content: Mapping[str, Any]) -> str:
    """The verdict, which is strict, and how much a claim that broke the rule shows."""
    attack = "the known-plaintext attack"
    if content["withstands"]:
        return f"The release withstands {attack}."
    found = [content, (content.get("subsets") or {}).get("best", {})]
    chances = [one.get("claims_right_by_guessing") for one in found]
    known = [chance for chance in chances if chance is not None]
    if not known or min(known) <= _UNLIKELY:
        return f"The release does NOT withstand {attack}."
    return (
        f"By the strict rule, no claim at all, the release does not withstand {attack}. But blind guesses are right as "
        f"often with probability {number(min(known))}, so these claims do not show that anybody can be found; and were "
        f"all records random, {100 * content['fdr']:g} % of attacks would still end with some claim."
    )


def attack_sections(
    content: Mapping[str, Any], observed: Array, null: tuple[Array, Array], *, public: bool = False
) -> list[Section]:
    """The parts of a page that show an attack; which records can be claimed is not for the public."""
    n, claims = asked(content), content["claims"]
    chart = figures.match_distances(
        observed, null, n=n, draws=content["draws"], claims=claims, withstands=claims == 0, public=public
    )
    drawn = "every one" if content["exhaustive"] else "a sample"
    parts = [
        Section(
            "Real records against random ones",
            "A random record takes each value from another person. When real records find a match no nearer than "
            f"random ones do, a match proves nothing. The random records are {drawn} of all that are possible.",
            charts=[chart],
            tables=[*([] if public else _distances(content)), Grid(("", "value"), _comparison(content))],
        ),
        Section(
            "Which attributes moved least",
            "The mean rank distance of the matches; the smaller, the more an attribute helps the intruder.",
            tables=[Grid(("attribute", "mean distance"), list(content["mean_distance"].items()))],
        ),
    ]
    exposed = [] if public else most_exposed(content["links"], claims=claims)
    if exposed:
        more = f" The {_MOST_EXPOSED} most exposed of {claims} are listed." if claims > _MOST_EXPOSED else ""
        rows = [
            (link["original"], ", ".join(map(str, link["masked"][:5])), link["distance"], link["p_value"])
            for link in exposed[:_MOST_EXPOSED]
        ]
        parts.append(
            Section(
                "Matches that can be claimed",
                f"At a false discovery rate of {content['fdr']:g}.{more}",
                tables=[Grid(("original record", "released record", "distance", "p-value"), rows)],
            )
        )
    return [*parts, *notes_section(content["notes"])]


def most_exposed(links: Sequence[Mapping[str, Any]], *, claims: int) -> list[Mapping[str, Any]]:
    """The claimed links, the surest first: Benjamini and Hochberg claim those of the smallest p-values."""
    return sorted(links, key=lambda link: (link["p_value"], link["original"]))[:claims] if claims else []


def certificate_section(content: Mapping[str, Any]) -> Section:
    """The part of a page that shows a certificate."""
    rows = list(zip(content["attributes"], content["largest"]["d"], content["largest"]["v"], strict=True))
    return Section(
        "Permuted privacy",
        "The largest permutation distance d that every record has, and the smallest diversity v "
        f"({content['diversity']}) among the released values within d of a record's own.",
        tables=[Grid(("attribute", "d", "v"), rows)],
        notes=content["notes"],
    )


def _distances(content: Mapping[str, Any]) -> list[Grid]:
    distances = sorted({*content["observed"], *content["null"]}, key=float)
    if len(distances) > _MOST_DISTANCES:
        return []
    rows = [(each, content["observed"].get(each, 0.0), content["null"].get(each, 0.0)) for each in distances]
    return [Grid(("distance", "share of real records", "share of random records"), rows)]


def _comparison(content: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [
        ("Hellinger distance of the two", content["hellinger"]),
        ("p-value of the Kolmogorov-Smirnov test", content["ks_p"]),
        ("random records", content["draws"]),
    ]
