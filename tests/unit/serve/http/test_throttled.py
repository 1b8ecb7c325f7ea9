"""Values are found out as often as they are worth it, by one of those who ask."""

from __future__ import annotations

import threading
import time

from headwater.serve.http.throttled import ThrottledValues


def test_a_value_is_asked_for_once_while_it_is_fresh_and_again_when_it_is_old() -> None:
    asked = list[int]()
    for least, times in ((60.0, 1), (0.0, 2)):
        values = ThrottledValues(least)
        asked.clear()
        for _ in range(2):
            values.get("key", lambda: asked.append(1))
            while least == 0.0 and values._known["key"].until > time.monotonic():
                pass
        assert len(asked) == times


def test_who_asks_while_another_does_gets_what_was_known_before() -> None:
    values, begun, go = ThrottledValues(0.0), threading.Event(), threading.Event()

    def slow() -> int:
        begun.set()
        go.wait(10)
        return 2

    assert values.get("key", lambda: 1) == 1
    values._known["key"] = type(values._known["key"])(1, 0.0)
    thread = threading.Thread(target=values.get, args=("key", slow))
    thread.start()
    assert begun.wait(10)
    assert values.get("key", lambda: 3) == 1
    go.set()
    thread.join()
    assert values.peek("key") == 2


def test_only_so_many_are_kept() -> None:
    values = ThrottledValues(60.0, most=3)
    for number in range(10):
        values.get(number, lambda: 0)
    assert (len(values._known), len(values._locks)) == (3, 3)
    assert values.peek(0) is None
