"""Work in a thread of its own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater import Pipeline
from headwater.api.background import Background, apart
from headwater.errors import TopicError


def test_work_apart_returns_or_raises_as_if_it_were_here() -> None:
    assert apart(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        apart(lambda: 1 // 0)
    assert not Background(lambda: time.sleep(5)).ended(0.01)


def test_the_end_of_a_block_raises_why_a_run_could_not_begin(tmp_path: Path) -> None:
    shop = Pipeline("shop", log=f"file:{tmp_path / 'log'}")
    shop.source("orders", "id BIGINT")
    shop.view(key="id")(seen)
    with headwater.open(shop.log) as log:
        log.create_topic("orders", "id STRING")
    with pytest.raises(TopicError, match='column "id"'), headwater.run(shop):
        pass


def seen(orders: Any) -> Any:
    return orders
