"""An embedded index built anew beside the old one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import follower_kit
import versions_kit
from follower_kit import Follower
from headwater.sinks import search


@pytest.mark.parametrize("check", versions_kit.CHECKS)
def test_an_index_is_built_anew(check: Callable[[Follower], None], tmp_path: Path) -> None:
    check(follower_kit.embedded_index(tmp_path))


def test_readers_search_the_new_words_from_the_switch_on(tmp_path: Path) -> None:
    follower = follower_kit.embedded_index(tmp_path)
    versions_kit.write(follower, 1, {1: "ada lovelace"})
    versions_kit.write(follower, 2, {1: "grace hopper", 2: "alan turing"})
    with search.open(tmp_path / "index") as index:
        assert [len(index.search(word)) for word in ("ada", "grace")] == [1, 0]
        versions_kit.versions_of(follower).publish(versions_kit.SCHEMA, 2)
        assert [len(index.search(word)) for word in ("ada", "grace")] == [0, 1]
        assert (index.count(), index.batch) == (2, 0)
