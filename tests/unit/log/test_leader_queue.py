from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from headwater.log.leader_queue import LeaderQueue


def test_those_who_come_while_one_works_are_worked_on_together() -> None:
    groups, working, go_on = list[list[int]](), threading.Event(), threading.Event()

    def work(items: Sequence[int]) -> list[int | BaseException]:
        groups.append(list(items))
        working.set()
        assert go_on.wait(10)
        return [item * 10 for item in items]

    queue = LeaderQueue[int, int](work, most=100)
    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(queue.submit, 0)
        assert working.wait(10)
        others = [pool.submit(queue.submit, n) for n in range(1, 6)]
        while len(queue._queue) < 5:
            threading.Event().wait(0.001)
        go_on.set()
        assert [each.result(10) for each in (first, *others)] == [0, 10, 20, 30, 40, 50]
    assert [len(group) for group in groups] == [1, 5]


def test_each_item_is_worked_on_once_and_its_result_is_its_callers() -> None:
    seen: list[int] = []

    def work(items: Sequence[int]) -> list[int | BaseException]:
        seen.extend(items)
        return [ValueError(str(item)) if item % 7 == 0 else item + 1 for item in items]

    queue = LeaderQueue[int, int](work, most=3)

    def call(n: int) -> int:
        try:
            return queue.submit(n)
        except ValueError as error:
            return -int(str(error))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(call, range(500)))
    assert results == [-n if n % 7 == 0 else n + 1 for n in range(500)]
    assert sorted(seen) == list(range(500))


def test_an_error_of_the_work_reaches_all_whose_work_it_was_and_the_queue_goes_on() -> None:
    fails = [True]

    def work(items: Sequence[int]) -> list[int | BaseException]:
        if fails.pop() if fails else False:
            raise OSError("full")
        return list(items)

    queue = LeaderQueue[int, int](work, most=10)
    with pytest.raises(OSError, match="full"):
        queue.submit(1)
    assert queue.submit(2) == 2


def test_an_interrupted_leader_does_not_hold_up_the_next() -> None:
    interrupts = [KeyboardInterrupt()]

    def work(items: Sequence[int]) -> list[int | BaseException]:
        if interrupts:
            raise interrupts.pop()
        return list(items)

    queue = LeaderQueue[int, int](work, most=10)
    with pytest.raises(KeyboardInterrupt):
        queue.submit(1)
    assert queue.submit(2) == 2


def test_a_leader_waits_for_those_who_were_there_the_last_time() -> None:
    groups = list[int]()

    def work(items: Sequence[int]) -> list[int | BaseException]:
        groups.append(len(items))
        threading.Event().wait(0.02)
        return list(items)

    queue = LeaderQueue[int, int](work, most=100)

    def call(thread: int) -> None:
        for number in range(20):
            queue.submit(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, range(4)))
    assert sum(groups) == 80
    assert sum(groups) / len(groups) > 2.5, "in two halves that take turns it would be two"


@pytest.mark.parametrize("where", ["_gather", "_results"])
def test_those_who_wait_are_told_or_led_on_wherever_the_leader_is_interrupted(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = LeaderQueue[int, int](lambda items: list(items), most=2)
    usual, leading, others_wait = getattr(queue, where), threading.Event(), threading.Event()

    def interrupted(*given: object) -> None:
        monkeypatch.setattr(queue, where, usual)
        leading.set()
        assert others_wait.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(queue, where, interrupted)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(queue.submit, 0)
        assert leading.wait(10)
        others = [pool.submit(queue.submit, n) for n in (1, 2, 3)]
        while len(queue._queue) < (4 if where == "_gather" else 3):
            threading.Event().wait(0.001)
        others_wait.set()
        with pytest.raises(KeyboardInterrupt):
            first.result(10)
        assert [each.result(10) for each in others] == [1, 2, 3]
    assert queue.submit(7) == 7


def test_one_who_is_interrupted_while_it_waits_is_not_made_the_leader() -> None:
    seen, working, go_on = list[int](), threading.Event(), threading.Event()

    def work(items: Sequence[int]) -> list[int | BaseException]:
        seen.extend(items)
        working.set()
        assert go_on.wait(10)
        return list(items)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    queue = LeaderQueue[int, int](work, most=1)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(queue.submit, 0)
            assert working.wait(10)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                queue.submit(1)
            last = pool.submit(queue.submit, 2)
            go_on.set()
            assert (first.result(10), last.result(10)) == (0, 2)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == [0, 2]
