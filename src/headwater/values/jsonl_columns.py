"""From parsed JSON to Arrow columns, checked against a schema, all rows at once.

Two ways: pyarrow's own reader over the joined values, for the types it knows and only when the
text is beyond doubt, and orjson with a conversion per column. Invariant: what the first way
accepts, the second accepts too, with the same result.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from headwater import record
from headwater.errors import RowError
from headwater.schema import is_variant, type_name
from headwater.topic import Topic
from headwater.values import columns, floats, free_json, rows, years
from headwater.values.cast import cast
from headwater.values.columns import REFUSALS, Form, Misfit, only
from headwater.values.free_json import JsonText

_NOTHING = type(None)
_OBJECT_THEN_MORE = re.compile(rb"\}[^,\]}\n]")
_ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_UTC = r"(Z|[+-]00(:?00)?)$"
_FLOATS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

_LEFT_OUT = record.META.keys() - {record.DELETED}
"""What reading with metadata adds to a row; a deletion is never passed over."""
_HINTS: list[tuple[Callable[[pa.DataType], bool], str]] = [
    (pa.types.is_timestamp, 'write ISO 8601, as "2026-01-02T03:04:05Z"'),
    (pa.types.is_date, 'write ISO 8601, as "2026-01-02"'),
    (pa.types.is_binary, 'write base64, as "aGVsbG8="'),
    (pa.types.is_boolean, "write true or false, without quotes"),
    (pa.types.is_floating, "write a number, without quotes"),
    (pa.types.is_string, "write it in quotes"),
]


def parse_fast(values: Sequence[bytes], topic: Topic, strict: bool) -> pa.RecordBatch | None:
    """Return the rows if pyarrow's reader takes them and nothing about them is doubtful."""
    if not all(_plain(field.type) and not is_variant(field) for field in topic.schema):
        return None
    joined = b"\n".join(values)
    floating = any(_holds_floats(field.type) for field in topic.schema)
    if not _one_object_per_line(values, joined) or (floating and free_json.doubtful(joined)):
        return None
    options = pj.ParseOptions(
        explicit_schema=pa.schema([pa.field(field.name, _doubled(field.type)) for field in topic.schema]),
        unexpected_field_behavior="error" if strict else "ignore",
    )
    try:
        # One block: an object must not straddle two, and the caller has bounded the batch.
        table = pj.read_json(
            pa.BufferReader(joined), pj.ReadOptions(use_threads=False, block_size=len(joined) + 1), options
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if table.num_rows != len(values) or any(table[name].null_count for name in _required(topic)):
        return None
    batch = table.combine_chunks().to_batches()[0]
    try:
        made = [cast(batch.column(field.name), field.type, field.name, topic) for field in topic.schema]
    except (Misfit, pa.ArrowException):
        return None
    return pa.RecordBatch.from_arrays(made, schema=topic.schema) if all(map(years.readable, made)) else None


def parse(values: Sequence[bytes], topic: Topic, strict: bool) -> pa.RecordBatch:
    """Return the rows, or the error of the first that does not fit."""
    try:
        parsed = list(map(orjson.loads, values))
    except orjson.JSONDecodeError as error:
        raise (_not_utf8(values, topic) or _not_json(error, topic)) from None
    if any(map(free_json.too_deep, values, parsed)):
        raise RowError(f'value is nested too deeply, for topic "{topic.name}"', hint="nest it less")
    if topic.free:  # as it is written; between the tokens of JSON a newline means nothing
        texts = pa.array([value.replace(b"\n", b"") for value in values], pa.string())
        return pa.RecordBatch.from_arrays([texts], schema=topic.schema)
    if not set(map(type, parsed)) <= {dict}:
        raise RowError(
            f'value is not a JSON object, for topic "{topic.name}"', detail=f"got {_short(parsed[0])}"
        )
    objects = [_row(value, row, topic) for value, row in zip(values, parsed, strict=True)]
    if strict:
        for name in set(chain.from_iterable(objects)).difference(topic.schema.names, _LEFT_OUT):
            raise rows.unknown_column(name, topic)
    made = [_checked_column(objects, field, topic, strict) for field in topic.schema]
    return pa.RecordBatch.from_arrays(made, schema=topic.schema)


def not_utf8(value: bytes, topic: Topic) -> RowError | None:
    """Return the error of a value that is no text, None for one that is."""
    try:
        value.decode()
    except UnicodeDecodeError as error:
        return RowError(
            f'value is not UTF-8, for topic "{topic.name}"',
            detail=f"byte {error.start + 1} is 0x{value[error.start]:02x}",
            hint="convert it first, as with `iconv -f LATIN1 -t UTF-8`",
        )
    return None


def how_to_write(field: pa.Field) -> str | None:
    """Return the hint that shows a value of the column's type."""
    kind = field.type
    if pa.types.is_decimal(kind):
        example = f"{1:.{kind.scale}f}"
        return f'write it as text with at most {kind.scale} digits after the point, as "{example}"'
    if pa.types.is_integer(kind):
        least = -(2 ** (kind.bit_width - 1))
        return f"write a whole number from {least} to {-least - 1}, without quotes"
    return next((hint for test, hint in _HINTS if test(kind)), None)


def _not_utf8(values: Sequence[bytes], topic: Topic) -> RowError | None:
    return next(filter(None, (not_utf8(value, topic) for value in values)), None)


def _not_json(error: orjson.JSONDecodeError, topic: Topic) -> RowError:
    """Return the error; the line is left out, as it would be one within the value."""
    detail = f"{error.msg.split(': line ')[0]}, at character {error.pos + 1}"
    return RowError(
        f'value is not JSON, for topic "{topic.name}"', detail=detail, hint="write one JSON value per line"
    )


def _plain(kind: pa.DataType) -> bool:
    """Tell whether pyarrow's reader converts a type as ``encode`` writes it."""
    if pa.types.is_list(kind):
        return _plain(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_plain(field.type) for field in kind)
    local = pa.types.is_timestamp(kind) and kind.tz is None  # of which it passes over the zone
    return not (local or pa.types.is_map(kind) or pa.types.is_binary(kind) or pa.types.is_date(kind))


def _holds_floats(kind: pa.DataType) -> bool:
    return "double" in str(_doubled(kind))


def _doubled(kind: pa.DataType) -> pa.DataType:
    """Return the type to read as, where pyarrow's reader would round or overflow without a word."""
    if pa.types.is_list(kind):
        return pa.list_(_doubled(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _doubled(field.type)) for field in kind])
    if pa.types.is_decimal(kind):
        return _wide(kind)
    return pa.float64() if kind == pa.float32() else kind


