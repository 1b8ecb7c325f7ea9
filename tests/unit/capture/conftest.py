"""A database with one table, and a log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from changes_kit import execute
from headwater.log import Log


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "crm.db"
    execute(path, "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with headwater.open(f"file:{tmp_path / 'log'}") as opened:
        yield opened
