"""A RabbitMQ server of its own for a benchmark: Debian's package, in a directory that is gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")
START_SECONDS = 90.0


class Missing(Exception):
    """Something without which no server can run here."""


@contextmanager
def running_server() -> Iterator[int]:
    """Start a server with nothing in it, yield its port, and stop it at the end."""
    program = next((found for each in PROGRAMS if (found := shutil.which(each))), None)
    if program is None:
        raise Missing("no RabbitMQ: `apt-get install rabbitmq-server`")
    directory = Path(tempfile.mkdtemp(prefix="headwater-rabbitmq-"))
    port, distribution = _free_port(), _free_port()
    settings = {
        "HOME": str(directory),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_CONF_ENV_FILE": str(directory / "none"),
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
        "RABBITMQ_PID_FILE": str(directory / "pid"),
    }
    # A benchmark is not to be paced by alarms about the memory and disk of a small machine.
    (directory / "rabbitmq.conf").write_text(
        "vm_memory_high_watermark.relative = 0.6\ndisk_free_limit.absolute = 50MB\n"
    )
    with open(directory / "out", "wb") as out:
        process = subprocess.Popen(
            [program], env=os.environ | settings, stdout=out, stderr=out, start_new_session=True
        )
    try:
        _wait(process, port, directory)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(directory, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], port: int, directory: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise Missing(f"RabbitMQ did not start: {(directory / 'out').read_text()[-500:]}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
