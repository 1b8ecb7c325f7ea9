"""The samples of an interval become one row for each metric, kind and set of tags.

A counter is the sum of its samples, each as many as it stands for; a gauge its last level, moved by those
with a sign; timers, histograms and distributions have count, sum, extremes and percentiles by nearest rank; a
set is how many different values it had. Invariant: each sample is part of one row, and gauges outlive the
interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater import schema
from headwater.ingest.statsd.gauge_levels import GaugeKey, GaugeLevels
from headwater.ingest.statsd.samples import COUNTER, GAUGE, KINDS, SAMPLES, SET

AGGREGATES = (
    "at TIMESTAMP, seconds DOUBLE, metric STRING, kind STRING, tags ARRAY<STRING>, value DOUBLE,"
    " samples BIGINT, count DOUBLE, sum DOUBLE, min DOUBLE, max DOUBLE, p50 DOUBLE, p95 DOUBLE, p99 DOUBLE"
)
RAW = (
    "at TIMESTAMP, metric STRING, kind STRING, tags ARRAY<STRING>, value DOUBLE, member STRING, rate DOUBLE,"
    " delta BOOLEAN"
)
PERCENTILES = {"p50": 50, "p95": 95, "p99": 99}
ROWS_AT_MOST = 2_000_000
"""Samples that wait for the end of an interval; with more it is written before, in rows of a shorter one."""
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Grouped:
    """Samples with the number of the group that each is in, and the first sample of each group."""

    group: Integers
    first: Integers

    @property
    def count(self) -> int:
        return len(self.first)

    def total(self, values: Floats) -> Floats:
        return np.bincount(self.group, values, self.count).astype(np.float64)


class Aggregation:
    """Gathers the samples of an interval."""

    def __init__(self) -> None:
        self._parts: list[pa.RecordBatch] = []
        self._levels = GaugeLevels()
        self.rows = 0
        """How many samples wait."""

    @property
    def is_full(self) -> bool:
        """Whether no more samples should wait."""
        return self.rows >= ROWS_AT_MOST

    @property
    def forgotten(self) -> int:
        """How many levels of gauges were forgotten, as there was no room for all."""
        return self._levels.forgotten

    def add(self, samples: pa.RecordBatch) -> None:
        """Take samples in, in the order in which they came."""
        if len(samples):
            self._parts.append(samples)
            self.rows += len(samples)

    def flush(self, at: int, seconds: float) -> pa.Table:
        """Return the rows of an interval that has ended, and begin the next."""
        samples = pa.Table.from_batches(self._parts, SAMPLES).combine_chunks()
        self._parts, self.rows = [], 0
        grouped = _grouped(samples)
        columns = self._figures(samples, grouped)
        chosen = samples.take(pa.array(grouped.first))
        kinds = chosen.column("kind").to_numpy()
        values = {
            "at": pa.array(np.full(grouped.count, at), pa.int64()).cast(schema.TIMESTAMP),
            "seconds": pa.array(np.full(grouped.count, seconds)),
            "metric": chosen.column("metric"),
            "kind": pa.array(KINDS, pa.string()).take(pa.array(kinds)),
            "tags": tag_lists(chosen.column("tags")),
            **columns,
        }
        return pa.table([values[field.name] for field in schema.read(AGGREGATES)], schema.read(AGGREGATES))

    def _figures(self, samples: pa.Table, grouped: _Grouped) -> dict[str, pa.Array]:
        value = samples.column("value").fill_null(0.0).to_numpy()
        stands_for = 1.0 / samples.column("rate").to_numpy()
        kinds = samples.column("kind").to_numpy()[grouped.first] if grouped.count else np.empty(0, np.int8)
        count, total = grouped.total(stands_for), grouped.total(value * stands_for)
        timed = (kinds != COUNTER) & (kinds != GAUGE) & (kinds != SET)
        shown = np.where(kinds == COUNTER, total, 0.0)
        shown[timed] = total[timed] / count[timed]
        self._put_levels(shown, samples, grouped, kinds)
        _put_members(shown, samples, grouped, kinds)
        spread = _spread(value, grouped, timed) if timed.any() else {}
        return {
            "value": pa.array(shown),
            "samples": pa.array(np.bincount(grouped.group, minlength=grouped.count)),
            "count": pa.array(count),
            **{name: pa.array(spread.get(name, shown), mask=~timed) for name in ("min", "max", *PERCENTILES)},
            "sum": pa.array(total, mask=~timed),
        }

    def _put_levels(
        self, shown: Floats, samples: pa.Table, grouped: _Grouped, kinds: npt.NDArray[np.int8]
    ) -> None:
        """Put the levels of gauges: the last that was set, or the one of before, and what was added since."""
        gauges = np.flatnonzero(kinds == GAUGE)
        if not len(gauges):
            return
        value, delta = samples.column("value").fill_null(0.0).to_numpy(), samples.column("delta").to_numpy()
        place = np.arange(len(value))
        last_set = np.full(grouped.count, -1)
        last_set[grouped.group[~delta]] = place[~delta]  # of several at one place the last one stays
        later = delta & (place > last_set[grouped.group])
        moved = np.bincount(grouped.group[later], value[later], grouped.count)
        named = samples.select(["metric", "tags"]).take(pa.array(grouped.first[gauges])).to_pylist()
        for group, name in zip(gauges.tolist(), named, strict=True):  # once an interval, for each gauge
            key = GaugeKey(name["metric"], name["tags"])
            before = self._levels.get(key) if last_set[group] < 0 else float(value[last_set[group]])
            shown[group] = before + float(moved[group])
            self._levels.put(key, shown[group])


def raw_rows(samples: pa.RecordBatch, at: int) -> pa.Table:
    """Return samples as rows, as they came."""
    kinds = pa.array(KINDS, pa.string()).take(samples.column("kind"))
    values = {
        "at": pa.array(np.full(len(samples), at), pa.int64()).cast(schema.TIMESTAMP),
        **dict(zip(samples.schema.names, samples.columns, strict=True)),
        "kind": kinds,
        "tags": tag_lists(samples.column("tags")),
    }
    return pa.table([values[field.name] for field in schema.read(RAW)], schema.read(RAW))


def tag_lists(tags: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return texts with commas between their tags as lists; no text is no tag."""
    lists = pc.split_pattern(tags, ",")
    return pc.if_else(pc.equal(tags, ""), pa.scalar([], pa.list_(pa.string())), lists)


