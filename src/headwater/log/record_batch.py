"""Records on their way into a log: numbered, placed and checked, whatever the backend.

Invariant: an ``OutgoingBatch`` fits its topic, and its sequence numbers grow within each partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater import durations, record
from headwater.bisection import failing
from headwater.errors import HeadwaterError, RowError, UsageError
from headwater.log.parallel import pieces as spans
from headwater.topic import Topic
from headwater.values import keys, rows, years
from headwater.values.sent_rows import Copier, Marked

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OutgoingBatch:
    """Records on their way to a backend, all checked."""

    batch: pa.RecordBatch
    sequence: Numbers
    topic: Topic
    """The topic as it was declared when the records were checked."""
    sent: int
    extras: dict[str, pa.Array] = field(default_factory=dict)
    """Metadata columns that only some records have: `_deleted`, `_occurred`, `_sent`, `_headers`."""

    @cached_property
    def partition(self) -> npt.NDArray[np.int32]:
        """The partition of each record."""
        if self.topic.key:
            columns = [self.batch.column(name) for name in self.topic.key]
            return keys.partitions(columns, self.topic.partitions)
        # By sequence, not at random: a batch that is sent again goes where it went before.
        return (self.sequence % self.topic.partitions).astype(np.int32)

    def placed_by(self, partitions: int) -> OutgoingBatch:
        """Return the records as they were placed when the topic had so many partitions."""
        if not 1 <= partitions <= self.topic.partitions:
            raise UsageError(
                f'records cannot be placed in {partitions} partitions of topic "{self.topic.name}"',
                detail=f"it has {self.topic.partitions}",
            )
        return replace(self, topic=replace(self.topic, partitions=partitions))

    def ends(
        self, counts: Sequence[int], reached: Mapping[int, int], contiguous: bool
    ) -> list[dict[int, int]]:
        """Return where each of several runs of rows ends, in the partitions in which it has rows.

        ``reached`` is where all of them end. Unless they lie side by side there, that is where each ends.
        """
        width = int(self.partition.max(initial=0)) + 1
        places = np.repeat(np.arange(len(counts)) * width, counts) + self.partition
        rows_of = np.bincount(places, minlength=len(counts) * width).reshape(len(counts), width)
        behind = rows_of[::-1].cumsum(axis=0)[::-1] - rows_of if contiguous else np.zeros_like(rows_of)
        made: list[dict[int, int]] = [{} for _ in counts]
        runs, numbers = np.nonzero(rows_of)
        every = zip(runs.tolist(), numbers.tolist(), behind[runs, numbers].tolist(), strict=True)
        for run, number, after in every:  # a position each, for whoever sent the run
            made[run][number] = reached[number] - after
        return made

    def filter(self, keep: npt.NDArray[np.bool_]) -> OutgoingBatch:
        """Return only some of the records."""
        mask = pa.array(keep)
        extras = {name: column.filter(mask) for name, column in self.extras.items()}
        return replace(self, batch=self.batch.filter(mask), sequence=self.sequence[keep], extras=extras)

    def pieces(self) -> list[OutgoingBatch]:
        """Cut the records into pieces that can be encoded side by side."""
        count = len(self.batch)
        return [self._slice(*span) for span in spans(count, least=1 << 15, most=1 << 16)] if count else []

    def _slice(self, start: int, stop: int) -> OutgoingBatch:
        extras = {name: column.slice(start, stop - start) for name, column in self.extras.items()}
        batch = self.batch.slice(start, stop - start)
        return replace(self, batch=batch, sequence=self.sequence[start:stop], extras=extras)


class Appender(Protocol):
    """What a backend does for a producer."""

    id: str
    last_sequence: int
    """The newest sequence number the log has from this producer id, or -1."""
    contiguous: bool
    """Whether the records of one append lie side by side in a partition, with nobody else's between."""

    def topic(self) -> Topic:
        """Return the topic as it is declared now."""

    def encode(self, records: OutgoingBatch) -> Any:
        """Do what takes time and needs no order, on any thread; ``append`` gets the result."""

    def append(self, records: OutgoingBatch, encoded: Sequence[Any]) -> Mapping[int, int]:
        """Append durably, whole or not at all; return the next offset of each partition written.

        ``encoded`` is what ``encode`` made of the pieces of the records. Records whose sequence the
        partition has already from this producer are left out.
        """

    def mark(self, before: int) -> None:
        """Make it durable, in every partition, that this producer sends nothing older any more."""

    def close(self) -> None:
        """Release what the appender holds."""


