"""Records of a release in another order: each travels to the part that its new place lies in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankveil.partitions.looking import put_cells
from rankveil.partitions.scratch import Scratch

Places = NDArray[np.int64]


def send_records(scratch: Scratch, part: int, records: pa.Table, places: Places, rows: Places) -> None:
    """Leave the records of a part in the order of their new places; `rows` are those of the original."""
    order = np.argsort(places)
    put_cells(scratch, _records_file(part), records.take(pa.array(order)))
    scratch.put(_places_file(part), places[order])
    scratch.put(_rows_file(part), rows[order])


def gathered(scratch: Scratch, parts: int, start: int, stop: int, schema: pa.Schema) -> pa.Table:
    """The records whose new places lie from start to before stop, in their order."""
    found, places = [], []
    for part in range(parts):
        own = scratch.glance(_places_file(part), np.int64)
        first, last = np.searchsorted(own, [start, stop])
        if last > first:
            with pa.memory_map(scratch.path(_records_file(part))) as file, pa.ipc.open_stream(file) as reader:
                found.append(reader.read_all().slice(first, last - first).cast(schema))
            places.append(np.asarray(own[first:last]))
    together = pa.concat_tables([schema.empty_table(), *found]).unify_dictionaries().combine_chunks()
    return together.take(pa.array(np.argsort(np.concatenate([np.empty(0, np.int64), *places]))))


def original_rows(scratch: Scratch, parts: int) -> NDArray[np.intp]:
    """The original row of each record, in the new order."""
    places = [scratch.take(_places_file(part), np.int64) for part in range(parts)]
    found = np.empty(sum(each.size for each in places), np.intp)
    for part, own in enumerate(places):
        found[own] = scratch.take(_rows_file(part), np.int64)
    return found


def _records_file(part: int) -> str:
    return f"records-{part}"


def _places_file(part: int) -> str:
    return f"new-places-{part}"


def _rows_file(part: int) -> str:
    return f"original-rows-{part}"
