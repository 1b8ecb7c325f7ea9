"""A table in an SQLite file built anew beside the old one; one in PostgreSQL is in tests/integration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import follower_kit
import versions_kit
from follower_kit import Follower


@pytest.mark.parametrize("check", versions_kit.CHECKS)
def test_a_table_is_built_anew(check: Callable[[Follower], None], tmp_path: Path) -> None:
    check(follower_kit.sqlite_table(tmp_path))
