"""How much of states a process keeps decoded."""

from __future__ import annotations

import os

import pytest

from headwater.engine.state.cache import MIN_BYTES, Cache, CachedState, default_limit, memory_bytes
from headwater.errors import UsageError


def test_states_that_were_used_longest_ago_make_room() -> None:
    cache = Cache(limit=100)
    for bucket in range(3):
        cache.put(("node", bucket), CachedState("state", "token"), size=40)
    assert [cache.take(("node", bucket)) is not None for bucket in range(3)] == [False, True, True]


def test_all_processes_of_a_machine_share_a_quarter_of_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWATER_MEMORY", raising=False)
    processes = (os.cpu_count() or 1) + 1
    assert MIN_BYTES <= default_limit() <= max(MIN_BYTES, memory_bytes() // 4 // processes)
    monkeypatch.setattr("headwater.engine.state.cache.memory_bytes", lambda: 1 << 30)
    assert default_limit() == MIN_BYTES


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("512MB", 512 << 20), ("2g", 2 << 30), ("3 KiB", 3072)]
)
def test_a_setting_says_how_much_a_process_may_hold(
    monkeypatch: pytest.MonkeyPatch, text: str, size: int
) -> None:
    monkeypatch.setenv("HEADWATER_MEMORY", text)
    assert default_limit() == size


@pytest.mark.parametrize("text", ["", "much", "-1", "1.5GB", "5 PB"])
def test_what_is_no_size_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HEADWATER_MEMORY", text)
    with pytest.raises(UsageError, match="HEADWATER_MEMORY is no size"):
        default_limit()


def test_what_is_held_is_counted() -> None:
    cache = Cache(limit=100)
    cache.put(("node", 0), CachedState("state", "token"), size=40)
    cache.put(("node", 1), CachedState("state", "token"), size=30)
    assert cache.size == 70
    cache.take(("node", 0))
    assert cache.size == 30
