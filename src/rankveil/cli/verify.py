"""rankveil verify: the subject's own check, with her values and the released table alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankveil.cli import output, words
from rankveil.cli.options import AsJson, Draws, Masked, Reading, draws_given
from rankveil.cli.progress import watching
from rankveil.errors import ParameterError, listing

if TYPE_CHECKING:
    from rankveil.table import Table

EXAMPLE = (
    "rankveil verify rankveil-demo/masked.csv --record AGE=44,INCOME=31000,SAVINGS=9500 \\\n"
    "    --manifest rankveil-demo/masked.csv.manifest.json"
)


def verify(
    *,
    masked: Masked,
    record: Annotated[
        list[str],
        typer.Option("--record", metavar="A=1,B=2", help="Your own values, as many as you like.", show_default=False),
    ],
    f: Annotated[
        str,
        typer.Option(
            "--f", metavar="ID", help="Which record is yours: minimax, euclidean, or its row.", show_default=True
        ),
    ] = "minimax",
    draws: Draws = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="For samples; not secret.", show_default=True)] = 0,
    manifest: Annotated[
        str | None,
        typer.Option("--manifest", metavar="F", help="The release's manifest: it tells whether the check is exact."),
    ] = None,
    reading: Reading,
    as_json: AsJson = False,
) -> int:
    """Check how your own record is protected.

    Compares your values with the released table alone; nothing is sent anywhere.
    """
    import rankveil as rv
    from rankveil.cli.tables import open_table, parsed_from
    from rankveil.manifest import Manifest

    values = words.pairs(record, option="--record")
    if reading.chosen is not None:
        without = [name for name in reading.chosen if name not in values]
        if without:
            raise ParameterError(f"--record gives no value for column {listing(without)}")
        values = {name: values[name] for name in reading.chosen}
    permutation = False
    if manifest is not None:
        permutation = parsed_from(manifest, "manifest", Manifest.from_json).permutes(values)
    with watching("comparing with chance", quiet=as_json) as progress:
        opened = open_table(masked, reading)
        made = rv.verify(
            opened.table,
            values,
            f=f,
            seed=seed,
            permutation=permutation,
            progress=progress,
            **draws_given(draws),
        )
    made.notes[:0] = opened.notes
    if as_json:
        output.emit(made.to_dict())
    else:
        _show(made.to_dict(), values, opened.table)
    return 0


def _show(content: dict[str, Any], values: dict[str, str], table: Table) -> None:
    chance, others = content["chance"], len(content["records"]) - 1
    same = f", and {output.count(others, 'other')} equally near," if others else ""
    number, records = content["record"], len(table)
    which = f"The released record nearest to yours is number {number} of {records}{same}"
    if content["f"] not in ("minimax", "euclidean"):
        which = f"The released record {number} of {records}"
    output.say(f"{which} at a distance of {chance['distance']} {'rank' if chance['distance'] == 1 else 'ranks'}.")
    likely = (
        f"{'about ' if chance['approximate'] or not chance['exhaustive'] else ''}{output.number(chance['p_value'])}"
    )
    output.say(f"A record of random values comes as near with probability {likely}:")
    if chance["plausible"]:
        output.say("a match like yours is plausible as chance, so nobody can be sure that it is you.")
    else:
        output.say("a match like yours is NOT plausible as chance: whoever knows your values may find your record.")
    output.gap()
    names = content["attributes"]
    has = [table.frame.get_column(name)[number - 1] for name in names]
    columns = [names, [values[name] for name in names], content["nearest"], content["ranks"], has, content["d"]]
    columns += content["diversity"].values()
    headings = ("attribute", "yours", "nearest released", "its rank", f"record {number} has", "distance d")
    headings += tuple(content["diversity"])
    output.grid(headings, list(zip(*columns, strict=True)))
    output.notes(content["notes"])
