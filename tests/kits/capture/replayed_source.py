"""A source that delivers a history again from wherever it is asked to begin, in portions of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from changes_kit import CUSTOMERS, batch
from headwater.capture.change import (
    OPERATIONS,
    Delivery,
    SnapshotChunk,
    SourceTable,
    TableChanges,
    Transactions,
)
from headwater.capture.source import CaptureSource
from headwater.errors import LogUnavailable
from headwater.log.embedded.appender import EmbeddedAppender


@dataclass(frozen=True)
class Step:
    """A change of a row: what the database sends of it."""

    operation: str
    id: int
    name: str | None = None
    unsent: bool = False
    """Whether the name is as it was, and was not sent."""
    unfit: bool = False
    """Whether the source could not read the name."""
    was: int | None = None
    """The key of the row before, where it has got another."""


def told(steps: Sequence[Step], first: int) -> TableChanges:
    """Return steps as a source delivers them, each a transaction of its own."""
    rows, numbers = list[tuple[str, Step]](), list[int]()
    for number, step in enumerate(steps):
        if step.was is not None:
            rows.append(("delete", Step("delete", step.was)))
            numbers.append(number)
        rows.append(("insert" if step.was is not None else step.operation, step))
        numbers.append(number)
    ends = range(first + 1, first + 1 + len(steps))
    once = Transactions(tuple(f"t{n}" for n in ends), tuple(f"{n:04d}" for n in ends), np.array(ends))
    unsent = np.array([step.unsent for _, step in rows], bool)
    return TableChanges(
        CUSTOMERS,
        np.array([OPERATIONS.index(operation) for operation, _ in rows], np.int8),
        batch([(step.id, None if step.unsent or step.unfit else step.name) for _, step in rows]),
        once,
        np.array(numbers, np.int64),
        np.zeros(len(rows), np.int64),
        unfit={row: "it is no name" for row, (_, step) in enumerate(rows) if step.unfit},
        unchanged={"name": unsent},
    )


class EmptyTable(CaptureSource):
    """A source with one table that was empty when it began; positions are texts in their order."""

    title, first = "a history", "00"

    def tables(self) -> list[SourceTable]:
        return [CUSTOMERS]

    def identities(self, tables: Iterable[str]) -> Mapping[str, str]:
        return dict.fromkeys(tables, "1")

    def begin(self, tables: Sequence[str], position: str | None) -> str:
        return position or self.first

    def confirm(self, position: str) -> None:
        pass

    def passed(self, position: str, other: str) -> bool:
        return position >= other

    def end(self) -> str:
        return self.first

    def chunk(self, table: str, after: tuple[object, ...] | None, limit: int) -> SnapshotChunk:
        return SnapshotChunk(batch([]), self.first, True)

    def count(self, table: str) -> int:
        return 0

    def delete_rows(self, table: str, keys: pa.RecordBatch) -> bool:
        return True

    def retained(self) -> int | None:
        return None

    def drop(self) -> None:
        pass

    def close(self) -> None:
        pass


class Replayed(EmptyTable):
    """Delivers the steps behind a position, some at a time."""

    first = "0000"

    def __init__(self, steps: Sequence[Step], at_a_time: int):
        self._steps, self._at_a_time = steps, at_a_time
        self._place, self._is_begun = 0, False

    @property
    def exhausted(self) -> bool:
        return self._place >= len(self._steps)

    def begin(self, tables: Sequence[str], position: str | None) -> str:
        self._place = int(position or self.first)
        return position or self.first

    def read(self, timeout: float) -> Delivery:
        first = self._place
        if not self._is_begun:  # the snapshot, which is empty, is stored behind it
            self._is_begun = True
            return Delivery((), f"{first:04d}")
        part = self._steps[first : first + self._at_a_time]
        self._place += len(part)
        return Delivery((told(part, first),), f"{self._place:04d}") if part else Delivery()


@contextmanager
def lost(topic: str, first: int) -> Iterator[None]:
    """Let nothing be appended to a topic from the so-manieth time on, as if a kill had come before it.

    Other topics may get all that is on its way to them: whatever could be appended first.
    """
    append, count = EmbeddedAppender.append, [0]

    def appended(appender: EmbeddedAppender, *arguments: Any) -> Mapping[int, int]:
        if appender.topic().name == topic:
            count[0] += 1
            if count[0] > first:
                raise LogUnavailable("killed")
        return append(appender, *arguments)

    EmbeddedAppender.append = appended  # type: ignore[method-assign]
    try:
        yield
    finally:
        EmbeddedAppender.append = append  # type: ignore[method-assign]
