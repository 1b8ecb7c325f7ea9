"""A private log: a directory like any other's, gone when it is closed."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.memory import MemoryLog, _sweep


def test_it_is_apart_from_all_others_and_gone_when_it_is_closed() -> None:
    with MemoryLog() as log, MemoryLog() as other:
        log.create_topic("t", "n INT")
        assert other.topics() == []
        assert log.root != other.root
    assert not log.root.exists()
    assert not other.root.exists()


def test_it_goes_when_nobody_holds_it_any_more() -> None:
    log = MemoryLog()
    root = log.root
    log.create_topic("t", "n INT")
    del log
    gc.collect()
    assert not root.exists()


def test_its_path_can_be_handed_on_and_its_options_are_those_of_a_directory() -> None:
    with MemoryLog(compression="zstd") as log:
        assert (log.url, log.durability, log.compression) == ("memory:", "os", "zstd")
        log.create_topic("t", "n INT")
        with log.producer("t") as producer:
            producer.send({"n": 1})
        with EmbeddedLog(log.root) as other:
            assert [row for batch in other.read("t") for row in batch.to_pylist()] == [{"n": 1}]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_what_a_process_that_is_gone_has_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    left = tmp_path / f"headwater-memory-{gone}-x"
    others = [
        tmp_path / f"headwater-memory-{os.getpid()}-x",
        tmp_path / "headwater-memory-mine",
        tmp_path / f"other-{gone}-x",
    ]
    for each in (left, *others):
        each.mkdir()
    _sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(others)
