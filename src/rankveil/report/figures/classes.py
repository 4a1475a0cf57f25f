"""How many records share their quasi-identifiers with how many others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rankveil.errors import ParameterError
from rankveil.report.chart import Bars, Chart
from rankveil.report.figures.distances import PUBLIC

_STARTS = (1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Where a new bar begins; the last one has no end."""


def class_sizes(
    sizes: Mapping[str, int],
    *,
    records: int,
    quasi: Sequence[str],
    limit: int | None = None,
    title: str | None = None,
    public: bool = False,
) -> Chart:
    """The share of the records in classes of each size; `sizes` holds how many classes there are of each.

    Where a missing cell agrees with every value, records are in several classes: then the shares are those of the
    classes. In a `public` one no bar stands for fewer than ten records: it stands for the next larger classes too.

    >>> chart = class_sizes({"1": 3, "2": 2, "5": 1}, records=12, quasi=["AGE"], limit=5)
    >>> chart.title
    '7 of 12 records share AGE with fewer than 5 records, themselves included'
    >>> chart.series[0].x
    ('1', '2', '5 to 9')
    """
    found = {int(size): int(count) for size, count in sizes.items()}
    if not found or not quasi:
        raise ParameterError("class sizes: there is no class to draw; give at least one quasi-identifier")
    counted = sum(size * count for size, count in found.items()) == records
    amounts = {size: size * count if counted else count for size, count in found.items()}
    bars = _bars(amounts, fewest=PUBLIC if public else 1)
    whole, what = sum(amounts.values()), "records" if counted else "classes"
    below = sum(amount for size, amount in amounts.items() if limit is not None and size < limit)
    by = ", ".join(quasi)
    found_title = f"{below} of {whole} {what} share {by} with fewer than {limit} records, themselves included"
    return Chart(
        title=title if title is not None else found_title if limit is not None else f"Records that agree in {by}",
        x_label="Records that agree in all quasi-identifiers",
        y_label=f"Share of the {what}",
        series=[Bars(what, [_named(*ends) for ends in bars], [amount / whole for amount in bars.values()])],
        note=f"{records} records in {sum(found.values())} classes; sizes that do not occur are left out.",
        kind="class_sizes",
    )


def _bars(amounts: Mapping[int, int], *, fewest: int) -> dict[tuple[int, int | None], int]:
    """The amount in each bar, by its smallest and its largest size; one of fewer goes with the next."""
    ends = (*(start - 1 for start in _STARTS[1:]), None)
    made: dict[tuple[int, int | None], int] = {}
    begun, held = None, 0
    for low, high in zip(_STARTS, ends, strict=True):
        here = sum(amount for size, amount in amounts.items() if low <= size and (high is None or size <= high))
        if here:
            begun, held = begun or low, held + here
        if held >= fewest and begun is not None:
            made[begun, high] = held
            begun, held = None, 0
    if begun is not None:  # too few at the end: with those before
        low, before = begun, 0
        if made:
            (low, _), before = list(made.items())[-1][0], made.popitem()[1]
        made[low, None] = before + held
    return made


def _named(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} or more"
    return str(low) if low == high else f"{low} to {high}"
