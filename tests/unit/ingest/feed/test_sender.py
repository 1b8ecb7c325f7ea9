"""What a feed sends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

import headwater
from headwater.ingest.feed.sender import FeedSender
from headwater.ingest.feed.wire import HEARTBEAT, POINTER, RECORDS, FeedDatagram, decode, topic_mark


@pytest.fixture
def network() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(5)
        yield opened


def test_records_are_sent_once_and_heartbeats_say_how_far_they_go(network: socket.socket) -> None:
    with headwater.open("memory:") as log:
        topic = log.create_topic("t", "id BIGINT, text STRING")
        with log.producer("t") as producer:
            producer.send_batch([{"id": 0}])
        with (
            FeedSender(log, "t", f"127.0.0.1:{network.getsockname()[1]}") as sender,
            log.producer("t") as producer,
        ):
            assert not sender.send_new()
            producer.send_batch([{"id": 1}, {"id": 2}, {"text": "x" * 2000}])
            producer.flush()
            assert sender.send_new()
            assert not sender.send_new()
            sender.beat()
        found = [decode(network.recv(1 << 16), topic_mark(topic.id)) for _ in range(3)]
        assert found == [
            FeedDatagram(RECORDS, 0, 1, 3, b'{"id":1}\n{"id":2}'),
            FeedDatagram(POINTER, 0, 3, 4),
            FeedDatagram(HEARTBEAT, 0, 4, 4),
        ]
        assert sender.counts.to_dict() == {"rows": 3, "datagrams": 3}


def test_a_sender_that_is_stopped_says_how_far_it_has_got(network: socket.socket) -> None:
    with headwater.open("memory:") as log:
        log.create_topic("t", "id BIGINT")
        stop = threading.Event()
        stop.set()
        with FeedSender(log, "t", f"127.0.0.1:{network.getsockname()[1]}") as sender:
            sender.run(stop)
        assert network.recv(1 << 16)[4] == HEARTBEAT
