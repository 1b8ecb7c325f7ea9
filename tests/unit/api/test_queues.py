"""Figures of queues for Prometheus, and the function that a worker calls."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from headwater.api.queues import load_handler, queue_metrics
from headwater.errors import UsageError
from headwater.log import QueueStatus
from headwater.queue import QueueAlert, WorkerStatus


def test_depth_and_age_of_the_oldest_are_metrics_with_an_alert() -> None:
    status = QueueStatus("emails", "mailers", 5, 1, 0, 0, timedelta(seconds=90), 2, 0, 1)
    text = queue_metrics(status, WorkerStatus(done=7), QueueAlert(depth=5))
    named = '{topic="emails",group="mailers"}'
    for line in ("queue_depth", "queue_oldest_seconds", "queue_alert", "worker_done_total"):
        assert f"headwater_{line}{named}" in text
    assert f"headwater_queue_depth{named} 6\n" in text
    assert f"headwater_queue_oldest_seconds{named} 90.0\n" in text
    assert f"headwater_queue_alert{named} 1\n" in text


def test_what_kafka_does_not_tell_is_no_metric() -> None:
    status = QueueStatus("emails", "mailers", None, None, None, None, None, 2, None, None)
    text = queue_metrics(status, WorkerStatus(), QueueAlert())
    assert "headwater_queue_depth{" not in text
    assert "headwater_queue_dead{" in text


def test_a_file_without_the_function_is_refused(tmp_path: Path) -> None:
    (tmp_path / "posts.py").write_text("def send(message): ...")
    assert callable(load_handler(f"{tmp_path}/posts.py:send"))
    with pytest.raises(UsageError, match='no function "mend"'):
        load_handler(f"{tmp_path}/posts.py:mend")
