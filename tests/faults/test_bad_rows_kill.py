"""A node that leaves its query because its code fails on a record, under ``kill -9`` at each step of that."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import headwater
from headwater.views import open_views

WORKER = Path(__file__).with_name("bad_rows_worker.py")
POINTS = ("query: detached", "query: set aside")


@pytest.mark.long
@pytest.mark.faults
@pytest.mark.timeout(400)
def test_each_row_is_there_once_wherever_a_node_was_killed_that_left_its_query(tmp_path: Path) -> None:
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        log.create_topic("orders", "id BIGINT, amount STRING, at TIMESTAMP", event_time="at", partitions=2)
        with log.producer("orders", id="till") as producer:
            amounts = ["two" if number % 7 == 3 else str(number) for number in range(40)]
            producer.send_batch(
                [{"id": n, "amount": amount, "at": n * 1_000_000} for n, amount in enumerate(amounts)]
            )
        for point in POINTS:
            assert run(tmp_path, point) == -signal.SIGKILL, (tmp_path / "errors").read_text()[-3000:]
        assert run(tmp_path, "no point") == 0, (tmp_path / "errors").read_text()[-3000:]
        strict = [row for batch in log.read("shop.strict") for row in batch.to_pylist()]
        dead = [row for batch in log.read("shop.strict.dead") for row in batch.to_pylist()]
    good = [number for number, amount in enumerate(amounts) if amount != "two"]
    assert sorted((row["id"], row["amount"]) for row in strict) == [(number, number) for number in good]
    assert len({(row["partition"], row["offset"]) for row in dead}) == len(dead) == len(amounts) - len(good)
    with open_views(tmp_path / "log" / "pipelines" / "shop" / "views.db") as views:
        assert views["healthy"].count() == len(amounts)


def run(root: Path, point: str) -> int:
    with open(root / "errors", "ab") as errors:
        command = [sys.executable, str(WORKER), str(root), point]
        return subprocess.run(
            command, stderr=errors, stdout=errors, start_new_session=True, timeout=120
        ).returncode
