"""The options of work on a cluster, which several verbs share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from rankveil.cli.addresses import refuse_address
from rankveil.cli.failures import Stopped
from rankveil.cli.options import Matching, Reading
from rankveil.errors import ParameterError


@dataclass(frozen=True)
class OnCluster:
    """Who does the work of many tasks."""

    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="PLACE", help="Workers of a cluster instead: local:4 or tcp://host:8786."),
    ] = None
    scratch: Annotated[
        str | None,
        typer.Option("--scratch", metavar="DIR", help="A folder for the files of that; all workers must see it."),
    ] = None
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="What local workers may use together, as in 3GiB.")
    ] = None

    def check(self) -> None:
        """Refuse a scratch folder that is an address."""
        if self.scratch is not None:
            refuse_address(self.scratch, "scratch folder", wanted="folder")


@dataclass(frozen=True)
class Clustering(OnCluster):
    """Where large tables are worked on, and what that needs."""

    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="PLACE",
            help="Parquet of any size, in parts: local, local:4 or tcp://host:8786. [local if memory is short]",
        ),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Take up work in parts that was stopped.")] = False


Subjects = Annotated[
    str | None,
    typer.Option(
        "--subjects",
        metavar="N",
        help="With --cluster: subjects whose nearest masked record is looked for, or all. [10000]",
    ),
]


@dataclass(frozen=True)
class Place:
    """Where tables are worked on."""

    cluster: str | None
    """None for in memory."""
    how: dict[str, Any]
    """Keyword arguments for work in parts."""
    notes: list[str]


def place_of(
    original: str,
    masked: Sequence[str],
    reading: Reading,
    matching: Matching,
    clustering: Clustering,
    use: Mapping[str, Any],
    *,
    done: str = "measured",
) -> Place:
    """Where something is done with tables: in parts when that is asked for, or memory would be short."""
    from rankveil.beside import read_secret
    from rankveil.cli.tables import declared_schema, mapping_of
    from rankveil.cluster.places import place_for
    from rankveil.partitions.places import exists

    clustering.check()
    how: dict[str, Any] = {
        **use,
        "columns": reading.chosen,
        "schema": declared_schema(reading),
        "key": matching.key,
        "secret": matching.secret,
        "mapping": not matching.no_mapping,
        "seed": matching.seed,
    }
    versions = list(masked) if len(masked) > 1 else masked[0]
    cluster, notes = place_for(original, versions, clustering.cluster, how, done=done)
    if cluster is None:
        if clustering.resume:
            raise ParameterError("--resume takes up work in parts: say where, as with --cluster local")
        return Place(None, {}, notes)
    assert isinstance(cluster, str)
    if matching.secret is not None:
        how["secret"] = read_secret(matching.secret)
    elif matching.key is None and not matching.no_mapping and exists(masked[0]):
        how["secret"], how["mapping"] = mapping_of(masked[0], notes, records=_records(masked[0]))
    how |= {"scratch": clustering.scratch, "memory": clustering.memory, "resume": clustering.resume}
    return Place(cluster, how, notes)


def _records(path: str) -> int:
    from rankveil.cluster.tables import is_parquet
    from rankveil.partitions.parquet import survey

    return len(survey(path)) if is_parquet(path) else -1


@contextmanager
def kept_when_stopped() -> Iterator[None]:
    """After Ctrl-C, say where finished work is kept."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if stop.args:
            raise Stopped(str(stop)) from None
        raise
