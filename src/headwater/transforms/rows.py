"""The doors that users call: each makes its operator when it meets a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headwater import durations
from headwater import schema as schemas
from headwater.errors import UsageError
from headwater.names import listed
from headwater.operators.dedup import Dedup
from headwater.operators.latest import Latest
from headwater.operators.scan import Scan
from headwater.operators.spec import Side, setting_aside
from headwater.transforms.transform import Transform

Names = str | Sequence[str]


def dedup(on: Names, within: str | timedelta) -> Transform:
    """Pass on the first of each event's copies: rows that agree in ``on``, less than ``within`` apart.

    See ``docs/operators/dedup.md``.
    """
    names, length = listed(on), durations.interval(within)

    def build(rows: Side) -> Dedup:
        return Dedup(names, length, _required("dedup", rows.event_time))

    return Transform("dedup", build)


def latest(by: Names) -> Transform:
    """Keep the newest row of each key, by event time.

    See ``docs/operators/latest.md``.
    """
    names = listed(by)

    def build(rows: Side) -> Latest:
        return Latest(names, _required("latest", rows.event_time))

    return Transform("latest", build)


def scan(fold: Callable[..., Any], by: Names, schema: str | pa.Schema, vectorised: bool = False) -> Transform:
    """Fold each key's events in the order of their time, and tell the state after each.

    See ``docs/operators/scan.md``.
    """
    names, state = listed(by), schemas.read(schema)

    def build(rows: Side) -> Scan:
        return Scan(fold, names, _required("scan", rows.event_time), state, vectorised, setting_aside.get())

    return Transform("scan", build)


def _required(what: str, event_time: str | None) -> str:
    if event_time is None:
        raise UsageError(
            f"{what} needs to know when events happened, and these rows have no event time",
            hint="declare event_time= at the source, and keep that column",
        )
    return event_time
