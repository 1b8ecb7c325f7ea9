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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headwater.capture import columns
from headwater.capture.captured_table import CapturedTable
from headwater.capture.change import (
    Delivery,
    SnapshotChunk,
    SourceTable,
    TableChanges,
    Transactions,
    Truncation,
)
from headwater.capture.leftovers import Leftovers
from headwater.capture.live_keys import live_keys
from headwater.capture.misfits import Misfits, OnMisfit
from headwater.capture.snapshot import PendingSnapshots
from headwater.capture.source import CaptureSource
from headwater.capture.state import CaptureState, SnapshotProgress, StateTopic
from headwater.capture.table_writer import TableWriter
from headwater.capture.unchanged_values import filled
from headwater.closing import Closing
from headwater.errors import SourceRefused, nearest
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
"""How often it is looked at how much the database keeps for the capture."""
_log = logging.getLogger("headwater")


@dataclass(frozen=True)
class CaptureSettings:
    """How a capture deals with what goes wrong."""

    on_error: OnMisfit = "stop"
    """What becomes of a row that its topic cannot hold."""
    max_retained: int | None = None
    """How many bytes the database may keep for it before it is given up."""


DEFAULTS = CaptureSettings()


class Capture(Closing):
    """Carries the changes of a database's tables to the log."""

    def __init__(
        self,
        source: CaptureSource,
        log: Log,
        name: str,
        tables: Sequence[CapturedTable],
        settings: CaptureSettings = DEFAULTS,
    ):
        self.name, self.changes = name, 0
        self._source, self._max_retained = source, settings.max_retained
        self._owned = ExitStack()
        self._captured = {each.table: each for each in tables}
        self._tables = self._checked(source.tables())
        self._topic = StateTopic(log, name)
        saved = self._topic.load()
        begun = source.begin(list(self._captured), None if saved is None else saved.position)
        self.state = CaptureState(begun) if saved is None else saved
        if saved is None:
            self._topic.save(self.state)
        self._writers = self._open_writers(log)
        self._misfits = Misfits(log, name, settings.on_error, self.state.sequences)
        self._leftovers = self._begin_anew(log)
        self._snapshots = PendingSnapshots(
            source, (each for each in self._captured if not self._progress(each).done)
        )
        self._skip = self.state.index
        self._first: str | None = None
        """The transaction of which so many changes are stored already."""
        self._saved_at = self._watch_at = time.monotonic()
        self._unsaved = False

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
        self.save()

    def catch_up(self) -> None:
        """Capture everything that is committed now, and return."""
        end = self._source.end()
        while self._snapshots.pending or not self._source.passed(self.state.position, end):
            self.step()
        self.save()

    def step(self, timeout: float = READ_SECONDS) -> None:
        """Take in what comes next, and what else is due."""
        if self._snapshots.pending:
            self._snapshots.read(self._progress(self._snapshots.pending[0]))
        delivery = self._source.read(0 if self._snapshots.due(self.state.position) else timeout)
        for group in _statements(delivery.changes):
            self._apply(group)
        count = sum(map(len, delivery.changes))
        self._unsaved = self._unsaved or count > 0
        if 0 < count < MANY:
            self._flush()
        self._advance(delivery)
        if self._snapshots.due(self.state.position):
            self._store_chunk()
        if time.monotonic() >= self._saved_at + (SAVE_SECONDS if self._unsaved else IDLE_SECONDS):
            self.save()
        self._watch()

    def save(self) -> None:
        """Make everything durable, remember it, and let the source forget it."""
        self._flush()
        sequences = {writer.captured.topic: writer.sequence for writer in self._writers.values()}
        self.state = replace(self.state, sequences={**sequences, **self._misfits.sequences})
        self._topic.save(self.state)
        self._source.confirm(self.state.position)
        self._saved_at, self._unsaved = time.monotonic(), False

    def close(self) -> None:
        """Let go of the topics, and of what it owns."""
        with self._owned as closed:  # all of it, also when some of it cannot be flushed any more
            for each in (self._topic, self._misfits, *self._writers.values()):
                closed.push(each)

    def owns(self, what: ExitStack) -> None:
        """Close what it was made of when it is closed."""
        self._owned = what

    # What is delivered

    def _apply(self, group: TableChanges | list[Truncation]) -> None:
        if isinstance(group, list):
            self._truncate([each for each in group if self._is_captured(each.table)])
            return
        changes = self._not_stored(group)
        if len(changes) and self._is_captured(changes.table):
            self._write(changes)
            self.changes += len(changes)

    def _write(self, changes: TableChanges) -> None:
        table = changes.table.name
        writer = self._writers[table]

        def known(keys: set[bytes]) -> dict[bytes, Mapping[str, Any]]:
            return {**self._snapshots.rows(table, writer.captured.key, keys), **writer.last_rows(keys)}

        for part in filled(changes, writer.captured.schema.names, known, table in self.snapshotting):
            if isinstance(part, int):
                writer.leave_out(part)
                continue
            self._misfits.take(part, writer.write(part))
        self._snapshots.note(changes)
        if table in self._leftovers:
            self._leftovers[table].take(changes.rows)

    def _truncate(self, tables: Sequence[Truncation]) -> None:
        """Empty the topics of tables that one statement has emptied.

        The state is saved before and after it: done again later, it would delete what has come since.
        """
        if not tables or self._is_stored(tables[0]):
            return
        number, index = tables[0].end
        positions = tables[0].transactions.position
        before = positions[number - 1] if number else self.state.position
        self.state = replace(self.state, position=before, index=index)
        self.save()
        for each in tables:
            self._snapshots.note_truncation(each.table.name)
            if each.table.name in self._leftovers:
                self._leftovers[each.table.name].clear()
            self._writers[each.table.name].truncate(positions[number])
        self.state = replace(self.state, index=index + 1)
        self.save()

    def _is_stored(self, each: Truncation) -> bool:
        """Tell whether it was done before a restart."""
        return each.transaction == 0 and each.index < self._skip and self._is_first(each.transactions)

    def _advance(self, delivery: Delivery) -> None:
        """Note how far everything is written: behind a transaction, or in the middle of one."""
        position, index = self.state.position, self.state.index
        if delivery.position is not None:
            position, index, self._skip = delivery.position, 0, 0
        last = delivery.last
        if last is not None and not self._source.passed(position, last.position):
            index = last.index + 1
        self.state = replace(self.state, position=position, index=index)

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
        if table.name not in self._writers or table.name in self.state.stopped:
            return False
        if table != self._tables.get(table.name):
            self._tables[table.name] = table
            wrong = columns.differences(self._captured[table.name], table)
            if wrong:
                self._stop_table(table.name, "; ".join(wrong))
                return False
        return True

    def _stop_table(self, table: str, why: str) -> None:
        _log.error('table "%s" of %s is captured no more: %s', table, self._source.title, why)
        self._snapshots.drop(table)
        self.state = replace(self.state, stopped={**self.state.stopped, table: why})
        self.save()

    # Snapshots

    def _store_chunk(self) -> None:
        if self._unsaved:
            self.save()  # the chunk before: it was on its way while this one was read
        table, chunk = self._snapshots.take(self._captured[self._snapshots.pending[0]].key)
        bad = self._writers[table].write_chunk(chunk)
        self._misfits.take_found(self._tables[table], chunk, bad)
        self._delete_leftovers(table, chunk)
        before = self._progress(table)
        after = before.after if chunk.after is None else chunk.after
        done = SnapshotProgress(after, before.rows + len(chunk.rows), chunk.last)
        self.state, self._unsaved = self.state.with_snapshot(table, done), True
        if chunk.last:
            self.save()

    def _begin_anew(self, log: Log) -> dict[str, Leftovers]:
        """Let new snapshots begin, and note what they have to find of what is there."""
        leftovers = {}
        for table in self.state.resnapshot:
            if table in self._captured:
                captured = self._captured[table]
                leftovers[table] = Leftovers(live_keys(log, captured.topic, captured.key))
                self.state = self.state.with_snapshot(table, SnapshotProgress())
        return leftovers

    def _delete_leftovers(self, table: str, chunk: SnapshotChunk) -> None:
        """Delete what a new snapshot has not found, when it has found the rest."""
        if table not in self._leftovers:
            return
        self._leftovers[table].take(chunk.rows)
        if chunk.last:
            self._writers[table].delete_all(self._leftovers.pop(table).rest(), chunk.end)
            left = tuple(each for each in self.state.resnapshot if each != table)
            self.state = replace(self.state, resnapshot=left)

    def _progress(self, table: str) -> SnapshotProgress:
        return self.state.snapshots.get(table, SnapshotProgress())

    # The parts

    def _checked(self, present: Sequence[SourceTable]) -> dict[str, SourceTable]:
        """Return the captured tables as they are, or refuse what cannot be captured as it is declared."""
        found = {table.name: table for table in present}
        for captured in self._captured.values():
            if captured.table not in found:
                hint = nearest(captured.table, found) or "its tables: " + ", ".join(found)
                raise SourceRefused(f'{self._source.title} has no table "{captured.table}"', hint=hint)
            wrong = columns.differences(captured, found[captured.table])
            if wrong:
                raise SourceRefused(
                    f'table "{captured.table}" of {self._source.title} is not as it is declared',
                    detail="; ".join(wrong),
                    hint="`headwater capture describe URL` prints it as it is",
                )
        return {name: found[name] for name in self._captured}

    def _open_writers(self, log: Log) -> dict[str, TableWriter]:
        with ExitStack() as opened:
            writers = {}
            for table, captured in self._captured.items():
                sequence = self.state.sequences.get(captured.topic, 0)
                writers[table] = opened.enter_context(TableWriter(log, self.name, captured, sequence))
            opened.pop_all()
        return writers

    def _flush(self) -> None:
        for writer in self._writers.values():
            writer.flush()
        self._misfits.flush()

    def _watch(self) -> None:
        """Give up rather than let the database keep too much for us."""
        if self._max_retained is None or time.monotonic() < self._watch_at:
            return
        self._watch_at = time.monotonic() + WATCH_SECONDS
        retained = self._source.retained()
        if retained is not None and retained > self._max_retained:
            self._source.drop()
            raise SourceRefused(
                f"{self._source.title} kept {retained:,} bytes for this capture, which was given up",
                detail=f"at most {self._max_retained:,} are allowed; what was not read is lost to it",
                hint="capture it anew: delete the topics, or their state, and their snapshots are made again",
            )


def _statements(changes: Sequence[TableChanges | Truncation]) -> Iterator[TableChanges | list[Truncation]]:
    """Yield changes, and together those that are one statement."""
    emptied: list[Truncation] = []
    for each in changes:
        if emptied and not (isinstance(each, Truncation) and each.end == emptied[0].end):
            yield emptied
            emptied = []
        if isinstance(each, Truncation):
            emptied.append(each)
        else:
            yield each
    if emptied:
        yield emptied
