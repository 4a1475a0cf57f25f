"""The page of an attack and the part that shows a certificate, from plain data: the finding in words first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankveil.report import figures
from rankveil.report.chart import Array, Chart
from rankveil.report.decision import attack_opening
from rankveil.report.look import number
from rankveil.report.page import Grid, Section, notes_section, render

_MOST_EXPOSED = 50
"""Records listed on a page; all are counted."""
_MOST_DISTANCES = 40
"""Distances listed in a table; with more there is only the figure."""

_EVIDENCE = {
    "likelihood": "the probability of the released values",
    "structure": "what follows from values that change places in pairs",
    "low_bits": "the last digits of computed numbers",
    "cells_left": "the cells that suppression left",
    "row_order": "the order of the rows",
}
_SOURCES = {
    "manifest": "as the manifest states it",
    "learned": "learned from the two tables",
    "simulated": "learned from simulated releases",
}


@dataclass(frozen=True, eq=False)
class AttackPictures:
    """What the figures of an attack are drawn from; whatever is missing is not drawn."""

    people: tuple[Array, Array | None] | None = None
    """For every person the probability of the best link, and whether it is right, where that is known."""
    chance: tuple[Array, Array, Array] | None = None
    """Of the paper's test: a distance for each record, and the random ones' distances with their shares."""


def attack_page(
    content: Mapping[str, Any], pictures: AttackPictures, *, command: str | None = None, public: bool = False
) -> str:
    """The page of an attack, from its JSON document; a public one holds nothing of single records."""
    return render(
        title="A release under attack",
        lead=attack_words(content),
        sections=attack_sections(content, pictures, public=public),
        internal=not public,
        command=command,
        opening=attack_opening(content),
    )


def attack_words(content: Mapping[str, Any]) -> str:
    """An attack in a few sentences: who is found first, then the verdict, then what it rests on."""
    said = [content["sentence"]]
    found = content["found"]
    if content["verdict"] is not None:
        said.append(_verdict(content))
        low, high = found["interval"]
        measured = "measured" if found["right"] is not None else "as he expects"
        who = f"{found['of']:,} {'person' if found['of'] == 1 else 'people'}"
        said.append(
            f"Found are {number(100 * found['share'])} % of {who} ({measured}; 95 % interval "
            f"{number(100 * low)} to {number(100 * high)} %); blind guessing finds {number(100 * found['guessing'])} %."
        )
        claims, right = content["claims"], content["claims_right"]
        if claims:
            told = "" if right is None else f"; {_amount(right)} right"
            said.append(f"He can claim {_links(claims)} and expects at most 5 % of them to be wrong{told}.")
        else:
            said.append("There is no set of links that he can claim and expect 95 % of to be right.")
    elif found is not None:
        low, high = found["interval"]
        said.append(f"The 95 % interval of that share is {number(100 * low)} to {number(100 * high)} %.")
    if "worst" in content:
        worst = content["worst"]
        sure = f", {worst['certain']:,} of them with certainty" if worst["certain"] else ""
        said.append(
            f"Somebody who knows all originals finds {number(100 * worst['found']['share'])} %{sure}: the worst case."
        )
    return " ".join(said)


def _verdict(content: Mapping[str, Any]) -> str:
    limit = f"at most {number(100 * content['limit'])} % found, nobody with certainty"
    if content["verdict"] == "holds":
        return f"The release holds against this intruder by the limit asked for ({limit})."
    why = []
    if content["found"]["share"] > content["limit"]:
        why.append("more people are found than that")
    if content["certain"]:
        why.append(f"{_links(content['certain'])} {'is' if content['certain'] == 1 else 'are'} certain")
    return f"The release FAILS ({limit}): {' and '.join(why)}."


def _links(many: int) -> str:
    return "1 link" if many == 1 else f"{many:,} links"


def _amount(right: float) -> str:
    """How many are right; equal records that share a bet make fractions."""
    return f"{right:,.1f}" if right != int(right) else f"{int(right):,}"


def attack_charts(content: Mapping[str, Any], pictures: AttackPictures, *, public: bool = False) -> list[Chart]:
    """How sure the intruder is, person by person; nothing of it is for the public."""
    if pictures.people is None or public or not pictures.people[0].size:
        return []
    return [figures.link_probabilities(*pictures.people)]


def attack_sections(content: Mapping[str, Any], pictures: AttackPictures, *, public: bool = False) -> list[Section]:
    """The parts of a page that show an attack; single records are not for the public."""
    parts = []
    evidence = content.get("evidence") or ()
    if evidence:
        tables = [Grid(("evidence", "people found by it alone", "certain", ""), evidence_rows(content))]
        if "worst" in content:
            pairs = (("the scenario", content), ("knows all originals", content["worst"]))
            tables.append(
                Grid(
                    ("who", "knows", "people found", "certain"),
                    [(who, _known(one["knows"]), _share(one["found"]["share"]), one["certain"]) for who, one in pairs],
                )
            )
        parts.append(
            Section(
                "How people are found",
                "Each kind of evidence by itself; together they find at least as many. "
                + ("" if content.get("calibrated") else "Probabilities are not calibrated here: nothing was drawn."),
                charts=attack_charts(content, pictures, public=public),
                tables=tables,
            )
        )
    parts += _paper_sections(content, pictures, public=public)
    return [*parts, *notes_section(content["notes"])]


def evidence_rows(content: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Each kind of evidence, what it finds by itself, and why."""
    return [
        (_evidence(each), _share(each["found"]), each["certain"], each.get("why", ""))
        for each in content.get("evidence") or ()
    ]


