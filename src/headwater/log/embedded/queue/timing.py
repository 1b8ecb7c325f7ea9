"""What the settings of a queue say of each record: its priority, from when and until when it is delivered.

Invariant: a value that cannot be read makes its message a dead letter, with the reason; it is never
delivered at a time that nobody meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.durations import MICROSECOND, micros, parse_instant, span
from headwater.errors import UsageError
from headwater.log.queue_settings import HEADER, QueueSettings, fixed

_FAR = 1 << 62


@dataclass
class MessageTiming:
    """Priority and times of one record, in microseconds since 1970."""

    priority: int = 0
    due: int | None = None
    expires: int | None = None
    problem: str | None = None
    """Why it cannot be delivered as it was meant."""


def timings(batch: pa.RecordBatch, settings: QueueSettings) -> list[MessageTiming]:
    """Return the timing of each record of a batch that was read with metadata."""
    found = [MessageTiming() for _ in range(len(batch))]
    if settings.priority is not None:
        _set_priorities(found, batch, settings.priority)
    received = batch.column("_received").view(pa.int64()).to_pylist()
    if settings.delay is not None:
        _set_times(found, batch, received, ("due", settings.delay))
    if settings.time_to_live is not None:
        _set_times(found, batch, received, ("expires", settings.time_to_live))
    return found


def _set_priorities(found: list[MessageTiming], batch: pa.RecordBatch, setting: str) -> None:
    if not setting.startswith(HEADER):
        for each, value in zip(found, batch.column(setting).to_pylist(), strict=True):
            each.priority = value or 0
        return
    for each, text in zip(found, _header(batch, setting), strict=True):
        try:
            each.priority = max(-_FAR, min(_FAR, int(text))) if text is not None else 0
        except ValueError:
            each.problem = f'{setting} is "{text!s:.60}", and no whole number'


def _set_times(
    found: list[MessageTiming], batch: pa.RecordBatch, received: list[int], wanted: tuple[str, str]
) -> None:
    name, setting = wanted
    length = fixed(setting)
    if length is not None:
        for each, at in zip(found, received, strict=True):
            setattr(each, name, at + length // MICROSECOND)
    elif setting.startswith(HEADER):
        for each, at, text in zip(found, received, _header(batch, setting), strict=True):
            _set_from_text(each, (name, setting), at, text)
    else:
        for each, time in zip(found, _column_times(batch.column(setting), received), strict=True):
            setattr(each, name, time)


def _set_from_text(timing: MessageTiming, wanted: tuple[str, str], received: int, text: str | None) -> None:
    name, setting = wanted
    if text is None:
        return
    try:
        setattr(timing, name, received + span(text) // MICROSECOND)
    except UsageError:
        try:
            setattr(timing, name, micros(parse_instant(text)))
        except UsageError:
            timing.problem = f'{setting} is "{text:.60}", and neither a time nor an interval'


def _column_times(column: pa.Array, received: list[int]) -> list[int | None]:
    if pa.types.is_timestamp(column.type):
        times: list[int | None] = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
        return times
    pairs = zip(column.to_pylist(), received, strict=True)
    return [_later(seconds, at) for seconds, at in pairs]


def _later(seconds: Any, received: int) -> int | None:
    if seconds is None or seconds != seconds:  # not a number
        return None
    return int(max(-_FAR, min(_FAR, received + seconds * 1e6)))


def _header(batch: pa.RecordBatch, setting: str) -> list[str | None]:
    name = setting.removeprefix(HEADER)
    texts: list[str | None] = []
    for headers in batch.column("_headers").to_pylist():
        value = dict(headers or ()).get(name)
        texts.append(None if value is None else value.decode("utf-8", "replace"))
    return texts
