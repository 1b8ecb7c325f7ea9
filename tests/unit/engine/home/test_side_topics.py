"""Topics of late rows and dead letters that were deleted: the node is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater import Log, Pipeline
from headwater.engine.home import side_topics
from headwater.errors import PipelineError
from headwater.pipeline.node import Node

TOPIC = "shop.totals.late"


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as log:
        log.create_topic(TOPIC, "id BIGINT")
        yield log


@pytest.fixture
def node() -> Node:
    pipeline = Pipeline("shop")
    pipeline.source("orders", "id BIGINT")

    @pipeline.view(key="id")
    def totals(orders):  # type: ignore[no-untyped-def]
        return orders

    found = pipeline["totals"]
    assert isinstance(found, Node)
    return found


def fill(log: Log, count: int) -> None:
    with log.producer(TOPIC) as producer:
        producer.send_batch([{"id": n} for n in range(count)])


def test_a_node_that_has_set_nothing_aside_misses_nothing(tmp_path: Path, log: Log, node: Node) -> None:
    log.delete_topic(TOPIC)
    side_topics.check(tmp_path, log, node)
    assert not list(tmp_path.iterdir())


def test_a_topic_that_grows_is_whole(tmp_path: Path, log: Log, node: Node) -> None:
    side_topics.note(tmp_path, log, TOPIC)
    fill(log, 3)
    side_topics.check(tmp_path, log, node)
    side_topics.note(tmp_path, log, TOPIC)
    fill(log, 3)
    side_topics.check(tmp_path, log, node)


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "made again"])
def test_a_topic_that_was_deleted_is_missed_with_what_to_do(
    tmp_path: Path, log: Log, node: Node, again: bool
) -> None:
    side_topics.note(tmp_path, log, TOPIC)
    fill(log, 3)
    log.delete_topic(TOPIC)
    if again:
        log.create_topic(TOPIC, "id BIGINT")
    with pytest.raises(PipelineError, match='has lost rows that view "totals" had set aside') as told:
        side_topics.check(tmp_path, log, node)
    assert ("made again" in str(told.value.detail)) == again
    [note] = tmp_path.iterdir()
    assert "headwater rebuild" in str(told.value.hint) and f'remove "{note}"' in str(told.value.hint)
    note.unlink()
    side_topics.check(tmp_path, log, node)


def test_a_topic_that_is_shorter_than_it_was_is_missed(tmp_path: Path, node: Node) -> None:
    with headwater.open("memory:") as log, headwater.open("memory:") as older:
        for each in (log, older):
            each.create_topic(TOPIC, "id BIGINT")
        fill(log, 3)
        side_topics.note(tmp_path, log, TOPIC)
        note = tmp_path / "aside.json"
        note.write_text(note.read_text().replace(log.topic(TOPIC).id, older.topic(TOPIC).id))
        with pytest.raises(PipelineError) as told:
            side_topics.check(tmp_path, older, node)
        assert "ends 3 records earlier" in str(told.value.detail)
