"""Targets that deliver, as users declare them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delivery_kit import SECRET
from headwater import Pipeline, targets
from headwater.errors import UsageError
from headwater.pipeline.node import SinkNode
from headwater.sinks.delivery.sink import DeliverySink

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


def test_the_outbox_of_a_webhook_is_in_the_home_of_its_pipeline(tmp_path: Path) -> None:
    shop = Pipeline("shop", home=tmp_path)

    @shop.sink(targets.webhook("https://shop.example/hook", SECRET, "id"))
    def hooks(orders: object) -> object:
        return orders

    node = shop["hooks"]
    assert isinstance(node, SinkNode) and node.has_versions and not node.verifiable
    assert node.outbox(shop.home) == tmp_path / "nodes" / "hooks" / "outbox.db"
    assert node.replacement_key == ("id",)
    with node.open_target(COLUMNS, 1, shop.home) as sink:
        assert isinstance(sink, DeliverySink)
    assert not (tmp_path / "nodes").exists()


def test_columns_and_secrets_are_checked_when_they_are_declared() -> None:
    target = targets.webhook("https://shop.example/hook", SECRET, "id")
    target.check(COLUMNS)
    with pytest.raises(UsageError):
        target.check(pa.schema([("other", pa.int64())]))
    with pytest.raises(UsageError):
        targets.webhook("https://shop.example/hook", "secret")
    assert SECRET not in repr(target)