def _one_object_per_line(values: Sequence[bytes], joined: bytes) -> bool:
    """Tell whether each value can only be one object or an error to pyarrow's reader.

    It takes values one after the other without looking at lines, skips blank ones, crashes the
    process on a bare null, knows NaN, and does not check UTF-8: all of that is left to orjson.
    """
    more = len(values) - 1
    if joined[:1] != b"{" or joined.count(b"\n") != more or joined.count(b"\n{") != more:
        return False
    if _OBJECT_THEN_MORE.search(joined):
        return False
    return b"NaN" not in joined and b"Inf" not in joined and _is_text(joined)


def _is_text(joined: bytes) -> bool:
    try:
        joined.decode()
    except UnicodeDecodeError:
        return False
    return True


def _required(topic: Topic) -> set[str]:
    return {field.name for field in topic.schema if not field.nullable or field.name in topic.key}


def _row(value: bytes, parsed: dict[str, Any], topic: Topic) -> dict[str, Any]:
    """Return a row as orjson has read it, or where that has lost something as it is written."""
    if free_json.is_exact(value, parsed):
        return parsed
    try:
        return free_json.members(value, topic.schema.names)
    except Misfit as error:
        raise RowError(
            f'value cannot be kept as it is, for topic "{topic.name}"', detail=str(error)
        ) from None


def _checked_column(parsed: list[dict[str, Any]], field: pa.Field, topic: Topic, strict: bool) -> pa.Array:
    if is_variant(field):
        return _variant([row.get(field.name, _NOTHING) for row in parsed])
    values = [row.get(field.name) for row in parsed]
    try:
        exact = [value.exact() if isinstance(value, JsonText) else value for value in values]
        made = column(exact, field.type, strict)
    except (Misfit, *REFUSALS) as error:
        detail = f"got {_short(values[0])}" if len(values) == 1 else None
        reason = f": {error}" if isinstance(error, Misfit) and str(error) else ""
        raise RowError(
            f'row does not fit topic "{topic.name}": column "{field.name}" is {type_name(field)}',
            detail=detail and detail + reason,
            hint=how_to_write(field),
            column=field.name,
        ) from None
    if made.null_count and field.name in _required(topic):
        what = "is NOT NULL" if field.name not in topic.key else "is part of the key"
        raise RowError(
            f'column "{field.name}" of topic "{topic.name}" {what}',
            detail="the row lacks it",
            column=field.name,
        )
    return made


