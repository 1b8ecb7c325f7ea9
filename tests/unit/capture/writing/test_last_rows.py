"""The last known rows of keys, found in a topic."""

from __future__ import annotations

import headwater
from headwater.capture.writing.last_rows import LastRows

LONG = "x" * 200


def test_the_newest_large_row_of_a_key_is_found() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("pages", "id BIGINT, text STRING", key="id", cleanup="compact", partitions=2)
        last = LastRows(log, "pages", ("id",))
        with log.producer("pages") as producer:
            producer.send_batch([{"id": id, "text": f"{LONG}{id}"} for id in range(5)])
            producer.flush()
            assert last.find([b"1", b"9"]) == {b"1": {"id": 1, "text": f"{LONG}1", "_deleted": False}}
            producer.send({"id": 2, "text": "short"})
            producer.delete(3)
            producer.send({"id": 1, "text": f"{LONG}new"})
        found = last.find([b"1", b"2", b"3", b"4"])
    assert {key: row["text"] for key, row in found.items()} == {b"1": f"{LONG}new", b"4": f"{LONG}4"}


def test_a_row_that_the_last_record_deletes_is_found_for_it_may_come_under_another_key() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("pages", "id BIGINT, text STRING", key="id", cleanup="compact")
        last = LastRows(log, "pages", ("id",))
        with log.producer("pages") as producer:
            producer.send_batch([{"id": 1, "text": LONG}, {"id": 2, "text": LONG}])
            producer.delete(1)
            producer.flush()
            assert [row["text"] for row in last.find([b"1"]).values()] == [LONG]
            producer.delete(2)
        assert list(last.find([b"1", b"2"])) == [b"2"]
