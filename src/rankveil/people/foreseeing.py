"""What an intruder would find in a release, told beforehand from a table that was measured."""

from __future__ import annotations

from rankveil import masking, strengths
from rankveil.plans import Plan, Step

_UNKNOWN = "how many people an intruder would find in this release is not known beforehand; rankveil attack measures it"


def foreseen(plan: Plan, account: masking.Account) -> list[str]:
    """The share of people whom somebody finds who knows all originals, as far as a figure is known."""
    steps = [
        (step, columns)
        for step, columns in zip(plan.steps, account.columns, strict=True)
        if step.entry.works_on in ("column", "columns") and step.method != "identity"
    ]
    if not steps or plan.synthetic:
        return []
    steps = [(step, columns) for step, columns in steps if step.method != "round"] or steps  # it only tells less
    if len(steps) > 1:
        return [_UNKNOWN]
    step, columns = steps[0]
    if step.method == "mdav":
        return _of_groups(step, columns)
    return _of_strength(step, columns)


def _of_groups(step: Step, columns: tuple[str, ...]) -> list[str]:
    bound = step.bound(columns[0])
    if step.entry.caution is not None and step.entry.caution(dict.fromkeys(columns, bound)):
        return []  # it says that everybody is found
    return [
        f"somebody who knows all originals would find 1 / k = {1 / bound['k']:.1%} of the people by the masked "
        "columns, because k records share their values"
    ]


def _of_strength(step: Step, columns: tuple[str, ...]) -> list[str]:
    name, bound = step.entry.strength, [step.bound(column) for column in columns]
    others = {each: parameter.default for each, parameter in step.entry.parameters.items() if each != name}
    usual = all(given[each] == default for given in bound for each, default in others.items())
    if name is None or not usual or len({given[name] for given in bound}) > 1:
        return [_UNKNOWN]
    strength, known = float(bound[0][name]), strengths.measured()
    share = strengths.found_at(step.method, strength, len(columns))
    if share is None:
        return [_UNKNOWN]
    many = f"{len(columns)} columns" if len(columns) > 1 else "one column"
    told = (
        f"somebody who knows all originals would find about {share:.0%} of the people or fewer at {name} = "
        f"{strength:g} and {many}: the most in {len(known.tables)} tables of {known.records:,} records "
        f"({', '.join(known.tables)}), by the masked columns alone; rankveil attack measures this release"
    )
    if share <= known.limit or not step.entry.by_columns:
        return [told]
    wanted = strengths.strength_for(step.method, len(columns))
    if wanted > strength:
        return [f"{told}; {name} = {wanted:g} brings it down to {known.limit:.0%}"]
    return [f"{told}; no {name} brings it down to {known.limit:.0%}"]
