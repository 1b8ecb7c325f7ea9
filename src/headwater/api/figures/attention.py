"""What needs somebody's attention in a pipeline, each in a sentence, with what to do.

Invariant: what is told is so now; steady state says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from headwater import durations
from headwater.api.dead_letters import waiting_letters
from headwater.api.lateness import LatenessReport, timed_sources
from headwater.capture.figures.status import CaptureStatus
from headwater.engine.figures.progress import Progress
from headwater.engine.figures.status import Status
from headwater.engine.source.watermark import NEVER
from headwater.errors import HeadwaterError
from headwater.log import Log
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline
from headwater.values.json_ready import JsonReady, calendar_time

Severity = Literal["late", "dead", "waiting", "broken"]
SILENT = 30_000_000
"""Microseconds that an input may be silent before it is said that its node waits for it."""


@dataclass(frozen=True)
class Attention(JsonReady):
    """Something that somebody should look at."""

    kind: Literal["node", "topic", "capture"]
    """What it is about."""
    name: str
    severity: Severity
    message: str
    hint: str | None = None
    since: datetime | None = None

    def facts(self) -> dict[str, Any]:
        """Return it with the name under the kind of thing that has it."""
        own = super().facts()
        return {own.pop("kind"): own.pop("name"), **own}


def attention(
    pipeline: Pipeline,
    log: Log,
    committed: Sequence[Progress],
    live: Mapping[str, Status],
    captures: Sequence[CaptureStatus],
    lateness: Mapping[str, LatenessReport],
) -> tuple[Attention, ...]:
    """Return what needs attention, the worst first."""
    found = list[Attention]()
    for node in pipeline.order():
        status = live.get(node.name)
        if status is not None:
            found += _failing(node, status)
            found += _late(pipeline, node, status, lateness)
        found += _dead(pipeline, log, node)
    found += [told for each in committed for told in _undelivered(pipeline, each)]
    waiting = [each for each in committed if each.node in live]
    found += [told for each in waiting for told in _waiting(pipeline, each)]
    found += [told for each in captures for told in _capture(each)]
    found += _ahead(live.values())
    order = ("broken", "dead", "late", "waiting")
    return tuple(sorted(found, key=lambda each: order.index(each.severity)))


def _failing(node: Node, status: Status) -> Iterator[Attention]:
    if status.error is None:
        return
    why = _one_line(status.error)
    if status.state == "broken":
        hint = status.error.hint or "correct it, and start the pipeline again"
        yield Attention("node", node.name, "broken", f"{node.title} is broken: {why}", hint)
    else:
        hint = status.error.hint or "it is tried again by itself, later each time"
        yield Attention("node", node.name, "waiting", f"{node.title} has failed: {why}", hint)


def _late(
    pipeline: Pipeline, node: Node, status: Status, lateness: Mapping[str, LatenessReport]
) -> Iterator[Attention]:
    if status.alert is None:
        return
    share = f"{status.late / max(1, status.rows):.1%}"
    message = f"{share} of the rows of {node.title} came too late ({status.late:,} of {status.rows:,})"
    yield Attention("node", node.name, "late", message, _advice(pipeline, node, lateness))


def _advice(pipeline: Pipeline, node: Node, lateness: Mapping[str, LatenessReport]) -> str:
    """Return the lateness that would have kept the rows, where it is known."""
    topics = [each.topic for each in pipeline.sources if each in pipeline.upstream(node.name)]
    told = []
    for topic in topics:
        report = lateness.get(topic)
        for source in timed_sources(pipeline, topic):
            if report is None or report.advice is None or report.advice.lateness <= source.timing.lateness:
                continue
            told.append(
                f'lateness="{report.advice.text}" for {source.title} would have kept 99.9% of its rows'
            )
    names = " or ".join(f"`headwater lateness {topic}`" for topic in topics) or "`headwater lateness`"
    return "; ".join(told) or f"{names} tells how long to wait for them"


def _dead(pipeline: Pipeline, log: Log, node: Node) -> Iterator[Attention]:
    if node.on_error != "dead_letter":
        return
    letters = waiting_letters(log, pipeline, node)
    if letters is None:
        return
    records = "record is" if letters.count == 1 else "records are"
    yield Attention(
        "node",
        node.name,
        "dead",
        f"{letters.count:,} {records} set aside because the code of {node.title} fails: {letters.error}",
        "correct the code, start the pipeline again, and redrive them",
        letters.at,
    )


def _undelivered(pipeline: Pipeline, progress: Progress) -> Iterator[Attention]:
    alert = None if progress.deliveries is None else progress.deliveries.alert
    if alert is not None:
        message, _, hint = alert.partition("; ")
        yield Attention("node", progress.node, "dead", f"{pipeline[progress.node].title}: {message}", hint)


def _waiting(pipeline: Pipeline, progress: Progress) -> Iterator[Attention]:
    if progress.waits_for is None:
        return
    name, heard = progress.waits_for
    if heard > durations.now() - SILENT:
        return
    since, title = calendar_time(heard) if heard > NEVER else None, pipeline[progress.node].title
    upstream = pipeline[name]
    if since is None and isinstance(upstream, Node):  # it has just begun: it is seen itself where it fails
        return
    when = f"since {since:%Y-%m-%d %H:%M:%S} UTC" if since is not None else "yet"
    idle = f'; idle="1 minute" for {upstream.title} lets time go on without it'
    yield Attention(
        "node",
        progress.node,
        "waiting",
        f"{title} waits for {upstream.title}, of which nothing was received {when}",
        "see why it gives nothing" if isinstance(upstream, Node) else f"see what writes it{idle}",
        since,
    )


def _capture(status: CaptureStatus) -> Iterator[Attention]:
    title = f'capture "{status.capture}"'
    if status.state in ("broken", "waiting") and status.error is not None:
        severity: Severity = "broken" if status.state == "broken" else "waiting"
        message = f"{title} has failed: {_one_line(status.error)}"
        yield Attention("capture", status.capture, severity, message, status.error.hint)
    elif status.state == "silent":
        hint = "start the pipeline, or see whether the log can be reached"
        since = calendar_time(status.noted)
        yield Attention(
            "capture", status.capture, "waiting", f"{title} has noted nothing of late", hint, since
        )
    if status.alert is not None:
        hint = "let the capture catch up, or drop it: the database keeps its log until then"
        yield Attention("capture", status.capture, "waiting", f"{title}: {status.alert}", hint)
    for table, why in status.stopped.items():
        message = f'table "{table}" of {title} is captured no more: {why}'
        yield Attention("capture", status.capture, "broken", message, "correct it, and make a new snapshot")


def _ahead(statuses: Any) -> Iterator[Attention]:
    """Tell of each producer whose clock is wrong once, however many nodes read it."""
    skews = {(each.topic, each.producer): each for status in statuses for each in status.ahead}
    for (topic, producer), skew in skews.items():
        by = timedelta(seconds=skew.by // 1_000_000)
        message = (
            f'producer "{producer}" of topic "{topic}" is {by} ahead of time, so its time is not believed'
        )
        hint = "set its clock right; its events are kept, and move no clock"
        yield Attention("topic", topic, "waiting", message, hint)


def _one_line(error: HeadwaterError) -> str:
    return ": ".join(filter(None, (error.message, error.detail)))
