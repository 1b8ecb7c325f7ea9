"""Work in a thread of its own."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater import Pipeline
from headwater.api.background import Background, StoppableWork, run_in_thread
from headwater.errors import TopicError


def test_work_apart_returns_or_raises_as_if_it_were_here() -> None:
    assert run_in_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        run_in_thread(lambda: 1 // 0)
    assert not Background(lambda: time.sleep(5)).ended(0.01)


def test_work_that_can_be_stopped_is_stopped_when_it_is_closed_and_says_why_it_failed() -> None:
    stopped: list[bool] = []
    with StoppableWork(lambda stop: stopped.append(stop.wait(10))) as work:
        assert not work.ended(0.01)
    assert work.ended() and stopped == [True]

    def fail(_stop: threading.Event) -> None:
        raise TopicError("no topic")

    with StoppableWork(fail) as failing, pytest.raises(TopicError):
        failing.result()


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Let SIGINT interrupt: a shell has a program in its background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_soon() -> None:
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT)).start()


def test_an_interrupt_stops_work_apart_and_waits_for_its_end(interrupts: None) -> None:
    stopped, ended = threading.Event(), threading.Event()

    def work() -> None:
        stopped.wait(30)
        time.sleep(0.3)
        ended.set()

    def stop() -> bool:
        stopped.set()
        return True

    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        run_in_thread(work, stop)
    assert ended.is_set()


def test_an_interrupt_does_not_wait_for_work_that_cannot_be_stopped(interrupts: None) -> None:
    released = threading.Event()
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        run_in_thread(lambda: released.wait(30))
    released.set()


def test_the_end_of_a_block_raises_why_a_run_could_not_begin(tmp_path: Path) -> None:
    shop = Pipeline("shop", log=f"file:{tmp_path / 'log'}")
    shop.source("orders", "id BIGINT")
    shop.view(key="id")(seen)
    with headwater.open(shop.log) as log:
        log.create_topic("orders", "id STRING")
    with pytest.raises(TopicError, match='column "id"'), headwater.run(shop):
        pass


def seen(orders: Any) -> Any:
    return orders
