"""Consumers of a queue: one lives while it holds the lock on its file."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from headwater.log.embedded.queue.consumers import ConsumerLock, count_living, names
from headwater.log.embedded.wakeup import Wakeup


def test_a_consumer_lives_until_it_lets_go(tmp_path: Path) -> None:
    one, two = ConsumerLock(tmp_path / "q"), ConsumerLock(tmp_path / "q")
    assert one.lives(two.id) and two.lives(one.id) and one.lives(one.id)
    assert count_living(tmp_path / "q") == one.living() == 2
    two.release()  # as the kernel does when its process dies
    assert not one.lives(two.id)
    assert len(names(tmp_path / "q")) == 2
    one.sweep()
    assert names(tmp_path / "q") == [one.id]
    one.close()
    assert names(tmp_path / "q") == []


def test_a_file_that_was_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, flock, swept = ConsumerLock(tmp_path / "q"), fcntl.flock, list[int]()

    def late(file: Any, how: int) -> None:
        if how == fcntl.LOCK_EX and not swept:
            swept.append(1)
            other.sweep()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    lock = ConsumerLock(tmp_path / "q")
    assert swept and other.lives(lock.id)
    other.sweep()
    assert sorted(names(tmp_path / "q")) == sorted([lock.id, other.id])
    lock.close()
    other.close()


def test_those_who_wait_are_woken(tmp_path: Path) -> None:
    lock = ConsumerLock(tmp_path / "q")
    wakeup = Wakeup([], [lock.directory])
    lock.notify()
    assert wakeup.wait(5)
    wakeup.close()
    lock.close()


def test_a_forked_child_holds_no_lock_of_its_parent(tmp_path: Path) -> None:
    lock = ConsumerLock(tmp_path / "q")
    read, write = os.pipe()
    child = os.fork()
    if not child:  # it lives on, without the lock
        os.write(write, b"x")
        time.sleep(60)
        os._exit(0)
    try:
        os.read(read, 1)
        assert count_living(tmp_path / "q") == 1
        lock.release()
        assert count_living(tmp_path / "q") == 0
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)


def test_a_queue_that_nobody_has_opened_has_no_consumers(tmp_path: Path) -> None:
    assert count_living(tmp_path / "none") == 0
