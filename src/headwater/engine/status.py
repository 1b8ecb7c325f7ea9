"""How the nodes of a running pipeline are doing, in figures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from headwater.engine.query import Counts
from headwater.engine.runner import Runner, Running
from headwater.errors import HeadwaterError

State = Literal["starting", "running", "waiting", "broken"]


@dataclass(frozen=True)
class Status:
    """One node as it is now; counts are those of this run."""

    node: str
    kind: str
    state: State
    """``waiting`` is between a failure and the next attempt; ``broken`` is not tried again."""
    batches: int
    rows: int
    """Rows taken in."""
    rate: float
    """Rows per second since the status was asked for last."""
    out: int
    late: int
    duplicates: int
    seconds: float
    """How long the last batch's results took to be computed and committed."""
    lag: int
    """Records of its inputs that it has not processed."""
    clock: int | None
    """Its clock, in microseconds since 1970."""
    state_bytes: int
    error: HeadwaterError | None


class Meter:
    """Reads a runner's figures now and then."""

    def __init__(self, runner: Runner):
        self._runner = runner
        self._before: dict[str, tuple[float, int]] = {}

    def read(self) -> list[Status]:
        """Return the status of every node, in the order of the pipeline."""
        ends = lru_cache(maxsize=None)(lambda topic: self._runner.log.resolve(topic, "latest").offsets)
        return [self._status(running, ends) for running in self._runner.nodes.values()]

    def _status(self, running: Running, ends: object) -> Status:
        counts, node = running.query.counts, running.query.node
        return Status(
            node=node.name,
            kind=node.kind,
            state=_state(running),
            batches=counts.batches,
            rows=counts.rows,
            rate=self._rate(node.name, counts.rows),
            out=counts.out,
            late=counts.late,
            duplicates=counts.duplicates,
            seconds=counts.seconds,
            lag=_lag(self._runner, running, ends),
            clock=_clock(counts),
            state_bytes=sum(counts.states.values()),
            error=running.error,
        )

    def _rate(self, node: str, rows: int) -> float:
        now = time.monotonic()
        at, before = self._before.get(node, (now, rows))
        self._before[node] = (now, rows)
        return (rows - before) / (now - at) if now > at else 0.0


def _state(running: Running) -> State:
    if running.broken:
        return "broken"
    if running.spark is None:
        return "waiting"
    return "running" if running.query.counts.batches else "starting"


def _clock(counts: Counts) -> int | None:
    clock = counts.reached.clock if counts.reached is not None else None
    return clock if clock is not None and clock > 0 else None


def _lag(runner: Runner, running: Running, ends: object) -> int:
    reached = running.query.counts.reached
    done: Mapping[str, Mapping[int, int]] = (
        {each.topic: each.offsets for each in reached.positions} if reached else {}
    )
    total = 0
    for topic in runner.pipeline.inputs(running.query.node):
        there: Mapping[int, int] = ends(topic)  # type: ignore[operator]
        total += sum(max(0, end - done.get(topic, {}).get(part, 0)) for part, end in there.items())
    return total
