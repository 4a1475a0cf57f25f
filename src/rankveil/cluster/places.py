"""Where two tables are measured: in memory, or in parts by the workers of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rankveil import cluster as clusters
from rankveil.errors import ParameterError
from rankveil.pairing import checked_mapping

if TYPE_CHECKING:
    from rankveil.cluster.attacks import Linked, Trying
    from rankveil.cluster.audits import Found
    from rankveil.cluster.engine import Engine
    from rankveil.cluster.tables import Given
    from rankveil.measuring import Settings

_IN_PARTS = ("columns", "schema", "seed")
"""What can be told of tables that are worked on in parts."""

_CORRESPONDING = ("key", "mapping")
"""What can be told besides of how the records of tables correspond that are measured in parts."""


@dataclass(frozen=True)
class Parts:
    """How tables are measured in parts."""

    place: str | Engine
    """The address of a cluster, or an engine that is open already."""
    scratch: str | os.PathLike[str] | None = None
    memory: str | int | None = None
    subjects: int | str | None = None
    resume: bool = False
    progress: Callable[[int, int], None] | None = None

    def measure(
        self,
        original: Any,
        masked: Any,
        how: Mapping[str, Any],
        *,
        names: Sequence[str],
        asked: Collection[str],
        settings: Settings | None,
    ) -> Found:
        """Some measures of two Parquet tables; `how` is what was told of them, `asked` are measures that were named."""
        from rankveil.cluster.audits import measure_tables
        from rankveil.seeds import Seed

        given, subjects = self._given(original, masked, how), self._number_of_subjects()
        with engine_at(self.place, memory=self.memory, scratch=self.scratch) as engine:
            return measure_tables(
                engine,
                given,
                names=names,
                asked=asked,
                settings=settings,
                seed=Seed.of(how.get("seed", 0)),
                subjects=subjects,
                resume=self.resume,
                progress=self.progress,
            )

    def link(self, original: Any, masked: Any, how: Mapping[str, Any], *, random: Trying, draws: int) -> Linked:
        """The intruder's links in two Parquet tables; `how` is what was told of them."""
        from rankveil.cluster.attacks import link_tables
        from rankveil.seeds import Seed

        given, subjects = self._given(original, masked, how), self._number_of_subjects()
        with engine_at(self.place, memory=self.memory, scratch=self.scratch) as engine:
            return link_tables(
                engine,
                given,
                random=random,
                seed=Seed.of(how.get("seed", 0)),
                subjects=subjects,
                draws=draws,
                resume=self.resume,
                progress=self.progress,
            )

    def _given(self, original: Any, masked: Any, how: Mapping[str, Any]) -> Given:
        """The tables, with what was told of them; something that is not for tables in parts is refused."""
        from rankveil.cluster.tables import given_tables

        in_the_way = not_in_parts(how, also=_CORRESPONDING)
        if in_the_way is not None:
            raise ParameterError(f"{in_the_way}; leave it out")
        told = {name: how[name] for name in ("columns", "schema", *_CORRESPONDING) if how.get(name) is not None}
        return given_tables(original, masked, **told)

    def _number_of_subjects(self) -> int | None:
        """How many subjects linkage looks for; None for all of them."""
        from rankveil.cluster.audits import SUBJECTS

        if self.subjects == "all":
            return None
        try:
            return SUBJECTS if self.subjects is None else int(self.subjects)
        except ValueError:
            raise ParameterError(f"subjects must be a whole number or all, not {self.subjects!r}") from None


def engine_at(
    place: str | Engine, *, memory: str | int | None = None, scratch: str | os.PathLike[str] | None = None
) -> AbstractContextManager[Engine]:
    """The workers at an address, let go at the end; those that are open already stay so."""
    if isinstance(place, str):
        return clusters.open(place, memory=memory, scratch=scratch)
    return nullcontext(place)


def place_for(
    original: Any, masked: Any, cluster: str | Engine | None, how: Mapping[str, Any], *, done: str = "measured"
) -> tuple[str | Engine | None, list[str]]:
    """Where something is done with tables in parts, None for in memory, and what is to be said about that."""
    if cluster is not None:
        if several(masked):
            raise ParameterError(f"on a cluster one masked table is {done} at a time")
        return cluster, []
    if not isinstance(original, str | os.PathLike) or several(masked):
        return None, []
    from rankveil.cluster.tables import too_large

    why = _elsewhere(original, masked) or too_large(original, masked)
    if why is None:
        return None, []
    in_the_way = not_in_parts(how, also=_CORRESPONDING)
    if in_the_way is None and find_spec("distributed") is None:
        in_the_way = "Dask is not installed (pip install 'rankveil[cluster]')"
    if in_the_way is not None and why == _elsewhere(original, masked):
        raise ParameterError(f"{why}, where they are read in parts alone, and {in_the_way}")
    if in_the_way is not None:
        return None, [f"{why}; they were not {done} in parts, as {in_the_way}"]
    return "local", [f"{why}: {done} in parts by processes of this machine, as with --cluster local"]


def _elsewhere(original: Any, masked: Any) -> str | None:
    """What to say of tables that lie at addresses, which are read in parts alone."""
    from rankveil.partitions.places import is_address

    paths = [os.fspath(path) for path in (original, masked) if isinstance(path, str | os.PathLike)]
    return "the tables lie at addresses" if any(isinstance(path, str) and is_address(path) for path in paths) else None


def several(masked: object) -> bool:
    """Whether there are several masked versions."""
    return isinstance(masked, list | tuple)


def not_in_parts(how: Mapping[str, Any], *, also: Collection[str] = ()) -> str | None:
    """What was asked for that cannot be done with tables in parts; `also` can be done."""
    for name, given in how.items():
        if name in also:
            continue
        if name == "mapping":
            if not checked_mapping(given):
                return "records that do not correspond are not for a cluster"
        elif name not in _IN_PARTS and given is not None:
            return f"{name} is not for a cluster"
    return None
