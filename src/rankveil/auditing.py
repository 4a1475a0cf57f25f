"""Original and masked in, measures out: what holds, what does not apply and why, and gates for pipelines."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rankveil import catalogue
from rankveil.beside import mapping_beside
from rankveil.catalogue import Array, Measure, Value, get_measure, least_used
from rankveil.cluster.places import Parts, place_for, several
from rankveil.errors import NotApplicableError, PairError, ParameterError, suggestion
from rankveil.execute import in_threads, one_core_algebra
from rankveil.intruder.finding import Finding
from rankveil.measures._estimates import Stated
from rankveil.measuring import Measuring, Settings
from rankveil.moments import of_replicates
from rankveil.pairing import pair_tables, released_table
from rankveil.pairs import Pair
from rankveil.partitions.places import is_address
from rankveil.ranks import rank_changes
from rankveil.schema import listed
from rankveil.table import Table
from rankveil.uses import Uses
from rankveil.verdict.advice import Advice
from rankveil.verdict.deciding import Case, Together
from rankveil.verdict.gates import Gate, judged
from rankveil.verdict.headline import Measured, headline, overall
from rankveil.verdict.item import STATUSES, Item, Status, of_versions

if TYPE_CHECKING:
    from rankveil.cluster.engine import Engine
    from rankveil.report.audits import AuditPictures
    from rankveil.schema import Schema

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is."""

_NAMED = 12
"""Measures at most that a note names."""

_OF_TABLES = {"released", "use", "quasi_y"}
"""What measures of whole tables ask for, which are not measured on subdomains."""
_WHOLE = "the intruder who uses everything needs the tables in memory"

AUDIT_SCHEMA = "rankveil/audit/1"


