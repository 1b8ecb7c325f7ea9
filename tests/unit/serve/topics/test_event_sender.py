"""Nothing twice, nothing by halves: whatever dies, and between whichever steps."""

from __future__ import annotations

import http.client
import random
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import headwater
from headwater.errors import BufferFull
from headwater.serve.topics.event_sender import EventSender
from headwater.serve.topics.request_journal import RequestJournal, WrittenRequest
from headwater.topic import Topic
from headwater.values import keys
from serve_kit import call, child_server, make_log, serving, stored

BATCH = [{"id": number} for number in range(12)]
KEY = {"Idempotency-Key": "order-1"}


@pytest.mark.parametrize("point", [1, 2, 3])
def test_a_server_that_dies_between_two_steps_stores_once(tmp_path: Path, point: int) -> None:
    make_log(tmp_path).close()
    with child_server(tmp_path, point) as (process, url):
        with suppress(OSError):  # at the last point the answer may have left already
            call(url, "POST", "/v1/topics/orders", BATCH, KEY)
        assert process.wait(20) == -9
    with serving(tmp_path) as server:
        again = call(server.url, "POST", "/v1/topics/orders", BATCH, KEY)
        assert (again.status, again.headers.get("idempotency-replayed")) == (200, "true")
    with headwater.open(f"file:{tmp_path / 'data'}") as log:
        assert sorted(row["id"] for row in stored(log)) == list(range(12))


@pytest.mark.slow
def test_a_batch_without_a_key_is_whole_after_a_death(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    with child_server(tmp_path, 1) as (process, url):
        with pytest.raises(OSError):
            call(url, "POST", "/v1/topics/orders", BATCH)
        process.wait(20)
    with serving(tmp_path), headwater.open(f"file:{tmp_path / 'data'}") as log:
        assert len(stored(log)) == 12


@pytest.mark.slow
def test_clients_that_repeat_until_they_are_answered_store_all_once_whenever_the_server_dies(
    tmp_path: Path,
) -> None:
    make_log(tmp_path).close()
    randomly, address, done = random.Random(7), [""], threading.Event()
    acknowledged: set[int] = set()

    def send(first: int) -> None:
        number = first
        while not done.is_set():
            body = [{"id": number * 10 + row} for row in range(10)]
            try:
                answer = call(
                    address[0], "POST", "/v1/topics/orders", body, {"Idempotency-Key": f"k{number}"}
                )
            except (OSError, ValueError, http.client.HTTPException):  # it may die in the middle of its answer
                time.sleep(0.02)
                continue
            if answer.status == 200:
                acknowledged.add(number)
                number += 4

    threads = [threading.Thread(target=send, args=(first,)) for first in range(4)]
    for each in threads:
        each.start()
    for _ in range(3):
        with child_server(tmp_path) as (process, url):
            address[0] = url
            time.sleep(randomly.uniform(0.2, 0.6))
            process.kill()
            process.wait()
    with child_server(tmp_path) as (_, url):
        address[0] = url
        time.sleep(0.3)
        done.set()
        for each in threads:
            each.join()
    with headwater.open(f"file:{tmp_path / 'data'}") as log:
        ids = sorted(row["id"] for row in stored(log))
    assert len(ids) == len(set(ids)), "nothing twice"
    assert {number * 10 + row for number in acknowledged for row in range(10)} <= set(ids), "nothing lost"
    assert all(len([id for id in ids if id // 10 == number]) == 10 for number in {id // 10 for id in ids})


def test_partitions_that_are_added_before_the_restart_move_no_row_of_what_was_begun(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    with child_server(tmp_path, 2) as (process, url):  # it dies when all is appended, and not noted as such
        with suppress(OSError):
            call(url, "POST", "/v1/topics/orders", BATCH, KEY)
        assert process.wait(20) == -9
    with headwater.open(f"file:{tmp_path / 'data'}") as log:
        log.alter_topic("orders", partitions=5)
    with serving(tmp_path) as server:
        again = call(server.url, "POST", "/v1/topics/orders", BATCH, KEY)
        assert (again.status, again.headers.get("idempotency-replayed")) == (200, "true")
    with headwater.open(f"file:{tmp_path / 'data'}") as log:
        assert sorted(row["id"] for row in stored(log)) == list(range(12))


@pytest.mark.parametrize("there", [0, 1, 2])
def test_what_was_stored_by_halves_is_completed_after_partitions_were_added(
    tmp_path: Path, there: int
) -> None:
    """A power loss can leave what one partition has, and nothing of the others."""
    table = pa.table({"id": [row["id"] for row in BATCH]})
    partitions = keys.partitions([table["id"].chunk(0)], 3)
    with make_log(tmp_path) as log, RequestJournal(tmp_path / "serve") as journal:
        with journal.beginning() as beginning:
            beginning.add(_written(table, log.topic("orders")))
        with log.producer("orders", journal.producer(0)) as producer:
            for number in np.flatnonzero(partitions == there):
                producer.send({"id": int(number)}, sequence=int(number))
        assert 0 < len(stored(log)) < 12
        log.alter_topic("orders", partitions=5)
    with headwater.open(f"file:{tmp_path / 'data'}") as log:
        with EventSender(log, tmp_path / "serve") as sender:
            sender.recover()
        assert sorted(row["id"] for row in stored(log)) == list(range(12))


def _written(table: pa.Table, topic: Topic) -> WrittenRequest:
    rows = pa.BufferOutputStream()
    with pa.ipc.new_stream(rows, table.schema) as stream:
        stream.write_table(table)
    return WrittenRequest(
        *(0, topic.id or topic.name, topic.name, "k", b"d", 0, 0, table.num_rows, topic.partitions, 0),
        *(rows.getvalue().to_pybytes(), None),
    )


def test_two_servers_on_one_log_store_a_request_once(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    with serving(tmp_path) as one, serving(tmp_path) as other:
        first = call(one.url, "POST", "/v1/topics/orders", BATCH, KEY)
        second = call(other.url, "POST", "/v1/topics/orders", BATCH, KEY)
    assert (second.status, second.json()) == (200, first.json())
    with headwater.open(f"file:{tmp_path / 'data'}") as log:
        assert len(stored(log)) == 12


def test_too_much_that_waits_is_refused(tmp_path: Path) -> None:
    with make_log(tmp_path) as log:
        ingest = EventSender(log, tmp_path / "serve", waiting=100)
        with ingest.reserve() as first, ingest.reserve() as second:
            first.add(90)
            with pytest.raises(BufferFull):
                second.add(20)
        with ingest.reserve() as third:
            third.add(200)  # alone it may be larger
        ingest.close()
    assert not (tmp_path / "serve").exists()
