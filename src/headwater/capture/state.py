"""How far a capture has come: kept in the log itself, beside what it has written.

The state names a position in the source and, for each topic, the number that the next change gets. After a
crash the source delivers again from that position, the changes get the same numbers again, and the log leaves
out what it has (``Producer.send_changes``). Invariant: a state is stored after everything that it speaks of
is durable, and before the source is told to forget it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from headwater.closing import Closing
from headwater.errors import DamagedLog
from headwater.log import Log, Position
from headwater.values.json_ready import JsonReady

SUFFIX = ".capture"
_SCHEMA = "name STRING, state STRING"
Key = tuple[object, ...]
Offsets = Mapping[int, int]
"""Offsets of a topic, by partition."""


@dataclass(frozen=True)
class SnapshotProgress(JsonReady):
    """How far the snapshot of a table is."""

    after: Key | None = None
    """The key of the last row that is stored."""
    rows: int = 0
    done: bool = False


@dataclass(frozen=True)
class CaptureFigures:
    """How a capture was doing when it noted its state; times are in microseconds since 1970."""

    state: str = "starting"
    """As ``CaptureStatus`` has it."""
    noted: int = 0
    """When that was."""
    changes: int = 0
    rate: float = 0.0
    snapshot_rate: float = 0.0
    committed: int | None = None
    """When the newest change was committed."""
    delay: float | None = None
    """How many seconds after that it was written."""
    reached: int | None = None
    """A time before which everything that is committed was written."""
    retained: int | None = None
    alert: str | None = None
    expected: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class OutboxProgress:
    """How far the topic of an outbox is."""

    since: Offsets
    """Where it ended when the capture of the outbox began: what is behind is told."""
    deleted: Offsets
    """Up to where the rows of its records are deleted from the outbox, if that is asked for."""

    @classmethod
    def of(cls, told: Mapping[str, Mapping[str, int]]) -> OutboxProgress:
        """Return what is told in JSON, which has names for numbers."""
        since, deleted = (
            {int(part): offset for part, offset in told[name].items()} for name in ("since", "deleted")
        )
        return cls(since, deleted)


@dataclass(frozen=True)
class CaptureState:
    """Where a capture goes on."""

    position: str
    index: int = 0
    """How many changes of the transaction behind the position are stored already."""
    transaction: str = ""
    """Where that transaction ends, as its changes tell it; nothing where there is none."""
    sequences: Mapping[str, int] = field(default_factory=dict)
    """The number of the next change, by topic."""
    snapshots: Mapping[str, SnapshotProgress] = field(default_factory=dict)
    """By table."""
    stopped: Mapping[str, str] = field(default_factory=dict)
    """Why a table is not captured any more, by table."""
    resnapshot: tuple[str, ...] = ()
    """Tables of which a new snapshot is to be made, from the beginning whenever the capture begins."""
    requests: int = 0
    """How many new snapshots were asked for by others, who have fenced the capture to do so."""
    dropped: bool = False
    """Whether the source has forgotten the capture: it begins anew, and reads every table again."""
    identities: Mapping[str, str] = field(default_factory=dict)
    """What tells the tables whose changes are delivered from others of the same names, by table."""
    figures: CaptureFigures = CaptureFigures()
    outboxes: Mapping[str, OutboxProgress] = field(default_factory=dict)
    """How far the topics of outboxes are, by table."""
    open_changes: Mapping[str, int] = field(default_factory=dict)
    """How many changes of the transaction behind the position are stored already, by topic."""
    transactions_since: int | None = None
    """Where the topic of transactions ended when the capture began, if it has one."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """Where the changes of the tables go, by table."""

    def with_snapshot(self, table: str, progress: SnapshotProgress) -> CaptureState:
        """Return it with how far the snapshot of a table is."""
        return replace(self, snapshots={**self.snapshots, table: progress})

    def with_resnapshot(self, table: str) -> CaptureState:
        """Return it with a new snapshot of a table to be made, also of one that was stopped."""
        stopped = {name: why for name, why in self.stopped.items() if name != table}
        again = tuple(dict.fromkeys((*self.resnapshot, table)))
        begun = self.with_snapshot(table, SnapshotProgress())
        return replace(begun, stopped=stopped, resnapshot=again, requests=self.requests + 1)

    def with_outbox(self, table: str, end: Offsets) -> CaptureState:
        """Return it with an outbox of which every row is to be told, behind the end of its topic."""
        again = tuple(each for each in self.resnapshot if each != table)
        begun = replace(self.with_snapshot(table, SnapshotProgress()), resnapshot=again)
        return replace(begun, outboxes={**self.outboxes, table: OutboxProgress(end, end)})

    def with_deleted(self, table: str, done: Offsets) -> CaptureState:
        """Return it with how far the rows of an outbox are deleted."""
        progress = replace(self.outboxes[table], deleted=done)
        return replace(self, outboxes={**self.outboxes, table: progress})

    def as_dropped(self) -> CaptureState:
        """Return it for a source that has forgotten the capture.

        Nothing is delivered again then, so no number is: what comes goes behind all that the topics have.
        """
        again = tuple(dict.fromkeys((*self.resnapshot, *self.snapshots)))
        return replace(
            self,
            sequences={},
            snapshots={},
            stopped={},
            resnapshot=again,
            dropped=True,
            requests=self.requests + 1,
            open_changes={},
            transactions_since=None,
        )

    def with_identities(self, now: Mapping[str, str], topics: Mapping[str, str]) -> CaptureState:
        """Return it for tables that are captured now, with new snapshots of those that were not until now.

        Nor were those whose changes went to another topic. What was stored of them and not saved does not
        come again, so their numbers are not told again.
        """
        state, told = self, {**topics, **self.topics}
        here = {table for table in now if table in self.identities and told[table] == topics[table]}
        for table in self.snapshots:
            same = table in here and self.identities[table] == now[table]
            if table in now and not same and table not in self.resnapshot:
                state = state.with_resnapshot(table)
        anew = {topics[table] for table in now if table not in here}
        numbers = {topic: number for topic, number in self.sequences.items() if topic not in anew}
        kept = {**self.topics, **{table: topics[table] for table in now}}
        return replace(state, identities=dict(now), sequences=numbers, topics=kept)

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self), default=_tagged)

    @classmethod
    def from_json(cls, text: str) -> CaptureState:
        """Return what ``to_json`` has written."""
        told = json.loads(text)
        snapshots = {table: SnapshotProgress(**each) for table, each in told.pop("snapshots").items()}
        for table, each in snapshots.items():
            after = None if each.after is None else tuple(map(_untagged, each.after))
            snapshots[table] = replace(each, after=after)
        outboxes = {table: OutboxProgress.of(each) for table, each in told.pop("outboxes", {}).items()}
        figures = CaptureFigures(**told.pop("figures", {}))
        told["resnapshot"] = tuple(told["resnapshot"])
        return cls(**told, snapshots=snapshots, outboxes=outboxes, figures=figures)


class StateTopic(Closing):
    """The topic in which the states of one capture are stored; its writer fences any other."""

    def __init__(self, log: Log, capture: str):
        self._log, self._capture, self.topic = log, capture, capture + SUFFIX
        if self.topic not in {topic.name for topic in log.topics()}:
            log.create_topic(self.topic, _SCHEMA, key="name", cleanup="compact")
        self._producer = log.producer(self.topic, id=f"capture.{capture}")
        self._saved: CaptureState | None = None

    def load(self) -> CaptureState | None:
        """Return the newest state, if there is one."""
        return load(self._log, self._capture)

    def save(self, state: CaptureState) -> None:
        """Store a state durably."""
        self._producer.send({"name": self._capture, "state": state.to_json()})
        self._producer.flush()
        self._saved = state

    def note(self, figures: CaptureFigures) -> None:
        """Store how the capture is doing, beside the state that it has stored last."""
        if self._saved is not None:
            self.save(replace(self._saved, figures=figures))

    def close(self) -> None:
        """Let go of the topic."""
        self._producer.close()


def load(log: Log, capture: str) -> CaptureState | None:
    """Return the newest state of a capture, if it has one; nothing is fenced."""
    topic = capture + SUFFIX
    if topic not in {each.name for each in log.topics()}:
        return None
    end = log.resolve(topic, "latest")
    offset = end.offsets[0]
    # The newest record of a compacted topic is its last one; records before it may be gone.
    for start in (max(0, offset - 1), 0):
        found = _read(log, topic, start, end)
        if found:
            return _parsed(topic, found[-1]["state"])
    return None


def _read(log: Log, topic: str, start: int, end: Position) -> list[dict[str, Any]]:
    begin = max(start, log.resolve(topic, "earliest").offsets[0])
    batches = log.read(topic, 0, Position(topic, {0: begin}, end.id), end)
    return [row for batch in batches for row in batch.to_pylist() if row["state"] is not None]


def _parsed(topic: str, text: str) -> CaptureState:
    try:
        return CaptureState.from_json(text)
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedLog(
            f'topic "{topic}" does not hold the state of a capture',
            detail=str(error),
            hint="it may be of a newer version; nothing was changed",
            resume=None,
        ) from None


_TAGS: dict[str, Callable[[str], object]] = {
    "bytes": base64.b64decode,
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
}


def _tagged(value: object) -> dict[str, str]:
    """Return a value of a key that JSON does not have."""
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, datetime):
        return {"$datetime": value.isoformat()}
    if isinstance(value, date):
        return {"$date": value.isoformat()}
    raise TypeError(f"a key cannot hold a {type(value).__name__}")


def _untagged(told: Any) -> Any:
    """Return a value of a key as it was: no other part of a state is tagged, whatever tables are named."""
    if isinstance(told, dict):
        ((name, value),) = told.items()
        return _TAGS[name.removeprefix("$")](value)
    return told
