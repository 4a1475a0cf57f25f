"""What an Arrow file says that it will take in memory, read before anything of it is unpacked.

A message begins with a table of FlatBuffers, in which numbers and offsets stand at places that another small table
tells; only the few that hold sizes are looked up. See the files Message.fbs and File.fbs of the Arrow format.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_DICTIONARY, _RECORDS = 2, 3
_HEADER_TYPE, _HEADER = 1, 2
_DATA = 1
_NODES, _BUFFERS, _COMPRESSION = 1, 2, 3
_PAIR = struct.Struct("<qq")


def unpacked(message: pa.Message) -> int:
    """Bytes that the columns of a message take once they are unpacked, one at least for each cell.

    >>> import pyarrow as pa
    >>> unpacked(pa.ipc.read_message(pa.record_batch({"a": [0.5] * 1000}).serialize()))
    8000
    """
    head, body = memoryview(message.metadata), memoryview(message.body)
    root = _follow(head, 0)
    kind = _place(head, root, _HEADER_TYPE)
    header = _place(head, root, _HEADER)
    if kind is None or header is None or head[kind] not in (_DICTIONARY, _RECORDS):
        return 0
    records = _follow(head, header)
    if head[kind] == _DICTIONARY:
        data = _place(head, records, _DATA)
        if data is None:
            return 0
        records = _follow(head, data)
    packed = _place(head, records, _COMPRESSION) is not None
    cells = sum(max(0, length) for length, _ in _pairs(head, records, _NODES))
    sizes = (_size(body, start, length, packed=packed) for start, length in _pairs(head, records, _BUFFERS))
    return max(cells, sum(sizes))


def _size(body: memoryview, start: int, length: int, *, packed: bool) -> int:
    """The size of a buffer; before a packed one stands what it will have, or -1 when it was not worth packing."""
    if not packed or length <= 0:
        return max(0, length)
    told: int = struct.unpack_from("<q", body, start)[0]
    return length if told < 0 else told


def _pairs(head: memoryview, table: int, field: int) -> list[tuple[int, int]]:
    """A vector of pairs of numbers."""
    place = _place(head, table, field)
    if place is None:
        return []
    start = _follow(head, place)
    count: int = struct.unpack_from("<I", head, start)[0]
    return list(_PAIR.iter_unpack(head[start + 4 : start + 4 + count * _PAIR.size]))


def _place(head: memoryview, table: int, field: int) -> int | None:
    """Where a field of a table stands; None when it was left out."""
    fields = table - struct.unpack_from("<i", head, table)[0]
    size = struct.unpack_from("<H", head, fields)[0]
    at = 4 + 2 * field
    offset = struct.unpack_from("<H", head, fields + at)[0] if at < size else 0
    return table + offset if offset else None


def _follow(head: memoryview, place: int) -> int:
    """Where an offset leads."""
    return place + int(struct.unpack_from("<I", head, place)[0])
