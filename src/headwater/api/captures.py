"""Captures of databases: a pipeline's own, and those that run by themselves."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from headwater.api.background import StoppableWork
from headwater.api.subject import Subject, checked
from headwater.capture import columns
from headwater.capture.capture import Capture
from headwater.capture.change import SourceTable
from headwater.capture.describe import declarations
from headwater.capture.figures.status import CaptureStatus, noted_status
from headwater.capture.opening import open_capture, open_source
from headwater.capture.outbox.captured_outbox import CapturedOutbox, stored
from headwater.capture.settings import CaptureSettings
from headwater.capture.state import StateTopic, load
from headwater.capture.worker import CaptureWorker
from headwater.capture.writing.captured_table import CapturedTable
from headwater.errors import PipelineError, SourceRefused, UsageError, nearest
from headwater.log.open import open as open_log
from headwater.names import listed
from headwater.pipeline.captured import COMMITTED, CaptureDeclaration, OnMisfit
from headwater.pipeline.declaration import Table
from headwater.pipeline.pipeline import Pipeline
from headwater.topic import Topic

_log = logging.getLogger("headwater")


class BackgroundCapture(StoppableWork):
    """A capture at work in a thread of its own, until it is stopped."""

    def __init__(self, worker: CaptureWorker):
        super().__init__(worker.run)
        self._worker = worker

    def status(self) -> CaptureStatus:
        """Return how it is doing."""
        return self._worker.status()


def describe_database(url: str) -> list[SourceTable]:
    """Return the tables of a database, as ``headwater capture describe`` prints them.

    - ``url``: the database: ``"postgresql://shop@db/shop"``, ``"mysql://shop@db/shop"`` or
      ``"sqlite:./crm.db"``.

    Nothing is changed in it.
    """
    with open_source(url, "describe") as source:
        return source.tables()


def describe_lines(url: str, capture: str = "crm") -> list[str]:
    """Return the lines that declare the tables of a database in a pipeline, ready to paste.

    - ``url``: the database.
    - ``capture="crm"``: what the pipeline calls its capture.
    """
    return declarations(describe_database(url), capture)


def capture_tables(
    url: str,
    tables: str | Sequence[str],
    *,
    log: str,
    name: str,
    on_error: OnMisfit = "stop",
    max_retained: int | None = None,
    transactions: bool = False,
) -> CaptureWorker:
    """Return a capture of some tables of a database into a log, by itself, for any consumer.

    - ``url``: the database.
    - ``tables``: their names; the topics have the same names, and all columns.
    - ``log``: the URL of the log.
    - ``name``: of the capture, under which it goes on after a restart.
    - ``on_error="stop"``, ``max_retained=None``: as for ``Pipeline.capture``.
    - ``transactions=False``: as for ``Pipeline.capture``; the topic is ``NAME.transactions``.
    """
    settings = CaptureSettings(on_error, max_retained, transactions=transactions)
    make = partial(_open_alone, url, listed(tables), log, name, settings)
    return CaptureWorker(name, make, partial(_requests, log, name))


def capture_status(log: str, name: str) -> CaptureStatus:
    """Return how a capture is doing, in whatever process it runs, by what it has noted in the log.

    - ``log``: the URL of the log.
    - ``name``: of the capture; that of a pipeline is ``PIPELINE.CAPTURE``.

    One that has noted nothing for twenty seconds is ``silent``.
    """
    with open_log(log) as opened:
        state = load(opened, name)
    if state is None:
        raise _unknown(name)
    return noted_status(name, state)


def capture_statuses(pipeline: Subject) -> list[CaptureStatus]:
    """Return how the captures of a pipeline are doing, as ``capture_status`` does, by their short names.

    One that was never begun is ``starting``.
    """
    found, statuses = checked(pipeline), list[CaptureStatus]()
    if not found.captures:
        return []
    with open_log(found.log) as log:
        for capture in found.captures:
            state = load(log, capture_name(found, capture))
            begun = None if state is None else noted_status(capture.name, state)
            statuses.append(begun or CaptureStatus(capture.name, "starting"))
    return statuses


def drop_capture(url: str, name: str, log: str | None = None) -> None:
    """Remove from a database everything that captures of a name have made there.

    - ``url``: the database.
    - ``name``: of the capture; that of a pipeline is ``PIPELINE.CAPTURE``.
    - ``log=None``: the URL of the log that it writes to: if it is captured again, it begins anew there, and
      every table is read again. What is in the topics stays.
    """
    with open_source(url, name) as source:
        source.drop()
    if log is not None:
        with open_log(log) as opened:
            state = load(opened, name)
            if state is not None:
                with StateTopic(opened, name) as topic:
                    topic.save(state.as_dropped())


def resnapshot(log: str, name: str, table: str) -> None:
    """Let a capture make a new snapshot of a table, beside the stream, whether it runs now or not.

    - ``log``: the URL of the log.
    - ``name``: of the capture; that of a pipeline is ``PIPELINE.CAPTURE``.
    - ``table``: its name in the database. One that was stopped is captured again.

    Rows that the table has are written again, and those that it has not are deleted. Of an outbox none is
    made, unless it was stopped: then every row that it has is told, whether it was told before or not.
    """
    with open_log(log) as opened:
        state = load(opened, name)
        if state is None:
            raise _unknown(name)
        known = {*state.identities, *state.snapshots, *state.stopped}
        if table not in known:
            hint = nearest(table, known) or "its tables: " + ", ".join(sorted(known))
            raise UsageError(f'capture "{name}" has no table "{table}"', hint=hint)
        if table in state.outboxes and table not in state.stopped:
            raise UsageError(
                f'table "{table}" of capture "{name}" is an outbox, of which no new snapshot is made',
                detail="it would tell the events of all its rows again",
                hint="`headwater capture drop` and a new start tell every row that it has then",
            )
        with StateTopic(opened, name) as topic:  # which fences the capture: it goes on with this state
            topic.save((topic.load() or state).with_resnapshot(table))


def workers(pipeline: Pipeline) -> Iterator[CaptureWorker]:
    """Yield the captures of a pipeline, not begun yet."""
    for capture in pipeline.captures:
        requests = partial(_requests, pipeline.log, capture_name(pipeline, capture))
        yield CaptureWorker(capture.name, partial(_open_of, pipeline, capture), requests)


def check_captures(pipeline: Pipeline) -> None:
    """Compare the captured tables of a pipeline with those of their databases; refuse what differs."""
    for capture in pipeline.captures:
        declared = captured_inputs(pipeline, capture)
        with open_source(capture.url, capture_name(pipeline, capture)) as source:
            found = {table.name: table for table in source.tables()}
        for each in declared:
            _check(capture, each, found)


def tables_of(pipeline: Pipeline, capture: CaptureDeclaration) -> list[Table]:
    """Return the tables of a pipeline that it captures of a database, in the order of ``captured_tables``."""
    return [table for table in pipeline.tables if table.captured and table.captured.capture == capture.name]


def captured_tables(pipeline: Pipeline, capture: CaptureDeclaration) -> list[CapturedTable]:
    """Return the tables of a database that a pipeline captures."""
    return [
        CapturedTable(
            table=origin.table,
            topic=table.topic,
            schema=table.schema if table.event_time != COMMITTED else _without_commit_time(table.schema),
            key=table.key,
            event_time=None if table.event_time == COMMITTED else table.event_time,
            history=origin.history,
            lateness=table.timing.lateness,
        )
        for table in tables_of(pipeline, capture)
        if (origin := table.captured) is not None
    ]


def captured_outboxes(pipeline: Pipeline, capture: CaptureDeclaration) -> list[CapturedOutbox]:
    """Return the outboxes of a database that a pipeline captures."""
    return [
        CapturedOutbox(
            origin.table,
            stored(each.declared),
            origin.event,
            origin.headers,
            origin.delete,
            each.timing.lateness,
        )
        for each in pipeline.sources
        if (origin := each.captured) is not None and origin.capture == capture.name
    ]


def captured_inputs(pipeline: Pipeline, capture: CaptureDeclaration) -> list[CapturedTable | CapturedOutbox]:
    """Return all that a pipeline captures of a database."""
    return [*captured_tables(pipeline, capture), *captured_outboxes(pipeline, capture)]


def capture_name(pipeline: Pipeline, capture: CaptureDeclaration) -> str:
    """Return the name under which a pipeline's capture is known to the log and to the database."""
    return f"{pipeline.name}.{capture.name}"


