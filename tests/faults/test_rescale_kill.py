"""A rescale that is killed: the node has the buckets of before, or all of the new ones, and is exact."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import headwater
from headwater.engine.figures.bucket_figures import read_buckets

WORKER = Path(__file__).with_name("rescale_worker.py")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def send(root: Path, first: int, count: int) -> None:
    with headwater.open(f"file:{root / 'log'}") as log:
        if not first:
            log.create_topic("orders", "who STRING, n BIGINT, at TIMESTAMP", key="who", event_time="at")
        with log.producer("orders") as producer:
            producer.send_batch(
                [
                    {"who": f"c{number % 41}", "n": number, "at": NOON + timedelta(seconds=number)}
                    for number in range(first, first + count)
                ]
            )


def worker(root: Path, *task: str) -> int:
    command = [sys.executable, str(WORKER), str(root), *task]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, start_new_session=True)
    assert done.returncode in (0, -9), done.stderr[-2000:]
    return done.returncode


def buckets(root: Path, node: str) -> int:
    found = read_buckets(root / "home" / "nodes" / node / "v1", None)
    assert found is not None
    return found.count


@pytest.mark.parametrize("node", ["newest", "minutes"])
def test_a_rescale_that_is_killed_has_happened_as_a_whole_or_not_at_all(tmp_path: Path, node: str) -> None:
    send(tmp_path, 0, 300)
    assert worker(tmp_path, "run") == 0
    before = buckets(tmp_path, node)
    for point in ("moving", "rescale: written"):
        assert worker(tmp_path, "rescale", node, "13", point) == -9
        assert buckets(tmp_path, node) == before
    assert worker(tmp_path, "rescale", node, "13", "rescale: committed") == -9
    assert buckets(tmp_path, node) == 13
    send(tmp_path, 300, 300)
    assert worker(tmp_path, "run") == 0
    assert buckets(tmp_path, node) == 13
    state = tmp_path / "home" / "nodes" / node / "v1" / "state"
    assert len(list(state.iterdir())) < 60, "what was left by those that were killed is removed"
