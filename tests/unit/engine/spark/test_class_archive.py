"""An archive of classes is made by one process at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater.engine.spark import class_archive
from headwater.engine.spark.java import Java


@pytest.mark.parametrize(("age", "begins"), [(5, False), (class_archive.ABANDONED_SECONDS + 5, True)])
def test_who_comes_while_another_makes_it_begins_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: int, begins: bool
) -> None:
    other = tmp_path / "abc-1.classes"
    other.touch()
    os.utime(other, (other.stat().st_mtime - age,) * 2)
    monkeypatch.setattr(class_archive, "_archive", lambda java: tmp_path / "abc.jsa")
    monkeypatch.setattr(class_archive, "_make_in_background", lambda *_: None)
    monkeypatch.delenv(class_archive.SWITCH, raising=False)
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    with class_archive.shared(Java(Path("/java"), ""), make=True):
        assert ("DumpLoadedClassList" in os.environ.get("SPARK_SUBMIT_OPTS", "")) is begins
