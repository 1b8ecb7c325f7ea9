"""How far a pipeline's nodes have got, as they have written it down: no Spark is needed to know.

Invariant: nothing is changed, and the pipeline may run meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from headwater.engine.figures.bucket_figures import BucketFigures, read_buckets
from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.accounting import NOTHING, Accounting
from headwater.engine.home.checkpoint import ClockSkew, Input, InputProgress
from headwater.engine.home.node_progress import NodeProgress
from headwater.engine.home.versions import versions_on_disk
from headwater.engine.home.view_locations import STORE, views_of
from headwater.engine.source.watermark import NEVER
from headwater.errors import HeadwaterError, SinkUnavailable, UnknownTopic, UsageError
from headwater.log import Log, Position
from headwater.pipeline.node import Node, SinkNode, ViewNode
from headwater.pipeline.pipeline import Pipeline
from headwater.sinks.delivery.figures import DeliveryStatus, delivery_status
from headwater.values.json_ready import JsonReady, calendar_time
from headwater.views import Views

TopicLag = Callable[[str, Mapping[int, int]], int]
"""Returns how many records of a topic lie after the offsets of its partitions."""


@dataclass(frozen=True)
class Progress(JsonReady):
    """What a node has done, in all its runs."""

    node: str
    kind: str
    batch: int | None
    """The number of the last batch that it has committed; None if it has committed none."""
    ended: float | None
    """When that was, in seconds since 1970."""
    positions: tuple[Position, ...]
    lag: int
    """Records of its inputs that it has not processed."""
    clock: int | None
    """Its clock, in microseconds since 1970."""
    rows: int | None
    """Rows of a view."""
    ahead: tuple[ClockSkew, ...] = ()
    """Producers of its inputs whose events are too far ahead of time to move its clock."""
    waits_for: tuple[str, int] | None = None
    """The input that holds its clock though others have come further, and when that was last heard of."""
    problem: HeadwaterError | None = None
    """Why the rows of a view are not known."""
    deliveries: DeliveryStatus | None = None
    """What waits in its outbox; None where it has none."""
    accounting: Accounting = NOTHING
    """What has become of the rows that it took in."""
    buckets: BucketFigures | None = None
    """How its state is spread; None where it has none."""
    memory_bytes: int | None = None
    """What of its state is in the memory of processes; None where it does not run."""
    largest_keys: tuple[tuple[str, float], ...] = ()
    """The most frequent keys of its last run, each with its share of a sample of the rows."""

    def facts(self) -> dict[str, Any]:
        """Return its fields, with times as such, and the input that it waits for by its name."""
        ended = None if self.ended is None else int(self.ended * 1_000_000)
        return {
            **super().facts(),
            "ended": calendar_time(ended),
            "clock": calendar_time(self.clock),
            "waits_for": self.waits_for[0] if self.waits_for is not None else None,
        }


def progress(pipeline: Pipeline, log: Log, views: Views | None = None) -> list[Progress]:
    """Return the progress of every node, in the order of the pipeline.

    With ``views``, which are open already, the rows of views are not counted: with many, that takes long.
    """
    check_has_run(pipeline)
    lag = topic_lag(log)
    if views is not None:
        return [
            _progress(pipeline, node, lag, _uncounted(pipeline, node, views)) for node in pipeline.order()
        ]
    if not (pipeline.home / STORE).exists():
        return [_progress(pipeline, node, lag, _stored(pipeline, node, None)) for node in pipeline.order()]
    with views_of(pipeline) as opened:
        return [_progress(pipeline, node, lag, _stored(pipeline, node, opened)) for node in pipeline.order()]


def check_has_run(pipeline: Pipeline) -> None:
    """Refuse a pipeline that has never run."""
    if not (pipeline.home / "nodes").is_dir():
        raise HeadwaterError(
            f'pipeline "{pipeline.name}" has not run yet',
            detail=f'it would have left something in "{pipeline.home}"',
            hint=f"run it with `headwater run {Path(pipeline.file).name}`",
        )


def checkpoint_of(pipeline: Pipeline, node: Node, version: int = 1) -> Path:
    """Return where Spark notes what a version of a node has done."""
    return pipeline.home / "nodes" / node.name / f"v{version}" / "checkpoint"


def committed_progress(path: Path, node: Node) -> InputProgress | None:
    """Return how far a node with a checkpoint has got, by its own account; None if it has committed nothing.

    What its query has planned or done says nothing of it: others may share the query.
    """
    own = node_progress.read(path.parent)
    if own.batch < 0:
        return None
    try:
        inputs = checkpoint.input_progress(path, checkpoint.last_done(path)).of(node.upstreams).inputs
    except OSError:  # Spark has just removed it for a newer one
        inputs = {}
    at = {name: Position.parse(text) for name, text in own.positions.items()}
    return InputProgress({name: replace(inputs.get(name, Input(at[name])), position=at[name]) for name in at})


def topic_lag(log: Log) -> TopicLag:
    """Return what measures how far offsets are from a topic's end; each topic is asked once."""

    @cache
    def bounds(topic: str) -> dict[int, tuple[int, int]]:
        try:
            first, ends = log.resolve(topic, "earliest").offsets, log.resolve(topic, "latest").offsets
        except UnknownTopic:  # it is made when the pipeline runs next
            return {}
        return {partition: (first.get(partition, 0), end) for partition, end in ends.items()}

    def lag(topic: str, done: Mapping[int, int]) -> int:
        partitions = bounds(topic).items()
        return sum(max(0, end - max(first, done.get(number, 0))) for number, (first, end) in partitions)

    return lag


