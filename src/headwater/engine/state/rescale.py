"""A node's state in another number of buckets, without a look at the log.

States of all buckets are brought to one time, and what they hold is written anew by the slots of its keys.
The files of before are not touched: nothing has changed until the driver's manifest names the new ones.

Invariant: from the new buckets an operator goes on as it would have from the ones before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headwater.engine.exchange import routing
from headwater.engine.files.home_files import HomeFiles
from headwater.engine.state.bucket import BucketMeta
from headwater.engine.state.chunk_files import Pack, new_name
from headwater.engine.state.run_files import StateRunFiles
from headwater.errors import HeadwaterError
from headwater.operators.memory.operator_memory import StoredMemory
from headwater.operators.memory.redistribution import GATHERED_BYTES, redistribute
from headwater.operators.operator import Operator, Step

_CLOCK = "watermark"
"""The number under which operators that go by the clock of their last step store it."""
Report = Callable[[int, int], None]
"""Is told how many entries have been moved, and of how many."""


class Rescaling:
    """The buckets of a node's operator on their way to another number."""

    def __init__(self, operator: Operator[Any], schema: pa.Schema, files: HomeFiles):
        self._operator, self._schema = operator, schema
        self._pack = Pack(files)
        self._files = StateRunFiles(files, self._pack)

    def run(
        self,
        buckets: dict[int, BucketMeta],
        count: int,
        report: Report = lambda moved, total: None,
        size: int = GATHERED_BYTES,
    ) -> dict[int, BucketMeta]:
        """Store what buckets hold as so many others; ``size`` bounds the bytes in memory."""
        states = [self._opened(meta.memory) for _, meta in sorted(buckets.items()) if meta.save]
        if not states:
            return {}
        self._align(states)
        memories = [self._operator.memory(state) for state in states]
        total = sum(len(runs) for memory in memories for runs in memory.containers.values())
        done = 0

        def count_moved(entries: int) -> None:
            nonlocal done
            done = min(done + entries, total)
            report(done, total)

        moved = redistribute(memories, routing.owners(count), self._files, count_moved, size)
        self._pack.write()
        return {number: self._meta(stored) for number, stored in enumerate(moved)}

    def _meta(self, stored: StoredMemory) -> BucketMeta:
        return BucketMeta(stored, self._operator.next_timer(self._opened(stored)), new_name())

    def _opened(self, stored: StoredMemory) -> Any:
        state = self._operator.initial_state(self._schema)
        self._operator.memory(state).open(stored, self._files)
        return state

    def _align(self, states: list[Any]) -> None:
        """Let the clock of all states be that of the one that was stepped last.

        Nothing comes of it: a bucket that had something to tell by then has been woken.
        """
        clocks = [self._operator.memory(state).numbers().get(_CLOCK) for state in states]
        now = max((clock for clock in clocks if clock is not None), default=None)
        for state, clock in zip(states, clocks, strict=True):
            if now is not None and clock != now:
                _check_silent(self._operator.step(state, self._schema.empty_table(), now))


def _check_silent(step: Step) -> None:
    if step.out.num_rows:
        raise HeadwaterError(
            "a bucket has results that are due and have not come out",
            detail=f"{step.out.num_rows} rows; its state is left as it is",
            hint="run the pipeline until it has processed its input, then rescale",
        )
