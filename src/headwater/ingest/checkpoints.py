"""Checkpoints of a way in, kept in the log itself: how it is doing, and how far it has read what stays.

The checkpoints of NAME are the compacted topic ``NAME.ingest``; who writes them fences whoever did before.
Invariant: a checkpoint is durable when ``save`` returns, and the newest one counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headwater import durations
from headwater.closing import Closing
from headwater.errors import DamagedLog, UsageError
from headwater.ingest.status import IngestStatus, noted_state
from headwater.log import Log, Position

SUFFIX = ".ingest"
_SCHEMA = "name STRING, note STRING"


@dataclass(frozen=True)
class IngestCheckpoint:
    """What one way in has saved of itself."""

    address: str
    state: str
    counts: Mapping[str, int] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    """How far it has come, where it reads something that stays; as its kind writes it."""
    noted: int = 0


class IngestCheckpoints(Closing):
    """The checkpoints of one way in; who opens them fences whoever wrote them before."""

    def __init__(self, log: Log, name: str):
        self._log, self.name = log, name
        topic = name + SUFFIX
        if topic not in {each.name for each in log.topics()}:
            log.create_topic(topic, _SCHEMA, key="name", cleanup="compact")
        self._producer = log.producer(topic, id=producer_id(name))

    def load(self) -> IngestCheckpoint | None:
        """Return the newest checkpoint, if there is one."""
        return load_checkpoint(self._log, self.name)

    def save(self, checkpoint: IngestCheckpoint) -> None:
        """Store a checkpoint durably."""
        self._producer.send(
            {"name": self.name, "note": json.dumps({**asdict(checkpoint), "noted": durations.now()})}
        )
        self._producer.flush()

    def close(self) -> None:
        """Let go of the topic."""
        self._producer.close()


def producer_id(name: str) -> str:
    """Return the id of the producers of a way in."""
    return f"ingest.{name}"


def load_checkpoint(log: Log, name: str) -> IngestCheckpoint | None:
    """Return the newest checkpoint of a way in, if it has one; nothing is fenced."""
    topic = name + SUFFIX
    if topic not in {each.name for each in log.topics()}:
        return None
    end = log.resolve(topic, "latest")
    # The newest record of a compacted topic is its last one; records before it may be gone.
    for start in (max(0, end.offsets[0] - 1), 0):
        begin = max(start, log.resolve(topic, "earliest").offsets[0])
        batches = log.read(topic, 0, Position(topic, {0: begin}, end.id), end)
        texts = [text for batch in batches for text in batch.column("note").to_pylist() if text is not None]
        if texts:
            return _parsed(topic, texts[-1])
    return None


def checkpoint_status(log: Log, name: str) -> IngestStatus:
    """Return how a way in is doing, in whatever process it runs."""
    saved = load_checkpoint(log, name)
    if saved is None:
        raise UsageError(f'there is no way in named "{name}" in this log', hint="its topic is NAME.ingest")
    return IngestStatus(name, saved.address, noted_state(saved.state, saved.noted), saved.counts, saved.noted)


def _parsed(topic: str, text: str) -> IngestCheckpoint:
    try:
        return IngestCheckpoint(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise DamagedLog(
            f'topic "{topic}" does not hold the checkpoints of a way in',
            detail=str(error),
            hint="it may be of a newer version; nothing was changed",
            resume=None,
        ) from None
