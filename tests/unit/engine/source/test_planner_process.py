"""A process that plans for Spark's: it says what planning here would, and outlives neither side."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.engine.failure import failures
from headwater.engine.source.planner_process import PlannerProcess, RemotePlanner
from headwater.errors import HeadwaterError, LogUnavailable
from headwater.log import Log
from headwater.log.open import open as open_log
from headwater.pipeline.pipeline import Pipeline


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with open_log(f"file:{tmp_path_factory.mktemp('log')}") as log:
        log.create_topic("orders", "id BIGINT")
        with log.producer("orders") as producer:
            producer.send_batch([{"id": n} for n in range(5)])
        yield log


@pytest.fixture
def process(tmp_path: Path) -> Iterator[PlannerProcess]:
    process = PlannerProcess(tmp_path / "spark.log")
    yield process
    process.close()


def ended(pid: int) -> bool:
    """Wait until a process is no more, or only its number is."""
    for _ in range(600):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_it_ends_when_who_has_asked_leaves(log: Log, process: PlannerProcess) -> None:
    process.plan({"orders": {"url": log.url, "topic": "orders"}}, {})
    planner = RemotePlanner(process.address)
    assert planner.initialOffset()["orders"]["offsets"] == {"0": 0}
    planner.stop()
    assert process._process.wait(30) == 0


@pytest.mark.slow
def test_what_fails_there_is_known_by_its_traceback(process: PlannerProcess, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no log")
    process.plan({"orders": {"url": f"file:{tmp_path}/file", "topic": "orders"}}, {"orders": "orders:0=0"})
    shop = Pipeline("shop", log="memory:")
    shop.source("orders", "id BIGINT")

    @shop.view(key="id")
    def seen(orders):  # type: ignore[no-untyped-def]
        """Orders."""
        return orders

    with pytest.raises(Exception, match="Traceback") as raised:
        RemotePlanner(process.address).initialOffset()
    error = failures.error_from_exception(shop["seen"], raised.value)  # type: ignore[arg-type]
    assert isinstance(error, LogUnavailable)
    assert "_PlanningFailed" not in str(error)


def test_one_that_is_gone_is_an_error_and_not_waited_for(process: PlannerProcess) -> None:
    os.kill(process._process.pid, signal.SIGKILL)
    process._process.wait()
    process.plan({}, {})
    with pytest.raises(HeadwaterError, match="the process that plans has ended"):
        RemotePlanner(process.address).initialOffset()


@pytest.mark.slow
def test_it_ends_when_the_driver_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path\n"
        "from headwater.engine.source.planner_process import PlannerProcess\n"
        "process = PlannerProcess(Path(sys.argv[1]))\n"
        "process.plan({}, {}); print(process._process.pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "none")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        pid = int(driver.stdout.readline())
        driver.kill()
    assert ended(pid)
