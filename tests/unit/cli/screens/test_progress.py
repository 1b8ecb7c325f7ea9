"""Progress is for terminals alone."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import pytest

from headwater.cli.screens.progress import progress, waiting


@contextmanager
def terminal() -> Iterator[tuple[TextIO, int]]:
    """A terminal to write to, and the descriptor on which its owner reads."""
    reading, writing = pty.openpty()
    try:
        with open(writing, "w") as screen:
            yield screen, reading
    finally:
        os.close(reading)


def read_all(reading: int) -> str:
    """Read what was drawn until nobody can write any more; one read may return a part of it."""
    parts = []
    with suppress(OSError):  # Linux ends a terminal without writers by an error
        while part := os.read(reading, 1 << 16):
            parts.append(part)
    return b"".join(parts).decode()


def test_a_pipe_gets_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("importing", 10) as step, waiting("thinking"):
        step(10, 10)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_sees_what_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with terminal() as (screen, reading):
        monkeypatch.setattr(sys, "stderr", screen)
        with progress("importing", 10) as step:
            step(4, 1_200)
        screen.close()
        drawn = read_all(reading)
    assert "importing" in drawn
    assert "1,200 rows" in drawn


def test_what_is_not_to_be_shown_is_not_drawn_on_a_terminal_either(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal() as (screen, reading):
        monkeypatch.setattr(sys, "stderr", screen)
        with progress("importing", None, shown=False) as step:
            step(1, 1)
        print("done", file=screen, flush=True)
        assert os.read(reading, 1 << 16).decode().strip() == "done"