def _evidence(each: Mapping[str, Any]) -> str:
    words = _EVIDENCE.get(each["id"], each["id"])
    return f"{words}, {_SOURCES[each['from']]}" if each.get("from") in _SOURCES else words


def _share(found: float | None) -> str:
    return "not known" if found is None else f"{number(100 * found)} %"


def _known(knows: Mapping[str, Any]) -> str:
    people = "everybody" if knows["people"] == 1 else f"{number(100 * knows['people'])} % of the people"
    return f"{', '.join(knows['columns'])}; {people}"


def _paper_sections(content: Mapping[str, Any], pictures: AttackPictures, *, public: bool) -> list[Section]:
    """The paper's own test, under its own name."""
    chance = content.get("chance")
    if chance is None or pictures.chance is None:
        return []
    observed, at, shares = pictures.chance
    n, claims = asked(content), chance["claims"]
    chart = figures.match_distances(
        observed, (at, shares), n=n, draws=content["draws"], claims=claims, withstands=claims == 0, public=public
    )
    drawn = "every one" if content["exhaustive"] else "a sample"
    parts = [
        Section(
            "The paper's own test",
            "Domingo-Ferrer and Muralidhar (2016) ask whether the nearest released record is nearer than a record of "
            "independent values would come. That is not whether a link is right, so this is no verdict: ties, "
            "dependent columns and published parameters mislead it in both directions. "
            f"{_paper_words(content)} The random records are {drawn} of all that are possible.",
            charts=[chart],
            tables=[*([] if public else _distances(chance)), Grid(("", "value"), _comparison(content))],
        ),
        Section(
            "Which attributes moved least",
            "The mean rank distance of the nearest records; the smaller, the more an attribute helps the intruder.",
            tables=[Grid(("attribute", "mean distance"), list(content["mean_distance"].items()))],
        ),
    ]
    exposed = [] if public else most_exposed(content["links"], claims=claims)
    if exposed:
        more = f" The {_MOST_EXPOSED} nearest of {claims} are listed." if claims > _MOST_EXPOSED else ""
        rows = [
            (link["original"], ", ".join(map(str, link["masked"][:5])), link["distance"], link["p_value"])
            for link in exposed[:_MOST_EXPOSED]
        ]
        parts.append(
            Section(
                "Matches that the paper's test calls nearer than chance",
                f"At a false discovery rate of {content['fdr']:g}.{more}",
                tables=[Grid(("original record", "released record", "distance", "p-value"), rows)],
            )
        )
    return parts


def _paper_words(content: Mapping[str, Any]) -> str:
    """What the paper's test says, in its own terms."""
    n, counts, chance = asked(content), content["counts"], content["chance"]
    said = []
    if n < content["records"]:
        said.append(f"Drawn were {n} of {content['records']} records, each linked with all released ones.")
    if counts["correct"] is not None:
        said.append(
            f"Of {n} records, {counts['correct']} have their own released record as their only nearest one, "
            f"{counts['multiple']} have several, {counts['wrong']} another one."
        )
    else:
        said.append(f"Of {n} records, {counts['multiple']} have several equally near released records.")
    right = "" if chance["claims_right"] is None else f", {chance['claims_right']} of them right"
    said.append(f"Nearer than chance explains are {chance['claims']} matches{right}.")
    subsets = content.get("subsets")
    if subsets:
        best = subsets["best"]
        said.append(
            f"With the best of {subsets['tried']} subsets of attributes ({', '.join(best['attributes'])}): "
            f"{best['claims']}."
        )
    return " ".join(said)


def asked(content: Mapping[str, Any]) -> int:
    """How many records were linked: all of them, or those that were drawn."""
    return int(content.get("subjects", content["records"]))


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


def _distances(chance: Mapping[str, Any]) -> list[Grid]:
    distances = sorted({*chance["observed"], *chance["null"]}, key=float)
    if len(distances) > _MOST_DISTANCES:
        return []
    rows = [(each, chance["observed"].get(each, 0.0), chance["null"].get(each, 0.0)) for each in distances]
    return [Grid(("distance", "share of real records", "share of random records"), rows)]


def _comparison(content: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [
        ("Hellinger distance of the two", content["chance"]["hellinger"]),
        ("p-value of the Kolmogorov-Smirnov test", content["chance"]["ks_p"]),
        ("random records", content["draws"]),
    ]
