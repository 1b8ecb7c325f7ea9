"""What a pipeline contains: found by name, in order, and without a trace of what was refused."""

from __future__ import annotations

import pytest

from headwater import Pipeline
from headwater.errors import PipelineError


def shop_with_orders() -> Pipeline:
    shop = Pipeline("shop")
    shop.source("orders", "id BIGINT, amount DOUBLE, at TIMESTAMP", key="id")
    return shop


def test_a_refused_declaration_leaves_no_trace() -> None:
    shop = shop_with_orders()
    with pytest.raises(PipelineError):
        shop.source("orders", "other INT")
    assert shop.sources[0].schema.names == ["id", "amount", "at"]


def test_a_topic_may_be_read_under_two_names_and_a_node_be_named_as_a_topic() -> None:
    shop = Pipeline("shop")
    shop.source("quick", "n INT", topic="clicks")
    shop.source("slow", "n INT", topic="clicks")
    shop.sql("clicks", "SELECT * FROM quick UNION ALL SELECT * FROM slow", key="n")
    assert shop.inputs("clicks") == ("clicks",)


def test_sources_come_before_tables_among_the_input_topics() -> None:
    shop = Pipeline("shop")
    shop.table("customers", "id BIGINT", key="id")
    shop.source("orders", "id BIGINT")
    assert [part.name for part in shop.input_topics] == ["orders", "customers"]
    assert (len(shop.sources), len(shop.tables), shop.nodes) == (1, 1, ())


def test_problems_are_those_of_the_graph_and_of_the_tables_written_to() -> None:
    shop = Pipeline("shop", views="postgresql://host/shop")
    shop.sql("orders_changes", "SELECT * FROM orders", key="id")
    shop.source("incoming", "id BIGINT")
    shop.sql("orders", "SELECT * FROM incoming", key="id")
    assert [problem.message for problem in shop.problems()] == [
        'view "orders_changes" cannot read view "orders"',
        'view "orders" would write to what is view "orders_changes"\'s',
    ]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    shop = Pipeline("shop")
    shop.source("orders", "n INT")
    with pytest.raises(PipelineError) as caught:
        shop["ordrs"]
    assert str(caught.value) == 'pipeline "shop" has no node "ordrs"\nhint: did you mean "orders"?'
