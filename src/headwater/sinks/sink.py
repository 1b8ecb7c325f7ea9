"""What a sink is: the place where a node's results become visible, effectively once.

A runner begins, which shuts out any other, and commits one batch after the other. After a crash
the last batch comes again, with the same number and the same rows.

What a target holds can be read back where it can be read at all, beside any runner, to be compared with
what it should hold.

Invariant: a batch's rows and its number become visible together or not at all; a batch with a
number that was committed before changes nothing; a runner that another has replaced commits nothing;
and a target that was emptied, or restored from a backup, does not look like one that is whole.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from headwater.closing import Closing
from headwater.log.position import Position

D = TypeVar("D")
"""A transaction of a target's."""


@dataclass(frozen=True)
class Batch:
    """What a node made of one micro-batch, and how far that has brought it."""

    number: int
    rows: pa.Table
    """In order: of two rows of one key the later wins. A column ``_deleted`` marks deletions."""
    positions: tuple[Position, ...] = ()
    """How far each input has been read when this batch is done."""
    watermark: int | None = None
    """The node's clock when this batch is done, in microseconds; None where it has none."""


@dataclass(frozen=True)
class Contents:
    """What a target holds, read back to be compared."""

    batch: int = -1
    """The number of the last batch that it has; -1 for none."""
    rows: Iterator[pa.RecordBatch] = field(default_factory=lambda: iter(()))
    """Its rows in the declared columns, to be read once; of one moment, where the target has moments."""
    unreadable: list[Mapping[str, Any]] = field(default_factory=list)
    """What lies among the rows and is none, by its place; known when the rows have been read."""
    settled: Callable[[], bool] = lambda: True
    """Tells, when the rows have been read, whether they are of that batch: a target may have no moments."""
    expires: bool = False
    """Whether rows go by themselves, so that one may be missing."""


class Sink(Closing):
    """A store that takes a node's batches."""

    @abstractmethod
    def begin(self) -> int:
        """Take over from any other runner; return the number of the last batch committed, or -1."""

    @abstractmethod
    def commit(self, batch: Batch) -> bool:
        """Make a batch visible, whole; return False, and change nothing, if it was there before.

        Raises ``Fenced`` if another runner has begun since.
        """

    @abstractmethod
    def receipt(self) -> str:
        """Return what ``resume`` needs to know later: how far the target had got."""

    @abstractmethod
    def resume(self, receipt: str) -> str | None:
        """Go on from a receipt; return in words what the target has lost since, None if nothing is known.

        To be called after ``begin``, with the receipt of the last batch that is known to be committed: what
        comes next may be a repetition. An empty receipt is that of a sink that has committed nothing.
        """

    def read_back(self) -> Contents | None:
        """Return what the target holds; None where that cannot be read.

        It changes nothing, makes nothing and shuts nobody out: ``begin`` need not have been called.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Release connections and files."""


class NumberedSink(Sink):
    """A sink whose target knows the number of its last batch: that is its receipt."""

    _last = -1
    """The number of the last batch that is known to be there."""

    def receipt(self) -> str:
        """Return the number of the last batch."""
        return str(self._last)

    def resume(self, receipt: str) -> str | None:
        """Tell which batches are missing."""
        return missing_batches(receipt, self._last)

    def _commit_once(
        self, run: Callable[[Callable[[D], bool]], bool], store: Callable[[D], bool], number: int
    ) -> bool:
        """Store a batch by a transaction that is repeated while its server is away; tell whether it is new.

        ``store`` notes the number of the last batch that it finds, and says whether it has stored another.
        """
        attempts = 0

        def attempt(db: D) -> bool:
            nonlocal attempts
            attempts += 1
            new = store(db)
            # An attempt before this one may have been committed, though its answer never came.
            return new or (attempts > 1 and self._last == number)

        done = run(attempt)
        self._last = max(self._last, number)
        return done


def missing_batches(receipt: str, last: int) -> str | None:
    """Tell which batches are missing where a receipt is the number of the last batch."""
    committed = int(receipt or -1)
    if committed <= last:
        return None
    return f"batch {committed} was committed, and there are batches up to {last} only"
