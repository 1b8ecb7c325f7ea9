"""Figures are written by one runner, never break it, and are there after it was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from tests.unit.engine.figures.test_runner_report import STATUS

from headwater.engine.figures.figure_store import STORE
from headwater.engine.figures.figure_writer import FigureWriter
from headwater.engine.figures.history import WHOLE, read_history
from headwater.engine.figures.runner_report import InputFigures, RunFigures, read_runner_report
from headwater.engine.home.accounting import Accounting

FIGURES = RunFigures(None, (STATUS,), (InputFigures("orders", 100, 12.5),))
WRITER = """
import sys
from pathlib import Path
from headwater.engine.figures.figure_writer import FigureWriter
from headwater.engine.figures.runner_report import InputFigures, RunFigures
writer, number = FigureWriter(Path(sys.argv[1])), 0
while True:
    number += 1
    writer.note(RunFigures(str(number), (), tuple(InputFigures(f"i{n}", number, 1.0) for n in range(50))))
    print(number, writer.failures, flush=True)
"""


def test_late_and_dead_rows_are_counted_from_one_note_to_the_next(tmp_path: Path) -> None:
    with FigureWriter(tmp_path) as writer:
        writer.note(FIGURES)
        more = replace(STATUS, accounting=Accounting(120, 9, 1, 5, 100))
        writer.note(replace(FIGURES, nodes=(more,)))
    for name in ("seen", WHOLE):
        found = read_history(tmp_path, name, time.time(), since=60, points=1)
        assert (found.late, found.dead, found.lag) == ((5,), (3,), (7,))
    assert read_history(tmp_path, "orders", time.time(), since=60, points=1).rate == (12.5,)


def test_a_runner_that_was_replaced_writes_no_more(tmp_path: Path) -> None:
    with FigureWriter(tmp_path) as old, FigureWriter(tmp_path) as new:
        old.note(FIGURES)
        new.note(replace(FIGURES, step="starting Spark"))
        old.note(FIGURES, ended=True)
        assert old.replaced and not new.replaced
    note = read_runner_report(tmp_path)
    assert note is not None and (note.figures.step, note.ended) == ("starting Spark", None)


def test_a_home_that_cannot_be_written_is_counted_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with FigureWriter(tmp_path / "file") as writer:
        writer.note(FIGURES)
        writer.note(FIGURES, ended=True)
        assert writer.failures == 2


def test_a_file_that_is_damaged_meanwhile_is_begun_anew(tmp_path: Path) -> None:
    with FigureWriter(tmp_path) as writer:
        writer.note(FIGURES)
    for path in tmp_path.iterdir():
        path.write_bytes(b"damaged" * 4096)
    with FigureWriter(tmp_path) as writer:
        writer.note(FIGURES)
        assert writer.failures == 0
    assert read_runner_report(tmp_path) is not None


def test_what_a_killed_runner_noted_is_whole_and_it_is_seen_to_be_gone(tmp_path: Path) -> None:
    for _ in range(2):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(20)]
            note = read_runner_report(tmp_path)
            assert note is not None and note.is_running(time.time())
            process.send_signal(signal.SIGKILL)
        done, failures = lines[-1].split()
        note = read_runner_report(tmp_path)
        assert note is not None and failures == "0"
        assert not note.is_running(time.time()), "its process is gone"
        step = int(note.figures.step or 0)
        assert step >= int(done)
        assert [each.records for each in note.figures.inputs] == [step] * 50, "of one time"
    assert (tmp_path / STORE).stat().st_size < 1_000_000


def test_a_note_of_twenty_nodes_costs_a_small_part_of_a_second(tmp_path: Path) -> None:
    figures = RunFigures(None, tuple(replace(STATUS, node=f"node{n}") for n in range(20)))
    with FigureWriter(tmp_path) as writer:
        writer.note(figures)
        began = time.process_time()
        for _ in range(20):
            writer.note(figures)
        assert (time.process_time() - began) / 20 < 0.05, "it takes about a millisecond"
        assert writer.failures == 0
