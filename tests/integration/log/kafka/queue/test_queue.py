"""A queue on Kafka: what differs from the embedded one; the rest is in the contract."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.log import Log
from headwater.queue import BoundedProducer

pytestmark = pytest.mark.kafka


def test_what_the_client_cannot_tell_is_refused_and_not_made_up(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.queue(name, "g") as queue:
        assert (queue.status().depth, queue.status().dead) == (None, 0)
        with pytest.raises(UsageError, match="purged on Kafka"):
            queue.purge()
        with pytest.raises(UsageError, match="set for a whole group") as error:
            queue.receive(visible_after="5 seconds", timeout=0)
        assert "30 seconds" in str(error.value)
    with pytest.raises(UsageError, match="cannot be bounded"):
        BoundedProducer(kafka, name, "g", limit=1).send({"n": 1})
