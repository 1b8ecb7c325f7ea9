"""How far a pipeline's nodes have got, as they have written it down: no Spark is needed to know.

Invariant: nothing is changed, and the pipeline may run meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.checkpoint import Ahead, Input, Reached
from headwater.engine.home.versions import left
from headwater.engine.home.view_locations import STORE, views_of
from headwater.engine.source.watermark import NEVER
from headwater.errors import HeadwaterError, SinkUnavailable, UnknownTopic, UsageError
from headwater.log import Log, Position
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline
from headwater.values.json_ready import JsonReady, calendar_time
from headwater.views import Views

Behind = Callable[[str, Mapping[int, int]], int]
"""Tells how many records of a topic lie after the offsets of its partitions."""


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
    ahead: tuple[Ahead, ...] = ()
    """Producers of its inputs whose events are too far ahead of time to move its clock."""
    waits_for: tuple[str, int] | None = None
    """The input that holds its clock though others have come further, and when that was last heard of."""
    problem: HeadwaterError | None = None
    """Why the rows of a view are not known."""

    def facts(self) -> dict[str, Any]:
        """Return its fields, with times as such, and the input that it waits for by its name."""
        ended = None if self.ended is None else int(self.ended * 1_000_000)
        return {
            **super().facts(),
            "ended": calendar_time(ended),
            "clock": calendar_time(self.clock),
            "waits_for": self.waits_for[0] if self.waits_for is not None else None,
        }


def progress(pipeline: Pipeline, log: Log) -> list[Progress]:
    """Return the progress of every node, in the order of the pipeline."""
    check_has_run(pipeline)
    behind = lags(log)
    if not (pipeline.home / STORE).exists():
        return [_progress(pipeline, node, behind, None) for node in pipeline.order()]
    with views_of(pipeline) as views:
        return [_progress(pipeline, node, behind, views) for node in pipeline.order()]


def check_has_run(pipeline: Pipeline) -> None:
    """Refuse a pipeline that has left nothing to look at."""
    if not (pipeline.home / "nodes").is_dir():
        raise HeadwaterError(
            f'pipeline "{pipeline.name}" has not run yet',
            detail=f'it would have left something in "{pipeline.home}"',
            hint=f"run it with `headwater run {Path(pipeline.file).name}`",
        )


def checkpoint_of(pipeline: Pipeline, node: Node, version: int = 1) -> Path:
    """Return where Spark notes what a version of a node has done."""
    return pipeline.home / "nodes" / node.name / f"v{version}" / "checkpoint"


def written(place: Path, node: Node) -> Reached | None:
    """Return how far a node has got, by its own account; None if it has committed nothing.

    What its query has planned or done says nothing of it: others may share the query.
    """
    own = node_progress.read(place.parent)
    if own.batch < 0:
        return None
    try:
        inputs = checkpoint.reached(place, checkpoint.last_done(place)).of(node.upstreams).inputs
    except OSError:  # Spark has just removed it for a newer one
        inputs = {}
    at = {name: Position.parse(text) for name, text in own.positions.items()}
    return Reached({name: replace(inputs.get(name, Input(at[name])), position=at[name]) for name in at})


def lags(log: Log) -> Behind:
    """Return what tells how far a place is from a topic's end; each topic is asked once."""

    @cache
    def bounds(topic: str) -> dict[int, tuple[int, int]]:
        try:
            first, ends = log.resolve(topic, "earliest").offsets, log.resolve(topic, "latest").offsets
        except UnknownTopic:  # it is made when the pipeline runs next
            return {}
        return {partition: (first.get(partition, 0), end) for partition, end in ends.items()}

    def behind(topic: str, done: Mapping[int, int]) -> int:
        places = bounds(topic).items()
        return sum(max(0, end - max(first, done.get(part, 0))) for part, (first, end) in places)

    return behind


def behind_of(topics: Iterable[str], reached: Reached | None, behind: Behind) -> int:
    """Return how many records of a node's inputs it has not processed."""
    positions: tuple[Position, ...] = reached.positions if reached is not None else ()
    done = {each.topic: each.offsets for each in positions}
    return sum(behind(topic, done.get(topic, {})) for topic in topics)


def clock_of(place: Path, reached: Reached | None) -> int | None:
    """Return the clock that a node has come to, None where it has none or knows no time yet."""
    if reached is None:
        return None
    told = node_progress.read(place.parent).last
    clock = reached.clock if told is None else told
    return clock if clock is not None and clock > NEVER else None


def _progress(pipeline: Pipeline, node: Node, behind: Behind, views: Views | None) -> Progress:
    version, rows, problem = _stored(pipeline, node, views)
    place = checkpoint_of(pipeline, node, version)
    own, reached = node_progress.read(place.parent), written(place, node)
    return Progress(
        node=node.name,
        kind=node.kind,
        batch=own.batch if own.batch >= 0 else None,
        ended=_ended(place, own.batch),
        positions=reached.positions if reached is not None else (),
        lag=behind_of(pipeline.inputs(node), reached, behind),
        clock=clock_of(place, reached),
        rows=rows,
        ahead=reached.ahead if reached is not None else (),
        waits_for=_waits_for(reached) if reached is not None else None,
        problem=problem,
    )


def _waits_for(reached: Reached) -> tuple[str, int] | None:
    name = reached.slowest
    return None if name is None else (name, reached.inputs[name].heard)


def _ended(place: Path, batch: int) -> float | None:
    if batch < 0:
        return None
    try:
        return (place / "commits" / str(checkpoint.kept(place, batch))).stat().st_mtime
    except OSError:  # the query that it shares has not done it yet, or Spark has removed it
        return None


def _stored(
    pipeline: Pipeline, node: Node, views: Views | None
) -> tuple[int, int | None, HeadwaterError | None]:
    """Return the published version of a view and its rows, or why they are not known."""
    if not node.has_versions or views is None:
        return 1, None, None
    try:
        view = views[node.name]
        return view.version, view.count(), None
    except UsageError:  # it has never run
        return 1, None, None
    except SinkUnavailable as problem:
        return next(iter(left(pipeline.home, node)), 1), None, problem
