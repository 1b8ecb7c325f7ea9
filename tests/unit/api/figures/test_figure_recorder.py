"""Figures are noted beside a run, which neither waits for them nor fails by them."""

from __future__ import annotations

from pathlib import Path

from headwater.api.figures.figure_recorder import FigureRecorder
from headwater.engine.figures.runner_report import RunFigures, read_runner_report


def test_the_last_thing_noted_is_that_the_run_has_ended(tmp_path: Path) -> None:
    with FigureRecorder(tmp_path, lambda: RunFigures("starting Spark")) as notes:
        pass
    note = read_runner_report(tmp_path)
    assert note is not None and note.ended is not None and note.figures.step == "starting Spark"
    assert notes.failures == 0


def test_figures_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    def fail() -> RunFigures:
        raise ZeroDivisionError

    with FigureRecorder(tmp_path, fail) as notes:
        pass
    assert notes.failures >= 1
    note = read_runner_report(tmp_path)
    assert note is not None and note.ended is not None
