"""One page for each method and measure, from what the catalogue says, with an example that was run."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from rankveil import catalogue
from rankveil.catalogue import Entry, Measure, Method, Parameter
from rankveil.errors import RankveilError
from sitebuilder import published
from sitebuilder.outline import Page
from sitebuilder.published import Number

_DP = {"columns": ["INCOME"], "lower": 0, "upper": 200_000, "fast": True}
_CLASSES = {"columns": ["SEX", "REGION", "EDUCATION"]}

EXAMPLES: dict[str, dict[str, Any]] = {
    "additive_noise": {"alpha": 0.2},
    "distance_swap": {"columns": ["INCOME"], "d": 50},
    "dp_microaggregation": {**_DP, "k": 50, "epsilon": 5},
    "drop": {"columns": ["PERSON"]},
    "laplace_dp": {**_DP, "epsilon": 5},
    "missing_swap": {"columns": ["SAVINGS", "INCOME"]},
    "pram": {"columns": ["SECTOR"], "p": 0.5},
    "pseudonymise": {"columns": ["PERSON"]},
    "randomized_response": {"columns": ["SECTOR"], "p": 0.5},
    "recode": {"columns": ["AGE"], "cuts": ["30", "65"]},
    "sample": {"share": 0.1},
    "suppress": {**_CLASSES, "k": 30},
    "top_bottom_code": {"columns": ["INCOME"], "top": 40_000},
}
"""Where a method's defaults would not do or show little; a method that is not here is shown with its defaults."""

_WORKS_ON = {
    "column": "one column at a time",
    "columns": "several columns together",
    "records": "whole records",
    "names": "which columns there are",
}
_MAPPING = {
    "kept": "kept: row i comes from row i",
    "reordered": "records are put in another order, or left out",
    "none": "none: rows correspond to nobody",
}

_MADE = 'import rankveil as rv\n\npeople = rv.datasets.demo()\nrelease = rv.mask(people, "{method}"{how}, seed=1)\n'
_EACH = "for table in (people, release.data):\n"
_WEIGHED = 'people = people.append_column("WEIGHT", [[20.0] * len(people)])  # each stands for twenty\n'
_ROLES = (
    'roles = dict.fromkeys(["SEX", "REGION", "EDUCATION"], "quasi-identifier") | {"SECTOR": "confidential"}\n'
    "schema = rv.Schema(roles=roles)\n"
)


def pages() -> list[Page]:
    """Two lists, and a page for each entry."""
    known = published.numbers()
    made = [_index("Methods", "methods", catalogue.methods()), _index("Measures", "measures", catalogue.measures())]
    made += [_page("methods", method.id, method_text(method, known)) for method in catalogue.methods().values()]
    made += [_page("measures", measure.id, measure_text(measure, known)) for measure in catalogue.measures().values()]
    return made


def _page(folder: str, name: str, text: str) -> Page:
    place = PurePosixPath("reference", folder, f"{name}.html")
    return Page(place, text, section="Reference", listed=name == "index")


def _index(title: str, folder: str, entries: Mapping[str, Entry[Any]]) -> Page:
    rows = [(f"[{name}]({name}.html)", entry.title, _group(entry), entry.source) for name, entry in entries.items()]
    lead = {
        "Methods": "Every method and every step after one. `rankveil methods` lists them too.",
        "Measures": "Every measure. `rankveil measures` lists them too; "
        "[what an audit says](../../measures.html) tells where a formula left a choice open.",
    }[title]
    kind = "kind" if title == "Methods" else "family"
    return _page(folder, "index", f"# {title}\n\n{lead}\n\n{grid(('id', 'title', kind, 'source'), rows)}")


def _group(entry: Entry[Any]) -> str:
    if isinstance(entry, Measure):
        return entry.family
    return "step after a method" if entry.post else "method"  # type: ignore[attr-defined]


