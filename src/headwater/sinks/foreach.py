"""A sink that calls a function: for targets that have no transaction to share.

Invariant: the function has seen every row at least once. After a crash it sees the last batch
again, with the same number, so whoever needs more keeps the number with the result.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headwater.sinks import crash
from headwater.sinks.sink import Batch, Sink


class ForeachSink(Sink):
    """Calls ``function(rows, batch)`` with each batch's rows, an Arrow table, and its number.

    At least once: nothing is remembered, so a batch that is replayed is handed over again, and
    there is no fencing: a runner that has been replaced still calls the function. An error that the
    function raises is the commit's. A batch without rows is handed over too.

    >>> sink = ForeachSink(lambda rows, batch: print(batch, rows.to_pylist()))
    >>> sink.begin()
    -1
    >>> sink.commit(Batch(0, pa.table({"id": [1, 2]})))
    0 [{'id': 1}, {'id': 2}]
    True
    """

    def __init__(self, function: Callable[[pa.Table, int], object]):
        self._function = function

    def begin(self) -> int:
        """Return -1: what has been handed over before is not known."""
        return -1

    def commit(self, batch: Batch) -> bool:
        """Hand a batch over; always True."""
        crash.point("foreach: before the call")
        self._function(batch.rows, batch.number)
        crash.point("foreach: after the call")
        return True

    def receipt(self) -> str:
        """Return nothing: what the function has made of its rows is not known."""
        return ""

    def resume(self, receipt: str) -> str | None:
        """Return None: nobody can say."""
        return None

    def close(self) -> None:
        """Nothing to release."""
