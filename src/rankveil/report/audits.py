"""The page of an audit, from plain data: the finding in words first, then what it rests on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankveil.catalogue import Used, get_measure
from rankveil.errors import listing
from rankveil.report import figures
from rankveil.report.chart import Array, Chart, Line
from rankveil.report.decision import opening
from rankveil.report.look import number
from rankveil.report.page import Captioned, Grid, Section, notes_section, render, without_rows
from rankveil.report.uses import uses_grids

_MAPPINGS = {
    "rows": "records correspond by their order",
    "key": "records correspond by a key column",
    "secret": "records correspond by the mapping in the secret",
    "none": "records are not known to correspond",
}


@dataclass(frozen=True, eq=False)
class Marginal:
    """An attribute before and after: numbers, or labels, of which None is a missing one."""

    before: Any
    after: Any
    order: tuple[str, ...] = ()
    """Of labels that have one."""
    written: Callable[[float], str] | None = None
    """How a number is written that stands for a date or a time."""

    def chart(self, name: str) -> Chart:
        """The distribution before and after."""
        return figures.marginals(name, self.before, self.after, order=self.order, written=self.written)


@dataclass(frozen=True, eq=False)
class AuditPictures:
    """What the figures of an audit are drawn from; whatever is missing is not drawn."""

    levels: Mapping[str, Array] = field(default_factory=dict)
    """The rank changes per attribute."""
    marginals: Mapping[str, Marginal | tuple[Array, Array]] = field(default_factory=dict)
    """Original and masked values per attribute, numbers where there are only two arrays: for internal pages only."""
    correlations: tuple[Array, Array] | None = None
    """Of the original and of the masked attributes that have numbers."""
    correlated: tuple[str, ...] = ()
    """Which attributes those are; all where it is empty."""


def audit_page(
    content: Mapping[str, Any], pictures: AuditPictures, *, command: str | None = None, public: bool = False
) -> str:
    """The page of an audit: `content` as its JSON document. The public one holds nothing of single records."""
    return render(
        title="Audit of a release",
        lead=audit_words(content, found=False),
        sections=audit_sections(content, pictures, public=public),
        internal=not public,
        command=command,
        opening=opening(content),
    )


def audit_words(content: Mapping[str, Any], *, found: bool = True) -> str:
    """An audit in a few sentences: who is found first, unless that is said elsewhere."""
    who = content["measures"].get("people_found") if found else None
    said = [_found_words(who)] if who else []
    said += [
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
    classes = measures.get("k_anonymity", {}).get("details", {})
    if "records_below_limit" in classes:
        said.append(
            f"{_percent(classes['records_below_limit'] / classes['records'])} of the records share their "
            f"quasi-identifiers with fewer than {classes['limit']} records "
            f"(k = {number(measures['k_anonymity']['value'])})."
        )
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


def _found_words(found: Mapping[str, Any]) -> str:
    """Who is found, in one sentence with its interval."""
    details = found["details"]
    if "interval" not in details or details.get("interval") is None:
        return f"On average {_percent(found['value'])} of the people can be found by somebody who knows all originals."
    low, high = details["interval"]
    sure = f", {details['certain']:,} of them with certainty" if details.get("certain") else ""
    return (
        f"{_percent(found['value'])} of the people can be found by somebody who knows all originals{sure} (95 % "
        f"interval {_percent(low)} to {_percent(high)}; blind guessing finds {_percent(details.get('guessing', 0.0))})."
    )


def audit_sections(content: Mapping[str, Any], pictures: AuditPictures, *, public: bool = False) -> list[Section]:
    """The parts of a page that show an audit."""
    parts = []
    if pictures.levels:
        chart = figures.permutation_level(pictures.levels, n=content["records"], public=public)
        told = "Each curve shows one attribute: the rank changes of its records, sorted from smallest to largest."
        drawn = any(len(curve.x) > 1 for curve in chart.series if isinstance(curve, Line))
        if drawn:
            parts.append(Section("How far the values moved", told, charts=[chart]))
    parts += _class_section(content, public=public)
    tables = [Grid(*grid[1:], caption=grid[0]) for grid in audit_grids(content, public=public)]
    said = (lambda notes: [without_rows(note) for note in notes]) if public else list
    notes = not_applicable(content)
    if public and _by_domain(content["measures"]):
        notes.append("subdomains are left out here: their labels and numbers of records are those of the original")
    parts.append(Section("Measures", tables=tables, notes=said(notes)))
    parts += _picture_sections(content, pictures, public=public)
    if content["gates"]:
        judged = [(gate["rule"], gate["value"], "held" if gate["ok"] else "FAILED") for gate in content["gates"]]
        parts.append(Section("Gates", tables=[Grid(("must not come true", "value", "result"), judged)]))
    return [*parts, *_columns_section(content), *notes_section(said(content["notes"]))]


def _class_section(content: Mapping[str, Any], *, public: bool) -> list[Section]:
    """How many records agree in their quasi-identifiers, when some were given."""
    details = content["measures"].get("k_anonymity", {}).get("details", {})
    if not details.get("sizes"):
        return []
    chart = figures.class_sizes(
        details["sizes"],
        records=details["records"],
        quasi=details["quasi_identifiers"],
        limit=details["limit"],
        public=public,
    )
    told = "Records that agree in all quasi-identifiers form a class: whoever knows these alone cannot tell them apart."
    return [Section("Who can be told apart", told, charts=[chart])]


_ROLES = {
    "quasi-identifier": "An intruder may know (quasi-identifiers)",
    "confidential": "Confidential",
    "weight": "Records count by their weight",
    "group": "Records of one group belong together by",
    "identifier": "Identifiers",
    "other": "Left aside",
}


def _columns_section(content: Mapping[str, Any]) -> list[Section]:
    """By what categories are ranked, and what columns are for, where that was said."""
    rankings, roles = content.get("rankings") or {}, content.get("roles") or {}
    by_role = {words: [name for name, given in roles.items() if given == role] for role, words in _ROLES.items()}
    said = " ".join(f"{words}: {listing(names, most=10)}." for words, names in by_role.items() if names)
    if not rankings and not said:
        return []
    grid = Grid(("attribute", "ranked by"), list(rankings.items()), caption="How categories are ranked")
    return [Section("What the columns are", said, tables=[grid] if rankings else [])]


def _nominal(content: Mapping[str, Any]) -> set[str]:
    """The attributes whose values have no order of their own."""
    rankings = content.get("rankings") or {}
    return {name for name, by in rankings.items() if by.startswith("marginality")}


def _marginal_section(content: Mapping[str, Any], given: Mapping[str, Marginal | tuple[Array, Array]]) -> Section:
    """Distributions; places of categories without their labels would tell nobody anything, and are left out."""
    nameless = [name for name in content.get("rankings") or {} if not isinstance(given.get(name), Marginal)]
    able = {name: both for name, both in given.items() if name not in nameless}
    shown = dict(list(able.items())[:_MOST_MARGINALS])
    said = [f"Shown for the first {len(shown)} attributes."] if len(shown) < len(able) else []
    said += [f"Not drawn, for their labels are not at hand: {listing(nameless, most=10)}."] if nameless else []
    drawn = [(both if isinstance(both, Marginal) else Marginal(*both)).chart(name) for name, both in shown.items()]
    return Section("Distributions before and after", " ".join(said), charts=drawn)


def _shifted(per_attribute: Mapping[str, float]) -> Chart:
    return figures.loss_per_attribute({"total_variation": per_attribute})


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
    shifted = measures.get("total_variation", {}).get("details", {}).get("per_attribute")
    if shifted:
        told = "The share of the records that would have to change category to have each as often as before; 0 is none."
        parts.append(Section("Which categories changed", told, charts=[_shifted(shifted)]))
    nominal = _nominal(content)
    known = [j for j, name in enumerate(pictures.correlated or content["attributes"]) if name not in nominal]
    labels = [(pictures.correlated or content["attributes"])[j] for j in known]
    if pictures.correlations is not None and 1 < len(labels) <= _MOST_ATTRIBUTES:
        before, after = (each[np.ix_(known, known)] for each in pictures.correlations)
        charts = [figures.matrix_heat(labels, after - before, what="change of correlation", signed=True)]
        if not public:
            charts.insert(0, figures.matrix_heat(labels, before, what="correlation in the original", signed=True))
            charts.insert(1, figures.matrix_heat(labels, after, what="correlation in the release", signed=True))
        left = [name for name in content["attributes"] if name not in labels]
        told = f"Left out are attributes without numbers or an order: {listing(left, most=10)}." if left else ""
        parts.append(Section("How attributes hang together", told, charts=charts))
    if public:
        return parts
    if pictures.marginals:
        parts.append(_marginal_section(content, pictures.marginals))
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


def audit_grids(content: Mapping[str, Any], *, public: bool = False) -> list[Captioned]:
    """The tables of an audit: a caption, headings and rows each, for a page and for a terminal.

    Subdomains have the original's labels and counts: they are not for the public.
    """
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
                records_used(given),
                f"{get_measure(name).title}. {meaning(name)}",
            )
            for name, given in measures.items()
            if given["family"] == family and name.rpartition("_")[0] not in crossed
        ]
        if rows:
            made.append((f"{caption} ({family})", ("measure", "value", *more, "better", "records", "what it is"), rows))
    made += _models_grid(measures)
    made += [] if public else uses_grids(measures)
    if crossed:
        rows = [
            (name, *(errors.get(kind) for kind in _ERRORS), _records_of_kinds(measures, name))
            for name, errors in crossed.items()
        ]
        headings = ("measure", *_ERRORS.values(), "records")
        made.append(("The information-loss table (loss, lower is better)", headings, rows))
    by_attribute = {name: given["details"].get("per_attribute") for name, given in measures.items()}
    shown = _shown({name: given for name, given in by_attribute.items() if given}, _BY_ATTRIBUTE)
    if shown:
        cells = [(each, *(given.get(each) for given in shown.values())) for each in content["attributes"]]
        made.append(("Attribute by attribute", ("attribute", *shown), cells))
    shown = {} if public else _shown(_by_domain(measures), _BY_DOMAIN)
    if shown:
        levels = next(iter(shown.values()))
        cells = [
            (level, levels[level].get("records"), *(given[level]["value"] for given in shown.values()))
            for level in levels
        ]
        made.append(("Subdomain by subdomain", ("subdomain", "records", *shown), cells))
    return made


def records_used(given: Mapping[str, Any]) -> str:
    """How many records a number rests on, as it stands beside it.

    >>> records_used({"records": {"used": 25, "most": 25, "of": 5822}})
    '25 of 5,822'
    """

    def used(of: Mapping[str, Any]) -> Used:
        return Used(of["used"], of["most"], of["of"], used(of["masked"]) if "masked" in of else None)

    return str(used(given["records"])) if given.get("records") else ""


def _records_of_kinds(measures: Mapping[str, Any], quantity: str) -> str:
    """The same of losses that differ only in the kind of error."""
    return listing(
        dict.fromkeys(
            records_used(measures[f"{quantity}_{kind}"]) for kind in _ERRORS if f"{quantity}_{kind}" in measures
        )
    )


def meaning(name: str) -> str:
    """What a measure says, in one sentence of its docstring.

    >>> meaning("k_anonymity")
    'The number of released records in the smallest equivalence class: those that agree in all quasi-identifiers.'
    """
    return re.split(r"(?<=[.:]) (?=[A-Z])", get_measure(name).summary)[0].rstrip(":")


def _by_domain(measures: Mapping[str, Any]) -> dict[str, Any]:
    """What measures have of subdomains, where there are some."""
    return {name: given["details"]["by"] for name, given in measures.items() if given["details"].get("by")}


_MODELS = {
    "k_anonymity": ("limit", "records_below_limit"),
    "l_diversity": ("limit", "records_below_limit"),
    "entropy_l_diversity": ("limit", "records_below_limit"),
    "recursive_l_diversity": ("limit", "records_below_limit"),
    "t_closeness": ("limit", "records_above_limit"),
    "population_risk": ("threshold", "records_above_threshold"),
    "sample_uniques": ("", "uniques"),
}
"""Privacy models: the detail that holds what is asked for, and that which counts the records that fail it."""


def _models_grid(measures: Mapping[str, Any]) -> list[Captioned]:
    """What holds for records that agree in their quasi-identifiers, and how many fail what is asked for."""
    rows: list[tuple[Any, ...]] = []
    caption = ""
    for name, (limit, failing) in _MODELS.items():
        details = measures.get(name, {}).get("details", {})
        if failing not in details:
            continue
        sign = "at least" if measures[name]["better"] == "higher" else "at most"
        asked = f"{sign} {number(details[limit])}" if limit else "none alone"
        rows.append(
            (name, measures[name]["value"], asked, details[failing], _percent(details[failing] / details["records"]))
        )
        caption = f"Quasi-identifiers: {listing(details['quasi_identifiers'], most=10)}; {details['classes']} classes"
    headings = ("model", "value", "asked for", "records that fail it", "of all")
    return [(caption, headings, rows)] if rows else []


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