def method_text(method: Method, known: list[Number]) -> str:
    """The page of a method as Markdown."""
    from sitebuilder.inventory import verdict  # which needs `grid` from here

    facts = method.facts()
    falls = "rises" if method.stronger == "higher" else "falls"
    rows = [
        ("id", f"`{method.id}`"),
        ("works on", _WORKS_ON[method.works_on]),
        ("columns that it takes", ", ".join(method.kinds).replace("hierarchy", "nominal with a hierarchy")),
        ("mapping", _MAPPING[method.mapping]),
        ("marginals", method.marginals),
        ("random", "yes" if facts["random"] else "no"),
        ("local", _locality(method)),
        ("transparent (Definition 4)", f"{verdict(method)}; see the [inventory](../../inventory.html)"),
        ("strength", f"`{method.strength}`: risk falls as it {falls}" if method.strength else "none"),
        ("what a user may rely on", method.tells),
        ("source", method.source),
    ]
    if method.guarantee is not None:
        rows.insert(-1, ("guarantee", f"{_doc(method.guarantee)} See [guarantees](../../guarantees.html)."))
    for correction in (method.correction, method.share_correction):
        if correction is not None:
            rows.insert(-1, ("correction (`rv.correct`)", _doc(correction)))
    for name, why in method.from_data.items():
        rows.insert(-1, (f"when `{name}` is taken from the data", why))
    parts = [f"# {method.title}", _meaning(method), _parameters(method), "## Facts", grid(("fact", "what holds"), rows)]
    return "\n\n".join([*parts, *_example(method, method_example(method)), *_numbers(method.id, known)])


def measure_text(measure: Measure, known: list[Number]) -> str:
    """The page of a measure as Markdown."""
    low, high = (f"{end:g}" if math.isfinite(end) else "no limit" for end in measure.bounds)
    rows = [
        ("id", f"`{measure.id}`"),
        ("family", measure.family),
        ("better", measure.better),
        ("bounds", f"from {low} to {high}"),
        ("needs the mapping", "yes" if measure.mapping else "no"),
        ("needs as many records on both sides", "yes" if measure.equal else "no"),
        ("columns that it takes", ", ".join(measure.kinds)),
        ("weights", "records count by them" if measure.weighted else "not used"),
        ("dates and times", measure.moments),
        ("of several attributes", f"the {measure.headline} of theirs" if measure.per == "column" else "one value"),
        ("source", measure.source),
    ]
    parts = [
        f"# {measure.title}",
        _meaning(measure),
        _parameters(measure),
        "## Facts",
        grid(("fact", "what holds"), rows),
    ]
    return "\n\n".join([*parts, *_example(measure, measure_example(measure)), *_numbers(measure.id, known)])


def _locality(method: Method) -> str:
    if method.local:
        return "yes: a subject could do it alone"
    if method.local_with:
        return f"with `{method.local_with}` given"
    return _doc(method.locality) if method.locality is not None else "no"


def _doc(function: Any) -> str:
    return " ".join((inspect.getdoc(function) or "").split())


def _meaning(entry: Entry[Any]) -> str:
    """The docstrings of the module and of the function, without examples."""
    module = inspect.getmodule(entry.function)
    alone = sum(each.function.__module__ == entry.function.__module__ for each in _same(entry).values()) == 1
    texts = [inspect.getdoc(entry.function) or ""]
    if alone and module is not None:
        texts.append("\n\n".join((inspect.getdoc(module) or "").split("\n\n")[1:]))
    return "\n\n".join(prose(text) for text in texts if text.strip())


def _same(entry: Entry[Any]) -> Mapping[str, Entry[Any]]:
    return catalogue.methods() if isinstance(entry, Method) else catalogue.measures()


def prose(text: str) -> str:
    """A docstring as Markdown: without its examples, and with < only where it is code."""
    paragraphs = [part for part in text.split("\n\n") if not part.lstrip().startswith(">>>")]
    safe = []
    for part in paragraphs:
        code = part.startswith("    ")
        bits = part.split("`")
        safe.append(part if code else "`".join(b if i % 2 else b.replace("<", "&lt;") for i, b in enumerate(bits)))
    return "\n\n".join(safe)


def _parameters(entry: Entry[Any]) -> str:
    if not entry.parameters:
        return "## Parameters\n\nIt has none."
    rows = [(f"`{p.name}`", p.text, range_of(p), default_of(p)) for p in entry.parameters.values()]
    return "## Parameters\n\n" + grid(("name", "what it is", "range", "default"), rows)


def range_of(parameter: Parameter) -> str:
    """What a parameter may be."""
    return parameter.expected() + (", or none" if parameter.optional else "")


