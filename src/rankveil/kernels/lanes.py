"""Distances to 32 records, or to 32 boxes, in one pass: the innermost step of a search, as vector instructions.

A compiler that meets the plain loop over records and attributes keeps the running sums in memory and finds out again
and again that arrays do not overlap. Written as vectors the sums stay in registers: about three times as fast. LLVM
turns the vectors into whatever the processor has.

Arrays are in single precision, `LANES` numbers of an attribute side by side: block b of records is points[b, j, lane],
block b of boxes is boxes[b, j, 0, lane] (low) and boxes[b, j, 1, lane] (high). There must be no NaN. A pass leaves the
distances in `found` and returns the least of them.
"""

# numba finds the types itself
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: check-untyped-defs=False

from __future__ import annotations

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

LANES = 32

_REAL = ir.FloatType()
_LANES = ir.VectorType(_REAL, LANES)
_PLACES = ir.VectorType(ir.IntType(32), LANES)


@intrinsic
def squares_to_records(typing, points, block, q, found):
    """Squared Euclidean distances from q to a block of records."""
    return _distances(points, block, q, found, blocks=1, apart=_from_record, gather=_add_square)


@intrinsic
def maxima_to_records(typing, points, block, q, found):
    """The largest differences over attributes from q to a block of records."""
    return _distances(points, block, q, found, blocks=1, apart=_from_record, gather=_larger)


@intrinsic
def squares_to_boxes(typing, boxes, block, q, found):
    """Squared Euclidean distances from q to a block of boxes."""
    return _distances(boxes, block, q, found, blocks=2, apart=_from_box, gather=_add_square)


@intrinsic
def maxima_to_boxes(typing, boxes, block, q, found):
    """The largest differences over attributes from q to a block of boxes."""
    return _distances(boxes, block, q, found, blocks=2, apart=_from_box, gather=_larger)


@intrinsic
def lanes_within(typing, found, limit):
    """Which lanes of `found` are not above the limit, as bits: lane 0 is the lowest."""

    def generate(context, builder, signature, arguments):
        data = _data(context, builder, found, arguments[0])
        lanes = builder.load(builder.bitcast(data, _LANES.as_pointer()), align=4)
        within = builder.fcmp_ordered("<=", lanes, _splat(builder, arguments[1]))
        return builder.zext(builder.bitcast(within, ir.IntType(LANES)), ir.IntType(64))

    return types.int64(found, types.float32), generate


@intrinsic
def lowest_lane(typing, lanes):
    """The lowest of the lanes set, of which there must be one."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


def _distances(array, block, q, found, *, blocks, apart, gather):
    """A loop over attributes with the distances of all lanes in registers."""
    if any(one.layout != "C" or one.dtype != types.float32 for one in (array, q, found)):
        raise TypingError("distances are computed from contiguous arrays of single precision numbers")

    def generate(context, builder, signature, arguments):
        array_data, q_data, found_data = (
            _data(context, builder, kind, arguments[at]) for kind, at in ((array, 0), (q, 2), (found, 3))
        )
        m = builder.extract_value(context.make_array(q)(context, builder, arguments[2]).shape, 0)
        step = m.type(blocks * LANES)
        first = builder.gep(array_data, [builder.mul(arguments[1], builder.mul(m, step))])
        before = builder.basic_block
        body, after = builder.append_basic_block("attribute"), builder.append_basic_block("attributes.done")
        builder.branch(body)
        builder.position_at_end(body)
        j, total = builder.phi(m.type), builder.phi(_LANES)
        here = builder.gep(first, [builder.mul(j, step)])
        value = _splat(builder, builder.load(builder.gep(q_data, [j])))
        gathered = gather(builder, total, apart(builder, here, value))
        following = builder.add(j, m.type(1))
        for phi, start, again in ((j, m.type(0), following), (total, _zeros(), gathered)):
            phi.add_incoming(start, before)
            phi.add_incoming(again, body)
        builder.cbranch(builder.icmp_signed("<", following, m), body, after)
        builder.position_at_end(after)
        builder.store(gathered, builder.bitcast(found_data, _LANES.as_pointer()), align=4)
        return _call(builder, "llvm.vector.reduce.fmin", _REAL, [gathered])

    return types.float32(array, types.int64, q, found), generate


def _from_record(builder, here, value):
    """|x - q|."""
    return _call(builder, "llvm.fabs", _LANES, [builder.fsub(_load(builder, here, 0), value)])


def _from_box(builder, here, value):
    """max(low - q, q - high, 0): how far q lies outside."""
    below = builder.fsub(_load(builder, here, 0), value)
    above = builder.fsub(value, _load(builder, here, 1))
    return _larger(builder, _larger(builder, below, above), _zeros())


def _add_square(builder, total, apart):
    return _call(builder, "llvm.fmuladd", _LANES, [apart, apart, total])


def _larger(builder, one, other):
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


def _call(builder, name, result, arguments):
    """One of LLVM's own functions on vectors; without NaN the least of a vector needs no case of its own."""
    kinds = [argument.type for argument in arguments]
    function = ir.FunctionType(result, kinds)
    made = cgutils.get_or_insert_function(builder.module, function, f"{name}.v{LANES}f32")
    return builder.call(made, arguments, fastmath=("nnan",))


def _data(context, builder, kind, array):
    return context.make_array(kind)(context, builder, array).data


def _load(builder, here, block):
    """The numbers of all lanes; arrays of numpy promise no more than the alignment of one number."""
    place = builder.gep(here, [ir.IntType(64)(block * LANES)])
    return builder.load(builder.bitcast(place, _LANES.as_pointer()), align=4)


def _splat(builder, value):
    """The same number in all lanes."""
    empty = ir.Constant(_LANES, ir.Undefined)
    one = builder.insert_element(empty, value, ir.IntType(32)(0))
    return builder.shuffle_vector(one, empty, ir.Constant(_PLACES, [0] * LANES))


def _zeros():
    return ir.Constant(_LANES, [0.0] * LANES)
