"""What a queue reads: its topic, and what its group tries again."""

from __future__ import annotations

import pytest

from headwater.errors import TopicReplaced
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.queue.sources import QueueSources
from headwater.log.embedded.queue.store import RETRY, TOPIC


def test_what_is_tried_again_is_read_when_it_is_there(log: EmbeddedLog) -> None:
    sources = QueueSources(log._storage, log.topic("t"), "t.g.retry")
    assert list(sources.stored()) == [TOPIC]
    log.create_topic("t.g.retry", "n INT")
    assert list(sources.stored()) == [TOPIC, RETRY]
    assert (sources.name(TOPIC), sources.name(RETRY)) == ("t", "t.g.retry")
    assert sources.extents()[RETRY, 0].end == 0


def test_a_topic_that_was_made_again_is_another(log: EmbeddedLog) -> None:
    sources = QueueSources(log._storage, log.topic("t"), "t.g.retry")
    log.delete_topic("t")
    log.create_topic("t", "n INT")
    with pytest.raises(TopicReplaced):
        sources.stored()
