"""What is written down of a query: where it began, and which offsets a micro-batch ends at.

Spark stores the offsets before it runs a micro-batch, so they are there when results are committed,
and the same when the micro-batch is repeated. Where it began is ours, stored beside them.

Spark syncs nothing. Invariant: the offsets of a micro-batch are durable before anything that it does is.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater import durable
from headwater.engine.home import notes
from headwater.engine.source.watermark import NEVER, SourceProgress
from headwater.log.position import Position
from headwater.values.json_ready import JsonReady

_BEGIN = "begin.json"


@dataclass(frozen=True)
class ClockSkew(JsonReady):
    """A producer whose events are so far ahead of their receipt that they do not move the clock."""

    topic: str
    partition: int
    producer: str
    by: int
    """Microseconds, when last heard of."""

    def facts(self) -> dict[str, Any]:
        """Return who it is, and by how many seconds it is ahead."""
        return {**super().facts(), "by": self.by / 1_000_000}


@dataclass(frozen=True)
class Input:
    """How far a query has come in one of its inputs."""

    position: Position
    watermark: int | None = None
    """None where the input tells no time."""
    silent: bool = False
    """Whether it is read to its end, and nothing was received for as long as it says."""
    heard: int = NEVER
    """When the log last received anything of it."""
    lateness: int = 0
    silence: int = 0
    """Microseconds that it may be silent and is waited for."""
    ahead: tuple[ClockSkew, ...] = ()
    """The producers whose time is not believed."""


@dataclass(frozen=True)
class InputProgress:
    """How far a query has come in each of its inputs, after a micro-batch."""

    inputs: Mapping[str, Input]

    def of(self, names: Collection[str]) -> InputProgress:
        """Return how far it has come in some of its inputs."""
        return InputProgress({name: self.inputs[name] for name in names if name in self.inputs})

    @property
    def positions(self) -> tuple[Position, ...]:
        """The position in each input."""
        return tuple(each.position for each in self.inputs.values())

    @property
    def ahead(self) -> tuple[ClockSkew, ...]:
        """The producers of all inputs whose time is not believed."""
        return tuple(producer for each in self.inputs.values() for producer in each.ahead)

    @property
    def watermark(self) -> int | None:
        """The clock (watermark) of the inputs, None if none tells time: that of the one furthest behind.

        One that is silent does not hold the others, but for what may be under way: time does not go on to
        when the log last received something of them, less its lateness and the silence that it may keep.
        Where all are silent nothing is under way, and it is that of the one that is furthest. When one is
        heard of again, this may go back: ``headwater.engine.home.node_progress`` keeps the clock of a node
        from that.
        """
        timed = [each for each in self.inputs.values() if each.watermark is not None]
        awake = [each for each in timed if not each.silent]
        if not timed:
            return None
        watermark, heard = _furthest(timed) if not awake else _slowest(awake)
        bounds = [_bound(each, heard - each.silence if awake else heard) for each in timed if each.silent]
        return min([watermark, *bounds])

    @property
    def slowest(self) -> str | None:
        """The input that holds the clock, though others have come further; None if there is none."""
        awake = {
            name: each for name, each in self.inputs.items() if each.watermark is not None and not each.silent
        }
        name = min(awake, key=lambda name: _watermark(awake[name]), default=None)
        if name is None:
            return None
        further = any(_watermark(each) > _watermark(awake[name]) for each in self.inputs.values())
        return name if further else None


def _slowest(inputs: Collection[Input]) -> tuple[int, int]:
    return min(map(_watermark, inputs)), min(each.heard for each in inputs)


def _furthest(inputs: Collection[Input]) -> tuple[int, int]:
    return max(map(_watermark, inputs)), max(each.heard for each in inputs)


def _bound(silent: Input, heard: int) -> int:
    """Return up to where a silent input lets time go: what the log receives of it now is not from before."""
    return max(_watermark(silent), heard - silent.lateness)


def _watermark(of: Input) -> int:
    return NEVER if of.watermark is None else of.watermark


def input_progress(checkpoint: Path, batch: int) -> InputProgress:
    """Return where a micro-batch ends; the one before the first ends where the query began."""
    if batch < 0:
        return InputProgress({name: Input(at, NEVER) for name, at in read_start(checkpoint).items()})
    path = offsets_file(checkpoint, batch)
    try:
        _, _, offsets_line = path.read_text().splitlines()
        return InputProgress({name: _input(stored) for name, stored in json.loads(offsets_line).items()})
    except (ValueError, KeyError, TypeError) as error:
        raise notes.damaged(path, f"{type(error).__name__}: {error}") from None


def offsets_file(checkpoint: Path, batch: int) -> Path:
    """Return the file in which Spark has stored where a micro-batch ends."""
    return checkpoint / "offsets" / str(batch)


def sync_offsets(checkpoint: Path, batch: int, *, first: bool) -> None:
    """Make the offsets of a micro-batch durable; with the ``first`` of a run, also the folder it is in."""
    durable.sync(offsets_file(checkpoint, batch))
    durable.sync(checkpoint / "offsets")
    if first:
        durable.sync(checkpoint)


def _input(stored: Mapping[str, Any]) -> Input:
    offsets, topic = SourceProgress.from_json(stored), stored["topic"]
    ahead = tuple(
        ClockSkew(topic, partition, producer, claim.ahead)
        for (partition, producer), claim in offsets.claims.items()
        if claim.ahead
    )
    position = Position(topic, offsets.offsets, stored["id"])
    if not stored["timed"]:
        return Input(position)
    silent, heard = offsets.silent, offsets.heard
    return Input(position, offsets.watermark, silent, heard, stored["lateness"], stored["silence"], ahead)


def assign_new_id(checkpoint: Path) -> None:
    """Give a query another identifier: of two with the same one Spark ends the older."""
    notes.write(checkpoint / "metadata", {"id": str(uuid.uuid4())})
    (checkpoint / ".metadata.crc").unlink(missing_ok=True)


def last_batch(checkpoint: Path) -> int:
    """Return the number of the last batch that was planned, or -1."""
    return _last(checkpoint / "offsets")


def last_done(checkpoint: Path) -> int:
    """Return the number of the last batch that was done, or -1."""
    return _last(checkpoint / "commits")


def oldest_retained(checkpoint: Path, batch: int) -> int:
    """Return a batch, or the oldest after it whose offsets Spark still retains.

    A node that had nothing to do in between has come equally far in both.
    """
    numbers = _numbers(checkpoint / "offsets")
    return min((number for number in numbers if number >= batch), default=batch)


def write_start(checkpoint: Path, positions: Mapping[str, Position]) -> None:
    """Write down where a query begins, in each of its inputs, if it has not been yet.

    A start that came to no micro-batch may have been one of fewer nodes: then it has inputs to learn of.
    """
    before = read_start(checkpoint)
    if before and (positions.keys() <= before.keys() or last_batch(checkpoint) >= 0):
        return
    positions = dict(sorted({**positions, **before}.items()))
    durable.make(checkpoint)
    notes.write(checkpoint / _BEGIN, {name: str(at) for name, at in positions.items()})


def read_start(checkpoint: Path) -> dict[str, Position]:
    """Return where a query began, in each of its inputs; nothing if it has not."""
    stored = notes.read(checkpoint / _BEGIN) or {}
    return {name: Position.parse(text) for name, text in stored.items()}


def read_node_start(home: Path) -> dict[str, Position]:
    """Return where a version of a node began: with its query, or before it went over to that."""
    return read_start(home) or read_start(home / "checkpoint")


def _last(folder: Path) -> int:
    return max(_numbers(folder), default=-1)


def _numbers(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()]
