"""The settings that Spark runs with: the user's, wherever they stand, and ours where there are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.api.background import run_in_thread
from headwater.engine.spark.session import session
from headwater.errors import UsageError

CODE = """
import json
from pathlib import Path
from headwater.engine.spark.session import session

settings = {"spark.sql.streaming.minBatchesToRetain": "7", "spark.sql.shuffle.partitions": "3",
            "spark.driver.memory": "600m"}
spark = session(settings=settings, output=Path("spark.log"))
found = dict(spark.sparkContext.getConf().getAll())
found["heap"] = spark._jvm.java.lang.Runtime.getRuntime().maxMemory() >> 20
print(json.dumps(found))
spark.stop()
"""
FILE = """
# As an administrator writes it.
spark.master                          spark://nowhere.example:7077
spark.sql.session.timeZone            Europe/Rome
spark.sql.streaming.minBatchesToRetain 9
spark.log.level=FATAL
"""


def test_whatever_a_user_sets_wins(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(FILE)
    own = {
        "SPARK_CONF_DIR": str(tmp_path),
        "SPARK_MASTER": "local[1]",
        "PYSPARK_SUBMIT_ARGS": "--conf spark.sql.streaming.pollingDelay=77ms pyspark-shell",
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, **own},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = {
        "spark.master": "local[1]",  # of the environment; that of the file is not looked at
        "spark.sql.shuffle.partitions": "3",  # handed over
        "spark.sql.streaming.minBatchesToRetain": "7",  # handed over, and another in the file
        "spark.sql.session.timeZone": "Europe/Rome",  # of the file
        "spark.log.level": "FATAL",
        "spark.sql.streaming.pollingDelay": "77ms",  # of the environment
        "spark.app.name": "headwater",  # ours
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
    }
    assert {key: found[key] for key in expected} == expected
    assert 400 < found["heap"] <= 600  # Java was started with it


def test_a_connection_that_a_stopped_query_closes_is_no_news(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    server = spark.sparkContext._accumulatorServer
    for error, told in ((EOFError, False), (ValueError, True)):
        try:
            raise error
        except (EOFError, ValueError):
            server.handle_error(None, ("127.0.0.1", 0))
        assert (error.__name__ in capsys.readouterr().err) == told


def test_a_session_is_found_from_any_thread_and_not_started_anew(spark: SparkSession) -> None:
    before = dict(spark.conf.getAll)
    assert run_in_thread(session) is spark
    assert dict(spark.conf.getAll) == before
    with pytest.raises(UsageError, match=r"master local\[7\]"):
        run_in_thread(lambda: session(master="local[7]"))
