"""Records that were set aside: listed, shown, and tried again once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run

import headwater
from delivery_kit import batch, outbox, sink, webhook
from headwater.engine.failure.dead_letters import DeadLetters
from headwater.engine.failure.rejected_row import RecordOffset, RejectedRow
from headwater.pipeline.loading import load
from headwater.sinks.delivery.delivery import Outcome
from headwater.sinks.delivery.outbox import DeliveryOutbox
from headwater.sinks.delivery.queue import DeliveryQueue, SettledAttempt

SHOP = """
from headwater import Pipeline

shop = Pipeline("shop", log="file:{root}/log")
shop.source("orders", "id BIGINT, amount STRING")

@shop.view(key="id", on_error="dead_letter")
def plain(orders):
    return orders
"""


def _file(tmp_path: Path) -> Path:
    path = tmp_path / f"shop_{tmp_path.name}.py"
    path.write_text(SHOP.format(root=tmp_path))
    return path


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = _file(tmp_path)
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        log.create_topic("orders", "id BIGINT, amount STRING")
        with log.producer("orders") as producer:
            producer.send_batch([{"id": n, "amount": text} for n, text in enumerate(("1", "two", "3"))])
        node = load(str(path)).nodes[0]
        letters = DeadLetters(log, "shop", node)
        for _ in range(2):  # the second time it is there already
            letters.add([RejectedRow("ValueError: not a number", RecordOffset("orders", 0, 1))])
        assert letters.skips() == {"orders": {0: [1]}}
    return str(path)


def test_records_of_a_topic_that_was_made_again_are_not_left_out(file: str, tmp_path: Path) -> None:
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        letters = DeadLetters(log, "shop", load(file).nodes[0])
        log.delete_topic("orders")
        assert letters.skips() == {}
        log.create_topic("orders", "id BIGINT, amount STRING")
        assert letters.skips() == {}
        with log.producer("orders") as producer:
            producer.send_batch([{"id": n, "amount": "x"} for n in range(3)])
        letters.add([RejectedRow("ValueError: not a number", RecordOffset("orders", 0, 1))])
        assert letters.skips() == {"orders": {0: [1]}}
        assert len(letters.rows()) == 2


def test_nodes_with_dead_letters_are_listed(run: Run, file: str) -> None:
    told = json.loads(run("dead", "list", file, "--format", "ndjson").stdout)
    assert (told["node"], told["records"], told["error"]) == ("plain", 1, "ValueError: not a number")
    assert "plain" in run("dead", "list", file).stdout


def test_a_dead_letter_is_shown_with_its_origin(run: Run, file: str) -> None:
    told = json.loads(run("dead", "show", file, "plain", "--format", "ndjson").stdout)
    assert (told["topic"], told["partition"], told["offset"]) == ("orders", 0, 1)
    assert json.loads(told["record"]) == {"id": 1, "amount": "two"}
    assert run("dead", "show", file, "plane").stderr.endswith('hint: did you mean "plain"?\n')


def test_dead_letters_are_appended_again_once(run: Run, file: str, tmp_path: Path) -> None:
    assert run("dead", "redrive", file, "plain").stdout == "appended 1 record again\n"
    assert run("dead", "redrive", file, "plain").stdout == "appended 0 records again\n"
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        rows = [row for batch in log.read("orders") for row in batch.to_pylist()]
    assert [row["amount"] for row in rows] == ["1", "two", "3", "two"]


def test_what_has_no_place_in_a_topic_is_left_out_and_that_is_said(
    run: Run, file: str, tmp_path: Path
) -> None:
    with headwater.open(f"file:{tmp_path / 'log'}") as log, log.producer("shop.plain.dead") as producer:
        producer.send(
            {"error": "ValueError: of a fold", "record": "{}", "at": datetime(2026, 1, 1, tzinfo=UTC)}
        )
    told = run("dead", "redrive", file, "plain")
    assert (told.exit_code, told.stdout) == (1, "appended 1 record again\n")
    assert told.stderr == "1 record without a place in a topic: left out\n"


def test_a_deletion_that_was_set_aside_deletes_again(tmp_path: Path) -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        log.create_topic("stock", "sku STRING, left INT NOT NULL", key="sku", cleanup="compact")
        with log.producer("stock") as producer:
            producer.send({"sku": "tea", "left": 5})
            producer.delete("tea", occurred=since)
        letters = DeadLetters(log, "shop", load(str(_file(tmp_path))).nodes[0])
        letters.add([RejectedRow("ValueError", RecordOffset("stock", 0, offset)) for offset in (0, 1)])
        assert letters.redrive() == 2
        rows = [row for batch in log.read("stock", start=2, meta=True) for row in batch.to_pylist()]
        assert [(row["sku"], row["left"], row["_deleted"]) for row in rows] == [
            ("tea", 5, False),
            ("tea", None, True),
        ]
        assert rows[1]["_occurred"] == since


def test_letters_of_a_topic_that_was_made_again_are_appended_too(file: str, tmp_path: Path) -> None:
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        assert DeadLetters(log, "shop", load(file).nodes[0]).redrive() == 1
        log.delete_topic("shop.plain.dead")
        letters = DeadLetters(log, "shop", load(file).nodes[0])
        letters.add([RejectedRow("ValueError: not even", RecordOffset("orders", 0, 2))])
        assert (letters.redrive(), letters.redrive()) == (1, 0)
        rows = [row for batch in log.read("orders") for row in batch.to_pylist()]
    assert [row["amount"] for row in rows] == ["1", "two", "3", "two", "3"]


DELIVERING = """
from headwater import Pipeline, targets

shop = Pipeline("shop", log="file:{root}/log", home="{root}/home")
shop.source("orders", "k STRING, n BIGINT")

@shop.sink(targets.webhook("http://127.0.0.1:1/", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "k"))
def hooks(orders):
    return orders
"""


def test_deliveries_are_listed_redriven_and_given_up(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "delivering.py"
    file.write_text(DELIVERING.format(root=tmp_path))
    home = tmp_path / "home"
    with headwater.open(f"file:{tmp_path / 'log'}"), sink(home, webhook("http://127.0.0.1:1/")) as hooks:
        hooks.begin()
        hooks._stop()
        hooks.commit(batch(0, ("a", 1), ("a", 2)))
    with DeliveryOutbox(outbox(home), "hooks") as opened:
        lease = opened.begin(1)[0]
        queue = DeliveryQueue(opened, lease)
        (first,) = queue.due(1.0, 9, frozenset()).deliveries
        for act in ("redrive", "discard"):
            queue.settle([SettledAttempt(first, Outcome("refused", "the endpoint answers 400"))])
            listed = run("dead", "list", str(file), "--format", "ndjson").stdout
            assert json.loads(listed)["error"] == "the endpoint answers 400"
            assert first.id in run("dead", "show", str(file), "hooks").stdout
            told = run("dead", act, str(file), "hooks", *([first.id] if act == "discard" else [])).stdout
            assert told == (
                "2 deliveries to be sent again\n"
                if act == "redrive"
                else f"delivery {first.id} is given up\n"
            )
        assert [each.id != first.id for each in queue.due(1.0, 9, frozenset()).deliveries] == [True]
    shown = run("status", str(file))
    assert 'sink "hooks" has 1 delivery waiting; the last attempt: the endpoint answers 400' in shown.stderr
