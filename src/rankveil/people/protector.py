"""The protector: masks a table, in memory or in parts, and publishes what may be told of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rankveil import auditing, files, masking
from rankveil.catalogue import get_measure
from rankveil.digests import digest_of
from rankveil.errors import FileError, ParameterError, listing
from rankveil.files import registry
from rankveil.manifest import Manifest, Secret, cautions, describe, fingerprint
from rankveil.masking.row_order import Runs
from rankveil.people import publishing
from rankveil.people.foreseeing import foreseen
from rankveil.people.pseudonyms import key_of_pseudonyms, notes_on_pseudonyms
from rankveil.plans import Plan, Step, make_step
from rankveil.schema import Schema, listed
from rankveil.seeds import SAFE_BITS, Seed, Stream
from rankveil.table import Table

if TYPE_CHECKING:
    from rankveil.cluster.engine import Engine
    from rankveil.cluster.folders import Folder
    from rankveil.files import Dialect


DEFAULT_METHOD = "copula_swap"
"""What masks where no method is named: it keeps every column's distribution and nearly all rank correlations."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Made:
    """What a release was made of: from it the manifest is written, and written again when the rows are shuffled."""

    table: Table
    plan: Plan
    account: masking.Account
    key: Seed
    """What its draws come from."""
    replicate: int
    measured: auditing.Audit | None
    """The measures that the protector publishes."""
    given: bool
    """Whether somebody gave the seed."""
    digest: str
    """That of the content of the release, in whatever order its rows stand."""
    notes: tuple[str, ...] = ()
    """What was said before anything is known of what is published."""
    released: tuple[str, ...] = ()
    """Identifiers that are released because somebody said so."""
    asked: Plan
    """The steps that somebody named."""

    def release(self, out: Any, secret: Secret, *, order_kept: bool = False) -> Release:
        """A release with its manifest, and what the protector should know of it."""
        table, plan, account, notes = self.table, self.plan, self.account, list(self.notes)
        values: dict[str, Any] = {}
        if self.measured is not None:
            values = {name: value.value for name, value in self.measured.values.items()}
            notes += [f"{name} is not published: {why}" for name, why in self.measured.not_applicable.items()]
        known = (*account.masked, *account.dropped, account.weight)
        passed = tuple(name for name in table.names if name not in known)
        notes += [*account.notes, *(f"warning: {each}" for each in cautions(plan, account))]
        notes += [*_warnings(table, passed, plan, account), *foreseen(plan, account)]
        changed = account.changed
        moved_alone = all(step.method in ("identity", "record_shuffle", "drop") for step in plan.steps)
        if changed and not any(changed.values()) and not moved_alone:
            notes.append("warning: no cell changed; the release is the original as far as the masked columns go")
        if self.given and secret.seed.bits < SAFE_BITS:
            notes.append(f"the seed has fewer than {SAFE_BITS} bits: good for studies, not for a release")
        measured = () if self.measured is None else self.measured.attributes
        return Release(
            data=out,
            manifest=describe(
                table,
                plan,
                account,
                digest=self.digest,
                published=values,
                measured=measured,
                order_kept=order_kept,
                released=self.released,
            ),
            secret=replace(secret, shuffle=self.shuffle) if secret.order is not None else secret,
            changed=changed,
            passed_through=passed,
            notes=tuple(dict.fromkeys(notes)),
            made=self,
        )

    @property
    def changes_nothing(self) -> str:
        """Why the result is no release: the plan leaves every record as it is; nothing where it changes something."""
        asked = [step for step in self.asked.steps if step.entry.role == "identifier"]
        steps = zip(self.plan.steps, self.account.columns, strict=True)
        values = {name for step, columns in steps if _is_of_values(step) for name in columns}
        if asked or self.account.released < len(self.table):
            return ""
        if any(many for name, many in self.account.changed.items() if name in values):
            return ""
        methods = ", then ".join(dict.fromkeys(step.method for step in self.asked.steps))
        return (
            f"the plan ({methods}) changes no value, so that the result is the original and no release; name a method "
            "that masks (rankveil methods), or more of it"
        )

    @property
    def last_stream(self) -> Stream:
        """The stream of the last step, where it is one on records."""
        return self.key.stream("mask", len(self.plan.steps) - 1, self.plan.steps[-1].method, self.replicate)

    @property
    def shuffle(self) -> Stream | None:
        """The stream of a shuffle that is all that the plan does to the order of the rows."""
        *others, last = self.plan.steps
        alone = last.method == "record_shuffle" and all(step.entry.mapping != "reordered" for step in others)
        return self.last_stream if alone else None


