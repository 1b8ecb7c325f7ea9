"""Appends lines to a topic; those that do not fit go to the topic ``NAME.dead``, or stop the work.

Invariant: a line is a record, a dead letter, or the reason why the work ends; blank ones are neither. Lines
that bring their numbers and come again are stored once, in either topic.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater import durations
from headwater import schema as schemas
from headwater.bisection import failing
from headwater.closing import Closing
from headwater.errors import RecordTooLarge, RowError
from headwater.ingest.lines.decoding import Decoder
from headwater.ingest.lines.framing import LONGEST
from headwater.ingest.sequenced_producer import SequencedProducer
from headwater.ingest.status import IngestCounts
from headwater.ingest.topic_declaration import declare_topic
from headwater.log import Log

OnBadLine = Literal["stop", "dead_letter"]
SUFFIX = ".dead"
DEAD_LETTERS = "received TIMESTAMP, source STRING, line BIGINT, reason STRING, text STRING, bytes BINARY"
BEGINNING = 1000
"""Bytes that are kept of a line that is too long."""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LineDestination:
    """Where lines go, and what becomes of those that do not fit."""

    log: Log
    name: str
    topic: str
    decode: Decoder
    on_error: OnBadLine = "stop"


@dataclass(frozen=True)
class BadLines:
    """Lines that do not fit, with their numbers and the reasons."""

    lines: list[bytes]
    numbers: list[int]
    reasons: list[RowError]


class LineWriter(Closing):
    """Appends lines for one way in."""

    def __init__(self, to: LineDestination, counts: IngestCounts, stop: threading.Event):
        self._to, self._counts, self._stop = to, counts, stop
        self._producer = SequencedProducer(to.log, to.topic, to.name, stop)
        self._dead: SequencedProducer | None = None

    @property
    def sequence(self) -> int:
        """The number behind the last one that the log has."""
        return self._producer.sequence

    def write(self, lines: Sequence[bytes], source: str, first: int | None = None) -> None:
        """Append lines that come from somewhere, ``first`` being the number of the first of them if they have
        any."""
        written = np.flatnonzero(np.fromiter((bool(line.strip()) for line in lines), bool, len(lines)))
        fitting = [n for n in written.tolist() if len(lines[n]) <= LONGEST]
        bad: dict[int, RowError] = {n: _too_long() for n in written.tolist() if len(lines[n]) > LONGEST}
        batch, misfits = self._to.decode([lines[n] for n in fitting])
        bad |= {fitting[at]: error for at, error in misfits}
        good = np.array([n for n in fitting if n not in bad], np.int64)
        bad |= self._append(batch, good, first)
        self._counts.add(lines=len(written), rows=len(written) - len(bad))
        if bad:
            order = sorted(bad)
            numbers = [n + (first or 0) for n in order]
            self._set_aside(
                BadLines([lines[n] for n in order], numbers, [bad[n] for n in order]), source, first
            )

    def flush(self) -> None:
        """Make everything durable."""
        self._producer.flush()
        if self._dead is not None:
            self._dead.flush()

    def close(self) -> None:
        """Make everything durable and let go of the topics."""
        self._producer.close()
        if self._dead is not None:
            self._dead.close()

    def _append(self, batch: pa.RecordBatch, numbers: Numbers, first: int | None) -> dict[int, RowError]:
        """Append rows; those of lines that are numbered in runs whose numbers follow each other."""
        gaps = [] if first is None else (np.flatnonzero(np.diff(numbers) > 1) + 1).tolist()
        send, refused = partial(self._send, batch, numbers, first), dict[int, RowError]()
        for begin, end in pairwise([0, *gaps, len(numbers)]):
            refused |= {int(numbers[row]): error for row, error in failing(end - begin, send, begin)}
        return refused

    def _send(
        self, batch: pa.RecordBatch, numbers: Numbers, first: int | None, start: int, end: int
    ) -> RowError | None:
        try:
            sequence = None if first is None else first + int(numbers[start])
            self._producer.append(batch.slice(start, end - start), sequence)
        except RowError as error:
            return error
        return None

    def _set_aside(self, bad: BadLines, source: str, first: int | None) -> None:
        long = sum(isinstance(error, RecordTooLarge) for error in bad.reasons)
        self._counts.add(too_long=long, dead=len(bad.lines) - long)
        if self._to.on_error == "stop":
            raise _stopped(bad, source, self._to)
        letters = dead_letters(bad, source, numbered=first is not None)
        dead = self._dead_producer()
        for row, number in enumerate(bad.numbers):  # one by one: they are few, or the declaration is wrong
            dead.append(letters.slice(row, 1), None if first is None else number)

    def _dead_producer(self) -> SequencedProducer:
        if self._dead is None:
            topic = self._to.name + SUFFIX
            declare_topic(self._to.log, topic, DEAD_LETTERS)
            self._dead = SequencedProducer(self._to.log, topic, self._to.name, self._stop)
        return self._dead


def dead_letters(bad: BadLines, source: str, *, numbered: bool) -> pa.Table:
    """Return lines that do not fit as rows; those that are no text as bytes."""
    texts = [_text(line[:BEGINNING] if len(line) > LONGEST else line) for line in bad.lines]
    reasons = [f"{error.message}: {error.reason}" if error.reason else error.message for error in bad.reasons]
    pairs = list(zip(texts, bad.lines, strict=True))
    columns = {
        "received": pa.array([durations.now()] * len(texts), pa.int64()).cast(schemas.TIMESTAMP),
        "source": pa.array([source] * len(texts), pa.string()),
        "line": pa.array([number + 1 if numbered else None for number in bad.numbers], pa.int64()),
        "reason": pa.array(reasons, pa.string()),
        "text": pa.array(texts, pa.string()),
        "bytes": pa.array([line[:BEGINNING] if text is None else None for text, line in pairs], pa.binary()),
    }
    return pa.table(columns, schemas.read(DEAD_LETTERS))


def _text(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _too_long() -> RecordTooLarge:
    return RecordTooLarge(f"a line has more than {LONGEST:,} bytes", detail="only its beginning is kept")


def _stopped(bad: BadLines, source: str, to: LineDestination) -> RowError:
    error, text = bad.reasons[0], _text(bad.lines[0][:80])
    return RowError(
        f'a line from {source} does not fit topic "{to.topic}"',
        detail=f"{error.reason or error.message}; it begins with {text or bad.lines[0][:80]!r}",
        hint=f'let --on-error be "dead_letter", and such lines go to the topic "{to.name}{SUFFIX}"',
    )
