"""A real Spark standalone cluster: a master and two workers from the pip package, on loopback.

Each worker has an address of its own, because Spark runs a task's second copy on another host only.
Invariant: whatever is missing is told in one line (``Missing``), and what was started is stopped by
its process id.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
from server_process import stop

from headwater.engine.spark import java

HOSTS = ("127.0.0.1", "127.0.0.2")
START_SECONDS = 90.0


class Missing(Exception):
    """Something without which no cluster can run here."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    url: str
    directory: Path
    """Where each worker has a directory ``worker-N`` with what its executors print."""


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Start a master and two workers of one core each, and stop them at the end."""
    _check_hosts()
    java.provide()
    directory = Path(tempfile.mkdtemp(prefix="headwater-cluster-"))
    try:
        with ExitStack() as stack:
            master = _started(stack, directory, "master", HOSTS[0], "deploy.master.Master")
            url = _printed(master, r"Starting Spark master at (\S+)")
            workers = [_worker(stack, directory, number, host, url) for number, host in enumerate(HOSTS)]
            for worker in workers:
                _printed(worker, r"Successfully registered with (master)")
            yield Cluster(url, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass(frozen=True)
class _Started:
    name: str
    process: subprocess.Popen[bytes]
    output: Path


def _worker(stack: ExitStack, directory: Path, number: int, host: str, url: str) -> _Started:
    place = str(directory / f"worker-{number}")
    size = ("--cores", "1", "--memory", "1g", "--work-dir", place)
    return _started(stack, directory, f"worker-{number}", host, "deploy.worker.Worker", *size, url)


def _started(stack: ExitStack, directory: Path, name: str, host: str, main: str, *arguments: str) -> _Started:
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.{main}", "--host", host, "--port", "0"]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYTHONPATH"))}
    own = {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": host,  # where its web page listens
        "SPARK_LOCAL_DIRS": str(directory / f"{name}-local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # it lives briefly
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # it has a port that is always the same
    }
    output = directory / f"{name}.log"
    with open(output, "wb") as file:
        process = subprocess.Popen(
            [*command, "--webui-port", "0", *arguments], env={**kept, **own}, stdout=file, stderr=file
        )
    stack.callback(stop, process, 20)
    return _Started(name, process, output)


def _printed(started: _Started, pattern: str) -> str:
    """Wait until a process has printed something, and return its group."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and started.process.poll() is None:
        found = re.search(pattern, started.output.read_text())
        if found:
            return found[1]
        time.sleep(0.1)
    told = started.output.read_text().strip().splitlines() or ["it said nothing"]
    raise Missing(f"Spark's {started.name} did not start within {START_SECONDS:.0f} seconds: {told[-1]}")


def _check_hosts() -> None:
    for host in HOSTS:
        with socket.socket() as probe:
            try:
                probe.bind((host, 0))
            except OSError as error:
                raise Missing(f"no address {host} on this machine: {error}") from None
