"""The demo's proof in plain Python, by a generator and an oracle that lie beside a pipeline; no Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import headwater
from headwater import Pipeline
from headwater.cli.demo.proof import against_python
from headwater.sinks import Batch
from headwater.views import ViewStore

FEED = """
from itertools import count

def events():
    yield from count(1)
"""
EXPECTED = """
def set_aside(log):
    return {"one": {7, 8}, "two": {8}} if len(log.topics()) > 1 else {}

def expected(events, late):
    gone = set().union(*late.values())
    return {"seen": [{"id": n, "more": "x"} for n in events if n not in gone]}
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipeline]:
    """A pipeline whose view holds three numbers, each with how it came about."""
    (tmp_path / "feed.py").write_text(FEED)
    (tmp_path / "expected.py").write_text(EXPECTED)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("feed", "expected"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    made = Pipeline("shop", log=f"file:{tmp_path}/data")
    made.source("orders", "id BIGINT")
    made.sql("seen", "SELECT * FROM orders", key="id")
    with headwater.open(made.log) as log:
        log.create_topic("orders", "id BIGINT")
    with ViewStore(made.home / "views.db") as store:
        sink = store.sink("seen", "id BIGINT, revision INT", "id")
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1, 2, 3], "revision": pa.array([0, 5, 0], pa.int32())})))
    yield made
    for name in ("feed", "expected"):
        sys.modules.pop(name, None)


def test_as_many_events_as_were_written_are_told_again(shop: Pipeline) -> None:
    late, [verdict] = against_python(shop, 3)
    assert (late, verdict.node, verdict.ok) == (0, "seen", True)
    assert verdict.counts == {"equal": 3, "missing": 0, "extra": 0, "different": 0}


def test_a_view_that_lacks_a_row_or_has_one_too_many_is_wrong(shop: Pipeline) -> None:
    assert against_python(shop, 4)[1][0].counts["missing"] == 1
    assert against_python(shop, 2)[1][0].counts["extra"] == 1


def test_what_came_too_late_is_left_out_and_counted_once(shop: Pipeline) -> None:
    with headwater.open(shop.log) as log:
        log.create_topic("shop.one.late", "id BIGINT")
    late, [verdict] = against_python(shop, 8)
    assert late == 2
    assert verdict.counts == {"equal": 3, "missing": 3, "extra": 0, "different": 0}