@dataclass(frozen=True, eq=False)
class Release:
    """A masked table with its public manifest and its secret."""

    data: Any
    manifest: Manifest
    secret: Secret
    changed: Mapping[str, int]
    """How many cells of each masked column are different now."""
    passed_through: tuple[str, ...]
    notes: tuple[str, ...]
    made: _Made | None = field(default=None, repr=False)
    """What it was made of, in memory; None of a release in parts, whose files are written already."""

    def published(self, *, keep_order: bool = False) -> Release:
        """The release as it is written to a file: its rows shuffled, unless a step reordered them or they are kept.

        By the order of the rows somebody who knows that of the original finds everybody, and from a column by which it
        was sorted he reads the original values. The shuffle is a last step `record_shuffle` of the plan: the values
        are the same, the manifest shows it, and the secret has the mapping.

        >>> import pyarrow as pa
        >>> import rankveil as rv
        >>> release = rv.mask(pa.table({"AGE": range(20, 60)}), "rank_swap", p=10)
        >>> release.published().manifest["row_order"]
        'shuffled'
        """
        made = self.made
        if made is None or made.plan.reorders:
            return self
        released = Table(self.data, schema=self._schema(), decimal=made.table.decimal)
        if keep_order:
            kept = made.release(self.data, self.secret, order_kept=True)
            return replace(kept, notes=(*kept.notes, *Runs.of(made.table, released).notes()))
        plan, account = made.plan.in_random_order(published=True), made.account.with_step(released.names)
        made = replace(made, plan=plan, account=account)
        order = made.last_stream.order(len(released))
        out, _ = released.replaced({}, order=order)
        before = self.secret.order
        return made.release(out, replace(self.secret, order=order if before is None else before[order]))

    @property
    def changes_nothing(self) -> str:
        """Why this is no release: its plan leaves every record as it is; the empty text where it changes something."""
        return "" if self.made is None else self.made.changes_nothing

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        keep_order: bool = False,
        manifest: str | os.PathLike[str] | None = None,
        secret: str | os.PathLike[str] | None = None,
        dialect: Dialect | None = None,
        formulas: str = "refuse",
    ) -> Release:
        """Write the release with its manifest and its secret, together or not at all, as `rankveil mask` does.

        Parameters
        ----------
        path
            A file of any format that can be written, or the address of a table of a database.
        keep_order
            Leave the rows in the original's order. The manifest says so; a column that is sorted is warned of.
        manifest, secret
            Where the two go; beside the release unless given (`release.csv.manifest.json`, `release.csv.secret.json`).
        dialect
            How a CSV is written, as `rankveil.files.load(original).dialect` tells of the original.
        formulas
            Texts in a CSV that a spreadsheet would run: refuse, neutralise (an apostrophe before each) or keep.

        Returns
        -------
        Release
            What was written: its rows in the order of the file, with the mapping of that order in its secret.
        """
        if self.made is None:
            raise ParameterError("this release was written in parts already; name its place with output= or --output")
        to = publishing.Places.beside(path, manifest=manifest, secret=secret)
        to.check()
        publishing.check_formulas(self.data, to, formulas=formulas)
        if why := self.changes_nothing:
            raise ParameterError(why)
        made = self.published(keep_order=keep_order)
        plan = self.made.plan
        written = publishing.write(
            made.data, made.manifest, made.secret, to, plan=plan, dialect=dialect, formulas=formulas
        )
        notes = (*made.notes, *written.notes, *written.entered.notes, *to.notes())
        return replace(made, manifest=written.manifest, notes=notes)

    def _schema(self) -> Schema:
        """What was declared of the columns that are released."""
        assert self.made is not None
        dropped = self.made.account.dropped
        return self.made.table.schema.only(name for name in self.made.table.names if name not in dropped)

    def __repr__(self) -> str:
        return f"Release({self.manifest!r}, masked: {', '.join(self.changed)})"

    def _repr_html_(self) -> str:
        from rankveil.report.notebook import shown

        steps = ", then ".join(step["method"] for step in self.manifest["steps"])
        words = f"A release of {self.manifest['records']['out']} records, masked by {steps}. {' '.join(self.notes)}"
        return shown(words.strip(), grids=[("", ("column", "cells changed"), list(self.changed.items()))])


