"""The inputs of a query as one source: whoever plans, in Spark's process or beside it, plans the same."""

from __future__ import annotations

import json
from pathlib import Path

from headwater.engine.source.plan_source import PlanSource
from headwater.engine.source.planner_process import PlannerProcess
from headwater.log.open import open as open_log


def test_a_process_beside_plans_what_is_planned_here(tmp_path: Path) -> None:
    with open_log(f"file:{tmp_path}") as log:
        log.create_topic("orders", "id BIGINT")
        with log.producer("orders") as producer:
            for first in range(0, 10, 2):
                producer.send_batch([{"id": first}, {"id": first + 1}])
        begin = str(log.resolve("orders", "earliest"))
    inputs = {"orders": {"url": log.url, "topic": "orders", "limit": "4", "first": "2"}}
    process = PlannerProcess(tmp_path / "spark.log")
    process.plan(inputs, {"orders": begin})
    sources = PlanSource({"inputs": json.dumps(inputs)}), PlanSource({"planner": process.address})
    planners = [source.streamReader(None) for source in sources]
    planned = [[planner.initialOffset()] for planner in planners]
    for planner, offsets in zip(planners, planned, strict=True):
        for _ in range(4):
            offsets.append(planner.latestOffset(offsets[-1], None))
        planner.stop()
    process.close()
    assert planned[0] == planned[1]
    assert [each["orders"]["offsets"]["0"] for each in planned[0]] == [0, 2, 6, 10, 10]
