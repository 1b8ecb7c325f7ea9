"""What every consumer does alike: it is iterated by batches, and closed by its block."""

from __future__ import annotations

from typing import Any, cast

import pytest

from headwater.errors import UsageError
from headwater.log.consumer import Consumer
from headwater.log.interface import Log


def test_a_consumer_is_iterated_by_batches_and_a_group_with_members_cannot_be_deleted(log: Log) -> None:
    with log.consumer("t", "g") as consumer:
        found = [next(iter(consumer)).column("n").to_pylist() for _ in range(2)]
        assert sorted(found) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
        with pytest.raises(UsageError, match="living members"):
            log.delete_group("g")
        consumer.commit()
    log.delete_group("g")
    assert log.groups() == []


def test_no_consumer_is_made_without_a_backend() -> None:
    with pytest.raises(TypeError, match="abstract"):
        cast(Any, Consumer)()
