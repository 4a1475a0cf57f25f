"""The page of an audit, from plain data: the finding in words first, then what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankveil.catalogue import get_measure
from rankveil.errors import listing
from rankveil.report import figures
from rankveil.report.chart import Array, Line
from rankveil.report.look import number
from rankveil.report.page import Captioned, Grid, Section, notes_section, render

_MAPPINGS = {
    "rows": "records correspond by their order",
    "key": "records correspond by a key column",
    "secret": "records correspond by the mapping in the secret",
    "none": "records are not known to correspond",
}


@dataclass(frozen=True, eq=False)
class AuditPictures:
    """What the figures of an audit are drawn from; whatever is missing is not drawn."""

    levels: Mapping[str, Array] = field(default_factory=dict)
    """The rank changes per attribute."""
    marginals: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    """Original and masked values per attribute: for internal pages only."""
    correlations: tuple[Array, Array] | None = None
    """Of the original and of the masked attributes."""


def audit_page(
    content: Mapping[str, Any], pictures: AuditPictures, *, command: str | None = None, public: bool = False
) -> str:
    """The page of an audit: `content` as its JSON document. The public one holds nothing of single records."""
    return render(
        title="Audit of a release",
        lead=audit_words(content),
        sections=audit_sections(content, pictures, public=public),
        internal=not public,
        command=command,
    )


def audit_words(content: Mapping[str, Any]) -> str:
    """An audit in a few sentences."""
    said = [
        f"{content['records']} records were compared on {_counted(content['attributes'], 'attribute')}"
        f" ({listing(content['attributes'], most=8)}); {_MAPPINGS[content['mapping']]}."
    ]
    measures = content["measures"]
    level = measures.get("permutation_level")
    if level:
        said.append(f"On average a value moved by {_percent(level['value'])} of the ranks.")
    risk = measures.get("spearman_risk")
    if risk and risk["details"].get("per_attribute"):
        name, value = max(risk["details"]["per_attribute"].items(), key=lambda item: item[1])
        said.append(
            f"{name} follows its original most closely: the ranks correlate at {number(value)} (1 is no protection)."
        )
    linked = measures.get("distance_linkage")
    if linked:
        said.append(f"By distance an intruder links {_percent(linked['value'])} of the records rightly.")
    kept, lost = measures.get("um"), measures.get("pil")
    if kept and lost:
        said.append(
            f"Of the structure of variances {number(kept['value'])} is kept (1 is all), and the probabilistic loss of "
            f"statistics is {number(lost['value'])} of 100."
        )
    if content["gates"]:
        failed = [gate["rule"] for gate in content["gates"] if not gate["ok"]]
        said.append(f"Gates that FAILED: {', '.join(failed)}." if failed else "Every gate held.")
    return " ".join(said)


def audit_sections(content: Mapping[str, Any], pictures: AuditPictures, *, public: bool = False) -> list[Section]:
    """The parts of a page that show an audit."""
    parts = []
    if pictures.levels:
        chart = figures.permutation_level(pictures.levels, n=content["records"], public=public)
        told = "Each curve shows one attribute: the rank changes of its records, sorted from smallest to largest."
        drawn = any(len(curve.x) > 1 for curve in chart.series if isinstance(curve, Line))
        if drawn:
            parts.append(Section("How far the values moved", told, charts=[chart]))
    tables = [Grid(*grid[1:], caption=grid[0]) for grid in audit_grids(content)]
    parts.append(Section("Measures", tables=tables, notes=not_applicable(content)))
    parts += _picture_sections(content, pictures, public=public)
    if content["gates"]:
        judged = [(gate["rule"], gate["value"], "held" if gate["ok"] else "FAILED") for gate in content["gates"]]
        parts.append(Section("Gates", tables=[Grid(("must not come true", "value", "result"), judged)]))
    return [*parts, *notes_section(content["notes"])]


_LOSSES_DRAWN = ("il1s", "pil_variance", "density_loss")
_MOST_MARGINALS = 12
_MOST_ATTRIBUTES = 30


def _picture_sections(content: Mapping[str, Any], pictures: AuditPictures, *, public: bool) -> list[Section]:
    """What attributes lost, how they hang together, their distributions, and the most exposed records."""
    measures, parts = content["measures"], []
    losses = {
        name: measures[name]["details"]["per_attribute"]
        for name in _LOSSES_DRAWN
        if measures.get(name, {}).get("details", {}).get("per_attribute")
    }
    if losses and len(content["attributes"]) > 1:
        parts.append(
            Section("Which attributes lost most", "0 is no loss.", charts=[figures.loss_per_attribute(losses)])
        )
    labels = content["attributes"]
    if pictures.correlations is not None and 1 < len(labels) <= _MOST_ATTRIBUTES:
        before, after = pictures.correlations
        charts = [figures.matrix_heat(labels, after - before, what="change of correlation", signed=True)]
        if not public:
            charts.insert(0, figures.matrix_heat(labels, before, what="correlation in the original", signed=True))
            charts.insert(1, figures.matrix_heat(labels, after, what="correlation in the release", signed=True))
        parts.append(Section("How attributes hang together", charts=charts))
    if public:
        return parts
    if pictures.marginals:
        shown = dict(list(pictures.marginals.items())[:_MOST_MARGINALS])
        left = len(pictures.marginals) - len(shown)
        told = f"Shown for the first {len(shown)} attributes." if left else ""
        charts = [figures.marginals(name, *both) for name, both in shown.items()]
        parts.append(Section("Distributions before and after", told, charts=charts))
    exposed = measures.get("permutation_linkage", {}).get("details", {}).get("most_exposed")
    if exposed:
        records = [{"original": each["record"], "distance": each["value"]} for each in exposed]
        told = "The original records that have a released record nearest to their own ranks."
        parts.append(Section("Most exposed records", told, charts=[figures.most_exposed(records)]))
    return parts


def not_applicable(content: Mapping[str, Any]) -> list[str]:
    """What does not apply, measures with the same reason in one sentence."""
    by: dict[str, list[str]] = {}
    for name, why in content["not_applicable"].items():
        by.setdefault(why, []).append(name)
    return [f"{', '.join(names)} {'does' if len(names) == 1 else 'do'} not apply: {why}" for why, names in by.items()]


_FAMILIES = {
    "confidentiality": "How well the release hides who is who",
    "risk": "What an intruder gains",
    "utility": "What a user keeps",
    "loss": "What a user loses",
}
_SIDE_BY_SIDE = 6
"""Measures that stand side by side in a table of attributes or subdomains; JSON has all."""
_BY_ATTRIBUTE = ("permutation_level", "spearman_risk", "interval_disclosure", "il1s", "pil_mean", "pil_variance")
_BY_DOMAIN = ("il1s", "pil", "um", "emd", "propensity", "correlation_half_mae")
"""Those shown first when there are more."""


def audit_grids(content: Mapping[str, Any]) -> list[Captioned]:
    """The tables of an audit: a caption, headings and rows each, for a page and for a terminal."""
    measures = content["measures"]
    several = any("replicates" in given["details"] for given in measures.values())
    more = ("sd", "95 %: from", "to") if several else ()
    made: list[Captioned] = []
    crossed = {} if several else _loss_table(measures)
    for family, caption in _FAMILIES.items():
        rows = [
            (
                name,
                given["value"],
                *(_varies(given["details"]) if several else ()),
                given["better"],
                get_measure(name).title,
            )
            for name, given in measures.items()
            if given["family"] == family and name.rpartition("_")[0] not in crossed
        ]
        if rows:
            made.append((f"{caption} ({family})", ("measure", "value", *more, "better", "what it is"), rows))
    if crossed:
        rows = [(name, *(errors.get(kind) for kind in _ERRORS)) for name, errors in crossed.items()]
        made.append(("The information-loss table (loss, lower is better)", ("measure", *_ERRORS.values()), rows))
    by_attribute = {name: given["details"].get("per_attribute") for name, given in measures.items()}
    shown = _shown({name: given for name, given in by_attribute.items() if given}, _BY_ATTRIBUTE)
    if shown:
        cells = [(each, *(given.get(each) for given in shown.values())) for each in content["attributes"]]
        made.append(("Attribute by attribute", ("attribute", *shown), cells))
    by_domain = {name: given["details"].get("by") for name, given in measures.items()}
    shown = _shown({name: given for name, given in by_domain.items() if given}, _BY_DOMAIN)
    if shown:
        levels = next(iter(shown.values()))
        cells = [
            (level, levels[level].get("records"), *(given[level]["value"] for given in shown.values()))
            for level in levels
        ]
        made.append(("Subdomain by subdomain", ("subdomain", "records", *shown), cells))
    return made


_ERRORS = {"mse": "_mse: mean square error", "mae": "_mae: mean absolute error", "mv": "_mv: mean variation"}


def _loss_table(measures: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Losses that differ only in the kind of error, side by side; none when only some of them were asked for."""
    found: dict[str, dict[str, float]] = {}
    for name, given in measures.items():
        quantity, _, kind = name.rpartition("_")
        if quantity.startswith("loss_") and kind in _ERRORS:
            found.setdefault(quantity, {})[kind] = given["value"]
    return {quantity: errors for quantity, errors in found.items() if len(errors) > 1}


def _varies(details: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """The standard deviation of replicates and the interval of their mean."""
    low, high = details.get("interval") or (None, None)
    return details.get("sd"), low, high


def _shown(given: dict[str, Any], first: Sequence[str]) -> dict[str, Any]:
    """Some measures side by side: those named first, then the others, no more than a page can hold."""
    if len(given) <= _SIDE_BY_SIDE:
        return given
    names = [name for name in first if name in given] + [name for name in given if name not in first]
    return {name: given[name] for name in names[:_SIDE_BY_SIDE]}


def _counted(things: Sequence[object], what: str) -> str:
    return f"{len(things)} {what}" if len(things) == 1 else f"{len(things)} {what}s"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
