"""A whole pipeline that delivers: messages, what is set aside and redriven, a rebuild that sends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import headwater
from delivery_kit import SECRET, Answer, Receiver, receiving
from headwater import Pipeline, metrics, targets
from headwater.errors import UsageError

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


def shop(root: Path, url: str) -> Pipeline:
    declared = Pipeline("shop", log=f"file:{root / 'log'}", home=root / "home")
    declared.table("customers", "id BIGINT, name STRING", key="id")

    @declared.sink(targets.webhook(url, SECRET, "id"))
    def hooks(customers: DataFrame) -> DataFrame:
        return customers.filter("name <> 'hidden'")

    return declared


def append(pipeline: Pipeline, **names: str) -> None:
    rows = [{"id": int(id[1:]), "name": name} for id, name in names.items()]
    with headwater.open(pipeline.log) as log, log.producer("customers") as producer:
        for row in rows:
            producer.send(row)


def told(receiver: Receiver) -> list[tuple[str, int, str | None]]:
    messages = [each.message for each in receiver.arrived()]
    return [(each["type"], each["data"]["id"], each["data"].get("name")) for each in messages]


def test_a_pipeline_delivers_its_changes_and_what_it_sets_aside_is_redriven(
    tmp_path: Path, receiver: Receiver
) -> None:
    pipeline = shop(tmp_path, receiver.url)
    with headwater.open(pipeline.log) as log:
        log.create_topic("customers", "id BIGINT, name STRING", key="id", cleanup="compact")
    append(pipeline, _1="Ada", _2="Grace")
    headwater.run(pipeline, until_caught_up=True)
    assert sorted(told(receiver)) == [("insert", 1, "Ada"), ("insert", 2, "Grace")]

    append(pipeline, _1="hidden")  # which the view of it does not have any more
    receiver.answer = lambda request: Answer(400)
    (status,) = headwater.run(pipeline, until_caught_up=True)
    status = replace(status, deliveries=headwater.status(pipeline)[0].deliveries)  # as it is at the end
    assert 'sink "hooks": 1 delivery is set aside' in status.alerts[0]
    assert "headwater_deliveries_set_aside" in metrics.text("shop", [status])
    (letter,) = headwater.dead_letters(pipeline, "hooks")
    assert letter.delivery is not None and '"type":"delete"' in (letter.record or "")

    receiver.clear()
    assert headwater.redrive(pipeline, "hooks") == 1
    headwater.rebuild(pipeline, "hooks")
    append(pipeline, _3="Edsger")
    headwater.run(pipeline, until_caught_up=True)
    assert sorted(told(receiver)) == [("delete", 1, None), ("insert", 3, "Edsger")]
    (progress,) = headwater.status(pipeline)
    assert progress.deliveries is not None and progress.deliveries.to_dict() == {
        **{"waiting": 0, "set_aside": 0, "delivered": 4, "error": None, "dead": None}
    }
    with pytest.raises(UsageError, match="has set no delivery"):
        headwater.discard(pipeline, "hooks", "msg_1")
