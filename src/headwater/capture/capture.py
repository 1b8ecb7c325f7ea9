"""A capture at work: what a database commits is written to the log, each change once and in its order.

One loop: a delivery is written to the topics of its tables, a chunk of a snapshot is stored when the stream
has passed it, and now and then the state is saved and the source may forget what is before it. Invariant:
the source is told to forget nothing that is not durable in the log; after a kill at any moment the topics get
what they would have got without it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from headwater import durations
from headwater.capture import columns
from headwater.capture.beginning import Beginning
from headwater.capture.change import (
    READ,
    Delivery,
    SnapshotChunk,
    SourceTable,
    TableChanges,
    Transactions,
    Truncation,
)
from headwater.capture.figures.gauges import Gauges
from headwater.capture.figures.retention_limit import RetentionLimit
from headwater.capture.heartbeat import Heartbeat, TableMarks
from headwater.capture.outbox.captured_outbox import CapturedOutbox
from headwater.capture.outbox.cleaning import OutboxCleaning
from headwater.capture.outbox.event_writer import EventWriter
from headwater.capture.settings import DEFAULTS, CaptureSettings
from headwater.capture.snapshot import PendingSnapshots
from headwater.capture.source import CaptureSource, SourceMoment
from headwater.capture.state import CaptureFigures, SnapshotProgress, StateTopic
from headwater.capture.transactions.transactions_topic import TransactionsTopic, parts
from headwater.capture.writing.captured_table import CapturedTable
from headwater.capture.writing.misfits import Misfits
from headwater.capture.writing.table_writer import TableWriter
from headwater.capture.writing.topic_writer import UnfitRow
from headwater.capture.writing.unchanged_values import LeftOut, filled, moved
from headwater.closing import Closing
from headwater.errors import HeadwaterError, SourceUnavailable
from headwater.log import Log

SAVE_SECONDS = 0.5
"""How often the state is saved: what was delivered since is delivered again after a crash."""
IDLE_SECONDS = 5.0
"""How often it is saved when nothing was written: so that the database may forget what concerns nobody here,
and it is noticed that another has taken over."""
READ_SECONDS = 0.2
MANY = 2_000
"""So many changes are on their way to the disk while the next are read; fewer are awaited, for what is read
meanwhile would come later behind them than all at once after them."""
WATCH_SECONDS = 10.0
"""How often it is looked at whether the tables are still there, and how much the database keeps for us."""
_log = logging.getLogger("headwater")


class Capture(Closing):
    """Carries the changes of a database's tables to the log."""

    def __init__(
        self,
        source: CaptureSource,
        log: Log,
        name: str,
        tables: Sequence[CapturedTable | CapturedOutbox],
        settings: CaptureSettings = DEFAULTS,
    ):
        self.name, self.changes = name, 0
        self.expected: dict[str, int] = {}
        """About how many rows the tables have of which a snapshot is made."""
        self._source, self._gauges = source, Gauges()
        self._retention = RetentionLimit(source, settings, self._gauges)
        self._owned = ExitStack()
        self._again = set[str]()
        """Tables to be read once more when their snapshot is made."""
        self._transactions: TransactionsTopic | None = None
        begun = Beginning(source, log, name, tables)
        self._captured, self._tables = begun.captured, begun.tables
        with ExitStack() as opened:
            self._open(begun, settings, opened)
            opened.pop_all()
        self._snapshots = PendingSnapshots(source, self.snapshotting)
        now = source.end() if self._leftovers else ""
        self._behind_gap = dict.fromkeys(self._leftovers, now)
        """Where tables were captured again that may not have been for a while: a snapshot begins behind that,
        for what the stream tells before may be older than the gap, and than the rows that are there."""
        self._heartbeat = Heartbeat(source)
        self._marks = {
            writer.captured.table: TableMarks(writer.mark, writer.captured.lateness // durations.MICROSECOND)
            for writer in self._all_writers
            if writer.captured.timed
        }
        self._skip = self.state.index
        self._first: str | None = None
        """The transaction of which so many changes are stored already."""
        self._saved_at = self._watch_at = time.monotonic()
        self._unsaved = False

    def _open(self, begun: Beginning, settings: CaptureSettings, opened: ExitStack) -> None:
        """Open the topics, and save where it begins before anything is written with a number."""
        log, source = begun.log, self._source
        self._topic = opened.enter_context(StateTopic(log, self.name))
        before = begun.begin(self._topic)
        self._outboxes = begun.open_outboxes(opened)
        self._writers = begun.open_tables(opened)
        self._leftovers = begun.begin_anew(self._writers)
        self.state = begun.state
        self._misfits = Misfits(log, self.name, settings.on_error)
        self._cleanings = {
            table: OutboxCleaning(source, log, each.captured, each.producers)
            for table, each in self._outboxes.items()
            if each.captured.delete
        }
        if settings.transactions:
            self._transactions = opened.enter_context(TransactionsTopic(log, self.name, source, self.state))
            self.state = replace(self.state, transactions_since=self._transactions.since)
        for writer in self._all_writers:
            if writer.captured.topic not in self.state.sequences:  # of a capture that is forgotten
                writer.sequence = max(writer.sequence, self._misfits.stored(writer.captured.topic))
        self.state = replace(self.state, sequences=self._number())
        if self.state != before:
            self._topic.save(self.state)

    @property
    def snapshotting(self) -> Sequence[str]:
        """The tables whose snapshot is not complete yet."""
        state = self.state
        done = {table for table, progress in state.snapshots.items() if progress.done}
        return tuple(table for table in self._captured if table not in done and table not in state.stopped)

    def run(self, stop: threading.Event) -> None:
        """Capture until it is stopped."""
        while not stop.is_set():
            self.step()
        self._gauges.ended = True
        self.save()

    def catch_up(self, stop: threading.Event | None = None) -> None:
        """Capture everything that is committed now, and return; earlier if it is stopped."""
        self._gauges.ended = False
        self._read_up_to(self._source.moment(), stop)
        if self._cleanings:  # the stream tells of rows that were deleted, too
            while self._unsaved:
                self.save()
            self._read_up_to(self._source.moment(), stop)
        self._gauges.ended = True
        self.save()

    def _read_up_to(self, end: SourceMoment, stop: threading.Event | None) -> None:
        while self._snapshots.pending or not self._source.passed(self.state.position, end.position):
            if stop is not None and stop.is_set():
                break
            self.step()
        else:
            self._mark(end.time)
        self.save()

    def step(self, timeout: float = READ_SECONDS) -> None:
        """Take in what comes next, and what else is due."""
        if self._snapshots.pending:
            self._read_chunk(self._snapshots.pending[0])
        delivery = self._source.read(0 if self._snapshots.due(self.state.position) else timeout)
        self._take(delivery)
        count = sum(map(len, delivery.changes))
        self._unsaved = self._unsaved or count > 0
        if 0 < count < MANY:
            self._flush()
        self._advance(delivery)
        if self._snapshots.due(self.state.position):
            self._store_chunk()
        if time.monotonic() >= self._saved_at + (SAVE_SECONDS if self._unsaved else IDLE_SECONDS):
            self.save()
        reached = self._heartbeat.beat(self.state.position)
        if reached is not None:
            self._mark(reached)
        self._watch()

    def save(self) -> None:
        """Make everything durable, remember it, and let the source forget it."""
        self._flush()
        self._gauges.sample(self.changes, sum(each.rows for each in self.state.snapshots.values()))
        told = {} if self._transactions is None else self._transactions.open_changes
        figures = self.figures()
        self.state = replace(self.state, sequences=self._number(), open_changes=told, figures=figures)
        self._topic.save(self.state)
        self._source.confirm(self.state.position)
        self._saved_at, self._unsaved = time.monotonic(), False
        self._clean_up()

    def _clean_up(self) -> None:
        """Delete rows of outboxes that are durable; how far that is comes with the next state."""
        for table, cleaning in self._cleanings.items():
            before = self.state.outboxes[table].deleted
            stopped = table in self.state.stopped
            done = before if stopped else cleaning.clean(self._tables[table], before)
            if done != before:
                self.state, self._unsaved = self.state.with_deleted(table, done), True

    def figures(self) -> CaptureFigures:
        """Return how it is doing, from any thread."""
        gauges = self._gauges
        return CaptureFigures(
            state="ended" if gauges.ended else "snapshot" if self.snapshotting else "streaming",
            noted=durations.now(),
            changes=self.changes,
            rate=gauges.rate,
            snapshot_rate=gauges.snapshot_rate,
            committed=gauges.committed,
            delay=gauges.delay,
            reached=self._heartbeat.reached,
            retained=gauges.retained,
            alert=gauges.alert,
            expected=dict(self.expected),
        )

    def note(self, state: str, error: HeadwaterError) -> None:
        """Let others know that it does not go on now, and why."""
        with suppress(HeadwaterError):
            told = ": ".join(filter(None, (error.message, error.detail)))
            self._topic.note(replace(self.figures(), state=state, error=told))

    def _number(self) -> dict[str, int]:
        """Return the number of the next change by topic, also of tables that are not captured now."""
        numbers = {writer.captured.topic: writer.sequence for writer in self._all_writers}
        return {**self.state.sequences, **numbers}

    @property
    def _all_writers(self) -> tuple[TableWriter | EventWriter, ...]:
        return *self._writers.values(), *self._outboxes.values()

    def close(self) -> None:
        """Let go of the topics, and of what it owns."""
        with self._owned as closed:  # all of it, also when some of it cannot be flushed any more
            for each in (self._topic, self._misfits, *self._all_writers, self._transactions):
                if each is not None:
                    closed.push(each)

    def owns(self, what: ExitStack) -> None:
        """Close what it was made of when it is closed."""
        self._owned = what

    # What is delivered

    def _take(self, delivery: Delivery) -> None:
        """Write what is delivered, and take in which transactions are whole."""
        told = self._transactions
        if told is None:
            for group in delivery.statements():
                self._apply(group)
            return
        last, position = delivery.last, delivery.position or self.state.position
        for part in parts(delivery, last is None or self._source.passed(position, last.position)):
            told.begin(part)
            if part.alone:  # of which nothing may be there while others are told
                self._flush()
            for group in part.delivery.statements():
                self._apply(group)
            told.end(part)
        told.pass_position(delivery.position)
        if delivery.position is not None and not delivery.changes:
            self._flush()

    def _apply(self, group: TableChanges | list[Truncation]) -> None:
        if isinstance(group, list):
            tables = [each for each in group if each.table.name in self._writers]
            self._truncate([each for each in tables if self._is_captured(each.table)])
            return
        changes = self._not_stored(group)
        if len(changes) and self._is_captured(changes.table):
            events = changes.table.name in self._outboxes
            (self._write_events if events else self._write)(changes)
            if self._transactions is not None:
                self._transactions.count(self._captured[changes.table.name].topic, changes, events)
            self.changes += len(changes)

    def _write_events(self, changes: TableChanges) -> None:
        """Write the rows that were inserted into an outbox."""
        table = changes.table.name
        if (changes.operation == READ).any():
            self._stop_table(table, "it was made anew, and which of its rows are events already is not known")
            return
        writer = self._outboxes[table]
        self._misfits.take(changes, writer.write(changes), writer.captured.topic)
        self._note_time(changes)

    def _note_time(self, changes: TableChanges) -> None:
        """Take in when the last of some changes was committed, which are written now."""
        committed = int(changes.transactions.committed[changes.end[0]])
        self._gauges.wrote(committed)
        if changes.table.name in self._marks:
            self._marks[changes.table.name].changed(committed)

    def _write(self, changes: TableChanges) -> None:
        table = changes.table.name
        writer = self._writers[table]
        changes = self._not_written(changes, writer)
        if not len(changes):
            return
        snapshot, known = table in self.snapshotting, partial(self._known, table)
        for part in filled(changes, writer.captured, known, snapshot, writer.redelivered(len(changes))):
            if isinstance(part, LeftOut):
                writer.leave_out(len(part.changes))
                if snapshot and part.is_moved:
                    self._read_again(table)
                continue
            self._write_part(part, writer)
            self._note_time(part)
            self._snapshots.note(part, writer.captured)
            if table in self._leftovers:
                self._leftovers[table].take(part.rows)

    def _write_part(self, part: TableChanges, writer: TableWriter) -> None:
        topic = writer.captured.topic
        if not part.filled:
            self._misfits.take(part, writer.write(part), topic)
            return
        # Set aside before the topic has more: delivered again, it could not be told any more what was known.
        part, first = writer.judged(part), writer.sequence
        self._misfits.take(part, [UnfitRow(row, why, first + row) for row, why in part.unfit.items()], topic)
        self._misfits.flush()
        writer.write(part)

    def _not_written(self, changes: TableChanges, writer: TableWriter) -> TableChanges:
        """Return changes without those that the topics have from before a restart.

        Beside a snapshot, which looks at each change, and where changes are set aside, they are gone through
        once more, and left out by the log.
        """
        count = min(max(0, min(writer.stored.values()) - writer.sequence), len(changes))
        if not count or self._misfits.is_kept or changes.table.name in self.snapshotting:
            return changes
        if count < len(changes) and moved(changes)[count]:
            count -= 1  # a row that has got another key is looked up under that of the deletion before
        writer.leave_out(count)
        return changes.part(count, len(changes))

    def _known(self, table: str, keys: set[bytes]) -> dict[bytes, Mapping[str, Any]]:
        """Return the rows of some keys as they were last: in the topic, or in a chunk that is newer."""
        writer, stale = self._writers[table], set[bytes]()
        if table in self._leftovers:
            stale = self._leftovers[table].left(keys)
        return {**writer.last_rows(keys - stale), **self._snapshots.rows(writer.captured, keys)}

    def _read_again(self, table: str) -> None:
        """Read a table once more: a row of it has moved, unknown, to where the snapshot may have been."""
        self._again.add(table)
        again = tuple(dict.fromkeys((*self.state.resnapshot, table)))
        self.state = replace(self.state, resnapshot=again)

    def _truncate(self, tables: Sequence[Truncation]) -> None:
        """Empty the topics of tables that one statement has emptied.

        The state is saved before and after it: done again later, it would delete what has come since.
        """
        if not tables or self._is_stored(tables[0]):
            return
        number, index = tables[0].end
        positions = tables[0].transactions.position
        if number:
            self._skip = 0
        if self._transactions is not None:
            self._transactions.carry(tables[0].transactions, number)
        before = positions[number - 1] if number else self.state.position
        self.state = replace(self.state, position=before, index=index, transaction=positions[number])
        self.save()
        for each in tables:
            self._snapshots.note_truncation(each.table.name)
            if each.table.name in self._leftovers:
                self._leftovers[each.table.name].clear()
            self._writers[each.table.name].truncate(each)
            if self._transactions is not None:
                self._transactions.count_truncation(self._captured[each.table.name].topic, each)
        if self._transactions is not None:
            self._transactions.carry(tables[0].transactions, number)
        self.state = replace(self.state, index=index + 1)
        self.save()

    def _is_stored(self, each: Truncation) -> bool:
        """Tell whether it was done before a restart."""
        return each.transaction == 0 and each.index < self._skip and self._is_first(each.transactions)

    def _advance(self, delivery: Delivery) -> None:
        """Note how far everything is written: behind a transaction, or in the middle of one."""
        position, index, transaction = self.state.position, self.state.index, self.state.transaction
        if delivery.position is not None:
            position = delivery.position
            if not transaction or self._source.passed(position, transaction):  # else it is before it
                index, transaction, self._skip = 0, "", 0
        last = delivery.last
        if last is not None and not self._source.passed(position, last.position):
            index, transaction = max(self._skip, last.index + 1), last.position
        self.state = replace(self.state, position=position, index=index, transaction=transaction)

    def _not_stored(self, changes: TableChanges) -> TableChanges:
        """Return changes without those of the first transaction that were stored before a restart."""
        if not self._skip or not self._is_first(changes.transactions):
            return changes
        stored = (changes.transaction == 0) & (changes.index < self._skip)
        return changes.part(int(np.count_nonzero(stored)), len(changes))

    def _is_first(self, transactions: Transactions) -> bool:
        """Tell whether transactions begin with the first one since a restart."""
        if self._first is None:
            self._first = transactions.id[0]
        return transactions.id[0] == self._first

    def _is_captured(self, table: SourceTable) -> bool:
        """Tell whether a table's changes are to be written: it is captured, and still fits its topic."""
        if table.name not in self._captured or table.name in self.state.stopped:
            return False
        if table != self._tables.get(table.name):
            self._tables[table.name] = table
            wrong = columns.differences(self._captured[table.name], table)
            if wrong:
                self._stop_table(table.name, "; ".join(wrong))
                return False
        return True

    def _stop_table(self, table: str, why: str) -> None:
        """Capture a table no more; that is saved when all that came with it is written."""
        _log.error('table "%s" of %s is captured no more: %s', table, self._source.title, why)
        self._snapshots.drop(table)
        self.state = replace(self.state, stopped={**self.state.stopped, table: why})
        self._unsaved = True  # not at once: in the middle of a delivery it is not known how far it is written

    # Snapshots

    def _read_chunk(self, table: str) -> None:
        if table in self._behind_gap:
            if not self._source.passed(self.state.position, self._behind_gap[table]):
                return
            del self._behind_gap[table]
            self._leftovers[table] = self._writers[table].leftovers()
        if table not in self.expected:
            self.expected[table] = self._source.count(table)
        self._snapshots.read(self._progress(table))

    def _store_chunk(self) -> None:
        if self._unsaved:
            self.save()  # the chunk before: it was on its way while this one was read
        table = self._snapshots.pending[0]
        captured = self._captured[table]
        chunk = self._snapshots.take(captured if isinstance(captured, CapturedTable) else None)
        present = set(chunk.rows.schema.names)
        gone = [each for each in captured.columns if each not in present]
        if gone:  # the stream does not tell of it before the next change
            self._stop_table(table, "; ".join(f'there is no column "{each}"' for each in gone))
            return
        writer = self._outboxes[table] if table in self._outboxes else self._writers[table]
        bad = writer.write_chunk(chunk)
        self._misfits.take_found(self._tables[table], chunk, bad)
        before = self._progress(table)
        after = before.after if chunk.after is None else chunk.after
        done = SnapshotProgress(after, before.rows + len(chunk.rows), chunk.last)
        self.state, self._unsaved = self.state.with_snapshot(table, done), True
        self._end_pass(table, chunk)
        if chunk.last:
            self.save()

    def _end_pass(self, table: str, chunk: SnapshotChunk) -> None:
        """Delete what a new snapshot has not found, when it has found the rest; or begin once more."""
        if table in self._leftovers:
            self._leftovers[table].take(chunk.rows)
        if not chunk.last:
            return
        if table in self._leftovers:
            self._writers[table].delete_all(self._leftovers.pop(table).rest(), chunk.end)
        if table in self._again:
            self._again.discard(table)
            self._leftovers[table] = self._writers[table].leftovers()
            self.state = self.state.with_snapshot(table, SnapshotProgress())
            self._snapshots.add(table)
        else:
            left = tuple(each for each in self.state.resnapshot if each != table)
            self.state = replace(self.state, resnapshot=left)

    def _progress(self, table: str) -> SnapshotProgress:
        return self.state.snapshots.get(table, SnapshotProgress())

    # The parts

    def _mark(self, reached: int) -> None:
        """Let those who wait for tables in which nothing changes go on: all before a time is written."""
        # What a snapshot finds has the time of this machine, which may be behind that of the database.
        reached = min(reached, durations.now())
        waiting = {*self.snapshotting, *self.state.stopped}
        for table, marks in self._marks.items():
            if table not in waiting:
                marks.reached(reached)

    def _flush(self) -> None:
        for writer in self._all_writers:
            writer.flush()
        self._misfits.flush()
        if self._transactions is not None:
            self._transactions.write(self._all_writers)

    def _watch(self) -> None:
        """See now and then whether the tables are still there, and how much is kept for us."""
        if time.monotonic() >= self._watch_at:
            self._watch_at = time.monotonic() + WATCH_SECONDS
            self._watch_tables()
            self._retention.check()

    def _watch_tables(self) -> None:
        """Notice tables that were dropped, renamed or made anew, of which no stream tells."""
        going = [table for table in self._captured if table not in self.state.stopped]
        now = self._source.identities(going)
        for table in going:
            if table not in now:
                self._stop_table(table, "it was dropped or renamed")
            elif now[table] != self.state.identities[table]:
                raise SourceUnavailable(
                    f'table "{table}" of {self._source.title} is another one of that name',
                    detail="the one that was captured was dropped or renamed",
                    hint="the capture begins anew by itself, with a new snapshot of the table",
                )
