"""What the embedded log does for a producer: split a batch by partition, encode, append.

Invariant: a batch is appended to all of its partitions or to none; a crash in between is mended
by sending it again with the same sequence numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from operator import itemgetter
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import TopicError
from headwater.log.embedded.failures import error_type, reason
from headwater.log.embedded.partition import frame
from headwater.log.embedded.partition.frame import Compression, Draft
from headwater.log.embedded.partition.writer import Partition, fenced
from headwater.log.record_batch import OutgoingBatch
from headwater.topic import Topic


class FramePart(NamedTuple):
    """Records of one partition that go into one frame."""

    batch: pa.RecordBatch
    sequence: npt.NDArray[np.int64]
    version: int
    event_time: str | None
    sent: int
    compression: Compression

    def draft(self) -> Draft:
        """Encode the records."""
        newest = frame.NO_TIME
        if self.event_time is not None:
            times = self.batch.column(self.event_time)
            # One value needs no function of Arrow's, which costs more than to encode it.
            latest = times[0].value if len(times) == 1 else pc.max(times.cast(pa.int64())).as_py()
            newest = frame.NO_TIME if latest is None else latest
        return frame.draft(
            self.batch, self.version, self.sequence, self.compression, sent=self.sent, newest=newest
        )

    def after(self, sequence: int) -> FramePart | None:
        """Return the records with a higher sequence number, if any."""
        start = int(np.searchsorted(self.sequence, sequence, side="right"))
        if start == len(self.sequence):
            return None
        return self._replace(batch=self.batch.slice(start), sequence=self.sequence[start:])


Encoded = tuple[FramePart, Draft]


class Epochs(Protocol):
    """The epochs of one producer id, shared by all processes."""

    def next(self, above: int) -> int:
        """Begin a new epoch, higher than any before and than ``above``."""

    def current(self) -> int:
        """Return the newest epoch."""


class EmbeddedAppender:
    """Appends a producer's records to a topic of the embedded log."""

    contiguous = True

    def __init__(
        self,
        id: str,
        epochs: Epochs | None,
        topic: Callable[[], Topic],
        open: Callable[[int], Partition],
        compression: Compression,
    ):
        self.id = id
        self.last_sequence = -1
        self.topic = topic
        self._open = open
        self.compression: Compression = compression
        self._epochs = epochs
        self.epoch = 0
        self._partitions: dict[int, Partition] = {}
        if epochs is not None:
            with ExitStack() as unstarted:
                unstarted.callback(self.close)
                self._start(epochs)
                unstarted.pop_all()

    def encode(self, records: OutgoingBatch) -> list[tuple[int, Encoded]]:
        """Return the records as frames, each with its partition."""
        return _encoded(records, self.compression)

    def append(
        self, records: OutgoingBatch, encoded: Sequence[list[tuple[int, Encoded]]]
    ) -> Mapping[int, int]:
        """Append durably, whole or not at all; return the next offset of each partition written."""
        self.topic()  # says so if it has been deleted
        parts: dict[int, list[Encoded]] = {}
        for number, each in sorted(chain.from_iterable(encoded), key=itemgetter(0)):
            parts.setdefault(number, []).append(each)
        with storage_errors():
            involved = [self.partition(number) for number in parts]
            with ExitStack() as locks:
                for partition in involved:
                    locks.enter_context(partition.locked())
                written = self._write(parts)
            return dict(zip(parts, self.commit(involved, written), strict=True))

    def mark(self, before: int) -> None:
        """Write into every partition that this producer sends nothing older any more."""
        every = range(self.topic().partitions)
        with storage_errors():
            involved = [self.partition(number) for number in every]
            with ExitStack() as locks:
                for partition in involved:
                    locks.enter_context(partition.locked())
                    partition.refresh()
                    self.fence(partition)
                written = {each: each.mark(self.id, self.epoch, before) for each in involved}
            self.commit(involved, written)

    def close(self) -> None:
        """Release the files."""
        for partition in self._partitions.values():
            partition.close()

    def _write(self, parts: dict[int, list[Encoded]]) -> dict[Partition, int]:
        """Write to every partition, all of them locked, or to none; return where each ended before."""
        fresh = {}
        for number, encoded in parts.items():
            partition = self.partition(number)
            partition.refresh()
            self.fence(partition)
            fresh[partition] = _without_duplicates(encoded, partition.check(self.id, self.epoch))
        written: dict[Partition, int] = {}
        try:
            for partition, new in fresh.items():
                if new:
                    written[partition] = partition.write(new, self.id, self.epoch)
        except OSError:
            for partition, before in written.items():
                partition.undo(before)
            raise
        return written

    def commit(self, involved: Sequence[Partition], written: Mapping[Partition, int]) -> list[int]:
        """Make what was written durable, let readers see it, and return where each partition ends."""
        try:
            heads = [partition.sync() for partition in involved]
        except OSError:
            for partition, before in written.items():
                with partition.locked():
                    partition.retract(before)
            raise
        for partition, reached in zip(involved, heads, strict=True):
            with partition.locked():
                partition.publish(reached)
        return [reached.end for reached in heads]

    def _start(self, epochs: Epochs) -> None:
        """Shut out a predecessor of the same id, and learn how far it got."""
        with storage_errors(), ExitStack() as locks:
            every = [self.partition(number) for number in range(self.topic().partitions)]
            for partition in every:
                locks.enter_context(partition.locked())
                partition.refresh()
            self.epoch = epochs.next(max(partition.epoch(self.id) for partition in every))
            for partition in every:
                self.last_sequence = max(self.last_sequence, partition.check(self.id, self.epoch))
                self.fence(partition)
                partition.publish(partition.sync())

    def fence(self, partition: Partition) -> None:
        """Mark a partition with the epoch, where it has not been; one that was added since, too."""
        if self._epochs is None or partition.epoch(self.id) >= self.epoch:
            return
        if self._epochs.current() == self.epoch:
            partition.fence(self.id, self.epoch)
        else:
            raise fenced(self.id)

    def partition(self, number: int) -> Partition:
        """Return a partition, opened when it is first asked for."""
        if number not in self._partitions:
            self._partitions[number] = self._open(number)
        return self._partitions[number]


