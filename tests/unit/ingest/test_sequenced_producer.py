"""Rows under numbers."""

from __future__ import annotations

import threading

import pyarrow as pa

import headwater
from headwater.ingest.sequenced_producer import SequencedProducer


def test_what_is_sent_again_under_its_number_is_stored_once() -> None:
    rows = pa.table({"id": [1, 2, 3]})
    with headwater.open("memory:") as log:
        log.create_topic("t", "id BIGINT")
        with SequencedProducer(log, "t", "n", threading.Event()) as producer:
            producer.append(rows)
        with SequencedProducer(log, "t", "n", threading.Event()) as producer:
            assert producer.sequence == 3
            producer.append(rows, sequence=1)
            assert producer.flush().offsets == {0: 4}
        assert [v for batch in log.read("t") for v in batch.column("id").to_pylist()] == [1, 2, 3, 3]
