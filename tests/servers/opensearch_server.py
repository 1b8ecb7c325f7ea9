"""A real OpenSearch node for tests: its jars are fetched once from Maven Central, as the broker's are.

No distribution is published there, but the server is, and ``opensearch/Node.java`` starts it. Invariant:
whatever is missing is told in one line (``Missing``), and a node that was started is stopped by its process
id.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kafka_broker import Missing, fetched, find_java
from server_process import free_ports

VERSION = "2.19.1"
ARTIFACTS = (
    f"org.opensearch:opensearch:{VERSION}",
    f"org.opensearch.plugin:transport-netty4-client:{VERSION}",
    "org.apache.logging.log4j:log4j-core:2.21.0",
)
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "opensearch"
NODE = Path(__file__).parent / "opensearch" / "Node.java"
START_SECONDS = 90.0


class Server:
    """A node that can be killed and started again, with what it holds."""

    def __init__(self, directory: Path):
        self.directory, self.port = directory, free_ports(1)[0]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, and wait until it answers."""
        classpath = f"{fetched(VERSION, ARTIFACTS, cache=CACHE)}/*"
        command = [str(find_java()), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", classpath, str(NODE)]
        with open(self.directory / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                [*command, str(self.directory), str(self.port)], stdout=log, stderr=log, cwd=self.directory
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._ready():
            if time.monotonic() > deadline or self._process.poll() is not None:
                lines = (self.directory / "server.log").read_text().strip().splitlines() or [
                    "it said nothing"
                ]
                raise Missing(f"OpenSearch did not start, for which it needs a JDK: {lines[-1]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """End it at once, as ``kill -9`` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _ready(self) -> bool:
        health = f"{self.url}/_cluster/health?wait_for_status=yellow&timeout=5s"
        with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(health, timeout=10) as answer:
            return bool(answer.status == 200)
        return False


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a node with nothing in it, and end it."""
    directory = Path(tempfile.mkdtemp(prefix="headwater-opensearch-"))
    server = Server(directory)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)
