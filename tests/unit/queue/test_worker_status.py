"""Counts of a worker, from many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from headwater.queue.worker_status import WorkerCounts


def test_nothing_is_counted_twice_or_not_at_all() -> None:
    counts = WorkerCounts()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: counts.add(done=1, in_hand=-1), range(1000)))
    assert (counts.status().done, counts.status().in_hand) == (1000, -1000)
    assert counts.status().to_dict()["done"] == 1000
