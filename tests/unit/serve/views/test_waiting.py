"""Waits have threads of their own, and a bound."""

from __future__ import annotations

import threading

import anyio
import pytest
from anyio.to_thread import run_sync

from headwater.serve.http.problem import HttpProblem
from headwater.serve.views import waiting
from headwater.serve.views.waiting import in_waiting_thread


def test_waits_take_no_thread_from_others_and_one_too_many_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "TURN_SECONDS", 0.05)
    end, begun = threading.Event(), threading.Semaphore(0)

    def wait() -> bool:
        begun.release()
        return end.wait(20)

    async def story() -> None:
        async with anyio.create_task_group() as waits:
            for _ in range(waiting.WAITS):
                waits.start_soon(in_waiting_thread, wait)
            with anyio.fail_after(10):
                for _ in range(waiting.WAITS):
                    while not begun.acquire(blocking=False):
                        await anyio.sleep(0.001)
                assert await run_sync(lambda: "read") == "read"
                with pytest.raises(HttpProblem) as refused:
                    await in_waiting_thread(wait)
            assert (refused.value.status, refused.value.retry_after) == (503, 1)
            end.set()
        assert await in_waiting_thread(lambda: "later") == "later"

    try:
        anyio.run(story)
    finally:
        end.set()
