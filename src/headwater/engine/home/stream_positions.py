"""How far the streams of a pipeline have carried what was written: from a topic to those derived from it.

A stream notes, with every micro-batch, where it was in its inputs and where its own topic ended. Invariant:
who has read a derived topic up to the position that is told has all that comes of what lies before the one
that was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from headwater.engine.home import node_progress
from headwater.log import Position

_IDENTIFIED = "@"
"""In a receipt that is a position: other sinks have numbers, or nothing."""


class StreamPositions:
    """The streams of the pipeline with a home."""

    def __init__(self, home: Path):
        self._home = home

    def carried(self, wanted: Position, inputs: Collection[str]) -> list[Position] | None:
        """Return where in topics all that comes of a position is; None if it is not there yet.

        Topics that are not derived from the position's are left out.
        """
        streams = {each.end.topic: each for each in self._streams()}
        try:
            found = [_carried(wanted, topic, streams) for topic in inputs]
        except _NotYet:
            return None
        return [position for position in found if position is not None]

    def _streams(self) -> list[_Stream]:
        """Return the streams that have begun, as they are noted."""
        homes = (self._home / "nodes").glob("*/v1")  # a stream has one version
        return [stream for home in homes if (stream := _stream(home)) is not None]


class _Stream(NamedTuple):
    """Where a stream was in its inputs, and where its topic ended then."""

    inputs: Mapping[str, Position]
    end: Position


class _NotYet(Exception):
    """A stream has not got that far."""


def _stream(home: Path) -> _Stream | None:
    done = node_progress.read(home)
    if _IDENTIFIED not in done.receipt:
        return None
    stands = [Position.parse(text) for text in done.positions.values()]
    return _Stream({each.topic: each for each in stands}, Position.parse(done.receipt))


def _carried(wanted: Position, topic: str, streams: Mapping[str, _Stream]) -> Position | None:
    """Return where all that comes of a position is in a topic; None if nothing of it comes there."""
    if topic == wanted.topic:
        return wanted
    stream = streams.get(topic)
    if stream is None:
        return None
    if not stream.inputs:  # it has done nothing yet
        raise _NotYet
    needed = [at for each in stream.inputs if (at := _carried(wanted, each, streams)) is not None]
    if any(None not in (at.id, read := stream.inputs[at.topic].id) and at.id != read for at in needed):
        return None  # a topic that was made again is not the one that the stream has read
    if not all(stream.inputs[at.topic].passed(at) for at in needed):
        raise _NotYet
    return stream.end if needed else None
