"""The example of dual writes: database and cache differ, and do not where the cache follows the database."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

FOLDER = Path(__file__).parents[2] / "examples" / "dual_write"


def example() -> Any:
    spec = importlib.util.spec_from_file_location("dual_write", FOLDER / "dual_write.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_dual_writes_differ_for_ever_and_a_cache_that_follows_does_not(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = example()
    assert module.main(tmp_path) == (len(module.ITEMS), 0)
    shown = capsys.readouterr().out.strip()
    page = (FOLDER / "README.md").read_text()
    assert shown in page.replace("  \n", "\n"), "the page shows what it prints"
