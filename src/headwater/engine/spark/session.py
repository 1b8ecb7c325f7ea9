"""The Spark session, with the settings that pipelines need and users should not have to know.

Invariant: whatever a user sets wins over what is set here, be it handed over, in Spark's own
``spark-defaults.conf``, or in ``PYSPARK_SUBMIT_ARGS``.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import sysconfig
import threading
from collections.abc import Mapping
from pathlib import Path
from socketserver import TCPServer
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from headwater.engine.plan.phases import BUCKETS
from headwater.engine.source.data_source import HeadwaterSource
from headwater.engine.source.plan_source import PlanSource
from headwater.engine.spark import callbacks, class_archive, java
from headwater.engine.spark.class_archive import with_options
from headwater.engine.spark.spark_log import printing_to
from headwater.engine.spark.worker_python import worker_python
from headwater.errors import UsageError

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
    # On a busy machine it takes longer until a Python worker has started.
    "spark.python.authenticate.socketTimeout": "60s",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}
_SPARK_HAS_TOO = {"spark.app.name": "headwater", "spark.ui.showConsoleProgress": "false"}
"""Spark's launcher sets these itself, so a user's can be known from its own only if they are handed over."""
_NEAR = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Nobody on another machine has to reach the driver."""
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LATE_C2 = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Java takes pains only with code that runs ten times as often as it would ask for: what touches rows does so
within a second, and all the rest took the cores from a pipeline that has just been started."""
_STARTING = threading.Lock()
"""Two threads may ask for a session at once."""
_LOOPBACK = re.compile(r"local\b|spark://(127\.[\d.]+|localhost|\[::1\]):\d+$")


def session(
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    output: Path | None = None,
    brief: bool = False,
) -> SparkSession:
    """Return the Spark session of this process, started if there is none yet.

    One that runs keeps its settings, whichever thread has started it; another ``master`` is refused.
    ``master`` is ``local[*]`` unless given, or set in the environment's ``SPARK_MASTER``: that of
    ``spark-defaults.conf`` is not looked at. ``settings`` are Spark's own, and win over all others.
    What Spark and its workers print goes to the file ``output``, if one is given. A ``brief`` session has
    little to do, so that Java had better not take pains to compile for it.
    """
    settings = settings or {}
    with _STARTING:
        running = _running()
        if running is None:
            running = _begin(master, settings, output, brief=brief)
        elif master is not None and master != running.sparkContext.master:
            raise UsageError(
                f"Spark cannot be started with the master {master}",
                detail=f"this process has a session with the master {running.sparkContext.master}",
                hint="stop that session first, or leave the master out",
            )
    for source in (HeadwaterSource, PlanSource):
        running.dataSource.register(source)
    return running


def _running() -> SparkSession | None:
    """Return the session of this process; the active one is that of a thread."""
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    return session if session is not None and session.sparkContext._jsc is not None else None


def _begin(
    master: str | None, settings: Mapping[str, str], output: Path | None, *, brief: bool
) -> SparkSession:
    master = master or settings.get("spark.master") or os.environ.get("SPARK_MASTER") or "local[*]"
    program = java.provide()
    _prepare_environment(master, settings.get("spark.pyspark.python"))
    logging.getLogger("py4j").setLevel(logging.WARNING)
    callbacks.accept_on_any_descriptor()
    with with_options(_BRIEF if brief else _LATE_C2), class_archive.shared(program, make=not brief):
        return _start({**_SPARK_HAS_TOO, **settings, "spark.master": master}, output)


def _prepare_environment(master: str, python: str | None) -> None:
    # Workers must have this Python and find what it finds, not what PATH has.
    if _is_local(master):
        python = python or worker_python()
    else:  # its machines may have theirs elsewhere
        python = python or os.environ.get("PYSPARK_PYTHON") or sys.executable
    os.environ["PYSPARK_PYTHON"] = python
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    if _LOOPBACK.match(master):
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")


def _start(settings: Mapping[str, str], output: Path | None) -> SparkSession:
    """Start Spark with the settings of a user, and our own where the user has none."""
    with printing_to(output):  # no longer than Java is being started: it is what this program prints, too
        SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(settings.items())))
    conf = SparkConf().setAll(list(settings.items()))  # with what Java has found in Spark's own files
    for key, value in _defaults(settings["spark.master"]).items():
        conf.setIfMissing(key, value)
    started = SparkSession.builder.config(conf=conf).getOrCreate()
    _expect_closed_connections(started.sparkContext._accumulatorServer)
    return started


def _expect_closed_connections(server: TCPServer) -> None:
    """Keep Spark quiet about a connection that a stopped query has closed in the middle of a count."""
    report = server.handle_error

    def handle(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError):
            report(request, address)

    server.handle_error = handle  # type: ignore[method-assign, assignment]


def _defaults(master: str) -> dict[str, str]:
    near = _NEAR if _LOOPBACK.match(master) else {}
    if _is_local(master):
        return {**_SETTINGS, **near, "spark.sql.shuffle.partitions": str(os.cpu_count() or 1)}
    return {
        **_SETTINGS,
        **near,
        # How many cores a cluster has is not known here; more tasks than buckets have nothing to do.
        "spark.sql.shuffle.partitions": str(BUCKETS),
        "spark.executorEnv.PYTHONPATH": _user_module_path(),
    }


def _is_local(master: str) -> bool:
    return re.match(r"local(\[|$)", master) is not None


def _user_module_path() -> str:
    """Return where this process finds modules that no Python has by itself: a user's own, above all."""
    installed = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    paths = [Path(path) for path in sys.path if path]
    user = [path.absolute() for path in paths if not any(path.is_relative_to(each) for each in installed)]
    return os.pathsep.join(map(str, user))
