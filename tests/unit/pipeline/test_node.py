"""What the types of declarations answer, and that a new one needs nothing but its own type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from headwater import Pipeline, topic
from headwater.drawing import as_mermaid, as_svg, as_text
from headwater.errors import PipelineError
from headwater.pipeline.declaration import InputTopic, Source, Table
from headwater.pipeline.graph import Graph
from headwater.pipeline.node import Node, NodeCode, SinkNode, StreamNode, ViewNode
from headwater.pipeline.sink_target import SinkTarget, TableName
from headwater.pipeline.targets import parquet, sqlite

COLUMNS = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])

stream = partial(StreamNode, name="ids", file="shop.py", line=3, topic="shop.ids")
view = partial(ViewNode, name="seen", file="shop.py", line=3, key=("id",))
sink = partial(SinkNode, name="sent", file="shop.py", line=3)


@dataclass(frozen=True, kw_only=True)
class AlertNode(Node):
    """A kind of node that the package does not have."""

    kind: ClassVar[str] = "alert"


@dataclass(frozen=True, kw_only=True)
class Feed(InputTopic):
    """A kind of input that the package does not have."""

    kind: ClassVar[str] = "feed"


def test_a_type_says_what_can_be_done_with_it() -> None:
    kinds = (Source, Table, StreamNode, ViewNode, SinkNode)
    assert [each.kind for each in (stream(), view(), sink()) if each.verifiable] == ["stream", "view"]
    assert [each.kind for each in (stream(), view(), sink()) if each.has_versions] == ["view"]
    assert [each.kind for each in kinds if each.needs_key] == ["table", "view"]
    assert [each.kind for each in kinds if each.external] == ["source", "table"]


def test_only_streams_write_a_topic() -> None:
    assert stream().written_topic == stream().readable_topic == "shop.ids"
    for node in (view(), sink()):
        assert (node.written_topic, node.derived_topic(COLUMNS, None, "delete")) == (None, None)


def test_a_streams_own_event_time_and_partitions_are_its_topics() -> None:
    columns = pa.schema([("a", pa.timestamp("us", "UTC")), ("b", pa.timestamp("us", "UTC"))])
    made = stream(event_time="b", partitions=4).derived_topic(columns, "a", "delete")
    assert (made.name, made.event_time, made.partitions) == ("shop.ids", "b", 4)
    assert stream().derived_topic(columns, "a", "delete").event_time == "a"


def test_rows_of_views_and_of_keyed_targets_replace_each_other(tmp_path: Path) -> None:
    assert stream(key=("id",)).replacement_key == ()
    assert view().replacement_key == ("id",)
    assert sink(target=sqlite(tmp_path / "a.db", "t", key="id")).replacement_key == ("id",)
    assert sink(target=parquet(tmp_path)).replacement_key == ()
    assert sink(target="no target").replacement_key == ()


def test_a_view_is_kept_in_its_own_store_or_else_in_that_of_all() -> None:
    assert view(store="postgresql://a/x").store_url("postgresql://b/y") == "postgresql://a/x"
    assert view().store_url("postgresql://b/y") == "postgresql://b/y"
    assert view(store="postgresql://a/x").stored_in_home().store_url(None) is None
    assert view().table_names("postgresql://u:p@b/y") == [
        TableName("b/y", "seen"),
        TableName("b/y", "seen_changes"),
    ]


def test_an_order_must_be_a_plain_column_of_the_result() -> None:
    view(order="id").check_named_columns(COLUMNS)
    with pytest.raises(PipelineError, match='view "seen" has no column "at", which its order names'):
        view(order="at").check_named_columns(COLUMNS)
    with pytest.raises(PipelineError, match='cannot be in the order of "tags"'):
        view(order="tags").check_named_columns(COLUMNS)


def test_what_is_no_target_is_refused_when_it_is_to_be_written_to(tmp_path: Path) -> None:
    assert isinstance(sink(target=parquet(tmp_path)).writable_target, SinkTarget)
    with pytest.raises(PipelineError, match='sink "sent" has no target that can be written to'):
        _ = sink(target="./archive").writable_target


def test_a_new_kind_is_a_new_type_and_nothing_else() -> None:
    alert = AlertNode(name="alarms", file="shop.py", line=9, code=NodeCode(("orders",)))
    feed = Feed(name="orders", file="shop.py", line=2, declared=topic.create("orders", COLUMNS))
    shop = Pipeline("shop")
    shop._declared = {"orders": feed, "alarms": alert}
    shop.check()
    assert (shop.order(), shop.input_topics) == ((alert,), (feed,))
    assert Graph("shop", shop._declared).inputs("alarms") == ("orders",)
    assert alert.recompute_hint == "give the alert another name, under which it begins anew"
    for draw in (as_text, as_mermaid, as_svg):
        assert "alert" in draw(shop)
