"""What Spark prints: in one file, and bounded."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwater.engine.spark import spark_log
from headwater.engine.spark.spark_log import printing_to, shorten


def test_a_file_that_is_too_long_is_put_aside_and_written_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_log, "LIMIT", 100)
    path = tmp_path / "spark.log"
    with open(path, "ab", buffering=0) as file:  # as Java has it open, for as long as it runs
        file.write(b"a" * 101)
        shorten(path)
        file.write(b"b")
    assert path.read_text() == "b"
    assert (tmp_path / "spark.log.1").read_text() == "a" * 101


def test_a_short_file_and_one_that_is_none_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_log, "LIMIT", 100)
    path = tmp_path / "spark.log"
    path.write_bytes(b"a" * 100)
    shorten(path)
    shorten(Path(os.devnull))
    shorten(tmp_path / "missing")
    assert [each.name for each in tmp_path.iterdir()] == ["spark.log"]


def test_what_a_process_prints_is_kept_short_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_log, "LIMIT", 1000)
    monkeypatch.setattr(spark_log, "EVERY", 0.01)
    path, older = tmp_path / "home" / "spark.log", tmp_path / "home" / "spark.log.1"
    code = "import sys\nfor line in sys.stdin: print('x' * 600, flush=True)"
    with printing_to(path):
        process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    try:
        deadline = time.monotonic() + 120
        while not older.exists() and time.monotonic() < deadline:
            process.stdin.write("more\n")
            process.stdin.flush()
            time.sleep(0.01)
    finally:
        process.communicate()
    assert older.stat().st_size > 1000
    assert path.stat().st_size < 100_000
