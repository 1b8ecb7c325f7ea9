"""What a runner notes is read as it was, and one that is gone is not taken for one that runs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.engine.figures.figure_writer import FigureWriter
from headwater.engine.figures.runner_report import (
    FRESH,
    InputFigures,
    RunFigures,
    RunnerReport,
    read_runner_report,
)
from headwater.engine.figures.status import Status
from headwater.engine.home.accounting import Accounting
from headwater.engine.home.checkpoint import ClockSkew
from headwater.errors import HeadwaterError
from headwater.sinks.delivery.figures import DeliveryStatus

STATUS = Status(
    *("seen", "view", "waiting", 3, 100, 12.5, 90, 4, 2, 1, 0.25, 7, 1_767_323_045_000_000, 4096),
    HeadwaterError("it failed", detail="why", hint="what to do"),
    "many came late",
    (ClockSkew("orders", 0, "till", 5_000_000),),
    accounting=Accounting(100, 4, 1, 2, 90),
    deliveries=DeliveryStatus(2, 1, 40, "the endpoint answers 400"),
)


def test_what_is_noted_is_read_as_it_was(tmp_path: Path) -> None:
    figures = RunFigures(
        None, (STATUS,), (InputFigures("orders", 100, 12.5, 5),), {"crm": {"state": "streaming"}}
    )
    with FigureWriter(tmp_path) as writer:
        writer.note(figures)
        assert writer.failures == 0
    note = read_runner_report(tmp_path)
    assert note is not None
    [read] = note.figures.nodes
    assert read.to_dict() == STATUS.to_dict()
    assert read.error is not None and read.error.hint == "what to do"
    assert (note.figures.inputs, note.figures.captures) == (figures.inputs, figures.captures)


def test_nothing_is_noted_of_what_has_never_run(tmp_path: Path) -> None:
    assert read_runner_report(tmp_path) is None


@pytest.mark.parametrize(
    ("host", "noted", "ended", "running"),
    [
        (socket.gethostname(), 100.0, None, True),
        ("elsewhere", 100.0, None, True),
        ("elsewhere", 100.0 - 2 * FRESH, None, False),
        ("elsewhere", 100.0 + 2 * FRESH, None, False),
        (socket.gethostname(), 100.0, 100.0, False),
    ],
)
def test_a_runner_runs_that_was_heard_of_just_now_and_has_not_ended(
    host: str, noted: float, ended: float | None, running: bool
) -> None:
    note = RunnerReport(host, os.getpid(), 1.0, noted, ended, RunFigures())
    assert note.is_running(101.0) == running


def test_a_process_that_is_gone_does_not_run_however_fresh_its_note_is() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not RunnerReport(socket.gethostname(), gone.pid, 1.0, 100.0, None, RunFigures()).is_running(100.0)
