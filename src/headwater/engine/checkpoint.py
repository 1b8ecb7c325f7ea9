"""What is written down of a query: where it began, and which offsets a micro-batch ends at.

Spark stores the offsets before it runs a micro-batch, so they are there when results are committed,
and the same when the micro-batch is repeated. Where it began is ours, stored beside them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from headwater.engine.reading import NEVER, Offsets
from headwater.log.position import Position

_BEGIN = "begin.json"


@dataclass(frozen=True)
class Ahead:
    """A producer whose events are so far ahead of their receipt that they do not move the clock."""

    topic: str
    partition: int
    producer: str
    by: int
    """Microseconds, when last heard of."""


@dataclass(frozen=True)
class Input:
    """How far a query has come in one of its inputs."""

    position: Position
    clock: int | None = None
    """None where the input tells no time."""
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
        """The clock after the micro-batch, None if no input tells the time."""
        told = [each.clock for each in self.inputs.values() if each.clock is not None]
        return min(told, default=None)


def reached(checkpoint: Path, batch: int) -> Reached:
    """Return where a micro-batch ends; the one before the first ends where the query began."""
    if batch < 0:
        return Reached({name: Input(at, NEVER) for name, at in begun(checkpoint).items()})
    _, _, *sources = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    return Reached({told["name"]: _input(told) for told in map(json.loads, sources)})


def _input(told: Mapping[str, object]) -> Input:
    offsets, topic = Offsets.from_json(told), str(told["topic"])
    ahead = tuple(
        Ahead(topic, partition, producer, claim.ahead)
        for (partition, producer), claim in offsets.claims.items()
        if claim.ahead
    )
    return Input(Position(topic, offsets.offsets), offsets.clock if told["timed"] else None, ahead)


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
    """Write down where a query begins, in each of its inputs, if it has not been yet."""
    path = checkpoint / _BEGIN
    if path.exists():
        return
    checkpoint.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps({name: str(at) for name, at in places.items()}))
    os.replace(draft, path)


def begun(checkpoint: Path) -> dict[str, Position]:
    """Return where a query began, in each of its inputs; nothing if it has not."""
    path = checkpoint / _BEGIN
    if not path.exists():
        return {}
    return {name: Position.parse(text) for name, text in json.loads(path.read_text()).items()}


def _last(folder: Path) -> int:
    return max(_numbers(folder), default=-1)


def _numbers(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()]
