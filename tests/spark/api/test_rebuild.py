"""A rebuild that is interrupted."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater
from headwater import Pipeline


def shop(root: Path) -> Pipeline:
    """Return a pipeline whose view takes very long while there is a file ``slow``."""
    pipeline = Pipeline("shop", log=f"file:{root / 'log'}", home=root / "home")
    pipeline.source("orders", "id BIGINT")
    slow, begun = str(root / "slow"), str(root / "begun")

    @pipeline.view(key="id")
    def seen(orders: DataFrame) -> DataFrame:
        def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                deadline = time.monotonic() + 120
                while Path(slow).exists() and time.monotonic() < deadline:
                    Path(begun).touch()
                    time.sleep(0.1)
                yield batch

        return orders.mapInArrow(wait, orders.schema)

    return pipeline


def test_an_interrupt_stops_a_rebuild_and_readers_see_the_view_as_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = shop(tmp_path)
    with headwater.open(pipeline.log) as log:
        log.create_topic("orders", "id BIGINT")
        with log.producer("orders") as producer:
            producer.send_batch([{"id": number} for number in range(10)])
    headwater.run(pipeline, until_caught_up=True)
    slow, begun = tmp_path / "slow", tmp_path / "begun"
    slow.touch()
    interrupt_when_there(begun)
    with pytest.raises(KeyboardInterrupt):
        headwater.rebuild(pipeline, "seen")
    assert not any(thread.name == "work" for thread in threading.enumerate())
    assert versions(pipeline) == [1]
    slow.unlink()
    assert headwater.rebuild(pipeline, "seen").version > 1
    assert headwater.verify(pipeline)[0].ok


def interrupt_when_there(path: Path) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def wait() -> None:
        deadline = time.monotonic() + 120
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


def versions(pipeline: Pipeline) -> list[int]:
    """Return the versions that readers see."""
    with headwater.open_views(pipeline.home / "views.db") as views:
        return [number for number, published in views.versions("seen").items() if published]