def node_lag(topics: Iterable[str], inputs: InputProgress | None, lag: TopicLag) -> int:
    """Return how many records of a node's inputs it has not processed."""
    positions: tuple[Position, ...] = inputs.positions if inputs is not None else ()
    done = {position.topic: position.offsets for position in positions}
    return sum(lag(topic, done.get(topic, {})) for topic in topics)


def node_clock(own: NodeProgress, inputs: InputProgress | None) -> int | None:
    """Return the clock that a node has come to by its own account, None where it has or knows none yet."""
    if inputs is None:
        return None
    last = own.last_watermark
    clock = inputs.watermark if last is None else last
    return clock if clock is not None and clock > NEVER else None


def _progress(pipeline: Pipeline, node: Node, lag: TopicLag, stored: StoredView) -> Progress:
    version, rows, problem = stored
    path = checkpoint_of(pipeline, node, version)
    own, inputs = node_progress.read(path.parent), committed_progress(path, node)
    return Progress(
        node=node.name,
        kind=node.kind,
        batch=own.batch if own.batch >= 0 else None,
        ended=_ended(path, own.batch),
        positions=inputs.positions if inputs is not None else (),
        lag=node_lag(pipeline.inputs(node), inputs, lag),
        clock=node_clock(own, inputs),
        rows=rows,
        ahead=inputs.ahead if inputs is not None else (),
        waits_for=_waits_for(inputs) if inputs is not None else None,
        problem=problem,
        deliveries=node_deliveries(pipeline, node),
        accounting=own.accounting,
        buckets=read_buckets(path.parent, pipeline.home_store),
    )


def node_deliveries(pipeline: Pipeline, node: Node) -> DeliveryStatus | None:
    """Return how the deliveries of a node are doing; None where it delivers nothing, or has not begun."""
    file = node.outbox(pipeline.home) if isinstance(node, SinkNode) else None
    try:
        return None if file is None else delivery_status(file)
    except SinkUnavailable:  # a disk that is full or a file that is busy; its runner says so
        return None


def _waits_for(inputs: InputProgress) -> tuple[str, int] | None:
    name = inputs.slowest
    return None if name is None else (name, inputs.inputs[name].heard)


def _ended(path: Path, batch: int) -> float | None:
    if batch < 0:
        return None
    try:
        return (path / "commits" / str(checkpoint.oldest_retained(path, batch))).stat().st_mtime
    except OSError:  # the query that it shares has not done it yet, or Spark has removed it
        return None


StoredView = tuple[int, int | None, HeadwaterError | None]
"""The version of a node that is in force, the rows of a view, or why they are not known."""


def _uncounted(pipeline: Pipeline, node: Node, views: Views) -> StoredView:
    if isinstance(node, ViewNode):
        with suppress(UsageError, SinkUnavailable):  # it has never run, or its store is away
            return views[node.name].version, None, None
    return next(iter(versions_on_disk(pipeline.home, node)), 1), None, None


def _stored(pipeline: Pipeline, node: Node, views: Views | None) -> StoredView:
    """Return the published version of a view and its rows, or why they are not known."""
    if not isinstance(node, ViewNode) or views is None:
        return next(iter(versions_on_disk(pipeline.home, node)), 1), None, None
    try:
        view = views[node.name]
        return view.version, view.count(), None
    except UsageError:  # it has never run
        return 1, None, None
    except SinkUnavailable as problem:
        return next(iter(versions_on_disk(pipeline.home, node)), 1), None, problem
