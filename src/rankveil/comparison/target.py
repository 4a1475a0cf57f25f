"""What a comparison brings its methods to: at most a limit, or exactly a value as in the papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rankveil import catalogue
from rankveil.catalogue import get_measure
from rankveil.comparison.study import FOUND
from rankveil.errors import ParameterError, suggestion

EXACT = ("risk", "utility", "level")
"""Targets that are met exactly: the risk of the papers, the first utility, the permutation level of each attribute."""
RISK = "people_found"
"""The risk that methods are compared by unless another is named."""
PAPERS_RISK = "rank_linkage"
"""The one of the papers' comparison at equal risk."""
UTILITY = ("correlation_change", "mean_shift", "table_cells")
"""What decides, and is shown, unless other measures of utility are named."""
_BEFORE = ("loss_correlations_mae", "loss_means_mae")
"""Instead of those that the catalogue does not have."""
LEVEL = "permutation_level"
LIMITS = {"found": 0.09, RISK: 0.09}
"""Limits that need not be said: the threshold of the European Medicines Agency and of Health Canada."""


@dataclass(frozen=True)
class Asked:
    """What a comparison is about."""

    at: Mapping[str, float]
    risk: str
    utilities: tuple[str, ...]
    points: int

    @property
    def measure(self) -> str:
        """What a search looks at."""
        named = {"risk": self.risk, "utility": next(iter(self.utilities), ""), "level": LEVEL, RISK: FOUND}
        return next((named.get(what, what) for what in self.at), self.risk)

    @property
    def all(self) -> tuple[str, ...]:
        """The measures of every place that is shown."""
        own = () if self.limit is None or self.measure == FOUND else (self.measure,)
        return tuple(dict.fromkeys((self.risk, *self.utilities, *own)))

    @property
    def limit(self) -> float | None:
        """The value that is not to be passed; None where methods are made equal, or for a map."""
        return next((value for what, value in self.at.items() if what not in EXACT), None)

    @property
    def of_user(self) -> bool:
        """Whether the limit is one of utility: then the greatest strength within it is wanted, not the least."""
        return self.limit is not None and self.measure != FOUND and not get_measure(self.measure).protects

    @property
    def turned(self) -> float:
        """-1 where higher values are better, so that a turned value is at most the turned limit."""
        return -1.0 if self.measure != FOUND and get_measure(self.measure).better == "higher" else 1.0


def default_utilities() -> tuple[str, ...]:
    """The measures of utility that decide unless others are named."""
    known = catalogue.measures()
    return tuple(name for name in UTILITY if name in known) or _BEFORE


def risk_of(at: Mapping[str, float], risk: str | None) -> str:
    """The measure of risk: the one that is named, the papers' for their comparison, otherwise people found."""
    return risk or (PAPERS_RISK if "risk" in at else RISK)


def target_of(at: Mapping[str, float] | str | None, *, sweep: bool) -> dict[str, float]:
    """The target, checked; empty for a map. A name alone stands for its usual limit, where it has one."""
    if sweep == bool(at):
        raise ParameterError('say where to compare, as in at={"found": 0.09}, or sweep the whole map')
    wanted = _with_limit(at) if isinstance(at, str) else dict(at or {})
    if len(wanted) > 1:
        raise ParameterError(f"compare at one target, not at {', '.join(wanted)}")
    for what, value in wanted.items():
        _check(what, value)
    return wanted


def _with_limit(what: str) -> dict[str, float]:
    _check_name(what)
    if what not in LIMITS:
        raise ParameterError(f"the target {what} needs a value, as in --at {what}={_example(what)}")
    return {what: LIMITS[what]}


def _example(what: str) -> str:
    return {"k_anonymity": "5", "l_diversity": "2", "risk": "0.45", "utility": "0.9", "level": "0.2"}.get(what, "0.05")


def _check_name(what: str) -> None:
    if what == "claims":
        raise ParameterError(
            "the target claims is retired: it never said who is found; name the largest share of people found that "
            "you accept, as in --at found=0.09"
        )
    known = catalogue.measures()
    if what not in (*EXACT, "found") and what not in known:
        raise ParameterError(f"there is no target {what}{suggestion(what, (*EXACT, 'found', *known))}")


def _check(what: str, value: object) -> None:
    _check_name(what)
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value or abs(value) == float("inf"):
        raise ParameterError(f"the target {what} must be a number, not {value!r}")
    if what in LIMITS and not 0 < value < 1:
        raise ParameterError(f"the share of people found lies between 0 and 1, as in {what}=0.09, not {value:g}")
    if what == "level" and not 0 < value < 1:
        raise ParameterError("a permutation level lies between 0 and 1")
    if what in catalogue.measures():
        low, high = get_measure(what).bounds
        if not low <= value <= high:
            raise ParameterError(f"{what} lies between {low:g} and {high:g}, so it cannot be asked for {value:g}")


def check_family(name: str, what: str, families: Sequence[str]) -> None:
    """A measure in a role that is not its own would turn the search or the ranking round."""
    family = get_measure(name).family
    if family not in families:
        raise ParameterError(
            f"{what} must be a measure of {' or '.join(families)}, and {name} is one of {family}; see rankveil measures"
        )
