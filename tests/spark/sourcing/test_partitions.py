"""The topic of a handler's commands keeps its number of partitions, or the handler stops undecided."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from account_kit import Deposit, account, handling_bank
from headwater import Pipeline
from headwater.errors import PipelineError
from headwater.sourcing.command_schema import Sending
from headwater.testing.harness import Harness

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
KEYS = [f"account-{number}" for number in range(20)]
"""Some of them go to the second of two partitions."""


@pytest.fixture
def running(spark: SparkSession) -> Iterator[Harness]:
    with Harness(handling_bank(), spark=spark) as harness:
        yield harness


def deposits(request: str) -> list[dict[str, Any]]:
    schema = account().command_schema
    return [schema.row(Deposit(5), Sending(key, request, NOON)) for key in KEYS]


def add_partition(running: Harness) -> None:
    running.log.alter_topic("commands", partitions=2)


def check_stopped(running: Harness, deposited: int) -> None:
    """See that the step is refused, and that nothing more was decided."""
    with pytest.raises(PipelineError, match="another number of partitions") as refused:
        running.step()
    assert 'topic "commands"' in refused.value.message and "account_replies" in refused.value.message
    assert "it had 1, and has 2 now" in str(refused.value.detail)
    assert "another topic" in str(refused.value.hint)
    assert len(running.stream("account_replies")) == len(running.stream("account")) == deposited


def test_a_partition_that_is_added_while_it_runs_stops_it_before_it_decides(running: Harness) -> None:
    running.send("commands", deposits("1"))
    running.step()
    add_partition(running)
    running.send("commands", deposits("2"))
    check_stopped(running, len(KEYS))


def test_a_partition_that_is_added_while_it_rests_stops_it_when_it_goes_on(running: Harness) -> None:
    running.send("commands", deposits("1"))
    running.step()
    add_partition(running)
    running.send("commands", deposits("2"))
    with pytest.raises(PipelineError, match="another number of partitions"):
        running.restart()
        running.step()
    assert len(running.stream("account_replies")) == len(KEYS)


def test_a_partition_that_is_added_and_is_empty_stops_it_as_well(running: Harness) -> None:
    running.send("commands", deposits("1"))
    running.step()
    add_partition(running)
    check_stopped(running, len(KEYS))


def test_it_goes_on_where_the_topic_had_several_from_the_beginning(running: Harness) -> None:
    add_partition(running)
    for request in ("1", "2"):
        running.send("commands", deposits(request))
        running.step()
        running.restart()
    assert len(running.stream("account")) == 2 * len(KEYS)


def test_other_nodes_read_partitions_that_are_added(spark: SparkSession) -> None:
    shop = Pipeline("shop")
    shop.source("orders", "id STRING", key="id")

    @shop.view(key="id")
    def copied(orders: DataFrame) -> DataFrame:
        return orders

    with Harness(shop, spark=spark) as running:
        running.send("orders", [{"id": key} for key in KEYS[:10]])
        running.step()
        running.log.alter_topic("orders", partitions=2)
        running.send("orders", [{"id": key} for key in KEYS[10:]])
        running.step()
        assert {row["id"] for row in running.view("copied")} == set(KEYS)
