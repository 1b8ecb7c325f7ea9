"""Where partitions ended when others were added: noted exactly, and read as it was noted."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headwater.errors import DamagedLog
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.partition import growth
from headwater.log.embedded.partition.growth import Growth, growths
from headwater.values.keys import partition_of


def test_what_came_to_nothing_is_replaced(tmp_path: Path) -> None:
    assert growths(tmp_path, 9) == []
    growth.note(tmp_path, [7])
    growth.note(tmp_path, [8])
    growth.note(tmp_path, [8, 3])
    assert growths(tmp_path, 3) == [Growth(1, (8,)), Growth(2, (8, 3))]
    assert growths(tmp_path, 2) == [Growth(1, (8,))], "the last was noted and never declared"


def test_it_is_unread_until_all_ends_are_reached() -> None:
    grown = Growth(2, (4, 0))
    assert grown.unread({}) and grown.unread({0: 3, 1: 9})
    assert not grown.unread({0: 4})


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / growth.FILE).write_text("[[1")
    with pytest.raises(DamagedLog, match="were added cannot be read"):
        growths(tmp_path, 2)


def test_nothing_is_placed_by_new_partitions_before_the_ends(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic("t", "k STRING NOT NULL", key="k", partitions=2)
        stop = threading.Event()

        def append() -> None:
            with log.producer("t") as producer:
                while not stop.is_set():
                    producer.send_batch([{"k": f"{n}"} for n in range(50)])
                    producer.flush()

        thread = threading.Thread(target=append)
        thread.start()
        for count in (3, 5, 8):
            log.alter_topic("t", partitions=count)
        stop.set()
        thread.join()
        for grown in growths(tmp_path / "log" / "topics" / "t", 8):
            for number, end in enumerate(grown.ends):
                for batch in log.read("t", number, 0, end):
                    keys = batch.column("k").to_pylist()
                    counts = [n for n in (2, 3, 5) if n <= grown.partitions]
                    assert all(number in {partition_of(k.encode(), n) for n in counts} for k in keys)
