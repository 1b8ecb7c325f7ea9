"""A checkpoint goes on only with what it was made by; the refusal tells what has changed, and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater import Pipeline, latest, scan
from headwater import Pipeline as Declared
from headwater.engine.exchange import routing
from headwater.engine.plan import definition
from headwater.engine.plan.definition import check_unchanged
from headwater.engine.plan.node_plan import NodePlan
from headwater.engine.plan.phases import Stage
from headwater.errors import PipelineError
from headwater.operators.latest import Latest
from headwater.operators.scan import Scan
from headwater.operators.spec import OperatorSpec, Side
from headwater.pipeline.node import Node

ORDERS = pa.schema([("who", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
NOTHING: Any = None


def node() -> Node:
    shop: Declared = Pipeline("shop")
    shop.source("orders", "who STRING, n BIGINT, at TIMESTAMP", event_time="at")
    made = shop.sql("totals", "SELECT * FROM orders", key="who")
    assert isinstance(made, Node)
    return made


def planned(door: OperatorSpec) -> NodePlan:
    operator = door.build(Side(ORDERS, "at"))
    output = operator.output_schema(ORDERS)
    stage = Stage(door.name, NOTHING, operator, ORDERS, output)
    shown: dict[str, Any] = {"direct_inputs": (), "direct_output": True, "table": None, "leaves": {}}
    return NodePlan(node(), {}, NOTHING, output, "at", stage, **shown)


def adding(step: int) -> OperatorSpec:
    def fold(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
        return {"total": (state["total"] if state else 0) + step}

    return scan(fold, by="who", schema="total BIGINT")


def refusal(home: Path, plan: NodePlan) -> PipelineError:
    with pytest.raises(PipelineError) as caught:
        check_unchanged(home, plan, ["orders"])
    assert "headwater rebuild test_definition.py totals" in (caught.value.hint or "")
    return caught.value


def test_what_has_not_changed_goes_on(tmp_path: Path) -> None:
    for door in (adding(1), adding(1)):
        check_unchanged(tmp_path, planned(door), ["orders"])


def test_another_fold_under_the_same_name_is_refused(tmp_path: Path) -> None:
    check_unchanged(tmp_path, planned(adding(1)), ["orders"])
    error = refusal(tmp_path, planned(adding(2)))
    assert "its operator's settings" in error.message
    assert "adding.<locals>.fold" in (error.detail or "")
    assert "who" not in (error.detail or "")  # nothing is told of what is as it was


def test_another_number_of_slots_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_unchanged(tmp_path, planned(latest(by="who")), ["orders"])
    monkeypatch.setattr(definition, "SLOTS", 1024)
    error = refusal(tmp_path, planned(latest(by="who")))
    assert "how its keys are spread over buckets" in error.message
    assert (error.detail or "").endswith("was {'slots': 256}, is {'slots': 1024}")


def test_another_way_to_find_the_bucket_of_a_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_unchanged(tmp_path, planned(latest(by="who")), ["orders"])
    monkeypatch.setattr(routing, "VERSION", routing.VERSION + 1)
    assert "how its keys are spread" in refusal(tmp_path, planned(latest(by="who"))).message


def test_a_state_of_another_version_of_its_operator_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_unchanged(tmp_path, planned(latest(by="who")), ["orders"])
    monkeypatch.setattr(Latest, "version", Latest.version + 1)
    assert "what its operator keeps" in refusal(tmp_path, planned(latest(by="who"))).message


def test_what_is_written_down_can_be_read(tmp_path: Path) -> None:
    check_unchanged(tmp_path, planned(adding(1)), ["orders"])
    told = json.loads((tmp_path / "definition.json").read_text())
    assert (told["operator"], told["version"], told["buckets"]["slots"]) == ("scan", Scan.version, 256)