def _grouped(samples: pa.Table) -> _Grouped:
    """Number the groups, in no order."""
    metric, tags = (_codes(samples.column(name)) for name in ("metric", "tags"))
    kind = samples.column("kind").to_numpy().astype(np.int64)
    key = (metric * (int(tags.max(initial=0)) + 1) + tags) * len(KINDS) + kind
    encoded = pa.array(key).dictionary_encode()
    group = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.empty(len(encoded.dictionary), np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]  # of several at one place the last one stays: the first
    return _Grouped(group, first)


def _codes(column: pa.ChunkedArray) -> Integers:
    encoded = column.combine_chunks().dictionary_encode()
    codes: Integers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _put_members(shown: Floats, samples: pa.Table, grouped: _Grouped, kinds: npt.NDArray[np.int8]) -> None:
    """Put how many different values sets had."""
    if (kinds == SET).any():
        member = samples.column("member")
        pairs = np.unique(np.stack([grouped.group, _codes(member.fill_null(""))], axis=1), axis=0)
        different = np.bincount(pairs[:, 0], minlength=grouped.count)
        shown[kinds == SET] = different[kinds == SET]


def _spread(value: Floats, grouped: _Grouped, timed: npt.NDArray[np.bool_]) -> dict[str, Floats]:
    """Return the extremes and percentiles of those groups that have them, and nothing of the others."""
    chosen = timed[grouped.group]
    group, value = grouped.group[chosen], value[chosen]
    ordered = value[np.lexsort((value, group))]
    sizes = np.bincount(group, minlength=grouped.count)[timed]
    ends = np.cumsum(sizes)
    starts = ends - sizes
    ranks = {name: -(-sizes * percent // 100) for name, percent in PERCENTILES.items()}  # rounded up
    spread = {name: ordered[starts + rank - 1] for name, rank in ranks.items()}
    found = {"min": ordered[starts], "max": ordered[ends - 1], **spread}
    return {name: _scattered(figures, timed) for name, figures in found.items()}


def _scattered(figures: Floats, places: npt.NDArray[np.bool_]) -> Floats:
    every = np.zeros(len(places))
    every[places] = figures
    return every
