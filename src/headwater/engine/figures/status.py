"""How the nodes of a running pipeline are doing, in figures.

Figures are read while the nodes run, and from another thread; nothing here starts Spark or waits
for it. Invariant: what is reported of a node that has not run yet is what its last run has left.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from headwater.engine.figures.progress import (
    TopicLag,
    committed_progress,
    node_clock,
    node_deliveries,
    node_lag,
    topic_lag,
)
from headwater.engine.home import node_progress
from headwater.engine.home.accounting import NOTHING, Accounting
from headwater.engine.home.checkpoint import ClockSkew
from headwater.engine.home.node_progress import NodeProgress
from headwater.errors import HeadwaterError
from headwater.pipeline.node import Node
from headwater.sinks.delivery.figures import DeliveryStatus
from headwater.values.json_ready import JsonReady, calendar_time

if TYPE_CHECKING:  # it imports pyspark, which those who only draw a status need not wait for
    from headwater.engine.assembly import RunningNode
    from headwater.engine.runner import Runner

State = Literal["starting", "running", "waiting", "broken"]
LATE_SHARE, LATE_LEAST = 0.01, 100
"""Of at least so many rows, more than this share may not come late without a word."""
RATE_SECONDS = 5.0
"""Rates are taken over this long: a node's batches come in steps."""


@dataclass(frozen=True)
class Status(JsonReady):
    """One node as it is now; counts are those of this run."""

    node: str
    kind: str
    state: State
    """``waiting`` is between a failure and the next attempt; ``broken`` is not tried again."""
    batches: int
    rows: int
    """Rows taken in."""
    rate: float
    """Rows per second, of late."""
    out: int
    late: int
    dead: int | None
    """Records set aside because the node's code fails on them, in all runs; None where it sets none aside."""
    duplicates: int
    seconds: float
    """How long the last batch's results took to be computed and committed."""
    lag: int
    """Records of its inputs that it has not processed."""
    clock: int | None
    """Its clock, in microseconds since 1970."""
    state_bytes: int
    error: HeadwaterError | None
    """Why it failed, until it has gone on."""
    alert: str | None = None
    """What somebody should look at though the node goes on: too many rows come late."""
    ahead: tuple[ClockSkew, ...] = ()
    """Producers of its inputs whose events are too far ahead of time to move its clock."""
    begun: bool = True
    """Whether it has ever committed anything, in this run or before."""
    accounting: Accounting = NOTHING
    """What has become of the rows that it took in, in all runs."""
    deliveries: DeliveryStatus | None = None
    """What waits in its outbox; None where it has none."""
    memory_bytes: int = 0
    """What of its state is in the memory of processes; the rest is on disk, and looked into."""
    largest_keys: tuple[tuple[str, float], ...] = ()
    """The most frequent keys of late, each with its share of the rows; of a sample of them."""

    @property
    def alerts(self) -> list[str]:
        """What somebody should look at though the node goes on, of its rows and of its deliveries."""
        undelivered = self.deliveries.alert if self.deliveries is not None else None
        told = None if undelivered is None else f'{self.kind} "{self.node}": {undelivered}'
        return [each for each in (self.alert, told) if each is not None]

    def facts(self) -> dict[str, Any]:
        """Return its fields, with the clock as a time; how long a batch took is there if there was one."""
        own = super().facts()
        seconds, clock = own.pop("seconds"), calendar_time(own.pop("clock"))
        return {
            **own,
            "rate": round(self.rate, 1),
            "batch_seconds": round(seconds, 3) if self.batches else None,
            "clock": clock,
        }


class Meter:
    """Reads a runner's figures now and then."""

    def __init__(self, runner: Runner, late_share: float = LATE_SHARE):
        self._runner, self._late_share = runner, late_share
        self._rates = {name: RowRate() for name in runner.nodes}
        self._inputs = {name: runner.pipeline.inputs(name) for name in runner.nodes}

    def read(self) -> list[Status]:
        """Return the status of every node, in the order of the pipeline."""
        lag = topic_lag(self._runner.log)
        return [self._status(running, lag) for running in list(self._runner.nodes.values())]

    def _status(self, running: RunningNode, of_topic: TopicLag) -> Status:
        counts, node = running.node_run.counts, running.node_run.node
        inputs = counts.reached or committed_progress(running.node_run.checkpoint, node)
        lag = node_lag(self._inputs[node.name], inputs, of_topic)
        failing, done = _failing(running, lag), _done(running)
        return Status(
            node=node.name,
            kind=node.kind,
            state=_state(running, lag, failing),
            batches=counts.batches,
            rows=counts.rows,
            rate=self._rates[node.name].over(counts.rows, time.monotonic()),
            out=counts.out,
            late=counts.late,
            dead=self._dead(node, of_topic),
            duplicates=counts.duplicates,
            seconds=counts.seconds,
            lag=lag,
            clock=node_clock(done, inputs),
            state_bytes=sum(list(counts.states.values())),
            memory_bytes=sum(list(counts.held.values())),
            largest_keys=counts.largest_keys(),
            error=running.error if failing else None,
            alert=_alert(running, self._late_share),
            ahead=inputs.ahead if inputs is not None else (),
            begun=inputs is not None,
            deliveries=node_deliveries(self._runner.pipeline, node),
            accounting=done.accounting,
        )

    def _dead(self, node: Node, of_topic: TopicLag) -> int | None:
        if node.on_error != "dead_letter":
            return None
        return of_topic(self._runner.dead_letters(node).topic, {})


class RowRate:
    """How fast a count grows, over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def over(self, count: int, now: float) -> float:
        """Take in the count as it is now, and return by how many a second it has grown."""
        if self._seen and count < self._seen[-1][1]:  # it has begun anew
            self._seen.clear()
        self._seen.append((now, count))
        while len(self._seen) > 2 and self._seen[1][0] <= now - RATE_SECONDS:
            self._seen.popleft()
        first, before = self._seen[0]
        return (count - before) / (now - first) if now > first else 0.0


def _done(running: RunningNode) -> NodeProgress:
    """Return what a node has committed; before it has begun, what its last run has written down of it."""
    done = running.node_run.done
    return done if done.batch >= 0 else node_progress.read(running.node_run.checkpoint.parent)


def _alert(running: RunningNode, most: float) -> str | None:
    """Return what is to be said of a node of whose rows more than a share have come too late."""
    counts, node = running.node_run.counts, running.node_run.node
    if counts.rows < LATE_LEAST or counts.late <= most * counts.rows:
        return None
    return (
        f"{counts.late / counts.rows:.1%} of the rows of {node.title} came too late "
        f"({counts.late:,} of {counts.rows:,}); `headwater lateness` tells how long to wait for them"
    )


def _failing(running: RunningNode, lag: int) -> bool:
    """Tell whether a node has not gone on since it failed: no batch done, though there is input."""
    if running.error is None or running.query.has_progressed:
        return False
    return running.query.spark is None or lag > 0


def _state(running: RunningNode, lag: int, failing: bool) -> State:
    query = running.query
    if query.broken and query.spark is None:
        return "broken"
    if query.spark is None:
        return "starting" if running.error is None else "waiting"
    current = query.has_progressed or lag == 0
    return "running" if current and not failing else "starting"
