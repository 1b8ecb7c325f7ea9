"""What tells two requests with one key apart."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pyarrow as pa

from headwater.serve.topics.body import Body
from headwater.serve.topics.submission import Sent, Submission

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_the_digest_is_of_the_body_and_its_meaning_not_of_when_it_was_sent() -> None:
    async def digests() -> list[bytes]:
        future = asyncio.get_running_loop().create_future()
        body, lines = Body(b"{}", "application/json"), Body(b"{}", "application/x-ndjson")
        requests = [(body, None, None), (body, NOON, None), (lines, None, None), (body, None, NOON)]
        return [Submission(what, "k", sent, occurred, future).digest for what, sent, occurred in requests]

    one, later, lines, occurred = asyncio.run(digests())
    assert one == later and len({one, lines, occurred}) == 3


def test_times_of_a_request_are_those_of_its_rows_and_one_who_left_is_not_told() -> None:
    async def told() -> None:
        future = asyncio.get_running_loop().create_future()
        request = Submission(Body(b"", "application/json"), None, NOON, None, future)
        assert request.timed(pa.table({"id": [1, 2]})).column("_sent").to_pylist() == [NOON, NOON]
        future.cancel()
        request.resolve(Sent("orders:0=1", 1))

    asyncio.run(told())
