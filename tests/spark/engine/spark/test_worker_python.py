"""The Python of Spark's workers: this one, without the archives that are compiled anew each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headwater.engine.spark.worker_python import worker_python


def test_workers_have_pyspark_as_it_is_installed(spark: SparkSession) -> None:
    @F.udf("ARRAY<STRING>")
    def found(_):  # type: ignore[no-untyped-def]
        import py4j
        import pyspark

        return [sys.executable, pyspark.__file__, py4j.__file__]

    (row,) = spark.range(1).select(found("id").alias("found")).collect()
    assert row.found[:2] == [sys.executable, pyspark.__file__]
    assert ".zip" not in row.found[2]


def test_only_the_archives_of_spark_are_left_out(tmp_path: Path) -> None:
    archives = Path(pyspark.__file__).parent / "python" / "lib"
    (py4j,) = archives.glob("py4j-*.zip")
    given = [str(archives / "pyspark.zip"), str(tmp_path / "a b"), str(py4j), "/own/pyspark.zip"]
    code = "import os; print(os.environ['PYTHONPATH'])"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(given)}
    told = subprocess.run([worker_python(), "-c", code], env=env, capture_output=True, text=True, check=True)
    assert told.stdout.strip().split(os.pathsep) == [str(tmp_path / "a b"), "/own/pyspark.zip"]


def test_another_spark_keeps_its_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert worker_python() == sys.executable
