"""``headwater lateness``: how late rows come, as a table and for scripts."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run

from headwater import Log, durations
from headwater.log.embedded.partition import received_time
from headwater.pipeline import loading

SECOND = 1_000_000
NOON = 1_767_268_800 * SECOND
SHOP = """
from headwater import Pipeline

shop = Pipeline("shop", log="file:./data")
shop.source("orders", "id BIGINT NOT NULL, item STRING, at TIMESTAMP", key="id", event_time="at",
            lateness="3 minutes")
shop.source("quick_orders", "id BIGINT NOT NULL, item STRING, at TIMESTAMP", key="id", event_time="at",
            topic="orders", max_ahead="100 days")
"""


@pytest.fixture
def sold(orders: Log, monkeypatch: pytest.MonkeyPatch) -> Log:
    """Of a thousand orders two come late, by 5 and by 90 seconds, one has no time, one is hours ahead."""
    received = itertools.count(NOON + 1000 * SECOND)
    monkeypatch.setattr(durations, "now", lambda: next(received))
    monkeypatch.setattr(received_time, "files_clock", lambda _: next(received))
    with orders.producer("orders", id="till-1") as producer:
        for times in (range(500), [494], range(500, 999), [908]):
            producer.send_batch([{"id": second, "at": NOON + second * SECOND} for second in times])
            producer.flush()
    with orders.producer("orders", id="till-2") as producer:
        producer.send_batch([{"id": 1, "at": None}, {"id": 2, "at": NOON + 15_000 * SECOND}])
    return orders


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(loading, "_OURS", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "shop.py").write_text(SHOP)
    yield "shop.py"
    sys.modules.pop("shop", None)


def test_quantiles_settings_and_advice_are_shown(run: Run, sold: Log) -> None:
    result = run("lateness", "orders")
    assert result.exit_code == 0, result.stderr
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == "topic orders: 1,002 rows"
    assert "99% 0 s" in lines
    assert "all 1 min 30 s" in lines
    assert "0 seconds 2 0.2%" in lines
    assert "1 minute 1 0.1%" in lines
    assert "10 minutes 0 0%" in lines
    assert lines[-1] == 'lateness="5 seconds" keeps 99.9% of rows'
    assert result.stderr.splitlines() == [
        "note: 1 row without an event time: late with any setting",
        'note: 1 row too far ahead to move the clock, by up to 3 h 53 min (producer "till-2")',
    ]


def test_the_same_is_there_for_scripts(run: Run, sold: Log) -> None:
    told = json.loads(run("lateness", "orders", "--lateness", "90 seconds", "--format", "ndjson").stdout)
    assert (told["topic"], told["rows"], told["without_time"], told["ahead"]) == ("orders", 1002, 1, 1)
    assert told["quantiles"]["all"] == 90
    assert {each["lateness"]: each["late"] for each in told["settings"]} == {
        "0 seconds": 2,
        "1 second": 2,
        "10 seconds": 1,
        "1 minute": 1,
        "90 seconds": 0,
        "10 minutes": 0,
        "1 hour": 0,
        "1 day": 0,
    }
    assert told["advice"] == "5 seconds"


def test_what_a_pipeline_declares_is_judged(run: Run, sold: Log, file: str) -> None:
    result = run("lateness", "orders", "--pipeline", file)
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "0 seconds (declared) 2 0.2%" in lines
    assert "3 minutes (declared) 0 0%" in lines
    told = json.loads(run("lateness", "orders", "--pipeline", file, "--format", "ndjson").stdout)
    assert [each["lateness"] for each in told["settings"] if each["declared"]] == ["0 seconds", "3 minutes"]


def test_a_pipeline_that_does_not_read_the_topic_is_noted(run: Run, log: Log, file: str) -> None:
    log.create_topic("clicks", "at TIMESTAMP", event_time="at")
    result = run("lateness", "clicks", "--pipeline", file)
    assert 'pipeline "shop" has no source of topic "clicks" with an event time' in result.stderr
    assert (result.exit_code, result.stdout) == (0, "")


def test_since_leaves_out_what_came_before(run: Run, sold: Log) -> None:
    told = json.loads(run("lateness", "orders", "--since", 700, "--format", "ndjson").stdout)
    assert (told["rows"], told["settings"][0]["late"]) == (302, 1)


def test_a_topic_without_event_time_is_an_error(run: Run, log: Log) -> None:
    log.create_topic("plain", "id BIGINT")
    result = run("lateness", "plain")
    assert result.exit_code == 2
    assert result.stderr == (
        'error: topic "plain" has no event time, so nothing in it is late\n'
        "hint: a topic gets one when it is made: `headwater topic create --event-time COLUMN`; where a "
        "source computes it, name its file: `headwater lateness TOPIC --pipeline FILE`\n"
    )


def test_an_empty_topic_has_nothing_to_show(run: Run, orders: Log) -> None:
    result = run("lateness", "orders")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == 'no row of topic "orders" has an event time there\n'
    assert json.loads(run("lateness", "orders", "--format", "ndjson").stdout)["rows"] == 0


def test_a_setting_that_is_no_length_of_time_is_refused(run: Run, orders: Log) -> None:
    result = run("lateness", "orders", "--lateness", "soon")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (2, 'error: invalid interval "soon"')
