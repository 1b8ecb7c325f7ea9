"""An outbox is captured as events: each row that is inserted is one record, whichever database it is in."""

# ruff: noqa: S608  # statements of an application, made of numbers

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater import topic as topics
from headwater.capture import snapshot
from headwater.capture.capture import Capture
from headwater.capture.outbox import cleaning
from headwater.capture.outbox.captured_outbox import CapturedOutbox
from headwater.capture.settings import DEFAULTS, CaptureSettings
from headwater.errors import RowError, SourceRefused
from headwater.log import Log
from source_kit import Database

TABLE = "CREATE TABLE outbox (id INTEGER PRIMARY KEY, kind TEXT, payload JSON)"
DECLARED = topics.create(
    "orders", "id BIGINT, item STRING, price DECIMAL(9,2), committed_at TIMESTAMP", event_time="committed_at"
)
OUTBOX = CapturedOutbox("outbox", DECLARED, "payload", ("kind",))
DELETING = CapturedOutbox("outbox", DECLARED, "payload", ("kind",), delete=True)


@pytest.fixture
def shop(application: Database) -> Database:
    application.execute(TABLE)
    return application


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with headwater.open(f"file:{tmp_path / 'log'}") as opened:
        yield opened


def insert(*ids: int, kind: str = "'sold'") -> list[str]:
    return [
        f'INSERT INTO outbox VALUES ({id}, {kind}, \'{{"id": {id}, "item": "tea", "price": 1.10}}\')'
        for id in ids
    ]


@contextmanager
def capturing(
    shop: Database, log: Log, captured: CapturedOutbox = OUTBOX, settings: CaptureSettings = DEFAULTS
) -> Iterator[Capture]:
    source = shop.source("events")
    with closing(source), Capture(source, log, "events", [captured], settings) as running:
        yield running


def capture(shop: Database, log: Log, captured: CapturedOutbox = OUTBOX) -> None:
    with capturing(shop, log, captured) as running:
        running.catch_up()


def events(log: Log) -> list[dict[str, Any]]:
    return [row for part in log.read("orders", meta=True) for row in part.to_pylist()]


def ids(log: Log) -> list[int]:
    return [row["id"] for row in events(log)]


def left(shop: Database) -> list[int]:
    return [id for (id,) in shop.rows("SELECT id FROM outbox ORDER BY id")]


def test_rows_that_are_there_and_those_that_come_are_events_once(shop: Database, log: Log) -> None:
    shop.execute(*insert(1, 2))
    capture(shop, log)
    shop.execute(*insert(3))
    shop.transaction(*insert(5, 4))
    shop.transaction(*insert(6), end="ROLLBACK")
    for _ in range(2):
        capture(shop, log)
    assert ids(log) == [1, 2, 3, 5, 4]
    assert left(shop) == [1, 2, 3, 4, 5]


def test_an_event_has_the_members_of_its_payload_and_headers_from_columns(shop: Database, log: Log) -> None:
    capture(shop, log)
    more = '{"id": 9007199254740993, "item": "a \\"b\\"", "price": 0.10, "unknown": [1]}'
    with closing(shop.connect()) as db:
        db.execute("INSERT INTO outbox VALUES (7, NULL, '{}')".format(more.replace("\\", shop.backslash)))
        db.execute(*insert(8))
    capture(shop, log)
    first, second = events(log)
    assert (first["id"], first["item"], str(first["price"])) == (9007199254740993, 'a "b"', "0.10")
    headers = {name: value.decode() for name, value in second["_headers"]}
    assert headers.pop("position") and headers.pop("transaction") and headers.pop("index").isdigit()
    committed = int(headers.pop("committed"))
    assert abs(second["committed_at"].timestamp() * 1_000_000 - committed) < 1
    assert headers == {"op": "insert", "row": '{"id":8}', "kind": "sold"}
    assert "kind" not in dict(first["_headers"])


def test_what_becomes_of_a_row_is_no_event(shop: Database, log: Log) -> None:
    capture(shop, log)
    shop.transaction(*insert(1), "DELETE FROM outbox WHERE id = 1")
    shop.execute(*insert(2, 3), "UPDATE outbox SET kind = 'seen'", "DELETE FROM outbox WHERE id = 2")
    shop.execute("DELETE FROM outbox", *insert(4))
    capture(shop, log)
    assert ids(log) == [1, 2, 3, 4]


