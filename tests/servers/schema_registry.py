"""A real schema registry for tests: Apicurio, which speaks as Confluent's does; fetched once, on loopback.

It comes from Maven Central, as the broker's jars do (``kafka_broker``), and keeps its schemas in memory.
Invariant: whatever is missing is told in one line (``Missing``), and what was started is stopped by its
process id.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_broker import Missing, find_java
from server_process import free_ports, stop

VERSION = "3.0.9"
ARTIFACT = ("io.apicurio", "apicurio-registry-app", VERSION, "tar.gz", "all")
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "schema-registry"
PATH = "/apis/ccompat/v7"
START_SECONDS = 60.0


@contextmanager
def running_registry() -> Iterator[str]:
    """Start a registry, yield its URL, and stop it at the end."""
    java, home = find_java(), fetch()
    directory = Path(tempfile.mkdtemp(prefix="headwater-registry-"))
    process = None
    try:
        (port,) = free_ports(1)
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(port),
            "quarkus.log.level": "WARN",
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
        }
        options = [f"-D{name}={value}" for name, value in settings.items()]
        jar = home / f"apicurio-registry-app-{VERSION}-runner.jar"
        with open(directory / "registry.log", "wb") as log:
            command = [str(java), "-Xmx384m", *options, "-jar", str(jar)]
            process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}{PATH}"
        _wait(process, url, directory)
        yield url
    finally:
        if process is not None:
            stop(process)
        shutil.rmtree(directory, ignore_errors=True)


def fetch() -> Path:
    """Return the directory of the registry, fetching it the first time."""
    home = CACHE / VERSION
    if not home.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=CACHE, prefix=".new-"))
        try:
            with tarfile.open(_archive(draft / "archive")) as archive:
                archive.extractall(draft / "home", filter="data")
            if not home.is_dir():  # another process may have been first
                (draft / "home").rename(home)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return home


def _archive(directory: Path) -> Path:
    try:
        return _by_maven(directory) if shutil.which("mvn") else _by_jgo()
    except (subprocess.CalledProcessError, OSError, RuntimeError) as error:
        raise Missing(f"Apicurio {VERSION} could not be fetched from Maven Central: {error}") from None


def _by_maven(directory: Path) -> Path:
    wanted = [f"-Dartifact={':'.join(ARTIFACT)}", f"-DoutputDirectory={directory}"]
    subprocess.run(["mvn", "-q", "-B", "dependency:copy", *wanted], check=True, stdout=subprocess.PIPE)
    return next(directory.iterdir())


def _by_jgo() -> Path:
    try:
        from jgo.maven import MavenContext, PythonResolver
    except ImportError:
        raise Missing(
            "no way to fetch a schema registry: put mvn on the PATH, or `pip install jgo`"
        ) from None
    group, name, version, packaging, classifier = ARTIFACT
    component = MavenContext(resolver=PythonResolver()).project(group, name).at_version(version)
    return Path(component.artifact(classifier=classifier, packaging=packaging).resolve())


def _wait(process: subprocess.Popen[bytes], url: str, directory: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/subjects", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    told = (directory / "registry.log").read_text().strip().splitlines() or ["it said nothing"]
    raise Missing(f"the schema registry did not start within {START_SECONDS:.0f} seconds: {told[-1][:200]}")
