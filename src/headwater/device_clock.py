"""When an event happened, told by a device whose own clock is wrong.

Three times are known of an event: when it occurred and when it was sent, by the device's clock, and
when it was received, by ours. What lies between the first two is right whatever the device's clock
says, as long as nobody sets it in between. So the event happened that long before it was sent; and it
was sent when it was received, less the time on the way, of which nobody knows more than that it is
not negative.

Invariant: for a device whose clock is wrong by any constant, the time at which an event truly happened
is at or before ``latest`` and, where the way took no longer than ``max_delay``, at or after
``earliest``. Where a result is not trusted, only what no clock can change is said: not after its receipt.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headwater.durations import instant, micros
from headwater.errors import UsageError
from headwater.schema import TIMESTAMP

FIRST, LAST = micros(datetime.min), micros(datetime.max)
"""The times that calendars have; any other is taken for none. Their sums fit into 64 bits."""
Time = datetime | int
_SCALE = {"s": 1_000_000, "ms": 1_000, "us": 1}


class Bounds(NamedTuple):
    """What is known of a way and of a clock beforehand, in microseconds; None where nothing is."""

    max_delay: int | None
    max_offset: int | None


@dataclass(frozen=True)
class Corrected:
    """An estimate of when an event happened."""

    at: Time | None
    """The estimate. Where it is not trusted, the best there is; None where nothing is known at all."""
    earliest: Time | None
    """It did not happen before; None where that is not known."""
    latest: Time | None
    """It did not happen after."""
    trusted: bool


def correct(occurred: Any, sent: Any, received: Any, bounds: Bounds) -> Any:
    """Estimate times that are single ones or Arrow columns; see ``clock.correct``."""
    times = (occurred, sent, received)
    if all(each is None or _is_time(each) for each in times):
        return of_times(occurred, sent, received, bounds)
    if any(isinstance(each, pa.Array | pa.ChunkedArray) for each in times):
        return of_arrays(occurred, sent, received, bounds)
    raise _no_time(next(each for each in times if each is not None and not _is_time(each)))


def of_times(occurred: Time | None, sent: Time | None, received: Time | None, bounds: Bounds) -> Corrected:
    """Estimate one event's time; datetimes give datetimes, microseconds give microseconds."""
    at, earliest, latest, trusted = _estimate(
        _in_calendar(occurred), _in_calendar(sent), _in_calendar(received), bounds
    )
    if not any(isinstance(each, datetime) for each in (occurred, sent, received)):
        return Corrected(at, earliest, latest, trusted)
    return Corrected(_instant(at), _instant(earliest), _instant(latest), trusted)


def _estimate(
    occurred: int | None, sent: int | None, received: int | None, bounds: Bounds
) -> tuple[int | None, int | None, int | None, bool]:
    if occurred is None or sent is None or received is None:
        at = min((each for each in (occurred, received) if each is not None), default=None)
        return at, None, received, False
    estimate, off = occurred + (received - sent), abs(received - sent)
    at = max(min(estimate, received), FIRST)
    believed = bounds.max_offset is None or off <= bounds.max_offset
    if not (FIRST <= estimate <= received and believed):  # it is after the receipt if sent before it occurred
        return at, None, received, False
    earliest = None if bounds.max_delay is None else at - bounds.max_delay
    return at, None if earliest is None or earliest < FIRST else earliest, at, True


def of_arrays(occurred: Any, sent: Any, received: Any, bounds: Bounds) -> pa.Array | pa.ChunkedArray:
    """Estimate the times of many events, given as Arrow columns; a single time stands for every row."""
    times = (occurred, sent, received)
    kind = pa.int64() if not any(map(_is_timestamps, times)) else TIMESTAMP
    *estimates, trusted = _estimates(_column(occurred), _column(sent), _column(received), bounds)
    columns = [each.cast(kind) for each in estimates]
    return pc.make_struct(*columns, trusted, field_names=["at", "earliest", "latest", "trusted"])


def _estimates(occurred: Any, sent: Any, received: Any, bounds: Bounds) -> tuple[Any, Any, Any, Any]:
    """Do what ``_estimate`` does; a null in, where it matters, is a null or a false out."""
    offset = pc.subtract(received, sent)
    estimate = pc.add(occurred, offset)
    at = pc.min_element_wise(pc.coalesce(estimate, occurred), received)  # which skips nulls
    at = pc.if_else(pc.less(at, FIRST), FIRST, at)
    trusted = pc.and_(pc.less_equal(FIRST, estimate), pc.less_equal(estimate, received))
    if bounds.max_offset is not None:
        trusted = pc.and_(trusted, pc.less_equal(pc.abs(offset), bounds.max_offset))
    trusted = pc.fill_null(trusted, False)
    earliest = pc.subtract(at, pa.scalar(bounds.max_delay, pa.int64()))
    possible = pc.and_(trusted, pc.greater_equal(earliest, FIRST))
    latest = pc.if_else(trusted, at, received)
    return at, pc.if_else(possible, earliest, pa.scalar(None, pa.int64())), latest, trusted


def _column(times: Any) -> Any:
    """Return times as microseconds, with nulls for those that no calendar has."""
    if times is None or _is_time(times):
        return pa.scalar(_in_calendar(times), pa.int64())
    if not isinstance(times, pa.Array | pa.ChunkedArray):
        raise _no_time(times)
    kind = times.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":  # whose years are all in the calendar
        return times.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise _no_time(times)
    scale = _SCALE[kind.unit] if pa.types.is_timestamp(kind) else 1
    numbers = times.cast(pa.int64())
    possible = pc.and_(pc.greater_equal(numbers, -(-FIRST // scale)), pc.less_equal(numbers, LAST // scale))
    return pc.multiply(pc.if_else(possible, numbers, pa.scalar(None, pa.int64())), scale)


def _is_timestamps(value: Any) -> bool:
    return isinstance(value, pa.Array | pa.ChunkedArray) and pa.types.is_timestamp(value.type)


def _is_time(value: Any) -> bool:
    return isinstance(value, datetime | int) and not isinstance(value, bool)


def _in_calendar(time: Time | None) -> int | None:
    number = micros(time) if isinstance(time, datetime) else time
    return number if number is not None and FIRST <= number <= LAST else None


def _instant(number: int | None) -> datetime | None:
    return None if number is None else instant(number)


def _no_time(value: object) -> UsageError:
    kind = value.type if isinstance(value, pa.Array | pa.ChunkedArray) else type(value).__name__
    return UsageError(
        f"a time cannot be of type {kind}",
        hint="give datetimes, microseconds since 1970, Arrow columns of them, or columns of Spark's",
    )
