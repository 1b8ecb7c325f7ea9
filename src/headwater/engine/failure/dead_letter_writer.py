"""Writes the rows that a node rejects to its dead-letter topic: the only way there.

Every row is written once, however often its micro-batch is repeated. A record is known by its offset: a node
leaves it out of what it reads from then on, so a micro-batch that is repeated does not reject it again. Any
other row is known by the number of its micro-batch and its index in it (``sinks/topic.py``). Records cannot
be numbered so as well: left out of the repetition, they would shift the numbers of the rows behind them.

Invariant: what is written is durable before the node commits, or computes, anything without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.engine.failure.dead_letters import DeadLetters, Skips, letters
from headwater.engine.failure.rejected_row import RejectedRow
from headwater.sinks.sink import Batch, Sink


class DeadLetterWriter:
    """The dead-letter topic of a node, as one version of the node writes it."""

    def __init__(self, dead_letters: DeadLetters, producer: str, prepare: Callable[[], None]):
        """``producer`` is the version's name in the log; ``prepare`` makes the topic ready for rows."""
        self._dead_letters, self._producer, self._prepare = dead_letters, producer, prepare
        self._sink: Sink | None = None

    def write(self, number: int, rows: Sequence[RejectedRow]) -> None:
        """Write what a micro-batch rejects."""
        records = [row for row in rows if row.source is not None]
        if records:
            self._prepare()
            self._dead_letters.add(records)
        others = [row for row in rows if row.source is None]
        if others:
            self._begun().commit(Batch(number, letters(others)))

    def skips(self) -> Skips:
        """Return the offsets of all records that the node leaves out."""
        return self._dead_letters.skips()

    def close(self) -> None:
        """Release the producer; what is written is durable already."""
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.close()

    def _begun(self) -> Sink:
        if self._sink is None:
            self._prepare()
            self._sink = self._dead_letters.sink(self._producer)
            self._sink.begin()
        return self._sink
