"""What a person declares of the columns of a table: kinds, roles, orders, missing markers, hierarchies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from rankveil.errors import ParameterError, TableError, listing, suggestion
from rankveil.hierarchy import Hierarchy

Kind = Literal["numeric", "ordinal", "nominal"]
Role = Literal["identifier", "quasi-identifier", "confidential", "weight", "group", "other"]

UNMASKED_ROLES = ("identifier", "weight", "group", "other")
"""Roles that keep a column out of masking and measuring when a person gives them."""
NAMING_ROLES = ("quasi-identifier", "confidential")
"""Roles that bring a nominal column into masking and measuring when a person gives them."""


@dataclass(frozen=True)
class Schema:
    """What a person declared of the columns: kinds, orders of ordinal ones, roles, missing markers, hierarchies."""

    kinds: Mapping[str, str] | None = None
    levels: Mapping[str, Sequence[str]] | None = None
    roles: Mapping[str, str] | None = None
    missing: tuple[str, ...] = ()
    hierarchies: Mapping[str, Hierarchy] | None = None

    def __post_init__(self) -> None:
        read = {name: Hierarchy.of(given, name=name) for name, given in (self.hierarchies or {}).items()}
        object.__setattr__(self, "hierarchies", read)

    @classmethod
    def of(cls, given: Schema | Mapping[str, Any] | None) -> Schema:
        """What was declared: a schema, or a mapping with its keys (kinds, levels, roles, missing, hierarchies).

        >>> Schema.of({"roles": {"AGE": "quasi-identifier"}, "missing": ["-9"]}).missing
        ('-9',)
        """
        if given is None or isinstance(given, cls):
            return given or cls()
        known = [each.name for each in fields(cls)]
        if not isinstance(given, Mapping):
            raise ParameterError(
                f"schema must be a Schema or a mapping with {listing(known)}, not {type(given).__name__}: "
                'schema={"roles": {"AGE": "quasi-identifier"}}'
            )
        unknown = [str(key) for key in given if key not in known]
        if unknown:
            raise ParameterError(
                f"schema: {listing(unknown)} {'is' if len(unknown) == 1 else 'are'} not among its keys, which are "
                f'{listing(known)}; columns are named within these, as in {{"roles": {{"AGE": "quasi-identifier"}}}}'
            )
        for key in given:
            if key != "missing" and given[key] is not None and not isinstance(given[key], Mapping):
                raise ParameterError(f"schema: {key} must map names of columns, as in {{{key!r}: {{'AGE': ...}}}}")
        missing = given.get("missing") or ()
        return cls(**{**given, "missing": tuple(str(code) for code in listed(missing))})

    def check(self, names: Sequence[str]) -> None:
        """Every name is a column and every word a known one."""
        for what, given, words in (
            ("kind", self.kinds or {}, get_args(Kind)),
            ("role", self.roles or {}, get_args(Role)),
            ("levels", self.levels or {}, None),
            ("hierarchy", self.hierarchies or {}, None),
        ):
            for name, word in given.items():
                require_columns([name], names, where=f"the {what} given for")
                if words and word not in words:
                    raise ParameterError(f"column {name}: there is no {what} {word}{suggestion(str(word), words)}")
        for role in ("weight", "group"):
            several = [name for name, given in (self.roles or {}).items() if given == role]
            if len(several) > 1:
                raise ParameterError(f"only one column can be the {role}, not {listing(several)}")

    def with_role(self, *roles: str) -> tuple[str, ...]:
        """The columns that were given one of the roles."""
        return tuple(name for name, given in (self.roles or {}).items() if given in roles)

    def only(self, names: Iterable[str]) -> Schema:
        """What is declared of some columns."""
        names = set(names)

        def kept(given: Mapping[str, Any] | None) -> dict[str, Any]:
            return {name: value for name, value in (given or {}).items() if name in names}

        return Schema(kept(self.kinds), kept(self.levels), kept(self.roles), self.missing, kept(self.hierarchies))


def require_columns(wanted: Iterable[str], names: Sequence[str], *, where: str = "") -> None:
    """Each wanted name is a column, and wanted once."""
    seen = set()
    for name in wanted:
        if name not in names:
            said = f"{where} {name}: " if where else ""
            raise TableError(f"{said}there is no column {name}{suggestion(name, names)}")
        if name in seen:
            raise TableError(f"column {name} is named twice")
        seen.add(name)


def listed(names: str | Sequence[str]) -> tuple[str, ...]:
    """Several names, or one alone, which is not its letters.

    >>> listed("INCOME"), listed(["AGE", "TAX"])
    (('INCOME',), ('AGE', 'TAX'))
    """
    return (names,) if isinstance(names, str) else tuple(names)