def mask(
    data: Any,
    method: str | Step | Plan = DEFAULT_METHOD,
    *,
    columns: Sequence[str] | None = None,
    then: Sequence[str | Step] = (),
    seed: Seed | int | str | bytes | None = None,
    pseudonym_key: Seed | int | str | bytes | None = None,
    publish: Sequence[str] = (),
    replicate: int = 0,
    shuffled: bool = True,
    release_identifiers: Sequence[str] = (),
    schema: Any = None,
    decimal: str | None = None,
    cluster: str | Engine | None = None,
    output: str | os.PathLike[str] | None = None,
    scratch: str | os.PathLike[str] | None = None,
    memory: str | int | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
    **parameters: Any,
) -> Release:
    """Mask a table by a method or a plan; the same kind of table comes out, and the one given stays as it is.

    Without columns, in `columns` or in the plan, the decisions that `rankveil.inspect` shows are applied: identifiers
    are left out, weights are kept, group ids become pseudonyms, and quasi-identifiers and confidential columns are
    masked, those whose categories the method does not take by PRAM. `columns` masks exactly those; identifiers are left
    out all the same, unless `release_identifiers` names them.

    The seed is drawn from the operating system unless one is given. The draws depend on it and on the plan, the columns
    and the table, so that the same of all gives the same release, and one seed in two releases shares no draw. With a
    `pseudonym_key` pseudonyms depend on that alone, and stay the same over waves. `publish` names measures whose
    values go into the manifest. Synthetic records, which belong to nobody, are put in random order as a last step, so
    that their places tell nothing. Other records keep their order in memory, where nothing is published yet, and are
    put in random order where they are written: by `Release.write`, or here to `output`. `shuffled=False` leaves both
    where they are.

    With `cluster` ("local", "local:4", "tcp://host:8786", or an engine) the table is a Parquet file or folder of any
    size, given by its path, and the release a folder of Parquet files at `output`: the same values as in memory.
    `scratch`, `memory` and `resume` are for that, and `progress` is called with how much is done and how much there is.
    Without it a table may be given by the path of its file too. A Parquet one that would not fit in memory is masked by
    local processes, as with "local", when `output` is named; one that fits is written there as a Parquet file. Manifest
    and secret are written beside `output`, together with the release or not at all; for a release at an address the
    secret stays in the working folder.
    """
    plan = Plan.of(method, columns=columns, **parameters)
    for step in (then,) if isinstance(then, str | Step) else then:
        plan = plan.then(step if isinstance(step, Step) else make_step(step, {}))
    publish = listed(publish)
    for name in publish:
        get_measure(name)
    said: tuple[str, ...] = ()
    by_path = isinstance(data, str | os.PathLike)
    if cluster is None and by_path:
        cluster, said = _place_of(data, output)
    if cluster is not None:
        if output is None:
            raise ParameterError("on a cluster, name the folder that the release is written to (output=)")
        how: dict[str, Any] = {"scratch": scratch, "memory": memory, "resume": resume, "progress": progress}
        if decimal not in (None, "."):
            raise ParameterError("numbers of a Parquet table have no decimal mark; leave decimal out")
        declared: dict[str, Any] = {"schema": schema, "seed": seed, "publish": publish, "replicate": replicate}
        declared |= {"shuffled": shuffled, "pseudonym_key": pseudonym_key, "release_identifiers": release_identifiers}
        to = publishing.Places.beside(output)
        to.check(folder=True)
        with masked_in_parts(data, plan, output=output, cluster=cluster, **declared, **how) as (release, folder):
            entered = publishing.write_parts(folder, release.manifest, release.secret, to, plan=plan)
        return replace(release, notes=(*said, *release.notes, *folder.notes, *entered.notes, *to.notes()))
    if output is not None:
        _check_output(output, data if by_path else None)
    table = Table.of(auditing.loaded(data, schema=schema, decimal=decimal), schema=schema, decimal=decimal)
    asked, given = plan, table.with_schema(table.schema.given)
    decided = masking.defended(plan, table, release_identifiers=listed(release_identifiers))
    table, plan = decided.table, decided.plan.in_random_order() if shuffled else decided.plan
    pseudonyms = key_of_pseudonyms(pseudonym_key, plan)
    plan = masking.settled(plan, table)
    secret_seed = Seed.of(seed)
    told = fingerprint(given)
    key = masking.release_key(secret_seed, table, plan, fingerprint=told, replicate=replicate)
    applied = masking.apply(table, plan, seed=key, pseudonyms=pseudonyms, replicate=replicate)
    out, notes = table.replaced(
        applied.values,
        order=applied.order,
        labels=applied.labels,
        dropped=applied.dropped,
        weights=applied.weights,
    )
    secret = Secret(secret_seed, told, applied.order, replicate, pseudonyms is not None)
    kept = given.schema.only(name for name in table.names if name not in applied.dropped)
    content = Table(out, schema=kept, decimal=table.decimal)
    made = None
    if publish:
        matching: dict[str, Any] = {"mapping": False} if plan.synthetic else {"secret": secret}
        matching["columns"] = [name for name in table.usable() if name not in applied.dropped]
        made = auditing.audit(table, content, measures=publish, **matching)
        made = replace(made, pair=None)
    notes += notes_on_pseudonyms(plan, pseudonyms)
    whole = _Made(
        table=table,
        plan=plan,
        account=applied.account(table),
        key=key,
        replicate=replicate,
        measured=made,
        given=seed is not None,
        digest=digest_of(content),
        notes=(*decided.notes, *notes),
        released=decided.released,
        asked=asked,
    )
    release = whole.release(out, secret)
    return release if output is None else release.write(output, keep_order=not shuffled)


