"""Messages of a copy, many at a time."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import pq

from headwater.capture.postgres.fetching import Messages, failure, finish, take, wait


def test_messages_are_joined_with_their_places() -> None:
    messages = Messages.of([b"one", memoryview(b"two!"), b""])
    assert messages.start.tolist() == [0, 3, 7]
    assert messages.buffer.data.startswith(b"onetwo!\0")
    assert len(messages) == 3
    assert len(Messages.of([])) == 0


def test_a_copy_is_taken_piece_by_piece_to_its_end(db: psycopg.Connection) -> None:
    db.pgconn.exec_(b"COPY (SELECT n FROM generate_series(1, 50000) n) TO STDOUT")
    messages: list[bytes] = []
    while not (taken := take(db.pgconn, most=1000)).ended:
        assert sum(map(len, taken.messages)) < 1100
        messages += map(bytes, taken.messages)
        if not taken.messages:
            wait(db.pgconn, 1.0)
    messages += map(bytes, taken.messages)
    finish(db.pgconn)
    assert [int(each) for each in messages] == list(range(1, 50001))
    assert db.execute("SELECT 1").fetchone() == (1,)


def test_the_error_that_ends_a_copy_is_raised(db: psycopg.Connection) -> None:
    db.pgconn.exec_(b"COPY (SELECT 1 / (3 - n) FROM generate_series(1, 5) n) TO STDOUT")
    while not take(db.pgconn).ended:
        wait(db.pgconn, 1.0)
    with pytest.raises(psycopg.errors.DivisionByZero):
        finish(db.pgconn)


def test_an_error_has_the_servers_code(db: psycopg.Connection) -> None:
    result = db.pgconn.exec_(b"SELECT nothing")
    assert result.status == pq.ExecStatus.FATAL_ERROR
    assert failure(result).sqlstate == "42703"
