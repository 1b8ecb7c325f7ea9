"""A sink is closed before what it was made from, and everything is closed."""

from __future__ import annotations

import pyarrow as pa

from headwater.closing import Closing
from headwater.sinks.foreach import ForeachSink
from headwater.sinks.owning import OwningSink
from headwater.sinks.sink import Batch


class Noted(Closing):
    def __init__(self, name: str, closed: list[str]):
        self._name, self._closed = name, closed

    def close(self) -> None:
        self._closed.append(self._name)


class NotedSink(ForeachSink):
    def __init__(self, closed: list[str]):
        super().__init__(lambda rows, batch: None)
        self._closed = closed

    def close(self) -> None:
        self._closed.append("sink")


def test_what_a_sink_was_made_from_is_closed_after_it() -> None:
    closed: list[str] = []
    sink = OwningSink(NotedSink(closed), Noted("store", closed), Noted("log", closed))
    assert (sink.begin(), sink.commit(Batch(0, pa.table({"id": [1]}))), closed) == (-1, True, [])
    sink.close()
    assert closed == ["sink", "store", "log"]
