"""Masking of a Parquet table of any size: every part by the same plan, the same release however the table is cut."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rankveil import files, masking, memory, metadata
from rankveil.cluster.engine import Engine
from rankveil.cluster.folders import Folder, check_target
from rankveil.cluster.reordering import gathered, original_rows, send_records
from rankveil.cluster.tables import check_parquet, is_parquet, rows_at_a_time
from rankveil.cluster.work import Progress, Work
from rankveil.digests import RowSum
from rankveil.errors import ClusterError, FileError, ParameterError, TableError
from rankveil.manifest import column_fingerprint, put_together
from rankveil.masking import Account
from rankveil.masking.row_order import Runs
from rankveil.partitions import places
from rankveil.partitions.dictionaries import in_no_order
from rankveil.partitions.parquet import Source, survey
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.together import BLOCK, Part, together
from rankveil.partitions.whole import Parts, Whole, looked_at
from rankveil.plans import Plan
from rankveil.restoring import broken
from rankveil.rows import Rows
from rankveil.schema import Schema
from rankveil.seeds import Seed
from rankveil.table import Table

_HELD = 10
"""Numbers of memory that masking takes for each value of a column that must be in one place."""

_SCRATCH = 64
"""Bytes of scratch that a value takes at most while all rows are put in order."""

_MOVED = 32
"""Bytes of scratch that a value takes at most while its record travels to another part."""

_IN_MEMORY = 60
"""Bytes that a cell takes at most while a table is masked in memory."""

_OF_FREE = 0.8
"""The share of the free memory that a table in memory may take."""


@dataclass(frozen=True, eq=False)
class MaskedParts:
    """A release in parts that lies beside its place, and what is to be told of it."""

    whole: Whole
    plan: Plan
    """The plan with what goes by the table."""
    account: Account
    seed: Seed
    key: Seed
    """What its draws come from."""
    fingerprint: str
    digest: str
    """That of the content of the release."""
    order: NDArray[np.intp] | None
    """The original row of each released row, when some were left out."""
    folder: Folder
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Job:
    """A table in parts, a plan for it, and where the release goes."""

    parts: Parts
    plan: Plan
    seed: Seed
    """The key of the release."""
    pseudonyms: Seed | None
    """That of its pseudonyms, where they have one of their own."""
    replicate: int
    folder: Folder
    scratch: Scratch

    @property
    def reorder(self) -> int | None:
        """The number of the step that puts all records in another order, which is the last; None without one."""
        last = len(self.plan.steps) - 1
        return last if self.plan.steps[last].entry.mapping == "reordered" and not self._leaves_out(last) else None

    def _leaves_out(self, number: int) -> bool:
        return self.plan.steps[number].entry.leaves_out


@dataclass(frozen=True, eq=False)
class Made:
    """What is told of the release of a partition."""

    account: Account
    schema: pa.Schema
    notes: tuple[str, ...]
    reordered: bool
    runs: Runs | None
    """By which columns the rows are sorted, where they keep their order."""


def open_table(path: object) -> Source:
    """A Parquet table that is masked in parts."""
    if not isinstance(path, str | os.PathLike):
        raise ParameterError("on a cluster, a table is a Parquet file or a folder of them, given by its path")
    check_parquet(path)
    source = survey(places.absolute(path))
    if len(source) == 0:
        raise TableError(f"{source.path}: the table has no records")
    return source


def too_large(path: object, out: object) -> str | None:
    """What to say when a table must be masked in parts; None when it fits in memory, or that cannot be told."""
    if isinstance(out, str | os.PathLike) and places.is_address(os.fspath(out)):
        if not is_parquet(path):
            raise ParameterError(
                f"{os.fspath(out)}: a release at an address is masked in parts, from a Parquet table; write the "
                "original as Parquet first, or the release to a disk"
            )
        return "the release goes to an address"
    if not (is_parquet(path) and is_parquet(out)) or not isinstance(path, str | os.PathLike):
        return None
    if places.is_address(os.fspath(path)):
        return "the table lies at an address"
    if not os.path.exists(path):
        return None
    source = survey(os.fspath(path))
    need, free = len(source) * len(source.names) * _IN_MEMORY, memory.available()
    if need <= free * _OF_FREE:
        return None
    return f"in memory the table may need {memory.shown(need)}, and {memory.shown(free)} are free"


@contextmanager
def masked_table(
    engine: Engine,
    source: Source,
    plan: Plan,
    *,
    out: str | os.PathLike[str],
    schema: Schema | None = None,
    seed: Seed | None = None,
    pseudonyms: Seed | None = None,
    replicate: int = 0,
    rows: int | None = None,
    block: int = BLOCK,
    resume: bool = False,
    progress: Progress | None = None,
) -> Iterator[MaskedParts]:
    """A release of a table by a plan: within the block it lies beside its place, and `folder.commit` brings it there.

    `rows` is how many a partition has at most, unless Parquet's row groups are larger. What was done is given up at
    the end of the block, unless work was lost or stopped. A seed that is drawn here is kept with it, for its owner
    alone to read, so that the work can be taken up.
    """
    schema = Schema.of(schema)
    if files.same_file(out, source.path):
        raise FileError(f"{os.fspath(out)}: the release would overwrite the original; give another name")
    check_target(os.fspath(out))  # before the work of a stopped job is taken up, which a refusal would give up
    _check(plan, source, engine)
    engine.check_seen([file.path for file in source.files])
    of = {
        "mask": [(file.path, *places.stamp(file.path)) for file in source.files],
        "plan": plan.to_json(),
        "schema": repr(schema),
        "out": places.absolute(out),
        "replicate": replicate,
    }
    kept = {
        "bounds": source.bounds(rows=rows or rows_at_a_time(source.names, engine.memory)),
        "seed": Seed.fresh().reveal() if seed is None else None,
    }
    private = " ".join("" if each is None else each.reveal() for each in (seed, pseudonyms)).rstrip()
    if not resume:
        _check_room(engine.scratch, source, plan)
    with Work(engine, of=of, kept=kept, private=private, resume=resume, progress=progress) as work:
        folder = Folder(os.fspath(out), name=os.path.basename(work.folder))
        folder.check()
        try:
            folder.make(fresh=not work.resumed)
            work.places.append(folder.staging)
            own = Seed.of(work.kept["seed"]) if seed is None else seed
            keys = (own, pseudonyms)
            yield _masked(work, engine, source, plan, folder, schema, keys, replicate, block, work.kept["bounds"])
        except (ClusterError, KeyboardInterrupt) as error:
            if folder.committed:
                work.finish()
            elif folder.left:
                error.args = (f"{str(error) or 'stopped'}; {folder.said_of_left()}",)
            raise
        except BaseException as error:
            _discard(folder, engine, error)
            raise
        if not folder.committed:
            folder.discard()


def _discard(folder: Folder, engine: Engine, error: BaseException) -> None:
    """Remove the parts of a release that failed; of one at an address the error says what became of them."""
    if folder.committed:
        return
    if folder.far and not engine.is_idle():
        folder.left.append(f"what a worker that does not end may still write with the prefix {folder.staging}/")
    folder.discard()
    if folder.left:
        error.args = (f"{error}; {folder.said_of_left()}",)
    elif folder.far and isinstance(error, FileError):
        error.args = (f"{error}; nothing was left there",)


def _masked(
    work: Work,
    engine: Engine,
    source: Source,
    plan: Plan,
    folder: Folder,
    schema: Schema,
    keys: tuple[Seed, Seed | None],
    replicate: int,
    block: int,
    bounds: Sequence[int],
) -> MaskedParts:
    work.plan([("look_at", 2.0, 1), ("fingerprint_of", 2.0, 1), ("attempt", 3.0, 4), ("row_sum_of", 2.0, 1)])
    seed, pseudonyms = keys
    labels = _labels(plan, source, schema)
    parts = looked_at(work, source, schema=schema, bounds=tuple(bounds), scratch=work.scratch, labels=labels)
    plan = masking.settled(plan, parts.whole)
    told = put_together(work(partial(fingerprint_of, parts), source.names))
    key = masking.release_key(seed, parts.whole, plan, fingerprint=told, replicate=replicate)
    job = Job(parts, plan, key, pseudonyms, replicate, folder, work.scratch)
    starts = [Part(number, start) for number, start in enumerate(bounds[:-1])]
    made = together(work, partial(mask_part, job), starts, scratch=work.scratch, block=block)
    wanted = _alike([part.schema for part in made])
    account = reduce(Account.merged, (part.account for part in made))
    order = None
    if job.reorder is not None:
        ends = np.linspace(0, account.released, len(starts) + 1).astype(np.int64).tolist()
        work(partial(write_reordered, job, wanted, ends), parts.partitions)
        order = original_rows(work.scratch, len(starts))
    else:
        others = [k for k, part in enumerate(made) if not part.schema.equals(wanted, check_metadata=True)]
        work(partial(rewrite, folder, wanted), others)
        order = _order(job) if any(part.reordered for part in made) else None
    _check_whole(folder, account.released)
    rows = reduce(RowSum.merged, work(partial(row_sum_of, folder), parts.partitions))
    count = len(starts)
    where = f"masked in {count} part{'s' if count > 1 else ''} on the cluster {engine.address.text}"
    resumed = ("what an earlier run had done was taken up",) if work.resumed else ()
    said = dict.fromkeys(note for part in made for note in part.notes)
    runs = [part.runs for part in made if part.runs is not None]
    kept = reduce(Runs.then, runs).notes() if runs else ()
    return MaskedParts(
        parts.whole,
        plan,
        account,
        seed,
        key,
        told,
        rows.digest,
        order,
        folder,
        (*engine.notes, *source.notes, *said, *kept, where, *resumed),
    )


def _check_whole(folder: Folder, records: int) -> None:
    """All parts are there and alike: a worker that was given up for lost may still have been at work."""
    if len(survey(folder.staging)) != records:
        raise ClusterError(f"{folder.staging}: the parts of the release do not have the records that they should")


def _labels(plan: Plan, source: Source, schema: Schema) -> set[str]:
    """Columns whose numbers may be taken as labels by a step, so that all that are different must be known."""
    found = set[str]()
    for step in plan.steps:
        if step.entry.works_on in ("names", "records") or not masking.as_labels(step.entry):
            continue
        if step.columns is not None:
            found.update(step.columns)
        elif step.entry.role is not None:
            found.update(schema.with_role(step.entry.role))
        else:
            found.update(name for name in source.names if _is_ordered(source, schema, name))
    return found & set(source.names)


def _is_ordered(source: Source, schema: Schema, name: str) -> bool:
    """Whether a column was declared, or is said by its file, to be ordered."""
    assert source.schema is not None
    described = metadata.read(source.schema.field(name))
    told = None if described is None else described.level
    return ((schema.kinds or {}).get(name) or told) == "ordinal"


def mask_part(job: Job, part: Part, rows: Rows) -> Made:
    """Mask a partition and write its release."""
    table = job.parts.table(part.number)
    drawn: dict[str, Any] = {"seed": job.seed, "pseudonyms": job.pseudonyms, "replicate": job.replicate}
    applied = masking.apply(table, job.plan, rows=rows, until=job.reorder, **drawn)
    numbers = {
        name: values
        for name, values in {**applied.values, **applied.weights}.items()
        if not table.labels(name) and name not in applied.labels and table.cells(name).temporal is None
    }
    counts = rows.sums([partial(_one, float(broken(values))) for values in numbers.values()])
    whole = {name: count == 0 for name, count in zip(numbers, counts, strict=True)}
    made, notes = table.replaced(
        applied.values,
        order=applied.order,
        labels=applied.labels,
        dropped=applied.dropped,
        weights=applied.weights,
        whole=whole,
        everywhere=rows.merged,
    )
    kept = np.arange(len(table)) if applied.order is None else applied.order
    original = kept.astype(np.int64) + part.start
    account, runs = applied.account(table), None
    anywhere = job.reorder is not None or applied.order is not None
    made = in_no_order(made, made.column_names if anywhere else applied.masked)
    if job.reorder is not None:
        here = rows.with_only(made.num_rows)
        named = ("mask", job.reorder, job.plan.steps[job.reorder].entry.id, job.replicate)
        draws = job.seed.stream(*named).at(start=here.start).bits(made.num_rows)
        places_now = here.places(draws)
        send_records(job.scratch, part.number, made, places_now, original)
        account = account.with_step(tuple(made.column_names))
    else:
        if applied.order is not None:
            job.scratch.put(_order_file(part.number), original)
        runs = Runs.of(table, Table(made, schema=table.schema.only(made.column_names), decimal=table.decimal))
        _write(job.folder.part(part.number), made)
    return Made(account, made.schema, tuple(notes), applied.order is not None, runs)


def write_reordered(job: Job, wanted: pa.Schema, ends: Sequence[int], number: int) -> None:
    """A task: write the records whose new places lie in a part."""
    parts = len(job.parts.partitions)
    _write(job.folder.part(number), gathered(job.scratch, parts, ends[number], ends[number + 1], wanted))


def _one(count: float) -> NDArray[np.float64]:
    return np.array([count])


def _write(path: str, table: pa.Table) -> None:
    with places.open_output(path) as file:
        pq.write_table(table, file)


def _alike(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Types that fit all parts: one part's values may fit in a type that another's do not."""
    if all(schema.equals(schemas[0], check_metadata=True) for schema in schemas):
        return schemas[0]
    return pa.unify_schemas(list(schemas), promote_options="permissive")