def default_of(parameter: Parameter) -> str:
    """Its default in words."""
    if parameter.required:
        return "must be given"
    if parameter.default in (None, ()):
        return "none"
    return f"`{str(parameter.default).lower() if isinstance(parameter.default, bool) else parameter.default}`"


def method_example(method: Method) -> str:
    """A program that shows what a method does to people who never were."""
    given = EXAMPLES.get(method.id, {})
    words = "".join(f", {name}={_word(value)}" for name, value in given.items())
    column = given.get("columns", ["INCOME"])[0]
    if method.post:
        made = _MADE.format(method="additive_noise", how=f', then=["{method.id}"]')
    else:
        made = _MADE.format(method=method.id, how=words)
    if method.works_on == "names":
        return made + "print(people.column_names)\nprint(release.data.column_names)\n"
    if method.changes_missing:
        return (
            made + "for table in (people, release.data):\n    print([column.null_count for column in table.columns])\n"
        )
    return made + f'for table in (people, release.data):\n    print(len(table), table["{column}"][:5].to_pylist())\n'


def _word(value: Any) -> str:
    return repr(value).replace("'", '"')


def measure_example(measure: Measure) -> str:
    """A program that measures one release: of numbers, or where that has no meaning of categories in classes."""
    made = _MADE.format(method="rank_swap", how=", p=10")
    plain = f'audit = rv.audit(people, release.data, measures=["{measure.id}"]{{more}})\nprint(audit["{measure.id}"])\n'
    if measure.id in ("ci_overlap", "ml_efficacy"):
        return made + plain.format(more=', target="INCOME"')
    if measure.id == "use_kept":
        return made + plain.format(more=', use={"regression": {"formula": "INCOME ~ AGE + HOURS"}}')
    if measure.id == "population_risk":
        masked = _MADE.format(method="pram", how=', columns=["SEX", "REGION"]')
        weighed = masked.replace("demo()\n", f"demo()\n{_WEIGHED}")
        return weighed + _ROLES.replace("}\n", ', "WEIGHT": "weight"}\n') + plain.format(more=", schema=schema")
    if "quasi_y" in measure.needs or measure.kinds == ("ordinal", "nominal"):
        masked = _MADE.format(method="pram", how=', columns=["SEX", "REGION"]')
        return masked + _ROLES + plain.format(more=", schema=schema")
    return made + plain.format(more="")


def _example(entry: Entry[Any], program: str) -> list[str]:
    """The program with what it printed; and the example of the module, which the tests run."""
    parts: list[str] = []
    with contextlib.suppress(RankveilError):  # a new entry may need parameters that nobody wrote down here
        parts += [f"```python\n{program.rstrip()}\n```", f"It prints\n\n```text\n{run(program).rstrip()}\n```"]
    module = inspect.getmodule(entry.function)
    examples = doctest.DocTestParser().get_examples((module and module.__doc__) or "")
    if examples and re.search(rf"\b{entry.function.__name__}\b", "".join(each.source for each in examples)):
        shown = "".join(_prompted(each) for each in examples)
        parts += [f"On arrays:\n\n```pycon\n{shown.rstrip()}\n```"]
    return ["## Example", *parts] if parts else []


def run(program: str) -> str:
    """What a program prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(program, "<example>", "exec"), {})
    return said.getvalue()


def _prompted(example: doctest.Example) -> str:
    lines = example.source.rstrip("\n").split("\n")
    return "\n".join([f">>> {lines[0]}", *(f"... {line}" for line in lines[1:])]) + f"\n{example.want}"


def _numbers(name: str, known: list[Number]) -> list[str]:
    """Published numbers beside those computed."""
    found = [one for one in published.about(name, known) if one.published]
    if not found:
        return ["## Published numbers", "None."]
    rows = [
        (f"[{one.paper}, {one.table}]({one.link})", one.item, one.published, one.computed, one.agrees)
        for one in found[: published.MOST]
    ]
    more = f"\n\n{len(found) - len(rows)} more are behind the links." if len(found) > len(rows) else ""
    table = grid(("where", "item", "published", "computed", "agrees"), rows)
    return ["## Published numbers", f"As `rankveil reproduce` sets them side by side.\n\n{table}{more}"]


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [
        [cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (head, ["---"] * len(head), *rows)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
