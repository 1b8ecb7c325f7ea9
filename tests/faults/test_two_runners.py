"""Two runners of one pipeline at once: the newer goes on, the older ends and says why."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import headwater
from faults.test_pipeline_kill import Shop, _check, _kill, _prepare, _start


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_newer_runner_goes_on_and_nothing_is_written_twice(tmp_path: Path, database: str) -> None:
    errors = tmp_path / "errors", tmp_path / "newer-errors"
    _prepare(tmp_path)
    shop = Shop(tmp_path)
    older = _start(tmp_path, "0", database, errors[0])
    newer = None
    try:
        _until_written(tmp_path, shop, 300)
        newer = _start(tmp_path, "0", database, errors[1])
        end = time.monotonic() + 180
        while older.poll() is None and time.monotonic() < end:
            shop.send()
            time.sleep(0.5)
        assert older.returncode == 1, errors[0].read_text()
        assert "taken over" in errors[0].read_text() or "replaced" in errors[0].read_text()
        _until_written(tmp_path, shop, len(shop.sent))
        assert newer.poll() is None, errors[1].read_text()
    finally:
        for each in (older, newer):
            if each is not None:
                _kill(each)
    shop.finish()
    assert _start(tmp_path, "finish", database, errors[0]).wait(240) == 0, errors[0].read_text()[-3000:]
    _check(tmp_path, database, shop)


def _until_written(root: Path, shop: Shop, count: int) -> None:
    """Send orders until the pipeline has written some."""
    end = time.monotonic() + 120
    with headwater.open(f"file:{root / 'log'}") as log:
        while time.monotonic() < end:
            shop.send()
            known = "shop.unique" in {topic.name for topic in log.topics()}
            if known and log.describe("shop.unique").records >= count:
                return
            time.sleep(0.5)
    raise AssertionError(f"the pipeline has not written {count} rows")
