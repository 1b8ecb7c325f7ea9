"""Rows of an interval against the same, computed sample by sample."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.ingest.statsd import aggregation, gauge_levels
from headwater.ingest.statsd.aggregation import Aggregation, raw_rows
from headwater.ingest.statsd.samples import COUNTER, GAUGE, KINDS, SAMPLES, SET
from soaking import examples

TIMED = ("timer", "histogram", "distribution")


def sample(kind: int, value: float, metric: str, tags: str, delta: bool) -> dict[str, object]:
    is_set = kind == SET
    return {
        "metric": metric,
        "kind": kind,
        "tags": tags,
        "value": None if is_set else value,
        "member": str(value) if is_set else None,
        "rate": 0.5 if kind not in (GAUGE, SET) and value > 2 else 1.0,
        "delta": delta and kind == GAUGE,
    }


SAMPLE = st.builds(
    sample,
    st.integers(0, 5),
    st.integers(-4, 4).map(float),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["", "x:1", "x:1,y"]),
    st.booleans(),
)


def slow(intervals: list[list[dict[str, Any]]]) -> list[dict[tuple[str, str, str], dict[str, Any]]]:
    levels: dict[tuple[str, str], float] = {}
    results = []
    for samples in intervals:
        groups = defaultdict(list)
        for each in samples:
            groups[each["metric"], KINDS[each["kind"]], each["tags"]].append(each)
        results.append({key: row(key, each, levels) for key, each in groups.items()})
    return results


def row(key: tuple[str, str, str], samples: list[dict[str, Any]], levels: dict[Any, float]) -> dict[str, Any]:
    metric, kind, tags = key
    count = sum(1 / each["rate"] for each in samples)
    figures: dict[str, Any] = {"samples": len(samples), "count": count}
    if kind == "set":
        figures["value"] = len({each["member"] for each in samples})
    elif kind == "gauge":
        for each in samples:
            before = levels.get((metric, tags), 0.0) if each["delta"] else 0.0
            levels[metric, tags] = before + each["value"]
        figures["value"] = levels[metric, tags]
    else:
        total = sum(each["value"] / each["rate"] for each in samples)
        figures["value"] = total if kind == "counter" else total / count
        if kind in TIMED:
            ordered = sorted(each["value"] for each in samples)
            figures |= {"sum": total, "min": ordered[0], "max": ordered[-1]}
            for name, percent in (("p50", 50), ("p95", 95), ("p99", 99)):
                figures[name] = ordered[math.ceil(len(ordered) * percent / 100) - 1]
    return figures


@examples(100)
@given(st.lists(st.lists(SAMPLE, max_size=25), min_size=1, max_size=3))
def test_rows_are_what_the_samples_of_their_interval_say(intervals: list[list[dict[str, Any]]]) -> None:
    gathered = Aggregation()
    for samples, expected in zip(intervals, slow(intervals), strict=True):
        for start in range(0, len(samples), 7):
            gathered.add(pa.RecordBatch.from_pylist(samples[start : start + 7], SAMPLES))
        found = {}
        for each in gathered.flush(at=0, seconds=10.0).to_pylist():
            key = (each["metric"], each["kind"], ",".join(each["tags"]))
            found[key] = {name: value for name, value in each.items() if value is not None}
        assert found.keys() == expected.keys()
        for key, figures in expected.items():
            told = {name: found[key][name] for name in found[key] if name in (*figures, "min", "sum")}
            assert told == pytest.approx(figures), key


def test_raw_rows_keep_each_sample_as_it_came() -> None:
    samples = pa.RecordBatch.from_pylist(
        [sample(SET, 1.0, "a", "", False), sample(COUNTER, 3.0, "a", "x:1,y", False)], SAMPLES
    )
    (first, second) = raw_rows(samples, at=5).to_pylist()
    assert (first["kind"], first["member"], first["tags"]) == ("set", "1.0", [])
    assert (second["value"], second["rate"], second["tags"]) == (3.0, 0.5, ["x:1", "y"])


def test_an_interval_of_very_many_samples_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregation, "ROWS_AT_MOST", 2)
    gathered = Aggregation()
    gathered.add(pa.RecordBatch.from_pylist([sample(COUNTER, 1.0, "a", "", False)] * 2, SAMPLES))
    assert gathered.is_full
    gathered.flush(0, 1.0)
    assert not gathered.is_full


def test_gauges_that_are_made_up_without_end_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gauge_levels, "_OVERHEAD", gauge_levels.LEVEL_BYTES // 10)
    gathered = Aggregation()
    for number in range(3):
        samples = [sample(GAUGE, 1.0, f"g{number}-{each}", "", False) for each in range(10)]
        gathered.add(pa.RecordBatch.from_pylist(samples, SAMPLES))
        gathered.flush(0, 1.0)
    assert gathered.forgotten > 20
    gathered.add(pa.RecordBatch.from_pylist([sample(GAUGE, 1.0, "g2-9", "", True)], SAMPLES))
    assert gathered.flush(0, 1.0)["value"].to_pylist() == [2.0]
