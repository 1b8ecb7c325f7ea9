"""How fast records come in, and what time was heard of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import headwater
from headwater import Pipeline, Position
from headwater.engine.figures.input_meter import InputMeter
from headwater.engine.figures.runner_report import InputFigures
from headwater.engine.home.checkpoint import Input, InputProgress
from headwater.engine.source.watermark import NEVER


def test_an_input_has_its_records_its_rate_and_the_furthest_clock_that_was_heard(tmp_path: Path) -> None:
    shop = Pipeline("shop", log=f"file:{tmp_path}/data")
    shop.source("orders", "id BIGINT")
    with headwater.open(shop.log) as log:
        log.create_topic("orders", "id BIGINT")
        nodes = [_running(None), _running(NEVER), _running(5), _running(4)]
        runner: Any = SimpleNamespace(pipeline=shop, log=log, nodes=dict(enumerate(nodes)))
        meter = InputMeter(runner)
        assert meter.read() == [InputFigures("orders", 0, 0.0, 5)]
        with log.producer("orders") as producer:
            producer.send_batch([{"id": n} for n in range(10)])
        [after] = meter.read()
        assert after.records == 10 and after.rate > 0


def _running(clock: int | None) -> SimpleNamespace:
    reached = InputProgress({"orders": Input(Position("orders", {0: 0}), clock)})
    return SimpleNamespace(node_run=SimpleNamespace(counts=SimpleNamespace(reached=reached)))