def _variant(values: list[Any]) -> pa.Array:
    """Return free JSON as text; a null that is written is JSON's null, one that is not is none."""
    return pa.array([None if value is _NOTHING else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    return str(value) if isinstance(value, JsonText) else orjson.dumps(value).decode()


def column(values: list[Any], kind: pa.DataType, strict: bool = False) -> pa.Array:
    """Return JSON values of one type as an Arrow array."""
    return columns.column(values, kind, _STRICT if strict else _LENIENT)


def _leaf(values: list[Any], kind: pa.DataType) -> pa.Array:
    for test, convert in _CONVERT:
        if test(kind):
            return convert(values, kind)
    raise AssertionError(f"no conversion for {kind}")


def _object(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise Misfit
    return value


def _pairs(value: Any, kind: pa.DataType) -> list[tuple[Any, Any]]:
    names = _object(value)
    return list(zip(_map_keys(names, kind), names.values(), strict=True))


def _map_keys(names: Iterable[str], kind: pa.DataType) -> list[Any]:
    """Return an object's member names as JSON values of the map's key type."""
    spoken = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_nested)
    return [free_json.exact(name) for name in names] if any(test(kind) for test in spoken) else list(names)


def _items(value: Any) -> list[Any]:
    if type(value) is not list:
        raise Misfit
    return value


def _booleans(values: list[Any], kind: pa.DataType) -> pa.Array:
    only(values, bool)
    return pa.array(values, kind)


def _integers(values: list[Any], kind: pa.DataType) -> pa.Array:
    if not set(map(type, values)) <= {int, _NOTHING}:
        only(values, int, float, Decimal)
        values = [_integer(v) if isinstance(v, float | Decimal) else v for v in values]
    return pa.array(values, kind)


def _integer(value: float | Decimal) -> int:
    exact = Decimal(repr(value)) if isinstance(value, float) else value  # as it is written
    if exact % 1 != 0:
        raise Misfit("a fraction would be cut off")
    return int(exact)


def _floats(values: list[Any], kind: pa.DataType) -> pa.Array:
    if not set(map(type, values)) <= {float, _NOTHING}:
        only(values, float, int, str, Decimal)
        values = [_float(value) for value in values]
    doubles = pa.array(values, pa.float64())
    return floats.single(doubles) if kind == pa.float32() else doubles


def _float(value: Any) -> float | None:
    if isinstance(value, str):
        if value not in _FLOATS:
            raise Misfit
        return _FLOATS[value]
    return floats.double(value) if isinstance(value, int | Decimal) else value


def _strings(values: list[Any], kind: pa.DataType) -> pa.Array:
    only(values, str)
    return pa.array(values, kind)


def _decimals(values: list[Any], kind: pa.DataType) -> pa.Array:
    only(values, str, int, float, Decimal)
    texts = pa.array([v if v is None else str(v) for v in values], pa.string())
    return texts.cast(_wide(kind)).cast(kind)


def _wide(kind: pa.Decimal128Type) -> pa.DataType:
    """Return a type for reading decimals: into their own, Arrow reads ones with too many digits as well."""
    return pa.decimal256(76, kind.scale)


def _binaries(values: list[Any], kind: pa.DataType) -> pa.Array:
    only(values, str)
    try:
        return pa.array([v if v is None else base64.b64decode(v, validate=True) for v in values], kind)
    except (binascii.Error, ValueError):
        raise Misfit("it is not base64") from None


def _dates(values: list[Any], kind: pa.DataType) -> pa.Array:
    return _readable(_strings(values, pa.string()).cast(kind))


def _timestamps(values: list[Any], kind: pa.TimestampType) -> pa.Array:
    texts = _strings(values, pa.string())
    try:
        return _readable(texts.cast(kind))
    except pa.ArrowInvalid:
        return _readable(_foreign_times(texts, kind))


def _readable(column: pa.Array) -> pa.Array:
    if years.outside(column) is not None:
        raise Misfit(years.REASON)
    return column


def _foreign_times(texts: pa.Array, kind: pa.TimestampType) -> pa.Array:
    """Read times as others write them: with or without a zone, with zeros after the microseconds."""
    texts = pc.replace_substring_regex(texts, r"(\.[0-9]{6})0+", r"\1")
    if pc.any(pc.match_substring_regex(texts, r"\.[0-9]{7}")).as_py():
        raise Misfit("its nanoseconds would be cut off")
    zoned = pc.match_substring_regex(texts, _ZONE)
    # A date alone ends like a zone, as in 2026-01-02.
    zoned = pc.and_(zoned, pc.greater(pc.utf8_length(texts), 10))
    if kind.tz is None and pc.any(pc.and_(zoned, pc.invert(pc.match_substring_regex(texts, _UTC)))).as_py():
        raise Misfit("it has a time zone, and the column has none")
    nothing = pa.scalar(None, pa.string())
    absolute = pc.if_else(zoned, texts, nothing).cast(pa.timestamp("us", "UTC"))
    wall = pc.if_else(zoned, nothing, texts).cast(pa.timestamp("us"))
    return pc.coalesce(absolute.cast(pa.timestamp("us")), wall).cast(kind)


_CONVERT: list[tuple[Callable[[pa.DataType], bool], Callable[[list[Any], Any], pa.Array]]] = [
    (pa.types.is_string, _strings),
    (pa.types.is_integer, _integers),
    (pa.types.is_floating, _floats),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_date, _dates),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_binary, _binaries),
]
_LENIENT = Form(_leaf, _object, _pairs, _items, strict=False)
_STRICT = replace(_LENIENT, strict=True)


def _short(value: Any) -> str:
    text = value if isinstance(value, JsonText) else orjson.dumps(value, default=str).decode()
    return text if len(text) <= 80 else text[:77] + "..."
