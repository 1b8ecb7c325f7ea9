"""The async client through errors of a server; ``test_client.py`` shows what both clients do alike."""

from __future__ import annotations

import pytest

from headwater import AsyncClient
from headwater.errors import LogUnavailable
from push_kit import run_async


def test_a_server_that_is_not_there_is_told_when_the_patience_is_over() -> None:
    async def scenario() -> None:
        async with AsyncClient("http://127.0.0.1:9", retry_timeout=0.1) as client:
            await client.send("orders", {"id": 1})

    with pytest.raises(LogUnavailable, match="cannot be reached"):
        run_async(scenario())
