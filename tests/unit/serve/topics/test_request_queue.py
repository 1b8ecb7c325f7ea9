"""Requests are handed over together, in their order, once each, and none is left behind."""

from __future__ import annotations

import asyncio
import threading

import pytest

from headwater.serve.topics import request_queue
from headwater.serve.topics.body import Body
from headwater.serve.topics.request_queue import RequestQueue
from headwater.serve.topics.submission import Sent, Submission


def request(loop: asyncio.AbstractEventLoop, text: bytes = b"{}") -> Submission:
    return Submission(Body(text, "application/json"), None, None, None, loop.create_future())


async def answered(queue: RequestQueue, groups: list[list[Submission]], clients: int, times: int) -> None:
    """Let clients send one request after the other, each when the one before was answered."""
    loop = asyncio.get_running_loop()

    def work() -> None:
        while group := queue.take():
            groups.append(group)
            loop.call_soon_threadsafe(lambda done=group: [each.resolve(Sent("", 1)) for each in done])

    async def client() -> None:
        for _ in range(times):
            one = request(loop)
            assert queue.put(one)
            await one.outcome

    thread = threading.Thread(target=work)
    thread.start()
    await asyncio.wait_for(asyncio.gather(*(client() for _ in range(clients))), 30)
    queue.close()
    await asyncio.to_thread(thread.join, 30)
    assert not thread.is_alive() and not queue.put(request(loop))


@pytest.mark.parametrize("clients", [1, 7, 64])
def test_each_request_is_taken_once_and_those_who_come_together_share_a_group(clients: int) -> None:
    groups: list[list[Submission]] = []

    async def story() -> None:
        await answered(RequestQueue(asyncio.get_running_loop()), groups, clients, 20)

    asyncio.run(story())
    taken = [each for group in groups for each in group]
    assert len(taken) == len(set(taken)) == clients * 20
    assert max(map(len, groups)) == clients


def test_a_group_is_bounded_and_what_waits_at_the_end_is_taken_in_its_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_queue, "GROUP_REQUESTS", 3)
    monkeypatch.setattr(request_queue, "GROUP_BYTES", 10)

    async def story() -> None:
        queue = RequestQueue(loop := asyncio.get_running_loop())
        sent = [request(loop, text) for text in (b"1", b"2", b"3", b"4", b"5" * 20, b"6")]
        assert all(map(queue.put, sent))
        queue.close()
        groups = [queue.take() for _ in range(4)]
        assert groups == [sent[:3], sent[3:5], sent[5:], []]

    asyncio.run(story())


def test_a_lone_request_after_a_large_group_does_not_wait_for_others_for_ever() -> None:
    async def story() -> None:
        queue = RequestQueue(loop := asyncio.get_running_loop())
        for each in (first := [request(loop) for _ in range(5)]):
            queue.put(each)
        assert await asyncio.to_thread(queue.take) == first
        taking = asyncio.create_task(asyncio.to_thread(queue.take))
        await asyncio.sleep(0)
        queue.put(lone := request(loop))
        assert await asyncio.wait_for(taking, 10) == [lone]
        queue.put(waiting := request(loop))  # before it is asked for
        assert await asyncio.wait_for(asyncio.to_thread(queue.take), 10) == [waiting]

    asyncio.run(story())
