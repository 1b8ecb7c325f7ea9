"""What is refused before Spark is started; the rest is in ``tests/spark/api/test_rescale.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import Pipeline
from headwater.api.rescale import check_rescalable
from headwater.errors import UsageError


def shop(home: Path) -> Pipeline:
    pipeline = Pipeline("shop", log="memory:", home=home)
    pipeline.source("orders", "id BIGINT")
    pipeline.view(key="id")(seen)
    return pipeline


def seen(orders: object) -> object:
    return orders


def test_a_source_and_numbers_that_no_node_can_have_are_refused(tmp_path: Path) -> None:
    check_rescalable(shop(tmp_path), "seen", 256)
    for name, count, said in (
        ("orders", 4, 'source "orders" has no buckets'),
        ("seen", 0, 'view "seen" cannot have 0 buckets'),
        ("seen", 257, 'view "seen" cannot have 257 buckets'),
    ):
        with pytest.raises(UsageError, match=said):
            check_rescalable(shop(tmp_path), name, count)
