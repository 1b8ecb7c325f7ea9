"""A process of ours that plans, started before Spark's own: it imports, connects and reads ahead meanwhile.

Spark starts the Python process of a query's source when everything else of the query is there, and waits for
it; to import what reads a broker, to connect, and to read the first records took seconds in which nothing
else could run. So the driver starts a process beside the query's own start, and Spark's asks that one.

Invariant: it lives no longer than its query and than the driver, however those end; and what fails there is
raised in Spark's process as if it had failed there.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, BinaryIO

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from headwater.engine.source.offset_planner import OffsetPlanner
from headwater.errors import HeadwaterError


class PlannerProcess:
    """The driver's side: starts the process, tells it what to plan, and ends it."""

    def __init__(self, log: Path):
        """Start it; what it prints goes to the end of a file, where that is there."""
        self._folder = Path(tempfile.mkdtemp(prefix="headwater-plan-"))  # which nobody else may enter
        self.address = str(self._folder / "socket")
        with socket.socket(socket.AF_UNIX) as listening, _output(log) as output:
            listening.bind(self.address)
            listening.listen()  # whoever connects before it accepts has to wait, and not to try again
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(listening.fileno())],
                bufsize=0,  # what could not be written is not tried again when it is closed
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=[listening.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                start_new_session=True,  # what ends the driver by hand is not meant for it
            )

    def plan(self, inputs: Mapping[str, Mapping[str, str]], ahead: Mapping[str, str]) -> None:
        """Tell it the options of its inputs, and from where on to read each ahead."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([inputs, ahead]).encode() + b"\n")
        except BrokenPipeError:
            return  # it has ended, and whoever asks it says so

    def close(self) -> None:
        """End it at once: its files go with it, as they do when it is killed."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class RemotePlanner(DataSourceStreamReader):
    """Spark's side: hands on what Spark asks."""

    def __init__(self, address: str):
        self._address = address
        self._connection: Connection | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins, in each input."""
        return self._ask("initialOffset")

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Plan the next micro-batch; each input has a limit of its own."""
        return self._ask("latestOffset", start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return no tasks."""
        return []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield nothing."""
        return iter(())

    def stop(self) -> None:
        """Let the process end."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, method: str, *arguments: Any) -> dict[str, Any]:
        try:
            if self._connection is None:
                self._connection = Client(self._address, "AF_UNIX")
            self._connection.send_bytes(json.dumps([method, *arguments]).encode())
            answer = json.loads(self._connection.recv_bytes())
        except (OSError, EOFError) as error:
            raise HeadwaterError("the process that plans has ended", hint="see spark.log") from error
        if "failure" in answer:
            raise _PlanningFailed(answer["failure"])
        result: dict[str, Any] = answer["result"]
        return result


class _PlanningFailed(Exception):
    """What was raised in the process, with its traceback, which is what the driver looks at."""


def serve(listening: socket.socket, instructions: BinaryIO) -> None:
    """Plan what the first line of the instructions says, for one who connects, until that one leaves."""
    import headwater.engine.source.data_source
    import headwater.log.kafka.log  # noqa: F401  both before there is anything to do

    line = instructions.readline()
    if not line:
        return
    threading.Thread(target=_end_with, args=(instructions.fileno(),), daemon=True).start()
    inputs, ahead = json.loads(line)
    planner = OffsetPlanner(inputs)
    try:
        planner.read_ahead(ahead)
        accepted, _ = listening.accept()
        with Connection(accepted.detach()) as connection:
            _answer(planner, connection)
    finally:
        planner.stop()


def _answer(planner: OffsetPlanner, connection: Connection) -> None:
    calls: dict[str, Callable[..., dict[str, Any]]] = {
        "initialOffset": planner.initialOffset,
        "latestOffset": partial(planner.latestOffset, limit=None),
    }
    while True:
        try:
            method, *arguments = json.loads(connection.recv_bytes())
        except EOFError:
            return
        try:
            answer: dict[str, Any] = {"result": calls[method](*arguments)}
        except Exception:
            answer = {"failure": traceback.format_exc()}
        connection.send_bytes(json.dumps(answer).encode())


def _end_with(descriptor: int) -> None:
    """End when the driver has, which then writes no more: also in the middle of waiting for a broker."""
    while os.read(descriptor, 4096):  # by its number: Python cannot end while a thread holds its file
        pass
    os._exit(0)


def _output(log: Path) -> BinaryIO:
    """Return where the process prints to: a file that is there already, or else nowhere."""
    return open(log if log.exists() else os.devnull, "ab")


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.stdin.buffer)
