"""A queue as the target of a pipeline: a queue over the topic of a stream, whose rows are there once each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import headwater
from headwater import Pipeline
from headwater.queue import Worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_rows_of_a_stream_are_worked_off(spark: SparkSession, tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'data'}"
    shop = Pipeline("shop", log=url)
    shop.source("orders", "id BIGINT, amount DOUBLE", key="id")

    @shop.stream()
    def reminders(orders: Any) -> Any:
        """Orders that are worth a reminder."""
        return orders.where("amount > 10")

    with headwater.open(url) as log:
        log.create_topic("orders", "id BIGINT NOT NULL, amount DOUBLE", key="id")
        with log.producer("orders") as producer:
            producer.send_batch([{"id": n, "amount": float(n)} for n in range(20)])
        headwater.run(shop, until_caught_up=True)
        reminded = list[int]()
        with log.queue("shop.reminders", group="mailers") as queue:
            done = Worker(queue, lambda message: reminded.append(message.value["id"])).run(until_empty=True)
    assert (done.done, sorted(reminded)) == (9, list(range(11, 20)))
