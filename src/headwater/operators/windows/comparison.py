"""A window beside the one of some time before: as many errors as in this hour last week, or twice as many?

Each aggregate that tells a number gets three columns more: what it told of the earlier window, by how
much that has changed, and the ratio of both. What the earlier window comes to is looked up when the later
one is published, in what is held of it.

Invariant: what a row says of the earlier window is what that one's own last publication says.
"""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

from headwater import schema as ddl
from headwater.errors import UsageError
from headwater.operators.aggregates.aggregate import is_integer, is_number
from headwater.operators.columns import one_array
from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries, spans
from headwater.operators.windows.windowing import REVISION, Windowing

BEFORE, CHANGE, RATIO = "_before", "_change", "_ratio"
_DIGITS = 38
_WHOLE = 1 << 53
"""Up to which every integer is a DOUBLE."""


def output_schema(windowing: Windowing, plain: pa.Schema) -> pa.Schema:
    """Return the schema of rows out with the columns that compare, which come after the aggregates."""
    names = _compared(windowing, plain)
    if not names:
        raise UsageError(
            f"{windowing.what} has nothing to compare",
            detail="none of its aggregates tells a number",
            hint="leave compare= out, or add an aggregate such as n=agg.count()",
        )
    place = plain.get_field_index(REVISION)
    more = [field for name in names for field in _fields(name, plain.field(name).type)]
    fields = [*list(plain)[:place], *more, *list(plain)[place:]]
    windowing.check_names([field.name for field in fields])
    return pa.schema(fields)


def rough(windowing: Windowing) -> list[str]:
    """Return the columns that compare estimates."""
    names = [name for name, each in windowing.aggregates if not each.exact]
    return [f"{name}{end}" for name in names for end in (BEFORE, CHANGE, RATIO)]


def beside(windowing: Windowing, out: pa.Table, earlier: tuple[Times, Numbers], before: Entries) -> pa.Table:
    """Add to rows out how they compare, given the start and the key of the earlier window of each.

    ``before`` has the partial results, in their order, of those earlier windows that there are.
    """
    schema, names = output_schema(windowing, out.schema), _compared(windowing, out.schema)
    start, end = spans(before, *earlier, earlier[1] + 1)
    places = pa.array(start, mask=start >= end)
    known = windowing.named_results(before.rows, names)
    made = [
        column
        for name in names
        for column in _columns(name, one_array(out.column(name)), known[name].take(places))
    ]
    place = out.schema.get_field_index(REVISION)
    return pa.Table.from_arrays([*out.columns[:place], *made, *out.columns[place:]], schema=schema)


def _compared(windowing: Windowing, plain: pa.Schema) -> list[str]:
    """Return the aggregates that tell a number."""
    return [name for name, _ in windowing.aggregates if is_number(plain.field(name).type)]


def _fields(name: str, kind: pa.DataType) -> list[pa.Field]:
    kinds = {BEFORE: kind, CHANGE: _change_type(kind), RATIO: pa.float64()}
    return [pa.field(f"{name}{end}", each) for end, each in kinds.items()]


def _columns(name: str, now: pa.Array, before: pa.Array) -> list[pa.Array]:
    return [before, _change(name, now, before), _ratio(now, before)]


def _change_type(kind: pa.DataType) -> pa.DataType:
    """Return the widest type of its kind, as a sum has it."""
    if pa.types.is_decimal(kind):
        return pa.decimal128(_DIGITS, kind.scale)
    return pa.int64() if is_integer(kind) else pa.float64()


def _change(name: str, now: pa.Array, before: pa.Array) -> pa.Array:
    kind = _change_type(now.type)
    # A digit more than there is in the result, so that what does not fit is seen, and not an error of types.
    wide = pa.decimal256(_DIGITS + 1, kind.scale) if pa.types.is_decimal(kind) else kind
    try:
        return pc.subtract_checked(now.cast(wide), before.cast(wide)).cast(kind)
    except pa.ArrowInvalid:
        raise UsageError(
            f'a change of "{name}" does not fit {ddl.type_name(pa.field(name, kind))}',
            hint="cast the column to DOUBLE before",
        ) from None


def _ratio(now: pa.Array, before: pa.Array) -> pa.Array:
    """Return how many times as much it is, rounded once; null where there was nothing, or zero."""
    if _floats_hold(now) and _floats_hold(before):
        divisor = before.cast(pa.float64())
        return pc.divide(now.cast(pa.float64()), pc.if_else(pc.equal(divisor, 0.0), None, divisor))
    # Python divides numbers of any size and rounds once; few are decimals, or so large.
    both = zip(now.to_pylist(), before.to_pylist(), strict=True)
    ratios = [float(Fraction(new) / Fraction(old)) if new is not None and old else None for new, old in both]
    return pa.array(ratios, pa.float64())


def _floats_hold(values: pa.Array) -> bool:
    """Tell whether a DOUBLE can be each of the numbers."""
    if not is_integer(values.type):
        return bool(pa.types.is_floating(values.type))
    ends = pc.min_max(values).as_py()
    return (ends["min"] or 0) >= -_WHOLE and (ends["max"] or 0) <= _WHOLE
