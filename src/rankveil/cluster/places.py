"""Where two tables are measured: in memory, or in parts by the workers of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rankveil import cluster as clusters
from rankveil.errors import ParameterError

if TYPE_CHECKING:
    from rankveil.cluster.audits import Found
    from rankveil.cluster.engine import Engine
    from rankveil.measuring import Settings

_IN_PARTS = ("columns", "schema", "seed")
"""What can be told of tables that are measured in parts."""


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
        self, original: Any, masked: Any, how: Mapping[str, Any], *, names: Sequence[str], settings: Settings | None
    ) -> Found:
        """Some measures of two Parquet tables; `how` is what was told of them."""
        from rankveil.cluster.audits import measure_tables
        from rankveil.cluster.tables import open_tables
        from rankveil.seeds import Seed

        in_the_way = not_in_parts(how)
        if in_the_way is not None:
            raise ParameterError(f"{in_the_way}; leave it out")
        subjects = self._number_of_subjects()
        tables = open_tables(original, masked, columns=how.get("columns"), schema=how.get("schema"))
        with self._engine() as engine:
            return measure_tables(
                engine,
                tables,
                names=names,
                settings=settings,
                seed=Seed.of(how.get("seed", 0)),
                subjects=subjects,
                resume=self.resume,
                progress=self.progress,
            )

    def _engine(self) -> AbstractContextManager[Engine]:
        if isinstance(self.place, str):
            return clusters.open(self.place, memory=self.memory, scratch=self.scratch)
        return nullcontext(self.place)

    def _number_of_subjects(self) -> int | None:
        """How many subjects linkage looks for; None for all of them."""
        from rankveil.cluster.audits import SUBJECTS

        if self.subjects == "all":
            return None
        try:
            return SUBJECTS if self.subjects is None else int(self.subjects)
        except ValueError:
            raise ParameterError(f"subjects must be a whole number or all, not {self.subjects!r}") from None


def place_for(
    original: Any, masked: Any, cluster: str | Engine | None, how: Mapping[str, Any]
) -> tuple[str | Engine | None, list[str]]:
    """Where tables are measured in parts, None for in memory, and what is to be said about that."""
    if cluster is not None:
        if several(masked):
            raise ParameterError("on a cluster one masked table is measured at a time")
        return cluster, []
    if not isinstance(original, str | os.PathLike) or several(masked):
        return None, []
    from rankveil.cluster.tables import too_large

    why = too_large(original, masked)
    if why is None:
        return None, []
    in_the_way = not_in_parts(how)
    if in_the_way is None and find_spec("distributed") is None:
        in_the_way = "Dask is not installed (pip install 'rankveil[cluster]')"
    if in_the_way is not None:
        return None, [f"{why}; they were not measured in parts, as {in_the_way}"]
    return "local", [f"{why}: measured in parts by processes of this machine, as with --cluster local"]


def several(masked: object) -> bool:
    """Whether there are several masked versions."""
    return isinstance(masked, list | tuple)


def not_in_parts(how: Mapping[str, Any]) -> str | None:
    """What was asked for that cannot be done with tables in parts."""
    for name, given in how.items():
        if name == "mapping":
            if not given:
                return "records that do not correspond are not for a cluster"
        elif name not in _IN_PARTS and given is not None:
            return f"{name} is not for a cluster"
    return None