def _unknown(name: str) -> UsageError:
    return UsageError(f'there is no capture "{name}" in this log', hint="its topic is NAME.capture")


def _without_commit_time(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name != COMMITTED])


def _requests(log: str, name: str) -> int:
    with open_log(log) as opened:
        state = load(opened, name)
    return 0 if state is None else state.requests


def _open_of(pipeline: Pipeline, capture: CaptureDeclaration) -> Capture:
    name, tables = capture_name(pipeline, capture), captured_inputs(pipeline, capture)
    settings = CaptureSettings(
        capture.on_error, capture.max_retained, capture.alert_retained, capture.transactions
    )
    return open_capture(capture.url, pipeline.log, name, tables, settings)


def _open_alone(url: str, names: Sequence[str], log: str, name: str, settings: CaptureSettings) -> Capture:
    present = {table.name: table for table in describe_database(url)}
    tables = [_alone(each, present) for each in names]
    with open_log(log) as opened:
        topics = {topic.name: topic for topic in opened.topics()}
    tables = [_as_stored(each, topics[each.topic]) if each.topic in topics else each for each in tables]
    return open_capture(url, log, name, tables, settings)


def _as_stored(table: CapturedTable, topic: Topic) -> CapturedTable:
    """Return a table without columns that it got when its topic was there already."""
    stored = [field for field in table.schema if field.name in topic.schema.names]
    added = [name for name in table.schema.names if name not in topic.schema.names]
    if added:
        _log.warning(
            'table "%s" is captured without "%s": topic "%s" has no such column, and is filled anew where it '
            "is deleted",
            table.table, '", "'.join(added), topic.name,
        )  # fmt: skip
    return replace(table, schema=pa.schema(stored))


def _alone(name: str, present: Mapping[str, SourceTable]) -> CapturedTable:
    """Return a table with all of its columns, as a topic of its name."""
    if name not in present:
        hint = nearest(name, present) or "its tables: " + ", ".join(present)
        raise UsageError(f'the database has no table "{name}"', hint=hint)
    table = present[name]
    if not table.key:
        raise UsageError(
            f'table "{name}" has no primary key', hint="give it one: its rows cannot be told apart"
        )
    return CapturedTable(name, name, table.schema, table.key)


def _check(
    capture: CaptureDeclaration, declared: CapturedTable | CapturedOutbox, found: Mapping[str, SourceTable]
) -> None:
    try:
        columns.check_declared(declared, found, capture.title)
    except SourceRefused as wrong:
        raise PipelineError(
            wrong.message, location=capture.location, detail=wrong.detail, hint=wrong.hint
        ) from None
