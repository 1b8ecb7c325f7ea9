from __future__ import annotations

import os
import resource
import threading
import time
from pathlib import Path

import pytest

import headwater
from headwater.log.embedded import wakeup
from headwater.log.embedded.wakeup import Wakeup


def test_a_change_before_the_wait_ends_it_at_once(tmp_path: Path) -> None:
    file = tmp_path / "head"
    file.touch()
    wake = Wakeup([file])
    file.write_bytes(b"x")
    start = time.monotonic()
    wake.wait(30)
    assert time.monotonic() - start < 10
    wake.close()


def test_a_killed_owner_of_a_file_wakes_the_watchers(tmp_path: Path) -> None:
    """The kernel closes the files of a dead process, and tells of it."""
    child = os.fork()
    if child == 0:
        file = open(tmp_path / "member", "w")
        (tmp_path / "ready").touch()
        time.sleep(60)
        file.close()
        os._exit(0)
    while not (tmp_path / "ready").exists():
        time.sleep(0.01)
    wake = Wakeup([], [tmp_path])
    wake.clear()
    os.kill(child, 9)
    start = time.monotonic()
    wake.wait(30)
    assert time.monotonic() - start < 10
    os.waitpid(child, 0)
    wake.close()


@pytest.mark.slow
def test_waiting_burns_no_processor_time(tmp_path: Path) -> None:
    with headwater.open(f"file:{tmp_path}") as log:
        log.create_topic("t", "n INT", partitions=4)
        with log.consumer("t", "g") as consumer:
            consumer.poll(0.1)
            before = resource.getrusage(resource.RUSAGE_THREAD)
            assert consumer.poll(2) is None
            after = resource.getrusage(resource.RUSAGE_THREAD)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.2


def test_without_inotify_waiting_still_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeup, "_inotify", lambda files, directories: (-1, set()))
    with headwater.open(f"file:{tmp_path}") as log:
        log.create_topic("t", "n INT")
        follower = log.read("t", follow=True)
        producer = log.producer("t")
        threading.Timer(0.2, lambda: producer.send({"n": 1})).start()
        assert next(follower).to_pylist() == [{"n": 1}]
        producer.close()
