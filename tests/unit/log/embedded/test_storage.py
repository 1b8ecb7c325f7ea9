"""Where the parts of a log lie: looking makes nothing, and what vanishes under a look is looked at again."""

from __future__ import annotations

from pathlib import Path

import pytest

from file_trees import tree
from headwater.errors import DamagedLog, LogUnavailable, TopicReplaced, UnknownTopic
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.storage import Storage


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with EmbeddedLog(tmp_path / "log", durability="os") as log:
        log.create_topic("t", "n INT")
        log.create_topic("empty", "n INT")
        with log.producer("t") as producer:
            producer.send_batch([{"n": n} for n in range(3)])
    return log.root


def storage(root: Path) -> Storage:
    return Storage(root, fsync=False, segment_bytes=1 << 20)


def test_who_only_looks_makes_nothing(root: Path) -> None:
    before, looking = tree(root), storage(root)
    for name, end in (("t", 3), ("empty", 0)):
        stored = looking.catalog.get(name)
        assert looking.head(stored, 0).end == end
        assert sum(len(each) for each in looking.reader(stored, 0, 0, meta=True).until(99)) == end
    assert looking.existing_state is None
    assert tree(root) == before


def test_the_state_is_made_when_it_is_first_needed_and_known_from_then_on(root: Path) -> None:
    first = storage(root)
    assert first.state.committed("g", "id") == {}
    assert storage(root).existing_state is not None
    first.close()
    assert first.existing_state is not None  # it is opened again
    first.close()


def test_a_look_is_repeated_while_files_vanish_and_then_told_as_damage(root: Path) -> None:
    looking = storage(root)
    stored, left = looking.catalog.get("t"), [FileNotFoundError("a.log")] * 3

    def look() -> int:
        if left:
            raise left.pop()
        return 7

    assert looking.with_retry(stored, look) == 7
    left += [FileNotFoundError("a.log")] * 1000
    with pytest.raises(DamagedLog, match='a file of topic "t" is missing'):
        looking.with_retry(stored, look)
    assert len(left) > 900

    def broken() -> int:
        raise PermissionError(13, "not yours")

    with pytest.raises(LogUnavailable):
        looking.with_retry(stored, broken)


def test_a_topic_that_is_deleted_or_made_again_is_not_the_one_that_was_opened(root: Path) -> None:
    looking = storage(root)
    stored = looking.catalog.get("t")
    assert looking.current(stored.topic) == stored
    with EmbeddedLog(root) as log:
        log.delete_topic("t")
        with pytest.raises(UnknownTopic):
            looking.current(stored.topic)
        log.create_topic("t", "n INT")
    with pytest.raises(TopicReplaced):
        looking.current(stored.topic)


@pytest.mark.parametrize("damage", [b"", b"garbage", bytes(57)])
def test_a_head_that_is_lost_is_worked_out_from_what_is_there_and_mended(root: Path, damage: bytes) -> None:
    looking = storage(root)
    stored = looking.catalog.get("t")
    (stored.partition(0) / "head").write_bytes(damage)
    assert looking.head(stored, 0).end == 3
    assert storage(root).head(stored, 0).end == 3
