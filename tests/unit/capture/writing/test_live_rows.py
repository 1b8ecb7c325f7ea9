"""Which rows a compacted topic holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import headwater
from headwater.capture.writing.live_rows import live_rows


@given(st.lists(st.tuples(st.integers(0, 5), st.text("ab", max_size=1), st.booleans())))
def test_the_newest_record_of_a_key_decides(records: list[tuple[int, str, bool]]) -> None:
    alive: dict[tuple[int, str], None] = {}
    with headwater.open("memory:") as log:
        columns = "id BIGINT, name STRING, n BIGINT"
        log.create_topic("stock", columns, key="id, name", cleanup="compact", partitions=2)
        with log.producer("stock") as producer:
            for id, name, deleted in records:
                alive.pop((id, name), None)
                if deleted:
                    producer.delete((id, name))
                else:
                    alive[id, name] = None
                    producer.send({"id": id, "name": name, "n": 1})
        found = live_rows(log, "stock", ("id", "name"), ["name", "id", "n"])
    assert found.schema.names == ["name", "id", "n"]
    assert {(row["id"], row["name"]) for row in found.to_pylist()} == set(alive)