@dataclass(eq=False)
class Audit:
    """The measures of a release."""

    records: int
    attributes: tuple[str, ...]
    mapping: str
    values: dict[str, Value]
    not_applicable: dict[str, str]
    gates: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pair: Pair | None = None
    mappings: tuple[str, ...] = ()
    """How each of several masked versions corresponds to the original, where they differ in that."""
    rankings: dict[str, str] = field(default_factory=dict)
    """By what the categories of columns are ordered, where there is no pair that tells it."""
    headline: list[Item] = field(default_factory=list)
    """The numbers that decide, in their order, each with its limit, its light and a sentence."""
    advice: list[Advice] = field(default_factory=list)
    """What would help most, each with a command."""

    def of_files(self, original: str, masked: str, *, reading: Sequence[str] = ()) -> Audit:
        """The same, with commands that name these files and say what was declared of their columns."""
        self.advice = [each.of_files(original, masked, reading=reading) for each in self.advice]
        return self

    @property
    def status(self) -> Status:
        """`red` where a limit is broken, `amber` where something was not measured or is near it, `green` otherwise."""
        return overall(self.headline)

    def __getitem__(self, name: str) -> float:
        """The value of a measure; one that does not apply says why."""
        if name in self.not_applicable:
            raise NotApplicableError(f"{name}: {self.not_applicable[name]}")
        if name not in self.values:
            get_measure(name)
            raise ParameterError(f"{name} was not asked for; this audit has {', '.join(self.values)}")
        return self.values[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    @property
    def ok(self) -> bool:
        """Whether every gate held."""
        return all(gate["ok"] for gate in self.gates)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `rankveil audit`."""
        shown = {}
        for name, value in self.values.items():
            entry = get_measure(name)
            shown[name] = {
                "value": value.value,
                "family": entry.family,
                "better": entry.better,
                "bounds": [bound if math.isfinite(bound) else None for bound in entry.bounds],
                "records": None if value.used is None else value.used.to_dict(),
                "details": dict(value.details),
            }
        return {
            "schema": AUDIT_SCHEMA,
            "records": self.records,
            "attributes": list(self.attributes),
            "mapping": self.mapping,
            "status": self.status,
            "headline": [item.to_dict() for item in self.headline],
            "advice": [each.to_dict() for each in self.advice],
            "rankings": self.rankings if self.pair is None else self.pair.rankings,
            "measures": shown,
            "not_applicable": self.not_applicable,
            "gates": self.gates,
            "notes": self.notes,
            **({"mappings": list(self.mappings)} if self.mappings else {}),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row per measure, for tables; those of several masked versions say how they vary."""
        made = []
        several = any("replicates" in value.details for value in self.values.values())
        for name, value in self.values.items():
            entry = get_measure(name)
            row = {"measure": name, "title": entry.title, "family": entry.family, "value": value.value}
            if several:
                low, high = value.details["interval"] or (None, None)
                row |= {"sd": value.details["sd"], "low": low, "high": high}
            made.append({**row, "better": entry.better, "records": "" if value.used is None else str(value.used)})
        return made

    def to_frame(self) -> Any:
        """A data frame with one row per measure: pandas when it is installed, otherwise pyarrow."""
        try:
            import pandas as pd
        except ImportError:
            import pyarrow as pa

            return pa.Table.from_pylist(self.rows())
        return pd.DataFrame(self.rows()).set_index("measure")

    def report(self, path: str | os.PathLike[str], *, command: str | None = None, public: bool = False) -> None:
        """Write the audit as one self-contained page, whole or not at all; a public one tells of no single record."""
        from rankveil.files import Staged, check_writable
        from rankveil.report.audits import audit_page

        check_writable(path, table=False)
        page = audit_page(self.to_dict(), self.pictures(), command=command, public=public)
        with Staged() as staged:
            staged.add(path, lambda file: file.write(page.encode("utf-8")))

    def pictures(self) -> AuditPictures:
        """What the figures of a page are drawn from."""
        from rankveil.report.audits import AuditPictures
        from rankveil.report.pictures import pictures_of

        return AuditPictures() if self.pair is None else pictures_of(self.pair, levels=self.rank_changes())

    def rank_changes(self) -> dict[str, Array]:
        """For each attribute how many ranks its records moved; empty without a mapping."""
        if self.pair is None or self.pair.mapping == "none":
            return {}
        views = zip(self.pair.names, self.pair.columns, strict=True)
        return {name: rank_changes(view.rank_x, view.rank_y) for name, view in views if len(view)}

    def __repr__(self) -> str:
        """In short, and without the original values that the pair holds."""
        decisive = [f"{item.id} {item.value:.4g}" for item in self.headline if item.value is not None]
        measured = [f"{name} {value.value:.4g}" for name, value in self.values.items() if len(self.values) <= _NAMED]
        shown = ", ".join(dict.fromkeys([*decisive, *measured]))
        return f"Audit({self.status}, {self.records} records, {shown})"

    def _repr_html_(self) -> str:
        from rankveil.report import figures
        from rankveil.report.audits import audit_grids, audit_words
        from rankveil.report.decision import decision_grid
        from rankveil.report.notebook import shown

        content, moved = self.to_dict(), self.rank_changes()
        charts = [figures.permutation_level(moved, n=self.records)] if moved else []
        return shown(audit_words(content), charts=charts, grids=[decision_grid(content), *audit_grids(content)])


@one_core_algebra()
def measure_pair(
    pair: Pair,
    *,
    names: Sequence[str] | None = None,
    gates: Sequence[str] = (),
    settings: Settings | None = None,
    target: str | None = None,
    nearest: bool = False,
    intruder: Callable[[], Finding] | None = None,
    use: Callable[[], list[Stated]] | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Every chosen measure (all by default) of a pair; what does not apply is recorded, not raised."""
    _, chosen = _asked_for(names, gates)
    measuring = Measuring(pair, settings=settings, target=target, nearest=nearest, intruder=intruder, use=use)
    values: dict[str, Value] = {}
    not_applicable: dict[str, str] = {}
    for number, name in enumerate(chosen):
        if progress is not None:
            progress(number, len(chosen))
        some, without = measuring.all([name])
        values |= some
        not_applicable |= without
    domains = {
        level: part if isinstance(part, str) else Measuring(part, settings=settings, target=target, nearest=nearest)
        for level, part in pair.domains().items()
    }
    for name in values if domains else ():
        entry = get_measure(name)
        if entry.family in ("loss", "utility") and not _OF_TABLES & set(entry.needs):
            values[name] = _with_domains(values[name], name, domains, size=pair.x.size)
    made = Audit(
        records=pair.records,
        attributes=pair.names,
        mapping=pair.mapping,
        values=values,
        not_applicable=not_applicable,
        notes=[*pair.notes, *_said(values)],
        pair=pair,
    )
    if pair.known[0].survey is not None:
        once = [name for name in values if not get_measure(name).weighted]
        but = f", but once each in {', '.join(once)}" if once else ""
        made.notes.append(f"records count by their weights{but}")
    if domains:
        assert pair.by is not None
        made.notes.append(f"losses and utilities are also given by {pair.by.column}, in {len(domains)} subdomains")
    return made


def _asked_for(names: Sequence[str] | None, gates: Sequence[str]) -> tuple[list[Gate], list[str]]:
    """The gates, and the measures that were chosen (all by default) or that gates need."""
    rules = [Gate.parse(rule) for rule in listed(gates)]
    chosen = list(catalogue.measures()) if names is None else list(dict.fromkeys(listed(names)))
    chosen += [name for rule in rules for name in rule.needs if name not in chosen]
    chosen = list(dict.fromkeys(chosen))
    for name in chosen:
        get_measure(name)
    return rules, chosen


def _said(values: Mapping[str, Value]) -> list[str]:
    """The notes of the measures, those that say the same together.

    What a measure repeats of parts that speak for themselves is left out.
    """
    by: dict[str, list[str]] = {}
    for name, value in values.items():
        for note in value.notes:
            parts = note.partition(":")[0].split(", ")
            if not all(part in values for part in parts):
                by.setdefault(note, []).append(name)
    return [f"{_several(names)}: {note}" for note, names in by.items()]


def _several(names: Sequence[str]) -> str:
    """Measures by name, the tables of losses and the like as one."""
    short = dict.fromkeys("loss_*" if name.startswith("loss_") else name for name in names)
    return (
        ", ".join(short) if len(short) <= _NAMED else f"{', '.join([*short][:_NAMED])} and {len(short) - _NAMED} more"
    )


def _with_domains(value: Value, name: str, domains: Mapping[str, Measuring | str], *, size: int) -> Value:
    """A value with the same measure on every subdomain in its details (Winkler's analytical validity)."""

    def of(part: Measuring | str) -> dict[str, Any]:
        if isinstance(part, str):
            return {"value": None, "not_applicable": part}
        made: dict[str, Any] = {"records": part.pair.records}
        try:
            made["value"] = part.value(name).value
        except NotApplicableError as why:
            made |= {"value": None, "not_applicable": str(why)}
        return made

    by = dict(zip(domains, in_threads(of, domains.values(), size=size), strict=True))
    return replace(value, details={**value.details, "by": by})


def audit(
    original: Any,
    masked: Any,
    *,
    measures: Sequence[str] | None = None,
    fail_if: Sequence[str] = (),
    settings: Settings | None = None,
    target: str | None = None,
    use: Any = None,
    pair: str | None = None,
    manifest: Any = None,
    knows: Sequence[str] | None = None,
    people: float = 1.0,
    progress: Progress | None = None,
    cluster: str | Engine | None = None,
    scratch: str | os.PathLike[str] | None = None,
    memory: str | int | None = None,
    subjects: int | str | None = None,
    resume: bool = False,
    **matching: Any,
) -> Audit:
    """Every measure that applies to a release, made by whatever tool.

    `masked` may be a list of several masked versions: every measure is then their mean, with its standard deviation and
    interval, and `secret`, `mapping` and `manifest` may be lists too. `settings` are parameters of measures, as in
    `{"um": {"basis": "values"}}`; `target` names the column of a stated use, and `use` states regressions, means and
    tables whose estimates are compared (the path of a TOML file, or what it holds); `pair="nearest"` lets losses pair
    the records of tables that do not correspond. `manifest` is what was published of the masking, which the intruder of
    `people_found` uses; `masked` may be what `rv.mask` or `Release.write` returned, with its manifest and the mapping
    in its secret. `matching` says how the tables belong together: columns, key, mapping, secret, by, seed, and the
    columns' schema.

    What decides is in `status`, `headline` and `advice`. `knows` (columns) and `people` (a share of them) describe
    somebody who knows less, whom the headline counts beside the worst case. With `measures` named, of people found and
    of utility the headline shows what is among them, and the rest as not measured, which is amber.

    Tables may be given by the paths of their files. Parquet ones of any size are measured in parts by the workers of a
    `cluster`: "local", "local:4", or the address of a Dask scheduler, such as "tcp://host:8786"; those that would not
    fit in memory are by local ones. `scratch` is a folder that all workers see, `memory` what local ones may use
    together, `subjects` how many of them linkage looks for ("all", or 10,000 unless given), and `resume` takes up what
    an earlier run had done.
    """
    if pair not in (None, "nearest"):
        raise ParameterError(f"pair must be nearest or left out, not {pair!r}")
    beside: list[str] = []
    if several(masked):
        manifests = list(manifest) if several(manifest) else [manifest] * len(masked)
        masked, manifests, matching = of_releases(masked, manifests, matching, beside)
    else:
        masked, manifest = of_release(masked, manifest, matching, beside)
    how = {"target": target, "use": use, "pair": pair, **matching}
    how |= {"knows": knows, "people": None if people == 1 else people}
    uses = None if use is None else Uses.of(use)
    place, said = place_for(original, masked, cluster, how)
    said = [*beside, *said]
    if place is not None:
        parts = Parts(place, scratch=scratch, memory=memory, subjects=subjects, resume=resume, progress=progress)
        return _in_parts(original, masked, parts, how, names=measures, gates=fail_if, settings=settings, said=said)
    paths = _paths(original, masked)
    read = partial(loaded, schema=matching.get("schema"))
    original, masked = read(original), [read(each) for each in masked] if several(masked) else read(masked)
    names = None if measures is None else [*listed(measures), *(("people_found",) if knows or people != 1 else ())]
    asked: dict[str, Any] = {"names": names, "gates": fail_if, "target": target, "nearest": pair == "nearest"}
    scenario: dict[str, Any] = {"knows": knows, "people": check_share(people, "people", such_as=0.1)}
    if not several(masked):
        both = pair_tables(original, masked, level="released", **matching)
        case = Case.of(original, masked, manifest, **scenario, **matching)
        asked["use"] = uses and cache(partial(_stated, original, masked, uses, **matching))
        made = _of_case(case, both, settings, progress=progress, **asked)
        made.headline, made.advice = case.decided(made.values, made.not_applicable, both)
        made.notes += [*said, *([] if case.another is None else [case.another])]
    else:
        made = _of_versions(
            original, masked, manifests, scenario, settings, progress=progress, asked=asked, uses=uses, **matching
        )
        made.notes += said
    made.gates = judged([Gate.parse(rule) for rule in listed(fail_if)], made.values, made.headline)
    return made if paths is None else made.of_files(*paths)


def _paths(original: Any, masked: Any) -> tuple[str, str] | None:
    """What the files are called, where both tables were given by them."""
    second = masked[0] if several(masked) else masked
    given = [os.fspath(each) for each in (original, second) if isinstance(each, str | os.PathLike)]
    return (given[0], given[1]) if len(given) == 2 else None


def check_share(given: Any, what: str, *, such_as: float) -> float:
    """A share from 0 to 1."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise ParameterError(f"{what} must be a share from 0 to 1, such as {such_as}, not {given!r}")
    return float(given)


def _of_case(case: Case, both: Pair, settings: Settings | None, **asked: Any) -> Audit:
    """The measures of one release, before it is decided about."""
    chosen, said = case.settings(settings)
    made = measure_pair(both, settings=chosen, intruder=case.find, **asked)
    made.notes += [*case.notes, *said]
    return made


def _of_versions(
    original: Any,
    masked: Sequence[Any],
    manifests: Sequence[Any],
    scenario: Mapping[str, Any],
    settings: Settings | None,
    *,
    progress: Progress | None,
    asked: Mapping[str, Any],
    uses: Uses | None,
    secret: Sequence[Any],
    mapping: Sequence[Any],
    **matching: Any,
) -> Audit:
    """Several masked versions: the mean of every measure, and of the numbers that decide the worst."""
    made: list[Audit] = []
    cases: list[Case] = []
    for number, (each, told, hidden, mapped) in enumerate(zip(masked, manifests, secret, mapping, strict=True)):
        own = {"secret": hidden, "mapping": mapped, **matching}
        both = pair_tables(original, each, beside=made[0].pair if made else None, level="released", **own)
        cases.append(Case.of(original, each, told, **scenario, **own))
        used = uses and cache(partial(_stated, original, each, uses, **own))
        part = _part(progress, number, len(masked))
        made.append(_of_case(cases[-1], both, settings, progress=part, use=used, **asked))
        if (other := cases[-1].another) is not None:
            made[-1].notes.append(other)
    together = Together(cases, key=matching.get("key"))
    for case, alone in zip(cases, made, strict=True):
        assert alone.pair is not None
        alone.headline, alone.advice = case.decided(alone.values, alone.not_applicable, alone.pair, found=together.find)
    whole = combined(made)
    whole.headline = of_versions([alone.headline for alone in made])
    whole.advice = max(made, key=lambda alone: STATUSES.index(alone.status)).advice
    if any("people_found" in alone.values for alone in made):
        whole.notes.append("the headline counts whom somebody finds who holds all versions together")
    return whole


def _stated(
    original: Any, masked: Any, uses: Uses, *, columns: Any = None, by: Any = None, **matching: Any
) -> list[Stated]:
    """The tables in the columns of every use, whichever are compared otherwise."""
    declared = {name: matching.pop(name) for name in ("schema", "decimal") if name in matching}
    first, second = Table.of(original, **declared), released_table(masked, **declared)
    made = []
    for use in uses.stated:
        for name in use.columns:
            if name not in first.names:
                raise ParameterError(f"{use}: there is no column {name}{suggestion(name, first.names)}")
        lost = [name for name in use.columns if name not in second.names or second.cells(name).missing.all()]
        # what is lost is compared with nothing
        both = (first, first) if lost else (first, second)
        tables = pair_tables(*both, columns=use.columns, **({} if lost else matching))
        made.append(Stated(use, tables, tuple(lost)))
    return made


def _one_each(given: Any, count: int, what: str) -> list[Any]:
    """What was given for each of several masked tables, or for all."""
    made = list(given) if isinstance(given, list | tuple) else [given] * count
    if len(made) != count:
        raise ParameterError(f"{count} masked tables need as many {what}, not {len(made)}")
    return made


def of_release(masked: Any, manifest: Any, matching: dict[str, Any], notes: list[str]) -> tuple[Any, Any]:
    """The table and the manifest of what `rv.mask` returned; what tells its mapping is added where none was given.

    Of a release that is given by its path, the manifest and the secret that lie beside it tell the mapping.
    """
    told = {"key", "secret", "mapping"} & matching.keys()
    if isinstance(masked, str | os.PathLike):
        if matching.get("key") is None and matching.get("secret") is None and matching.get("mapping", True) is True:
            matching["secret"], matching["mapping"] = mapping_beside(masked, notes)
        return masked, manifest
    if not (hasattr(masked, "manifest") and hasattr(masked, "secret")):
        if not told and manifest is not None and _content(manifest).get("mapping") == "reordered":
            raise PairError(
                "the rows of the release were reordered, as its manifest says; give its secret (secret=), what rv.mask "
                "returned in place of its table, or mapping=False"
            )
        return masked, manifest
    if not told:
        if masked.manifest["mapping"] == "none":
            matching["mapping"] = False
        elif masked.secret.order is not None:
            matching["secret"] = masked.secret
    return masked.data, masked.manifest if manifest is None else manifest


def _content(manifest: Any) -> Mapping[str, Any]:
    """What a manifest says; what is none is refused where it is read."""
    content = getattr(manifest, "content", manifest)
    return content if isinstance(content, Mapping) else {}


def of_releases(
    releases: Sequence[Any], manifests: Sequence[Any], matching: Mapping[str, Any], notes: list[str]
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Several releases with the manifest of each, and what tells the mapping of each, where `rv.mask` returned them."""
    count = len(releases)
    if not count:
        raise ParameterError("there is no masked table to measure")
    given = {what: _one_each(matching[what], count, f"{what}s") for what in ("secret", "mapping") if what in matching}
    made = []
    for number, (release, manifest) in enumerate(zip(releases, manifests, strict=True)):
        own = {what: each[number] for what, each in given.items() if what == "mapping" or each[number] is not None}
        own |= {"key": matching["key"]} if matching.get("key") is not None else {}
        table, told = of_release(release, manifest, own, notes)
        made.append((table, told, own.get("secret"), own.get("mapping", True)))
    tables, told, secrets, mappings = (list(each) for each in zip(*made, strict=True))
    return tables, told, {**matching, "secret": secrets, "mapping": mappings}


def loaded(table: Any, *, schema: Schema | None, decimal: str | None = None) -> Any:
    """A table given by the path or address of its file, with its own decimal mark unless one is given, or as it is."""
    if not isinstance(table, str | os.PathLike):
        return table
    from rankveil.cluster.tables import table_at
    from rankveil.files import load

    if is_address(os.fspath(table)):
        return table_at(os.fspath(table)).data
    loaded = load(table, decimal=decimal)
    return loaded.data if loaded.dialect is None else Table(loaded.data, schema=schema, decimal=loaded.dialect.decimal)


def _in_parts(
    original: Any,
    masked: Any,
    parts: Parts,
    how: Mapping[str, Any],
    *,
    names: Sequence[str] | None,
    gates: Sequence[str],
    settings: Settings | None,
    said: list[str],
) -> Audit:
    """The audit of two Parquet tables by the workers of a cluster."""
    rules, chosen = _asked_for(names, gates)
    asked = [*(listed(names) if names is not None else ()), *(rule.measure for rule in rules)]
    found = parts.measure(original, masked, how, names=chosen, asked=asked, settings=settings)
    made = Audit(
        records=found.records,
        attributes=found.attributes,
        mapping=found.mapping,
        values=found.values,
        not_applicable=found.not_applicable,
        notes=[*said, *found.notes, *_said(found.values)],
        rankings=dict(found.rankings),
    )
    made.headline = headline(
        Measured(
            found.values,
            found.not_applicable | {"people_found": _WHOLE},
            quasi=tuple(_quasi(found.values)),
            unread="tables in parts are measured without their manifest",
        )
    )
    made.gates = judged(rules, found.values, made.headline)
    return made


def _quasi(values: Mapping[str, Value]) -> Sequence[str]:
    """The quasi-identifiers by which the classes of tables in parts were counted."""
    return values["k_anonymity"].details.get("quasi_identifiers", ()) if "k_anonymity" in values else ()


def _part(progress: Progress | None, number: int, parts: int) -> Progress | None:
    """The progress of one part of several."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, parts * total)


def combined(made: Sequence[Audit]) -> Audit:
    """Audits of several masked versions of one original as one: the mean of every measure, and how it varies."""
    first = made[0]
    values: dict[str, Value] = {}
    not_applicable: dict[str, str] = {}
    notes = [f"every value is the mean of {len(made)} masked versions, with its 95 % interval; figures show the first"]
    for name in [*first.values, *first.not_applicable]:
        some = [each.values[name].value for each in made if name in each.values]
        if not some:
            not_applicable[name] = first.not_applicable[name]
            continue
        if len(some) < len(made):
            notes.append(f"{name} applies to {len(some)} of the {len(made)} masked versions, and is their mean")
        details = _spread(get_measure(name), some)
        each = [one.values[name].details.get("per_attribute", {}) for one in made if name in one.values]
        if all(each):
            details["per_attribute"] = _mean_of(each)
        used = [each.values[name].used for each in made if name in each.values]
        values[name] = Value(of_replicates(some)[0], details, used=least_used([one for one in used if one is not None]))
    for note in dict.fromkeys(note for each in made for note in each.notes):
        count = sum(note in each.notes for each in made)
        notes.append(note if count == len(made) else f"{note} (in {count} of {len(made)} versions)")
    whole = Audit(
        records=first.records,
        attributes=first.attributes,
        mapping=first.mapping,
        values=values,
        not_applicable=not_applicable,
        notes=notes,
        pair=first.pair,
    )
    if len({each.mapping for each in made}) > 1:
        whole.mappings = tuple(each.mapping for each in made)
        notes.append(f"the versions correspond to the original in different ways: {', '.join(whole.mappings)}")
    return whole


def _mean_of(each: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every attribute that all versions have."""
    common = [name for name in each[0] if all(name in given for given in each)]
    return {name: of_replicates([given[name] for given in each])[0] for name in common}


def _spread(entry: Measure, some: Sequence[float]) -> dict[str, Any]:
    """Standard deviation of replicates and the 95 % interval of their mean (Student's t), within the bounds."""
    details: dict[str, Any] = {"replicates": list(some), "sd": None, "interval": None}
    if len(some) > 1:
        mean, sd, reach = of_replicates(some)
        low, high = entry.bounds
        interval = [max(mean - reach, low), min(mean + reach, high)]
        # ends too large for a number are none
        details |= {"sd": sd, "interval": interval if all(map(math.isfinite, interval)) else None}
    return details