def _is_of_values(step: Step) -> bool:
    """Whether a step works on values, and is no pseudonym."""
    return step.entry.works_on in ("column", "columns") and step.entry.role != "identifier"


def _place_of(
    path: str | os.PathLike[str], output: str | os.PathLike[str] | None
) -> tuple[str | None, tuple[str, ...]]:
    """Where a table that is given by its path is masked in parts, None for in memory, and what is said about that."""
    from rankveil.cluster.masks import too_large

    why = too_large(path, "release.parquet" if output is None else output)
    if why is None:
        return None, ()
    if output is None:
        raise ParameterError(f"{why}; name the folder that a release in parts is written to (output=)")
    return "local", (f'{why}: masked in parts by processes of this machine, as with cluster="local"',)


def _check_output(output: str | os.PathLike[str], path: str | os.PathLike[str] | None) -> None:
    """Refuse a place that a release in memory is not written to, before anything is done."""
    if path is None:
        raise ParameterError(
            "output is for tables that are given by their paths; leave it out and write the release with write()"
        )
    if registry.ending_of(os.fspath(output)) != registry.FOLDER_ENDING:
        raise ParameterError(
            f"{os.fspath(output)}: without a cluster the output is Parquet; give it a name that ends in "
            f"{registry.FOLDER_ENDING}, or leave it out and write the release with write()"
        )
    if files.same_file(output, path):
        raise FileError(f"{os.fspath(output)}: the release would overwrite the original; give another name")
    publishing.Places.beside(output).check()


