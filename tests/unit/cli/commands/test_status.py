"""``headwater status``: what the nodes have written down, as a table and for scripts."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run
from tests.unit.engine.figures.test_progress import write

from changes_kit import execute
from headwater import Log
from headwater.api.captures import workers
from headwater.cli.commands.status import print_states, waiting
from headwater.engine.figures.bucket_figures import BucketFigures
from headwater.engine.figures.progress import Progress
from headwater.engine.source.watermark import NEVER
from headwater.pipeline import loading

SHOP = """
from headwater import Pipeline

shop = Pipeline("shop", log="file:./data")
shop.source("orders", "id BIGINT")

@shop.stream()
def seen(orders):
    raise AssertionError("a status calls no function")

@shop.stream()
def unseen(seen):
    raise AssertionError("a status calls no function")
"""


@pytest.fixture
def shop(tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A pipeline in ``shop.py`` of which one node has done two batches, a minute ago."""
    monkeypatch.setattr(loading, "_OURS", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SHOP)
    log.create_topic("orders", "id BIGINT")
    with log.producer("orders") as producer:
        producer.send_batch([{"id": n} for n in range(10)])
    place = write(loading.load("shop.py"), "seen", 1, "orders", 6)
    os.utime(place / "commits" / "1", (time.time() - 60,) * 2)
    yield
    sys.modules.pop("shop", None)


def test_the_nodes_are_shown_with_how_far_they_have_got(run: Run, shop: None) -> None:
    header, _, seen, unseen = run("status", "shop.py").stdout.splitlines()
    assert header.split() == ["node", "batch", "ago", "lag", "clock", "rows", "has", "read", "up", "to"]
    assert seen.split()[:5] == ["seen", "1", "1", "min", "4"]
    assert seen.split()[-3:] == ["-", "orders", "0=6"]
    assert unseen.split() == ["unseen", "-", "-", "0", "-", "-", "-"]
    assert run("status", "shop.py").stderr == 'note: stream "unseen" has not processed anything yet\n'


def test_the_same_is_there_for_scripts(run: Run, shop: None) -> None:
    seen, unseen = map(json.loads, run("status", "shop.py", "--format", "ndjson").stdout.splitlines())
    assert seen.pop("ended").endswith("Z")
    assert seen == {
        "node": "seen",
        "kind": "stream",
        "batch": 1,
        "lag": 4,
        "clock": "2026-01-02T03:04:05Z",
        "rows": None,
        "positions": ["orders:0=6"],
        "waits_for": None,
        "ahead": [],
        "problem": None,
        "deliveries": None,
        "accounting": {"rows": 0, "late": 0, "duplicates": 0, "dead": 0, "out": 0, "used": 0},
        "buckets": None,
        "memory_bytes": None,
        "largest_keys": [],
    }
    assert (unseen["batch"], unseen["ended"], unseen["positions"]) == (None, None, [])


def test_how_a_state_is_spread_is_shown_with_its_largest_buckets_and_keys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rich = Progress("rich", "view", 1, None, (), 0, 5, None)
    print_states([rich])
    assert capsys.readouterr().out == ""
    figures = BucketFigures(4, 1_000_000, ((2, 700_000), (0, 200_000)))
    print_states([replace(rich, buckets=figures, memory_bytes=5_000, largest_keys=(("ada", 0.25),))])
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.endswith("rich 4 1.0 MB 5.0 kB 2 70%, 0 20% ada 25%")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3, None),
        (150, 'view "rich" waits for "rates", last heard of 2 min ago'),
        (None, 'view "rich" waits for "rates", of which nothing has come yet'),
    ],
)
def test_an_input_that_holds_others_back_is_named(seconds: int | None, text: str | None) -> None:
    rich = Progress("rich", "view", 1, None, (), 0, 5, None)
    heard = NEVER if seconds is None else int((time.time() - seconds) * 1_000_000)
    assert waiting(replace(rich, waits_for=("rates", heard))) == text
    assert waiting(rich) is None


def test_a_producer_whose_clock_is_not_believed_is_named(run: Run, shop: None) -> None:
    claim = {"time": 5, "received": 5, "ahead": 10_920_000_000}
    claims = {"0": {"till-7": claim}, "1": {"till-7": {**claim, "ahead": 60_000_000}}}
    write(loading.load("shop.py"), "seen", 2, "orders", 6, claims=claims)
    assert run("status", "shop.py").stderr.splitlines()[0] == (
        'note: producer "till-7" of topic "orders" is 3 h 2 min ahead of time; '
        "its events count from their receipt"
    )
    told = json.loads(run("status", "shop.py", "--format", "ndjson").stdout.splitlines()[0])
    assert told["ahead"][0] == {"topic": "orders", "partition": 0, "producer": "till-7", "by": 10920.0}


def test_captures_are_shown_below_the_nodes(run: Run, shop: None, tmp_path: Path, log: Log) -> None:
    execute(tmp_path / "crm.db", "CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    text = (tmp_path / "shop.py").read_text()
    more = """
shop.capture("crm", "sqlite:./crm.db")
shop.table("customers", "id BIGINT", key="id", captured="crm.customers")
"""
    (tmp_path / "captured_shop.py").write_text(text + more)
    assert run("status", "captured_shop.py").stdout.splitlines()[-1].split()[:2] == ["crm", "starting"]
    [worker] = workers(loading.load("captured_shop.py"))
    worker.catch_up()
    header, _, crm = run("status", "captured_shop.py").stdout.splitlines()[-3:]
    assert header.split()[:5] == ["capture", "state", "ago", "changes", "changes/s"]
    assert crm.split()[:2] == ["crm", "ended"]
    told = [
        json.loads(line)
        for line in run("status", "captured_shop.py", "--format", "ndjson").stdout.splitlines()
    ]
    assert [each.get("node") or each["capture"] for each in told] == ["seen", "unseen", "crm"]
