"""Windows on their way out: partial results finished, with how often they were published before.

Invariant: of two results of one window the later has the higher revision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers
from headwater.operators.partials import Entries, Merge, arranged, spans
from headwater.operators.publications import Ledger
from headwater.operators.ranges import over
from headwater.operators.windowing import Windowing


@dataclass(frozen=True)
class Ready:
    """Windows to publish, by start and number of the key, and whether they are complete."""

    windows: Entries
    complete: bool


def ready(parts: Entries, starts: Times, keys: Numbers, size: int, merge: Merge) -> Entries:
    """Merge the parts, by time and number of the key, of windows that are not empty."""
    places = arranged(parts.then, parts.lead)
    by_key = Entries(parts.then[places], parts.lead[places], parts.rows.take(pa.array(places)))
    low, high = spans(by_key, keys, starts, starts + size)
    return Entries(starts, keys, over(by_key, low, high, merge))


def publish(
    windowing: Windowing, ledger: Ledger, found: list[Ready], size: int, schema: pa.Schema
) -> tuple[pa.Table, Entries]:
    """Return rows out, and the publications to remember."""
    found = [each for each in found if len(each.windows)]
    if not found:
        nothing = np.empty(0, np.int64)
        return schema.empty_table(), ledger.publish(nothing, nothing, schema.empty_table())
    starts = np.concatenate([each.windows.lead for each in found])
    keys = np.concatenate([each.windows.then for each in found])
    rows = pa.concat_tables([each.windows.rows for each in found]).combine_chunks()
    complete = np.concatenate([np.full(len(each.windows), each.complete) for each in found])
    revision = ledger.of(starts, keys)
    told = [pa.array(revision.astype(np.int32)), pa.array(complete)]
    out = pa.Table.from_arrays(windowing.results(rows, starts, starts + size, told), schema=schema)
    return windowing.arranged(out), ledger.publish(starts, keys, rows)
