"""Captured topics, read by whole transactions.

Invariant: what is read is whole: all changes of the transactions that are told with it, and of those before,
and nothing of a later one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headwater.capture.transactions.transactions_topic import SUFFIX, ends_of
from headwater.errors import UnknownTopic
from headwater.log import Log, Position


@dataclass(frozen=True)
class WholeTransactions:
    """Some transactions that were committed one after the other, with all of their changes."""

    transactions: pa.Table
    """One row each: ``transaction``, ``position``, ``committed_at``, ``changes``, ``topics``, ``ends`` and
    ``topic_ids``."""
    changes: Mapping[str, pa.Table]
    """The records of each captured topic, in their order, with their metadata: those of the transactions, and
    what a snapshot has found meanwhile. Headers tell which record is of which transaction."""
    next: int
    """Where to read on: ``start`` of the next call."""


def read_transactions(
    log: Log, capture: str, *, start: int = 0, follow: bool = False
) -> Iterator[WholeTransactions]:
    """Read what a capture has written, so that every transaction is seen whole or not at all.

    - ``log``: the log.
    - ``capture``: the name of the capture; that of a pipeline is ``PIPELINE.CAPTURE``. It has to have been
      declared with ``transactions=True``.
    - ``start=0``: where to begin: ``next`` of what was read last.
    - ``follow=False``: True goes on with transactions as they are committed, and never ends.

    Several transactions come together where they were written together.

    >>> import sqlite3, tempfile
    >>> import headwater
    >>> folder = tempfile.mkdtemp()
    >>> bank, log = f"sqlite:{folder}/bank.db", f"file:{folder}/log"
    >>> db = sqlite3.connect(f"{folder}/bank.db", isolation_level=None)
    >>> _ = db.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, amount INTEGER)")
    >>> _ = db.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, amount INTEGER)")
    >>> def capture():
    ...     worker = headwater.capture_tables(
    ...         bank, "accounts, entries", log=log, name="bank", transactions=True
    ...     )
    ...     worker.catch_up()
    >>> capture()
    >>> _ = db.execute("BEGIN")
    >>> _ = db.execute("INSERT INTO accounts VALUES (1, 50), (2, -50)")
    >>> _ = db.execute("INSERT INTO entries VALUES (1, 50)")
    >>> _ = db.execute("COMMIT")
    >>> capture()
    >>> with headwater.open(log) as opened:
    ...     for whole in headwater.read_transactions(opened, "bank"):
    ...         print(whole.transactions["changes"].to_pylist())
    ...         print({topic: len(rows) for topic, rows in whole.changes.items()})
    [3]
    {'accounts': 2, 'entries': 1}
    >>> db.close()
    """
    topic = capture + SUFFIX
    if topic not in {each.name for each in log.topics()}:
        raise UnknownTopic(
            f'capture "{capture}" has no topic of transactions',
            detail=f'there is no topic "{topic}" in this log',
            hint="declare the capture with transactions=True",
        )
    begin = _begin(log, topic, start)
    first = max(start, log.resolve(topic, "earliest").offsets[0])
    for batch in log.read(topic, 0, first, meta=True, follow=follow):
        if len(batch):
            last = batch.slice(len(batch) - 1).to_pylist()[0]
            ends = ends_of(last)
            told = pa.Table.from_batches([batch]).select(list(log.topic(topic).schema.names))
            changes = {name: _between(log, begin.get(name), end) for name, end in ends.items()}
            yield WholeTransactions(told, changes, last["_offset"] + 1)
            begin = {**begin, **ends}


def _begin(log: Log, topic: str, start: int) -> dict[str, Position]:
    """Return the ends of the transaction before an offset."""
    if start <= log.resolve(topic, "earliest").offsets[0]:
        return {}
    before = [row for batch in log.read(topic, 0, start - 1, start) for row in batch.to_pylist()]
    return ends_of(before[-1]) if before else {}


def _between(log: Log, begin: Position | None, end: Position) -> pa.Table:
    """Return the records between two ends, as far as they are kept: not those of a topic that was deleted."""
    earliest, schema = log.resolve(end.topic, "earliest"), log.topic(end.topic).meta_schema
    if end.id != earliest.id:
        return schema.empty_table()
    known = begin.offsets if begin is not None and begin.id == end.id else {}
    start = {
        part: min(max(known.get(part, 0), first), end.offsets[part])
        for part, first in earliest.offsets.items()
        if part in end.offsets
    }
    batches = log.read(end.topic, start=Position(end.topic, start, end.id), end=end, meta=True)
    return pa.Table.from_batches(batches, schema)
