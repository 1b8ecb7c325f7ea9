"""Where what was written is in the topics that a pipeline derives from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.engine.home import node_progress
from headwater.engine.home.node_progress import NodeProgress
from headwater.engine.home.stream_positions import StreamPositions
from headwater.log import Position

Note = Callable[..., None]


def at(topic: str, offset: int, id: str | None = "1") -> Position:
    return Position(topic, {0: offset}, id)


@pytest.fixture
def note(tmp_path: Path) -> Note:
    """Note where a stream is in its inputs, and how far its topic has come."""

    def note(name: str, end: int, *inputs: Position) -> None:
        home = tmp_path / "nodes" / name / "v1"
        (home / "checkpoint").mkdir(parents=True, exist_ok=True)
        done = NodeProgress(0, {each.topic: str(each) for each in inputs}, receipt=str(at(name, end)))
        node_progress.write(home / "checkpoint", {home: done})

    return note


def test_what_streams_have_carried_is_where_the_last_of_them_ends(note: Note, tmp_path: Path) -> None:
    note("replies", 7, at("commands", 10))
    note("events", 5, at("replies", 7))
    streams = StreamPositions(tmp_path)
    assert streams.carried(at("commands", 10), ["events"]) == [at("events", 5)]
    assert streams.carried(at("replies", 6), ["events", "replies"]) == [at("events", 5), at("replies", 6)]


def test_what_a_stream_on_the_way_has_not_read_is_not_there_yet(note: Note, tmp_path: Path) -> None:
    note("replies", 7, at("commands", 10))
    note("events", 5, at("replies", 6))
    streams = StreamPositions(tmp_path)
    assert streams.carried(at("commands", 11), ["events"]) is None
    assert streams.carried(at("commands", 10), ["events"]) is None, "replies ended at 7 when it had read that"
    assert streams.carried(at("commands", 10), ["replies"]) == [at("replies", 7)]


def test_all_ways_to_a_topic_count(note: Note, tmp_path: Path) -> None:
    note("left", 3, at("orders", 10))
    note("right", 4, at("orders", 8))
    note("both", 9, at("left", 3), at("right", 4))
    streams = StreamPositions(tmp_path)
    assert streams.carried(at("orders", 8), ["both"]) == [at("both", 9)]
    assert streams.carried(at("orders", 9), ["both"]) is None


def test_a_topic_that_is_not_derived_from_it_is_left_out(note: Note, tmp_path: Path) -> None:
    note("replies", 7, at("commands", 10))
    streams = StreamPositions(tmp_path)
    assert streams.carried(at("commands", 10), ["customers"]) == []
    assert streams.carried(at("orders", 10), ["replies"]) == []
    assert streams.carried(at("commands", 10, "2"), ["replies"]) == [], "a topic that was made again"
    assert streams.carried(at("commands", 10, None), ["replies"]) == [at("replies", 7)], (
        "as a person types it"
    )


def test_a_stream_that_has_begun_and_done_nothing_is_not_there_yet(note: Note, tmp_path: Path) -> None:
    note("replies", 0, at("commands", 0))
    home = tmp_path / "nodes" / "replies" / "v1"
    node_progress.write(home / "checkpoint", {home: NodeProgress(receipt=str(at("replies", 0)))})
    assert StreamPositions(tmp_path).carried(at("commands", 1), ["replies"]) is None


def test_nodes_that_are_no_streams_are_passed_over(note: Note, tmp_path: Path) -> None:
    home = tmp_path / "nodes" / "totals" / "v1"
    (home / "checkpoint").mkdir(parents=True)
    node_progress.write(home / "checkpoint", {home: NodeProgress(3, {"orders": "orders:0=3"}, receipt="3")})
    assert StreamPositions(tmp_path).carried(at("orders", 1), ["totals"]) == []
