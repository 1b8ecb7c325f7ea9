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
from headwater.engine.source.watermark import NEVER, Offsets
from headwater.log.position import Position
from headwater.values.json_ready import JsonReady

_BEGIN = "begin.json"


@dataclass(frozen=True)
class Ahead(JsonReady):
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
    clock: int | None = None
    """None where the input tells no time."""
    silent: bool = False
    """Whether it is read to its end, and nothing was received for as long as it says."""
    heard: int = NEVER
    """When the log last received anything of it."""
    lateness: int = 0
    silence: int = 0
    """Microseconds that it may be silent and is waited for."""
    ahead: tuple[Ahead, ...] = ()
    """The producers whose time is not believed."""


@dataclass(frozen=True)
class Reached:
    """How far a micro-batch has brought a query, by input."""

    inputs: Mapping[str, Input]

    def of(self, names: Collection[str]) -> Reached:
        """Return how far it has come in some of its inputs."""
        return Reached({name: self.inputs[name] for name in names if name in self.inputs})

    @property
    def positions(self) -> tuple[Position, ...]:
        """The position in each input."""
        return tuple(each.position for each in self.inputs.values())

    @property
    def ahead(self) -> tuple[Ahead, ...]:
        """The producers of all inputs whose time is not believed."""
        return tuple(found for each in self.inputs.values() for found in each.ahead)

    @property
    def clock(self) -> int | None:
        """The time that the inputs tell, None if none does: that of the one that is furthest behind.

        One that is silent does not hold the others, but for what may be under way: time does not go on to
        when the log last received something of them, less its lateness and the silence that it may keep.
        Where all are silent nothing is under way, and it is that of the one that is furthest. When one is
        heard of again, this may go back: ``headwater.engine.home.node_progress`` keeps the clock of a node
        from that.
        """
        timed = [each for each in self.inputs.values() if each.clock is not None]
        awake = [each for each in timed if not each.silent]
        if not timed:
            return None
        told, heard = _furthest(timed) if not awake else _slowest(awake)
        bounds = [_bound(each, heard - each.silence if awake else heard) for each in timed if each.silent]
        return min([told, *bounds])

    @property
    def slowest(self) -> str | None:
        """The input that holds the clock, though others have come further; None if there is none."""
        awake = {
            name: each for name, each in self.inputs.items() if each.clock is not None and not each.silent
        }
        name = min(awake, key=lambda name: _told(awake[name]), default=None)
        further = any(_told(each) > _told(awake[name]) for each in self.inputs.values()) if name else False
        return name if further else None


def _slowest(some: Collection[Input]) -> tuple[int, int]:
    return min(map(_told, some)), min(each.heard for each in some)


def _furthest(some: Collection[Input]) -> tuple[int, int]:
    return max(map(_told, some)), max(each.heard for each in some)


def _bound(each: Input, heard: int) -> int:
    """Return up to where a silent input lets time go: what the log receives of it now is not from before."""
    return max(_told(each), heard - each.lateness)


def _told(each: Input) -> int:
    return NEVER if each.clock is None else each.clock


def reached(checkpoint: Path, batch: int) -> Reached:
    """Return where a micro-batch ends; the one before the first ends where the query began."""
    if batch < 0:
        return Reached({name: Input(at, NEVER) for name, at in begun(checkpoint).items()})
    path = plan(checkpoint, batch)
    try:
        _, _, told = path.read_text().splitlines()
        return Reached({name: _input(offsets) for name, offsets in json.loads(told).items()})
    except (ValueError, KeyError, TypeError) as error:
        raise notes.damaged(path, f"{type(error).__name__}: {error}") from None


def plan(checkpoint: Path, batch: int) -> Path:
    """Return the file in which Spark has stored where a micro-batch ends."""
    return checkpoint / "offsets" / str(batch)


def secure(checkpoint: Path, batch: int, *, first: bool) -> None:
    """Make the plan of a micro-batch durable; with the ``first`` of a run, also the folder it is in."""
    durable.sync(plan(checkpoint, batch))
    durable.sync(checkpoint / "offsets")
    if first:
        durable.sync(checkpoint)


def _input(told: Mapping[str, Any]) -> Input:
    offsets, topic = Offsets.from_json(told), told["topic"]
    ahead = tuple(
        Ahead(topic, partition, producer, claim.ahead)
        for (partition, producer), claim in offsets.claims.items()
        if claim.ahead
    )
    position = Position(topic, offsets.offsets, told["id"])
    if not told["timed"]:
        return Input(position)
    silent, heard = offsets.silent, offsets.heard
    return Input(position, offsets.clock, silent, heard, told["lateness"], told["silence"], ahead)


def identify(checkpoint: Path) -> None:
    """Give a query another identifier: of two with the same one Spark ends the older."""
    notes.write(checkpoint / "metadata", {"id": str(uuid.uuid4())})
    (checkpoint / ".metadata.crc").unlink(missing_ok=True)


def last_batch(checkpoint: Path) -> int:
    """Return the number of the last batch that was planned, or -1."""
    return _last(checkpoint / "offsets")


def last_done(checkpoint: Path) -> int:
    """Return the number of the last batch that was done, or -1."""
    return _last(checkpoint / "commits")


def kept(checkpoint: Path, batch: int) -> int:
    """Return a batch, or the oldest after it that is still written down.

    A node that had nothing to do in between has come equally far in both.
    """
    numbers = _numbers(checkpoint / "offsets")
    return min((number for number in numbers if number >= batch), default=batch)


def begin(checkpoint: Path, places: Mapping[str, Position]) -> None:
    """Write down where a query begins, in each of its inputs, if it has not been yet.

    A start that came to no micro-batch may have been one of fewer nodes: then it has inputs to learn of.
    """
    path, known = checkpoint / _BEGIN, begun(checkpoint)
    if known and (places.keys() <= known.keys() or last_batch(checkpoint) >= 0):
        return
    places = dict(sorted({**places, **known}.items()))
    durable.make(checkpoint)
    notes.write(path, {name: str(at) for name, at in places.items()})


def begun(checkpoint: Path) -> dict[str, Position]:
    """Return where a query began, in each of its inputs; nothing if it has not."""
    found = notes.read(checkpoint / _BEGIN) or {}
    return {name: Position.parse(text) for name, text in found.items()}


def begun_of(home: Path) -> dict[str, Position]:
    """Return where a version of a node began: with its query, or before it went over to that."""
    return begun(home) or begun(home / "checkpoint")


def _last(folder: Path) -> int:
    return max(_numbers(folder), default=-1)


def _numbers(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()]