def _encoded(records: OutgoingBatch, compression: Compression) -> list[tuple[int, Encoded]]:
    batch, version = records.batch, schema_version(records.batch.schema, records.topic)
    for name, column in records.extras.items():
        batch = batch.append_column(pa.field(name, column.type), column)
    whole = FramePart(batch, records.sequence, version, records.topic.event_time, records.sent, compression)
    cuts = [(n, each) for n, part in _split(whole, records.partition) for each in cut(part)]
    return [(number, (each, each.draft())) for number, each in cuts]


def schema_version(mine: pa.Schema, topic: Topic) -> int:
    """Return which of a topic's schemas records were converted to: it may have got another since."""
    if mine.equals(topic.schema):
        return len(topic.schemas) - 1
    for version in reversed(range(len(topic.schemas))):
        if (topic.schemas[version].names, topic.schemas[version].types) == (mine.names, mine.types):
            return version
    raise TopicError(
        f'topic "{topic.name}" has no schema of the columns {", ".join(mine.names)}',
        detail="it was changed while these records were converted",
        hint="send them again",
    )


def _split(part: FramePart, partition: npt.NDArray[np.int32]) -> Iterator[tuple[int, FramePart]]:
    """Yield each partition with its records, in their order."""
    numbers = np.flatnonzero(np.bincount(partition))
    if len(numbers) == 1:
        yield int(numbers[0]), part
        return
    # One stable sort and one take are cheaper than a filter per partition.
    order = np.argsort(partition.astype(np.uint16), kind="stable")
    batch, sequence = part.batch.take(pa.array(order)), part.sequence[order]
    bounds = np.searchsorted(partition[order], [*numbers, numbers[-1] + 1])
    for number, start, stop in zip(numbers, bounds, bounds[1:], strict=False):
        yield (
            int(number),
            part._replace(batch=batch.slice(start, stop - start), sequence=sequence[start:stop]),
        )


def cut(part: FramePart) -> Iterator[FramePart]:
    """Cut records so that no frame has too many rows, bytes, or too wide a range of sequences."""
    count = len(part.batch)
    wide = int(part.sequence[-1] - part.sequence[0]) >= 1 << 32
    if count == 1 or (count <= frame.ROWS_MAX and part.batch.nbytes <= frame.BYTES_MAX and not wide):
        yield part
        return
    half = count // 2
    yield from cut(part._replace(batch=part.batch.slice(0, half), sequence=part.sequence[:half]))
    yield from cut(part._replace(batch=part.batch.slice(half), sequence=part.sequence[half:]))


def _without_duplicates(encoded: Sequence[Encoded], last: int) -> list[Draft]:
    """Leave out what the partition has already from this producer."""
    fresh = []
    for part, draft in encoded:
        if draft.first_sequence > last:
            fresh.append(draft)
        elif draft.last_sequence > last and (rest := part.after(last)) is not None:
            fresh.append(rest.draft())
    return fresh


@contextmanager
def storage_errors() -> Iterator[None]:
    """Say what a failed write means to a user."""
    try:
        yield
    except OSError as error:
        what, hint = reason(error)
        raise error_type(error)(
            f"cannot append to the log: {what}",
            detail="the records are kept and will be tried again",
            hint=hint,
        ) from error
