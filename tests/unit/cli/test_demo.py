"""The demo's screen, drawn from scenes alone, and the command it leaves the reader with."""

from __future__ import annotations

import importlib
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from headwater.demo.play import Scene
from headwater.demo.screen import Screen
from headwater.log import Lag

demo_command = importlib.import_module("headwater.cli.demo")


def scene(at: float, rows: int) -> Scene:
    lags = {
        group: [Lag(group, "orders", p, rows, rows, 0, timedelta()) for p in range(4)]
        for group in ("billing", "search")
    }
    owned = ((), (0, 1, 2, 3), (0, 1, 2, 3))
    return Scene(at, (rows, rows, rows), (rows, rows, rows), (False, True, True), owned, lags)


def screen() -> Screen:
    made = Screen(started=0.0)
    for at in range(40):
        made.show(scene(at * 0.2, at * 200))
    for line in ("killed", "has taken over", "producers stop"):
        made.tell(1.0, line)
    return made


def drawn(made: Screen, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height)
    with console.capture() as text:
        console.print(made.draw(height, width))
    return text.get().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (110, 35), (60, 24), (60, 22), (200, 24)])
def test_the_whole_screen_fits_the_window(width: int, height: int) -> None:
    lines = drawn(screen(), width, height)
    assert len(lines) < height
    assert any("has taken over" in line for line in lines)


def test_partitions_are_shown_where_there_is_room() -> None:
    assert not any("partition" in line for line in drawn(screen(), 60, 24))
    for width, height in ((80, 24), (60, 35)):
        assert any("partition" in line for line in drawn(screen(), width, height))


def test_rates_are_those_of_the_last_second_and_blank_at_the_end() -> None:
    made = screen()
    [line] = [line for line in drawn(made, 80, 24) if line.startswith("berlin")]
    assert line.split()[:3] == ["berlin", "1,000", "7,800"]
    made.end()
    [line] = [line for line in drawn(made, 80, 24) if line.startswith("berlin")]
    assert line.split()[:2] == ["berlin", "7,800"]


def test_the_last_line_names_a_command_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / ".venv" / "bin" / "headwater"
    script.parent.mkdir(parents=True)
    script.write_text("")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert demo_command._command() == ".venv/bin/headwater"
    monkeypatch.setenv("PATH", str(script.parent))
    assert demo_command._command() == "headwater"