def test_columns_of_the_outbox_may_be_the_event(shop: Database, log: Log) -> None:
    plain = CapturedOutbox(
        "outbox", topics.create("orders", "kind STRING, id BIGINT NOT NULL", key="kind"), headers=("id",)
    )
    shop.execute(*insert(1))
    capture(shop, log, plain)
    shop.execute(*insert(2, kind="'kept'"))
    capture(shop, log, plain)
    assert [(row["id"], row["kind"], dict(row["_headers"])["id"]) for row in events(log)] == [
        (1, "sold", b"1"),
        (2, "kept", b"2"),
    ]


def test_what_is_no_event_stops_the_capture_or_is_set_aside(shop: Database, log: Log) -> None:
    shop.execute(*insert(1, 2), "UPDATE outbox SET payload = '[1, 2]' WHERE id = 2")
    with pytest.raises(RowError, match=r"key \[2\]"), capturing(shop, log) as running:
        running.catch_up()
    aside = CaptureSettings("dead_letter")
    with capturing(shop, log, DELETING, aside) as running:
        running.catch_up()
        shop.execute(*insert(3, 4), "INSERT INTO outbox VALUES (5, 'sold', '{\"price\": 0.123}')", *insert(6))
        running.catch_up()
    assert sorted(ids(log)) == [1, 3, 4, 6]
    assert left(shop) == [2, 5]
    letters = [row for part in log.read("events.dead") for row in part.to_pylist()]
    assert [json.loads(row["key"]) for row in letters] == [[2], [5]]
    assert [row["operation"] for row in letters] == ["read", "insert"]
    assert all(row["position"] and row["reason"] for row in letters)


def test_a_null_is_no_event(shop: Database, log: Log) -> None:
    shop.execute("INSERT INTO outbox VALUES (1, 'sold', NULL)")
    with pytest.raises(RowError, match=r"key \[1\]"), capturing(shop, log) as running:
        running.catch_up()


def test_rows_are_deleted_when_the_log_has_them(shop: Database, log: Log, monkeypatch: Any) -> None:
    monkeypatch.setattr(cleaning, "ROWS", 3)
    shop.execute(*insert(*range(10)))
    with capturing(shop, log, DELETING) as running:
        running.catch_up()
        assert left(shop) == []
        shop.execute(*insert(*range(10, 20)))
        running.catch_up()
        assert left(shop) == []
        running.catch_up()  # the deletions themselves are no events
    assert ids(log) == list(range(20))


