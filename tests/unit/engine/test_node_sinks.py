"""Which sink a node's batches go to is decided by its type, and belongs to one version of the node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from headwater.engine.node_sinks import SinkContext, open_sink
from headwater.log.open import open as open_log
from headwater.pipeline import targets
from headwater.pipeline.node import Node, SinkNode, StreamNode, ViewNode
from headwater.sinks.sink import Batch, Sink
from headwater.views import open_views
from headwater.views.sqlite.store import ViewStore

COLUMNS = pa.schema([("id", pa.int64())])
PLACE: dict[str, Any] = {"file": "shop.py", "line": 3}


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SinkContext]:
    with open_log(f"file:{tmp_path / 'log'}") as log, ViewStore(tmp_path / "views.db") as store:
        log.create_topic("shop.ids", "id BIGINT")
        yield SinkContext("shop", tmp_path, log, store)


def commit(sink: Sink, *ids: int) -> None:
    with sink:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": ids}, schema=COLUMNS)))


def test_a_stream_is_written_by_a_producer_of_its_name(context: SinkContext) -> None:
    commit(open_sink(StreamNode(name="ids", topic="shop.ids", **PLACE), COLUMNS, 1, context), 1, 2)
    found = [row for batch in context.log.read("shop.ids", meta=True) for row in batch.to_pylist()]
    assert [(row["id"], row["_producer"]) for row in found] == [(1, "shop.ids"), (2, "shop.ids")]


def test_each_version_of_a_view_has_a_sink_of_its_own(context: SinkContext) -> None:
    view = ViewNode(name="seen", key=("id",), **PLACE)
    commit(open_sink(view, COLUMNS, 1, context), 1)
    commit(open_sink(view, COLUMNS, 2, context), 1, 2)
    assert [context.store.view("seen", number).count() for number in (1, 2)] == [1, 2]
    assert context.store.versions("seen") == {1: True, 2: False}


def test_a_sink_writes_to_the_target_that_it_declares(context: SinkContext, tmp_path: Path) -> None:
    node = SinkNode(
        name="sent", key=("id",), target=targets.sqlite(tmp_path / "sent.db", "sent", "id"), **PLACE
    )
    commit(open_sink(node, COLUMNS, 1, context), 7)
    with open_views(tmp_path / "sent.db") as views:
        assert views["sent"].get(7) == {"id": 7}
    assert context.store.names() == []


def test_a_type_of_node_that_has_no_sink_is_refused(context: SinkContext) -> None:
    @dataclass(frozen=True, kw_only=True)
    class AlertNode(Node):
        kind: ClassVar[str] = "alert"

    with pytest.raises(NotImplementedError, match='where the rows of alert "loud" go'):
        open_sink(AlertNode(name="loud", **PLACE), COLUMNS, 1, context)
