"""What is particular about reading views from a SQLite file; the rest is in tests/contract/views."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.sinks import Batch
from headwater.sinks.views import ViewStore, open_views


def test_a_store_in_a_read_only_place_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    with ViewStore(home / "views.db") as store:
        sink = store.sink("counter", "id BIGINT, n BIGINT", "id")
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1], "n": [1]})))
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    (home / "views.db").chmod(stat.S_IRUSR)
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with open_views(home / "views.db") as views:
            assert views["counter"].get(1) == {"id": 1, "n": 1}
    finally:
        home.chmod(stat.S_IRWXU)
