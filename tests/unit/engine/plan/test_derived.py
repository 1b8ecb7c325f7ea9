"""The topic of a stream's results, and results that no store could have. No Spark, log or store."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pytest

from headwater.engine.plan.derived import check_derived_topic
from headwater.engine.plan.node_plan import NodePlan
from headwater.errors import PipelineError
from headwater.pipeline.node import Node, StreamNode, ViewNode
from headwater.record import DELETED

COLUMNS = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


def stream(**settings: Any) -> StreamNode:
    return StreamNode(name="ids", file="shop.py", line=3, topic="shop.ids", **settings)


def node_plan(node: Node, schema: pa.Schema = COLUMNS, event_time: str | None = None) -> NodePlan:
    """Return a node's plan, without what only Spark could tell of it."""
    rows = cast(Any, None)
    return NodePlan(node, {}, rows, schema, event_time, None, (), direct_output=False, table=None, leaves={})


def test_the_event_time_is_that_of_the_rows_unless_another_is_declared() -> None:
    topic = check_derived_topic(node_plan(stream(), event_time="at"))
    assert topic is not None
    assert (topic.name, topic.event_time, topic.cleanup, topic.partitions) == ("shop.ids", "at", "delete", 1)
    timed = pa.schema([*COLUMNS, ("sent", pa.timestamp("us", "UTC"))])
    other = check_derived_topic(node_plan(stream(event_time="sent"), timed, event_time="at"))
    assert other is not None and other.event_time == "sent"


def test_results_with_deletions_are_kept_by_their_key_and_the_mark_is_no_column() -> None:
    marked = COLUMNS.append(pa.field(DELETED, pa.bool_()))
    topic = check_derived_topic(node_plan(stream(key=("id",)), marked))
    assert topic is not None
    assert (topic.cleanup, topic.schema.names) == ("compact", ["id", "at"])


def test_a_view_has_no_topic() -> None:
    assert check_derived_topic(node_plan(ViewNode(name="seen", file="shop.py", line=3, key=("id",)))) is None


@pytest.mark.parametrize("node", [stream(), ViewNode(name="seen", file="shop.py", line=3, key=("id",))])
def test_columns_that_nothing_stores_are_refused_with_the_users_line(node: Node) -> None:
    lasting = pa.schema([("id", pa.int64()), ("took", pa.duration("us"))])
    with pytest.raises(PipelineError, match="cannot be stored") as refused:
        check_derived_topic(node_plan(node, lasting))
    assert "shop.py:3" in str(refused.value)