@contextmanager
def masked_in_parts(
    data: Any,
    plan: Plan,
    *,
    output: str | os.PathLike[str],
    cluster: str | Engine,
    schema: Schema | None = None,
    seed: Seed | int | str | bytes | None = None,
    pseudonym_key: Seed | int | str | bytes | None = None,
    publish: Sequence[str] = (),
    replicate: int = 0,
    shuffled: bool = True,
    scratch: str | os.PathLike[str] | None = None,
    memory: str | int | None = None,
    resume: bool = False,
    release_identifiers: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[Release, Folder]]:
    """A release of a table in parts, and the folder that has its name when it is committed within the block."""
    from rankveil.cluster.masks import leading_records, masked_table, open_table
    from rankveil.cluster.places import engine_at

    source = open_table(data)
    asked = plan
    head, said = leading_records(source, Schema.of(schema))
    decided = masking.defended(plan, head, release_identifiers=listed(release_identifiers), in_parts=True)
    schema, plan = decided.table.schema, decided.plan
    plan = plan.in_random_order(published=True) if shuffled else plan
    pseudonyms = key_of_pseudonyms(pseudonym_key, plan)
    with (
        engine_at(cluster, memory=memory, scratch=scratch) as engine,
        masked_table(
            engine,
            source,
            plan,
            out=output,
            schema=schema,
            seed=None if seed is None else Seed.of(seed),
            pseudonyms=pseudonyms,
            replicate=replicate,
            resume=resume,
            progress=progress,
        ) as made,
    ):
        secret = Secret(made.seed, made.fingerprint, made.order, replicate, pseudonyms is not None)
        published = None
        if publish:
            kept = schema.only(name for name in source.names if name not in made.account.dropped)
            matching: dict[str, Any] = {"mapping": False} if plan.synthetic else {"secret": secret}
            matching["columns"] = [name for name in made.whole.usable() if name not in made.account.dropped]
            published = auditing.audit(
                source.path, made.folder.staging, measures=publish, cluster=engine, schema=kept, seed=0, **matching
            )
        notes = (*made.notes, *notes_on_pseudonyms(made.plan, pseudonyms))
        whole = _Made(
            table=made.whole,
            plan=made.plan,
            account=made.account,
            key=made.key,
            replicate=replicate,
            measured=published,
            given=seed is not None,
            digest=made.digest,
            notes=(*said, *decided.notes, *notes),
            released=decided.released,
            asked=asked,
        )
        if why := whole.changes_nothing:
            raise ParameterError(why)
        release = whole.release(made.folder.target, secret, order_kept=not made.plan.reorders)
        yield replace(release, made=None), made.folder


def _warnings(table: Table, passed: Sequence[str], plan: Plan, applied: masking.Account) -> list[str]:
    told = []
    if plan.synthetic:
        told.append(
            "the synthetic records stand in random order, so that no place tells whose it was"
            if plan.reorders
            else "warning: the synthetic records stand in the original's order, so that a place tells whose it was"
        )
    if table.has_row_labels and all(step.entry.works_on != "records" for step in plan.steps):
        told.append("warning: the index of the table passed unmasked; reset it before release if it tells who is who")
    if type(table) is Table:  # of one in parts not all values are here
        told += masking.telling_weights(table, passed)
    open_ = masking.untouched(table, applied.masked, applied.dropped)
    others = [name for name in passed if name not in open_]
    if others and any(step.entry.works_on != "records" for step in plan.steps):
        told.append(f"passed through unmasked: {listing(others, most=10)}")
    if open_:
        told.append(
            f"warning: no step masks {listing(open_, most=10)}, which others may know or should not learn: add a "
            "method that takes them (--then pram exchanges categories, recode makes them coarser), or drop them"
        )
    told += [
        f"warning: column {name} is hardly masked: rounding to its grid, multiples of {grid.step:.6g}, put "
        f"{grid.back} of the {grid.drawn} cells that the noise had changed back; mask it with more noise, or with a "
        "method that moves values (rank_swap) or changes them as categories (--kind, pram)"
        for name, grid in applied.grids.items()
        if 2 * grid.back > grid.drawn
    ]
    return told