def test_nothing_is_deleted_that_the_log_does_not_have(
    shop: Database, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute(*insert(1, 2))
    with capturing(shop, log, DELETING) as running:
        running.catch_up()
        shop.execute(*insert(3, 4))
        monkeypatch.setattr(running, "save", lambda: None)
        while running.changes < 4:  # the deletions of the first two are changes, too
            running.step()
        assert left(shop) == [3, 4]
    assert ids(log) == [1, 2, 3, 4]
    capture(shop, log, DELETING)
    assert (ids(log), left(shop)) == ([1, 2, 3, 4], [])


def test_rows_that_were_told_before_deletion_was_asked_for_are_deleted_too(shop: Database, log: Log) -> None:
    shop.execute(*insert(1, 2))
    capture(shop, log)
    with log.producer("orders", id="somebody") as somebody:
        somebody.send({"id": 7}, headers={"row": '{"id":3}'})
    shop.execute("INSERT INTO outbox VALUES (3, 'sold', '7')")  # of which somebody else says that it is told
    with capturing(shop, log, DELETING, CaptureSettings("dead_letter")) as running:
        running.catch_up()
    assert left(shop) == [3]


def test_rows_that_others_have_locked_are_deleted_later(shop: Database, log: Log) -> None:
    with capturing(shop, log, DELETING) as running:
        running.catch_up()
        shop.execute(*insert(1, 2))
        with closing(shop.connect()) as db:
            db.execute("BEGIN")
            db.execute("UPDATE outbox SET kind = 'mine' WHERE id = 2")
            while running.changes < 2:
                running.step()
            running.save()
            assert left(shop) == [1, 2]
            db.execute("COMMIT")
        running.catch_up()
    assert (ids(log), left(shop)) == ([1, 2], [])


@pytest.mark.parametrize("captured", [OUTBOX, DELETING], ids=["left", "deleted"])
def test_a_snapshot_that_is_interrupted_tells_every_row_once(
    shop: Database, log: Log, captured: CapturedOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 3)
    shop.execute(*insert(*range(0, 40, 2)))
    number = itertools.count(1, 2)
    for steps in range(1, 8):
        with capturing(shop, log, captured) as running:
            if steps % 2:  # all is stored and not remembered, as behind a kill
                monkeypatch.setattr(running, "save", lambda: None)
            for _ in range(steps):
                shop.execute(*insert(next(number)))
                running.step(0)
            shop.execute("DELETE FROM outbox WHERE id > 100")
    capture(shop, log, captured)
    assert sorted(ids(log)) == sorted([*range(0, 40, 2), *range(1, next(number), 2)])


def test_a_key_that_goes_and_comes_again_beside_a_chunk_is_two_events(shop: Database, log: Log) -> None:
    shop.execute(*insert(1, 2))
    with capturing(shop, log) as running:
        running._read_chunk("outbox")
        shop.execute("DELETE FROM outbox WHERE id = 1")
        shop.execute("INSERT INTO outbox VALUES (1, NULL, '{\"id\": 100}')", *insert(3))
        running.catch_up()
    assert sorted(ids(log)) == [1, 2, 3, 100]


def test_a_capture_that_is_dropped_tells_what_the_outbox_has_then(shop: Database, log: Log) -> None:
    from headwater.capture.state import StateTopic, load

    shop.execute(*insert(1, 2, 3))
    capture(shop, log)
    shop.execute("DELETE FROM outbox WHERE id < 3")
    with closing(shop.source("events")) as source, StateTopic(log, "events") as state:
        source.drop()
        kept = load(log, "events")
        assert kept is not None
        state.save(kept.as_dropped())
    shop.execute(*insert(4))
    capture(shop, log)
    assert ids(log) == [1, 2, 3, 3, 4]


@pytest.mark.parametrize(
    ("captured", "told"),
    [
        (CapturedOutbox("outbox", DECLARED, "payloads"), 'no column "payloads"'),
        (CapturedOutbox("outbox", DECLARED, "id"), "which holds no JSON"),
        (CapturedOutbox("outbox", DECLARED, "payload", ("trace",)), 'no column "trace"'),
        (CapturedOutbox("outbox", DECLARED), 'no column "item"'),
        (CapturedOutbox("outbx", DECLARED), 'no table "outbx"'),
    ],
)
def test_an_outbox_that_is_not_as_declared_is_refused(
    shop: Database, log: Log, captured: CapturedOutbox, told: str
) -> None:
    with pytest.raises(SourceRefused) as refused:
        capture(shop, log, captured)
    assert told in str(refused.value)


@pytest.mark.parametrize("captured", [OUTBOX, DELETING], ids=["left", "deleted"])
def test_events_of_many_writers_are_told_once_whenever_it_is_killed(
    shop: Database, log: Log, captured: CapturedOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 7)
    shop.execute(*insert(*range(50)))
    with capturing(shop, log, captured) as running:  # from now on no row can be missed
        running.step(0)
    stop, told = threading.Event(), [list(range(50)), list[int](), list[int]()]
    writers = [threading.Thread(target=write, args=(shop, seed, told[seed], stop)) for seed in (1, 2)]
    for writer in writers:
        writer.start()
    chance = random.Random(7)
    try:
        for number in range(6):
            with capturing(shop, log, captured) as running:
                if number % 2:
                    monkeypatch.setattr(running, "save", lambda: None)
                for _ in range(chance.randint(1, 12)):
                    running.step(0.02)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    capture(shop, log, captured)
    found = ids(log)
    assert len(found) == len(set(found))
    assert set(found) == set(itertools.chain(*told))
    for own in told[1:]:  # each writer's events are in its order
        assert [id for id in found if id in set(own)] == own
    if captured.delete:
        assert left(shop) == []


def write(shop: Database, seed: int, told: list[int], stop: threading.Event) -> None:
    """Write events until it is enough, in transactions that are kept or not, and clean up now and then."""
    chance, number = random.Random(seed), itertools.count(1000 * seed)
    with closing(shop.connect()) as db:
        while not stop.is_set() and len(told) < 400:
            ids = [next(number) for _ in range(chance.choice([1, 1, 2, 5]))]
            db.execute("BEGIN")
            for each in ids:
                db.execute(*insert(each))
            if chance.random() < 0.1:
                db.execute(f"DELETE FROM outbox WHERE id BETWEEN {1000 * seed} AND {ids[0]}")
            kept = chance.random() < 0.9
            db.execute("COMMIT" if kept else "ROLLBACK")
            told += ids if kept else []
            stop.wait(0.005)
