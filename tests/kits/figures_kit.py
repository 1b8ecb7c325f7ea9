"""Pipelines that look as if they ran, without Spark: figures noted as a runner notes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater
from headwater import Pipeline, Status
from headwater.engine.figures.figure_writer import FigureWriter
from headwater.engine.figures.runner_report import InputFigures, RunFigures
from headwater.engine.home import node_progress
from headwater.engine.home.accounting import Accounting
from headwater.engine.home.checkpoint import Input, InputProgress
from headwater.engine.home.node_progress import NodeProgress
from headwater.log import Position
from headwater.sinks import Batch
from headwater.views import ViewStore

COLUMNS = "id BIGINT, item STRING, at TIMESTAMP"
ACCOUNTING = Accounting(200, late=20, duplicates=5, dead=1, out=150)
STATUS = Status(
    *("seen", "view", "running", 3, 200, 12.5, 150, 20, 1, 5, 0.25, 7, 1_767_323_045_000_000, 4096, None),
    alert='10.0% of the rows of view "seen" came too late',
    accounting=ACCOUNTING,
)


def orders_shop(folder: Path) -> Pipeline:
    """Return a pipeline of two orders in the log, whose view has committed both."""
    shop = Pipeline("shop", log=f"file:{folder}/data")
    shop.source("orders", COLUMNS, event_time="at", lateness="1 second")

    @shop.view(key="id", on_error="dead_letter")
    def seen(orders: Any) -> Any:
        """Orders that were seen."""
        return orders

    shop.sql("copies", "SELECT * FROM orders", kind="stream")
    with headwater.open(shop.log) as log:
        log.create_topic("orders", COLUMNS, event_time="at")
        with log.producer("orders", id="till") as producer:
            producer.send_batch(
                [{"id": 1, "item": "tea", "at": 5_000_000}, {"id": 2, "item": "rum", "at": 1}]
            )
    shop.home.mkdir(parents=True)
    with ViewStore(shop.home / "views.db") as store, store.sink("seen", COLUMNS, "id") as sink:
        sink.begin()
        rows = {"id": [1, 2], "item": ["tea", "rum"], "at": pa.array([5, 1], pa.timestamp("us", "UTC"))}
        sink.commit(Batch(0, pa.table(rows)))
    commit(shop, "seen", 2)
    return shop


def commit(shop: Pipeline, node: str, offset: int) -> None:
    """Note that a node has committed its input up to an offset."""
    home = shop.home / "nodes" / node / "v1"
    (home / "checkpoint").mkdir(parents=True, exist_ok=True)
    at = InputProgress({"orders": Input(Position("orders", {0: offset}))})
    node_progress.write(home / "checkpoint", {home: NodeProgress().after(0, at, ACCOUNTING)})


def note(shop: Pipeline, *, ended: bool = False, **changes: Any) -> None:
    """Note figures as this process's own run; ``changes`` are those of the view's status."""
    figures = RunFigures(None, (replace(STATUS, **changes),), (InputFigures("orders", 2, 12.5, 4_000_000),))
    with FigureWriter(shop.home) as writer:
        writer.note(figures, ended=ended)
        assert not writer.failures


def set_aside(shop: Pipeline, *errors: str) -> None:
    """Let the view have set records aside, each for a reason."""
    from headwater.engine.failure.dead_letters import DeadLetters
    from headwater.engine.failure.rejected_row import RecordOffset, RejectedRow
    from headwater.pipeline.node import Node

    node = shop["seen"]
    assert isinstance(node, Node)
    with headwater.open(shop.log) as log:
        letters = DeadLetters(log, shop.name, node)
        rows = [RejectedRow(error, RecordOffset("orders", 0, n)) for n, error in enumerate(errors)]
        letters.add(rows)
