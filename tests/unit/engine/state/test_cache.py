"""How much of states a process keeps decoded."""

from __future__ import annotations

import os

import pytest

from headwater.engine.state.cache import MIN_BYTES, Cache, CachedState, default_limit, memory_bytes


def test_states_that_were_used_longest_ago_make_room() -> None:
    cache = Cache(limit=100)
    for bucket in range(3):
        cache.put(("node", bucket), CachedState("state", "token"), stored=10)  # counted as 40
    assert [cache.take(("node", bucket)) is not None for bucket in range(3)] == [False, True, True]


def test_all_processes_of_a_machine_share_a_quarter_of_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWATER_CACHE_BYTES", raising=False)
    processes = (os.cpu_count() or 1) + 1
    assert MIN_BYTES <= default_limit() <= max(MIN_BYTES, memory_bytes() // 4 // processes)
    monkeypatch.setattr("headwater.engine.state.cache.memory_bytes", lambda: 1 << 30)
    assert default_limit() == MIN_BYTES
    monkeypatch.setenv("HEADWATER_CACHE_BYTES", "1000")
    assert default_limit() == 1000
