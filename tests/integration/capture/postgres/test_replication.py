"""A stream of a real server: positions, and what is told back."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg
import pytest

from headwater.capture.postgres import position
from headwater.capture.postgres.replication import ReplicationStream, Subscription
from headwater.capture.postgres.source import PostgresSource

Capture = Callable[..., PostgresSource]
WORD = Subscription("headwater_streamed", "headwater_streamed", binary=True)


@pytest.fixture
def begun(db: psycopg.Connection, capture: Capture) -> int:
    """The position where a slot begins that nobody reads."""
    db.execute("CREATE TABLE items (id int PRIMARY KEY)")
    source = capture(name="streamed")
    found = source.begin(["items"], None)
    source.close()
    return position.number(found)


def streaming(database: str, begun: int) -> ReplicationStream:
    deadline = time.monotonic() + 120
    while True:
        try:
            return ReplicationStream(database, WORD, begun)
        except psycopg.errors.ObjectInUse:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def kinds(stream: ReplicationStream) -> bytes:
    messages = stream.fetch(1)
    data = messages.buffer.data
    return b"".join(
        data[at : at + 1] if data[at] != ord("w") else data[at + 25 : at + 26] for at in messages.start
    )


def test_a_transaction_comes_in_its_messages(database: str, db: psycopg.Connection, begun: int) -> None:
    stream = streaming(database, begun)
    db.execute("INSERT INTO items VALUES (1), (2)")
    found = b""
    while b"C" not in found:
        found += kinds(stream)
    stream.close()
    assert found.replace(b"k", b"") == b"BRIIC"


def test_an_idle_server_tells_at_once_where_it_is(database: str, begun: int) -> None:
    stream = streaming(database, begun)
    began = time.monotonic()
    assert kinds(stream).strip(b"k") == b""
    assert time.monotonic() - began < 0.9
    stream.close()


def test_nothing_is_confirmed_until_it_is(database: str, db: psycopg.Connection, begun: int) -> None:
    stream = streaming(database, begun)
    db.execute("INSERT INTO items VALUES (1)")
    while b"C" not in kinds(stream):
        pass
    confirmed = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'headwater_streamed'"
    assert db.execute(confirmed).fetchone() == (position.text(begun),)
    stream.confirm(begun + 8)
    deadline = time.monotonic() + 120
    while db.execute(confirmed).fetchone() != (position.text(begun + 8),):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    stream.close()


def test_a_stream_that_the_server_ends_says_so(database: str, db: psycopg.Connection, begun: int) -> None:
    stream = streaming(database, begun)
    db.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
               " WHERE slot_name = 'headwater_streamed'")  # fmt: skip
    with pytest.raises(psycopg.OperationalError):
        for _ in range(20):
            stream.fetch(0.5)
    stream.close()


def test_a_slot_that_is_not_there_is_an_error(database: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedObject):
        ReplicationStream(database, Subscription("nobodys", "nobodys", binary=False), 0)
