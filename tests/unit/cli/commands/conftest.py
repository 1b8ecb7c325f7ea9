"""What several commands are tested on: a group that is behind, and the file of a pipeline."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater import Log
from headwater.pipeline import loading

SHOP = """
from headwater import Pipeline

shop = Pipeline("shop", log="file:./data")
shop.source("orders", "id BIGINT")

@shop.view(key="id")
def seen(orders):
    return orders
"""


@pytest.fixture
def behind(orders: Log) -> Log:
    """Group ``billing`` has read 4 of 10 orders."""
    with orders.producer("orders") as producer:
        producer.send_batch([{"id": n} for n in range(10)])
    orders.seek("billing", "orders", 4)
    return orders


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(loading, "_OURS", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "shop.py"
    path.write_text(SHOP)
    yield path
    sys.modules.pop("shop", None)
