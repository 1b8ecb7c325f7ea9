"""``headwater queue``: status, dead letters, redrive, purge."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Run

from headwater import Log


def fill(log: Log, *numbers: int) -> None:
    with log.producer("orders") as producer:
        producer.send_batch([{"id": n, "item": "tea", "at": None} for n in numbers])


def test_the_depth_is_shown_and_alerts_have_an_exit_code(run: Run, orders: Log) -> None:
    fill(orders, 1, 2, 3)
    with orders.queue("orders", "workers") as queue:
        queue.receive(timeout=1)
        told = run("queue", "status", "orders", "--format", "ndjson")
        assert {**json.loads(told.stdout), "oldest": None} == {
            "topic": "orders", "group": "workers", "ready": 2, "in_flight": 1, "delayed": 0, "blocked": 0,
            "oldest": None, "dead": 0, "lost": 0, "consumers": 2, "problem": None, "depth": 3,
        }  # fmt: skip
    shown = run("queue", "status", "orders", "--alert-depth", 2)
    assert shown.exit_code == 1
    assert "alert: 3 messages wait, more than 2" in shown.stderr
    assert shown.stdout.splitlines()[-1].split()[:3] == ["3", "3", "0"]


def test_dead_letters_are_shown_redriven_and_purged(run: Run, orders: Log) -> None:
    fill(orders, 1, 2)
    with orders.queue("orders", "workers") as queue:
        for message in queue.receive(2, timeout=1):
            message.reject("no tea")
    assert run("queue", "dead", "orders").stdout.count("no tea") == 2
    assert (
        json.loads(run("queue", "dead", "orders", "--format", "ndjson", "--limit", 1).stdout)["value"]["id"]
        == 2
    )
    assert run("queue", "redrive", "orders").stdout == "2 messages to be delivered again\n"
    assert "no dead letters" in run("queue", "dead", "orders").stderr
    assert run("queue", "purge", "orders").stdout == "forgot 2 messages\n"
    assert run("queue", "purge", "orders", "--dead").stdout == "forgot 0 dead letters\n"
    assert run("queue", "delete", "orders").exit_code == 0


def test_every_queue_is_listed_with_how_it_is_doing(run: Run, orders: Log) -> None:
    assert "no queues" in run("queue", "list").stderr
    fill(orders, 1, 2, 3)
    with orders.queue("orders", "workers") as queue, orders.queue("orders", "auditors"):
        queue.receive(timeout=1)
        told = [json.loads(line) for line in run("queue", "list", "--format", "ndjson").stdout.splitlines()]
        assert [(each["group"], each["depth"], each["in_flight"]) for each in told] == [
            ("auditors", 3, 0),
            ("workers", 3, 1),
        ]
        assert [each["consumers"] for each in told] == [1, 1], "to look is not to consume"
    shown = run("queue", "list").stdout.splitlines()
    assert [line.split()[:3] for line in shown[-2:]] == [
        ["orders", "auditors", "3"],
        ["orders", "workers", "3"],
    ]


def test_a_queue_whose_topic_is_gone_is_listed_with_a_warning(run: Run, orders: Log) -> None:
    orders.queue("orders", "workers").close()
    orders.delete_topic("orders")
    told = run("queue", "list")
    assert told.exit_code == 0 and told.stdout.splitlines()[-1].split()[:3] == ["orders", "workers", "?"]
    assert 'no topic "orders"' in told.stderr


def test_to_look_at_a_queue_makes_none(run: Run, orders: Log) -> None:
    told = run("queue", "status", "orders", "--group", "nobody")
    assert told.exit_code == 2
    assert 'no queue of group "nobody"' in told.stderr
    assert not orders.has_queue("orders", "nobody")