class Builder:
    """Turns rows and batches of one producer into outgoing records."""

    def __init__(self, topic: Callable[[], Topic], sequence: int):
        self.sequence = sequence
        """The sequence number the next row will get, if it brings none."""
        self._topic = topic

    def from_batch(
        self, batch: pa.RecordBatch, sequence: int | None, extras: dict[str, pa.Array] | None = None
    ) -> OutgoingBatch:
        """Number a checked batch, from ``sequence`` or the next number on."""
        first = self.sequence if sequence is None else sequence
        self.sequence = max(self.sequence, first + len(batch))
        return self._outgoing(batch, np.arange(first, first + len(batch), dtype=np.int64), extras or {})

    def from_copied(self, values: list[Any], copier: Copier) -> tuple[OutgoingBatch | None, RowError | None]:
        """Convert rows of which a ``Copier`` has copied the values; those that do not fit are left out."""
        columns = copier.by_column(values)
        if columns is not None:
            with suppress(RowError):  # row by row it is found which, if they are not only marked
                batch = rows.from_columns(columns, self._topic())
                return self.from_batch(batch, None), None
        return self.from_rows(copier.by_row(values))

    def from_rows(self, chunk: list[Any]) -> tuple[OutgoingBatch | None, RowError | None]:
        """Convert rows, each a mapping or ``Marked``; those that do not fit are left out.

        Returns the first error with what is left, if anything.
        """
        marked = Marked in set(map(type, chunk))
        numbers = self._number(chunk, marked)
        try:
            return self._build(chunk, numbers, marked), None
        except RowError as error:
            refused = error
        good = self._fitting(chunk, marked)
        left = [chunk[i] for i in good]
        return (self._build(left, numbers[good], marked) if left else None), refused

    def _number(self, chunk: Sequence[Any], marked: bool) -> Numbers:
        """Give each row its sequence number: its own, or one higher than any before."""
        if not marked:
            first, self.sequence = self.sequence, self.sequence + len(chunk)
            return np.arange(first, self.sequence, dtype=np.int64)
        numbers = np.empty(len(chunk), np.int64)
        for index, row in enumerate(chunk):  # one by one: each may bring its own number
            explicit = row.sequence if isinstance(row, Marked) else None
            numbers[index] = self.sequence if explicit is None else explicit
            self.sequence = max(self.sequence, int(numbers[index]) + 1)
        return numbers

    def _fitting(self, chunk: list[Any], marked: bool) -> list[int]:
        """Return the indices of the rows that fit."""

        def build(start: int, end: int) -> RowError | None:
            try:
                self._build(chunk[start:end], np.arange(end - start, dtype=np.int64), marked)
            except RowError as error:
                return error
            return None

        bad = dict(failing(len(chunk), build))
        return [index for index in range(len(chunk)) if index not in bad]

    def _build(self, chunk: list[Any], numbers: Numbers, marked: bool) -> OutgoingBatch:
        try:
            extras: dict[str, pa.Array] = {}
            if marked:
                every = [row if isinstance(row, Marked) else Marked(row) for row in chunk]
                extras = _extras(every)
                chunk = [row.row for row in every]
            return self._outgoing(rows.from_rows(chunk, self._topic(), extras), numbers, extras)
        except HeadwaterError:
            raise
        except Exception as error:  # whatever a row is, only that row is refused
            reason = f"{type(error).__name__}: {error}"
            raise RowError("a row cannot be stored", detail=reason.splitlines()[0]) from None

    def _outgoing(
        self, batch: pa.RecordBatch, numbers: Numbers, extras: dict[str, pa.Array]
    ) -> OutgoingBatch:
        return _increasing(OutgoingBatch(batch, numbers, self._topic(), durations.now(), extras))


def _increasing(records: OutgoingBatch) -> OutgoingBatch:
    """Leave out what repeats a sequence number that went before in its partition."""
    if np.all(np.diff(records.sequence) > 0):
        return records
    keep = np.zeros(len(records.sequence), bool)
    for number in np.unique(records.partition):
        rows_of = np.flatnonzero(records.partition == number)
        sequence = records.sequence[rows_of]
        before = np.maximum.accumulate(np.concatenate([[-1], sequence[:-1]]))
        keep[rows_of[sequence > before]] = True
    return records.filter(keep)


def _extras(marked: Sequence[Marked]) -> dict[str, pa.Array]:
    """Return the metadata columns that at least one of the rows has."""
    columns: dict[str, list[Any]] = {
        record.DELETED: [row.deleted for row in marked],
        "_occurred": [row.occurred for row in marked],
        "_sent": [row.sent for row in marked],
        "_headers": [row.headers and list(row.headers.items()) for row in marked],
    }
    extras = {name: pa.array(values, record.META[name]) for name, values in columns.items() if any(values)}
    for name, column in extras.items():
        if (row := years.outside(column)) is not None:
            raise RowError(f'time "{name[1:]}" of a record cannot be read', detail=years.REASON, row=row)
    return extras
