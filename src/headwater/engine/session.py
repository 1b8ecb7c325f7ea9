"""The Spark session, with the settings that pipelines need and users should not have to know.

Invariant: whatever a user sets wins over what is set here.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from socketserver import TCPServer
from typing import Any

from pyspark.sql import SparkSession

from headwater.engine import java
from headwater.engine.source import HeadwaterSource

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # No checksum files beside each file of a checkpoint: a fifth of a small micro-batch's time.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.pollingDelay": "20ms",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
}


def session(
    *, master: str | None = None, settings: Mapping[str, str] | None = None, output: Path | None = None
) -> SparkSession:
    """Return the Spark session, started if there is none yet.

    ``master`` is ``local[*]`` unless given, or set in the environment's ``SPARK_MASTER``. What Spark
    and its workers print goes to the file ``output``, if one is given.
    """
    running = SparkSession.getActiveSession()
    if running is None:
        java.provide()
        # Workers must have this Python and find what it finds, not what PATH has.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
        logging.getLogger("py4j").setLevel(logging.WARNING)
        with _printing_to(output):
            running = _start(master or os.environ.get("SPARK_MASTER", "local[*]"), settings or {})
    running.dataSource.register(HeadwaterSource)
    return running


@contextmanager
def _printing_to(path: Path | None) -> Iterator[None]:
    """Let processes that are started here print to a file: Java keeps the descriptors it was given."""
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [os.dup(1), os.dup(2)]
    try:
        with open(path, "ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        yield
    finally:
        for number, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _start(master: str, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName("headwater").master(master)
    cores = os.cpu_count() or 1
    chosen = {"spark.sql.shuffle.partitions": str(cores), **_SETTINGS, **settings}
    for key, value in chosen.items():
        builder = builder.config(key, value)
    started = builder.getOrCreate()
    _expect_closed_connections(started.sparkContext._accumulatorServer)
    return started


def _expect_closed_connections(server: TCPServer) -> None:
    """Keep Spark quiet about a connection that a stopped query has closed in the middle of a count."""
    report = server.handle_error

    def handle(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError):
            report(request, address)

    server.handle_error = handle  # type: ignore[method-assign, assignment]
