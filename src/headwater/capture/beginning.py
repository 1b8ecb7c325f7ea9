"""How a capture begins: its tables as they are, its topics, and the state from which it goes on.

Invariant: what cannot be captured as it is declared is refused before anything is changed; what a topic lacks
is noted before the stream begins.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from headwater.capture import columns
from headwater.capture.change import SourceTable
from headwater.capture.outbox.captured_outbox import CapturedOutbox
from headwater.capture.outbox.event_writer import EventWriter
from headwater.capture.source import CaptureSource
from headwater.capture.state import CaptureState, SnapshotProgress, StateTopic, load
from headwater.capture.writing.captured_table import CapturedTable
from headwater.capture.writing.leftovers import Leftovers
from headwater.capture.writing.table_writer import TableWriter
from headwater.errors import SourceRefused
from headwater.log import Log

_log = logging.getLogger("headwater")


class Beginning:
    """Opens what a capture is made of, one after the other, and brings its state in step."""

    state: CaptureState
    """From where on it is captured, when it has begun."""

    def __init__(
        self, source: CaptureSource, log: Log, name: str, tables: Sequence[CapturedTable | CapturedOutbox]
    ):
        self._source, self.log, self._name = source, log, name
        self.captured = {each.table: each for each in tables}
        self.tables = self._checked(source.tables(), _stopped(load(log, name)))
        for each in tables:  # before another capture of the name is fenced, for nothing
            each.declare(log)

    def open_outboxes(self, opened: ExitStack) -> dict[str, EventWriter]:
        """Return the writers of outboxes, by table."""
        return {
            table: opened.enter_context(self._event_writer(each))
            for table, each in self.captured.items()
            if isinstance(each, CapturedOutbox) and table in self.tables
        }

    def open_tables(self, opened: ExitStack) -> dict[str, TableWriter]:
        """Return the writers of tables, by table."""
        return {
            table: opened.enter_context(self._writer(each))
            for table, each in self.captured.items()
            if isinstance(each, CapturedTable)
        }

    def begin_anew(self, writers: Mapping[str, TableWriter]) -> dict[str, Leftovers]:
        """Let new snapshots begin, and note what they have to find of what is there."""
        asked = [table for table in self.state.resnapshot if table in writers]
        for table in asked:
            self.state = self.state.with_snapshot(table, SnapshotProgress())
        return {table: writers[table].leftovers() for table in asked}

    def begin(self, topic: StateTopic) -> CaptureState:
        """Let the stream begin where it ended, and return the state that is saved, from which on.

        What a topic lacks, because its table was not captured for a while or was made anew, or because the
        topic was deleted, is noted before that: afterwards nobody could tell.
        """
        saved = topic.load()
        going = [table for table in self.captured if table not in _stopped(saved)]
        if not going:
            raise SourceRefused(
                f"no table of {self._source.title} is captured any more",
                detail="; ".join(f"{table}: {why}" for table, why in _stopped(saved).items()),
                hint="when the declarations fit again, `headwater capture resnapshot TABLE` takes them up",
            )
        identities = self._source.identities(going)
        topics = {table: each.topic for table, each in self.captured.items()}
        if saved is not None and not saved.dropped:
            state = saved.with_identities(identities, topics)
            if state != saved:
                topic.save(state)
            self._source.begin(going, state.position)
            self.state = state
            return state
        begun = self._source.begin(going, None)
        kept = saved if saved is not None else CaptureState(begun)
        begun_anew = replace(kept, position=begun, index=0, transaction="", dropped=False)
        state = replace(begun_anew, identities=identities, topics=topics)
        topic.save(state)
        self.state = state
        return state

    def _writer(self, captured: CapturedTable) -> TableWriter:
        """Return the writer of a table; one whose topic is not as it was left is to be read anew."""
        state, table = self.state, captured.table
        writer = TableWriter(self.log, self._name, captured, state.sequences.get(captured.topic))
        if writer.is_first and table in state.snapshots:
            self.state = state.with_snapshot(table, SnapshotProgress())
        if table not in state.snapshots and any(self.log.resolve(captured.topic, "latest").offsets.values()):
            self.state = state.with_resnapshot(table)
        return writer

    def _event_writer(self, captured: CapturedOutbox) -> EventWriter:
        """Return the writer of an outbox; one that is not as it was left is begun anew, with all its rows."""
        table, sequences = captured.table, self.state.sequences
        writer = EventWriter(
            self.log, self._name, captured, sequences.get(captured.topic), self.tables[table]
        )
        known = table in self.state.outboxes and table in self.state.snapshots
        if not known or table in self.state.resnapshot or writer.is_first:
            self.state = self.state.with_outbox(table, writer.end())
        if not self.state.snapshots[table].done:
            writer.expect_snapshot(self.state.outboxes[table].since)
        return writer

    def _checked(self, present: Sequence[SourceTable], stopped: Mapping[str, str]) -> dict[str, SourceTable]:
        """Return the captured tables as they are, or refuse what cannot be captured as it is declared."""
        found = {table.name: table for table in present}
        for captured in self.captured.values():
            if captured.table in stopped:
                _log.warning('table "%s" is not captured: %s', captured.table, stopped[captured.table])
                continue
            columns.check_declared(captured, found, self._source.title)
        return {name: found[name] for name in self.captured if name in found}


def _stopped(state: CaptureState | None) -> Mapping[str, str]:
    return {} if state is None else state.stopped