def rewrite(folder: Folder, wanted: pa.Schema, number: int) -> None:
    """A task: write a part again with other types."""
    with places.opened(folder.part(number)) as file:
        table = pq.ParquetFile(file).read()
    _write(folder.part(number), table.cast(wanted))


def fingerprint_of(parts: Parts, name: str) -> bytes:
    """A task: the fingerprint of a column."""
    return column_fingerprint(name, lambda: (parts.column(name, p) for p in parts.partitions))


def row_sum_of(folder: Folder, number: int) -> RowSum:
    """A task: what a part of the release adds to the digest of its content."""
    with places.opened(folder.part(number)) as file:
        return RowSum.of(Table(pq.ParquetFile(file).read()))


def _order(job: Job) -> NDArray[np.intp]:
    files = [_order_file(p) for p in job.parts.partitions]
    return np.concatenate([job.scratch.take(file, np.int64) for file in files]).astype(np.intp)


def _order_file(partition: int) -> str:
    return f"released-{partition}"


def _check(plan: Plan, source: Source, engine: Engine) -> None:
    """Refuse what cannot be done with a table in parts before anything is read."""
    for step in plan.steps:
        entry = step.entry
        if entry.works_on == "records" and not entry.by_parts and step is not plan.steps[-1]:
            raise ParameterError(f"{entry.id}: on a cluster it must be the last step of a plan")
        together = len(source.names) if entry.works_on == "columns" and step.columns is None else 1
        together = len(step.columns) if entry.works_on == "columns" and step.columns is not None else together
        whole = (entry.works_on != "records" and not entry.by_parts) or (
            entry.id == "mdav" and step.bound().get("kd_blocks") == 1
        )
        need = len(source) * together * 8 * _HELD
        if whole and need > engine.memory:
            remedy = "; --set kd_blocks=N groups the records of N blocks by themselves" if entry.id == "mdav" else ""
            raise ParameterError(
                f"{entry.id} needs all records of {'its columns' if together > 1 else 'a column'} in one place, about "
                f"{memory.shown(need)}, and a worker may use {memory.shown(engine.memory)}{remedy}"
            )


def _check_room(scratch: str, source: Source, plan: Plan) -> None:
    steps = [step.entry for step in plan.steps if step.method != "record_shuffle"]
    sorts = any(entry.marginals == "kept" or not entry.by_parts for entry in steps)
    need = len(source) * len(source.names) * ((_SCRATCH if sorts else 1) + (_MOVED if plan.reorders else 0))
    free = shutil.disk_usage(scratch).free
    if need > free:
        raise FileError(
            f"{scratch}: the job may need {memory.shown(need)} of scratch and {memory.shown(free)} are free; "
            "name a folder with more space"
        )
