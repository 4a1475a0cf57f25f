"""rankveil verify: the subject's own check, with her values and the released table alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankveil.cli import output, words
from rankveil.cli.options import AsJson, Draws, Masked, Reading, draws_given
from rankveil.cli.progress import watching
from rankveil.errors import FileError, ParameterError, listing

if TYPE_CHECKING:
    from rankveil.manifest import Manifest
    from rankveil.table import Table

EXAMPLE = "rankveil verify rankveil-demo/masked.csv --record AGE=44,INCOME=31000,SAVINGS=9500"
ManifestFile = Annotated[
    str | None,
    typer.Option("--manifest", metavar="F", help="How the release was masked. [MASKED.manifest.json, if it is there]"),
]
NoManifest = Annotated[bool, typer.Option("--no-manifest", help="Read no manifest, though one lies beside MASKED.")]


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
    manifest: ManifestFile = None,
    no_manifest: NoManifest = False,
    reading: Reading,
    as_json: AsJson = False,
) -> int:
    """How probable it is that a released record is yours.

    From your own values, the released table and its manifest; nothing is sent anywhere.
    """
    import rankveil as rv
    from rankveil.cli.tables import open_table

    values = words.pairs(record, option="--record")
    if reading.chosen is not None:
        without = [name for name in reading.chosen if name not in values]
        if without:
            raise ParameterError(f"--record gives no value for column {listing(without)}")
        values = {name: values[name] for name in reading.chosen}
    with watching("comparing with chance", quiet=as_json) as progress:
        opened = open_table(masked, reading)
        notes = list(opened.notes)
        told = manifest_of(masked, len(opened.table), notes, given=manifest, without=no_manifest)
        made = rv.verify(
            opened.table,
            values,
            f=f,
            seed=seed,
            manifest=told,
            progress=progress,
            **draws_given(draws),
        )
    made.notes[:0] = notes
    if as_json:
        output.emit(made.to_dict())
    else:
        _show(made.to_dict(), values, opened.table)
    return 0


def manifest_of(
    masked: str, records: int, notes: list[str], *, given: str | None, without: bool = False
) -> Manifest | None:
    """The manifest of a release: the one that was named, or the one beside it; what does not fit is said."""
    import os

    from rankveil import files
    from rankveil.beside import parsed_from
    from rankveil.cli import addresses
    from rankveil.files import registry
    from rankveil.manifest import Manifest
    from rankveil.partitions import places

    if given is not None and without:
        raise ParameterError("--manifest names a manifest and --no-manifest asks for none; leave out one of them")
    if given is not None:
        return parsed_from(given, "manifest", Manifest.from_json)
    far = places.is_address(masked)
    beside = places.absolute(masked) if far else files.companion(registry.sheet_of(masked)[0])
    path = f"{beside}.manifest.json"
    if without or not (places.exists(path) if far else os.path.isfile(path)):
        return None
    shown = addresses.hidden_word(path)
    try:
        told = parsed_from(path, "manifest", Manifest.from_json)
    except FileError as error:
        notes.append(f"{addresses.hidden(str(error))}; it was not used")
        return None
    counts = told.content.get("records")
    if not isinstance(counts, dict) or counts.get("out") != records:
        notes.append(f"{shown}: is the manifest of another release, of another number of records; it was not used")
        return None
    return told


def _show(content: dict[str, Any], values: dict[str, str], table: Table) -> None:
    from rankveil.people.recognition import percent

    chance, others, likeliest = content["chance"], len(content["records"]) - 1, content["likeliest"]
    output.say(content["sentence"])
    if likeliest:
        output.say(f"Likeliest: {'record' if len(likeliest) == 1 else 'records'} {listing(likeliest, most=10)}.")
    output.gap()
    same = f", and {output.count(others, 'other')} equally near," if others else ""
    number, records = content["record"], len(table)
    which = f"The released record nearest to yours is number {number} of {records}{same}"
    if content["f"] not in ("minimax", "euclidean"):
        which = f"The released record {number} of {records}"
    output.say(f"{which} at a distance of {chance['distance']} {'rank' if chance['distance'] == 1 else 'ranks'}.")
    if content["record_probability"] is not None and number not in likeliest:
        output.say(f"It is yours with probability {percent(content['record_probability'])}.")
    about = "about " if chance["approximate"] or not chance["exhaustive"] else ""
    output.say(f"A record of random values comes as near with probability {about}{output.number(chance['p_value'])}.")
    output.gap()
    names = content["attributes"]
    has = [table.frame.get_column(name)[number - 1] for name in names]
    columns = [names, [values[name] for name in names], content["nearest"], content["ranks"], has, content["d"]]
    columns += content["diversity"].values()
    headings = ("attribute", "yours", "nearest released", "its rank", f"record {number} has", "distance d")
    headings += tuple(content["diversity"])
    output.grid(headings, list(zip(*columns, strict=True)))
    output.notes(content["notes"])
