"""How late the rows of a topic come, and which lateness its sources need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from headwater.api.subject import Subject, pipeline_of
from headwater.durations import MICROSECOND, interval_text
from headwater.engine.figures.lateness import DEFAULT, LADDER, Profile, profile
from headwater.engine.source.watermark import Timing
from headwater.log import Log, Start
from headwater.pipeline.declaration import Source
from headwater.pipeline.pipeline import Pipeline
from headwater.pipeline.settings import length_or_zero
from headwater.values.json_ready import JsonReady

QUANTILES = {"50%": 0.5, "90%": 0.9, "99%": 0.99, "99.9%": 0.999, "all": 1.0}
ENOUGH = 0.999
"""The share of rows that the advised setting keeps."""


@dataclass(frozen=True)
class LatenessSetting(JsonReady):
    """A lateness, and how many rows it would have made late."""

    lateness: timedelta
    late: int
    declared: bool
    """Whether a source of the topic declares it."""

    @property
    def text(self) -> str:
        """The lateness as a source declares it."""
        return _text(self.lateness)

    def facts(self) -> dict[str, Any]:
        """Return it with the lateness as a source declares it."""
        return {**super().facts(), "lateness": self.text}


@dataclass(frozen=True)
class LatenessReport(JsonReady):
    """How late the rows of a topic came."""

    topic: str
    rows: int
    """Rows that have an event time."""
    quantiles: dict[str, timedelta]
    """By how much each share of the rows was behind the clock at the most."""
    settings: tuple[LatenessSetting, ...]
    """The settings that were judged, from the shortest on."""
    advice: LatenessSetting | None
    """The shortest even setting that keeps nearly all rows in time; None if none does."""
    without_time: int
    """Rows without an event time, which are late whatever the setting."""
    ahead: int
    """Rows too far ahead of their receipt to move the clock."""
    furthest: tuple[str, timedelta] | None
    """The producer of the one that was furthest ahead, and by how much."""

    def facts(self) -> dict[str, Any]:
        """Return it with the advice as a source declares it."""
        facts = super().facts()
        del facts["furthest"]
        return {**facts, "advice": None if self.advice is None else self.advice.text}


def lateness(
    log: Log,
    topic: str,
    *,
    since: Start = "earliest",
    pipeline: Subject | None = None,
    judged: Iterable[str | timedelta] = (),
    step: Callable[[int], None] = lambda rows: None,
) -> LatenessReport:
    """Read a topic and return how late its rows came, and which lateness would have kept them.

    A row is as late as it is behind the clock when it comes, were the clock kept with no lateness at all and
    every append read by itself, at once. ``judged`` are settings to count beside the usual ones; those that
    the sources of the topic in ``pipeline`` declare are counted too, and the topic is read as the first of
    them declares it, with the event time and the producer that it computes: by ``log`` from then on. ``step``
    is called with how many more rows are done. Nothing is changed.

    >>> import headwater
    >>> log = headwater.open("memory:")
    >>> _ = log.create_topic("orders", "at TIMESTAMP", event_time="at")
    >>> with log.producer("orders", id="till") as producer:
    ...     for second in (10, 20, 15):
    ...         producer.send_batch([{"at": second * 1_000_000}])
    ...         _ = producer.flush()
    >>> report = lateness(log, "orders")
    >>> report.rows, report.advice.text
    (3, '5 seconds')
    """
    sources = timed_sources(pipeline_of(pipeline), topic) if pipeline is not None else []
    declared = {source.timing.lateness for source in sources}
    if sources:
        log.read_as(sources[0].declared)
    settings = {*LADDER, *declared, *map(_length, judged)}
    measured = profile(log, topic, start=since, judged=settings, timing=_timing(sources), step=step)
    return _report(measured, sorted(settings), declared)


def timed_sources(pipeline: Pipeline, topic: str) -> list[Source]:
    """Return the sources of a topic that declare how its time is told."""
    return [source for source in pipeline.sources if source.topic == topic and source.event_time is not None]


def _length(setting: str | timedelta) -> timedelta:
    return setting if isinstance(setting, timedelta) else length_or_zero(setting)


def _timing(sources: Sequence[Source]) -> Timing:
    timing = DEFAULT
    for source in sources[:1]:
        if source.timing.idle is not None:
            timing = replace(timing, idle=source.timing.idle // MICROSECOND)
        if source.timing.max_ahead is not None:
            timing = replace(timing, max_ahead=source.timing.max_ahead // MICROSECOND)
    return timing


def _report(measured: Profile, judged: Sequence[timedelta], declared: set[timedelta]) -> LatenessReport:
    best = measured.advice(ENOUGH)
    return LatenessReport(
        topic=measured.topic,
        rows=measured.rows,
        quantiles={name: measured.delays.quantile(share) for name, share in QUANTILES.items()},
        settings=tuple(
            LatenessSetting(length, measured.late(length), length in declared) for length in judged
        ),
        advice=None if best is None else LatenessSetting(best, measured.late(best), best in declared),
        without_time=measured.timeless,
        ahead=measured.ahead,
        furthest=measured.furthest,
    )


def _text(setting: timedelta) -> str:
    return interval_text(setting) if setting else "0 seconds"
