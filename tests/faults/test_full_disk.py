"""A pipeline whose disk fills up in the middle of its batches, and then has room again: exact afterwards.

The disk is one on which no file may grow beyond 400 kB, which needs no rights that a test has not.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.test_pipeline_kill import WORKER, Shop, _check, _prepare, _start

ROOM = 400_000
ORDERS = 12_000


@pytest.mark.long
@pytest.mark.faults
@pytest.mark.timeout(600)
def test_views_streams_and_sinks_are_exact_after_a_disk_was_full(tmp_path: Path, database: str) -> None:
    errors = tmp_path / "errors"
    _prepare(tmp_path)
    shop = Shop(tmp_path)
    while len(shop.sent) < ORDERS:
        shop.send()
    shop.finish()
    for _ in range(2):
        assert _run_without_room(tmp_path, database, errors) != 0, "there was room"
    told = errors.read_text()
    assert "disk is full" in told or "disk I/O error" in told, told[-3000:]
    assert "rollback" not in told
    finishing = _start(tmp_path, "finish", database, errors)
    assert finishing.wait(240) == 0, errors.read_text()[-3000:]
    _check(tmp_path, database, shop)


def _run_without_room(root: Path, database: str, errors: Path) -> int:
    with open(errors, "ab") as file:
        return subprocess.run(
            [sys.executable, str(WORKER), str(root), "catch up", database],
            stdout=file,
            stderr=file,
            env={**os.environ, "HEADWATER_CLASS_ARCHIVE": "use"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM)),
            check=False,
        ).returncode
