"""The demo's proof in plain Python, by a generator and an oracle that lie beside a pipeline; no Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa
import pytest

import headwater
from headwater import Pipeline, Verdict
from headwater.cli.demo.proof import against_python, prove
from headwater.engine.proof.verdict import Row
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


def test_a_view_that_is_right_both_times_is_told(
    shop: Pipeline, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(headwater, "verify", lambda pipeline: [])
    prove(shop, 3)
    assert "all rows are what a batch over the log gives" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("by_spark", "events", "told"),
    [
        (({"id": 9},), 3, "is not what a batch over the same input gives"),
        ((), 4, "is not what plain Python makes of the same events"),
    ],
)
def test_a_view_that_is_wrong_ends_it_with_1(
    shop: Pipeline,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    by_spark: tuple[Row, ...],
    events: int,
    told: str,
) -> None:
    monkeypatch.setattr(headwater, "verify", lambda pipeline: [Verdict("seen", 3, extra=by_spark)])
    with pytest.raises(click.exceptions.Exit) as ended:
        prove(shop, events)
    assert ended.value.exit_code == 1
    assert f'error: view "seen" {told}' in capsys.readouterr().err
