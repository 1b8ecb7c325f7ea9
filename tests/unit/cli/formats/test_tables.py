from __future__ import annotations

import pytest
from rich.console import Console

from headwater.cli.formats import tables
from headwater.cli.formats.tables import print_table

Capture = pytest.CaptureFixture[str]


def narrow(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(tables, "console", lambda: Console(width=width))


def test_a_pipe_has_no_width(capsys: Capture) -> None:
    print_table(["name", ">count"], [("x" * 300, 1234)])
    assert capsys.readouterr().out.splitlines()[-1] == "x" * 300 + "  1,234"


def test_a_narrow_window_wraps_between_words(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch, 18)
    print_table([">id", "when"], [(1, "2026-01-02 03:04:05Z")])
    assert [line.split() for line in capsys.readouterr().out.splitlines()[2:]] == [
        ["1", "2026-01-02"],
        ["03:04:05Z"],
    ]


def test_a_window_that_is_too_narrow_gets_one_column_below_the_other(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 24)
    print_table(["topic", ">partition", "oldest"], [("orders", 0, "2026-01-02")])
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines == [["topic", "orders"], ["partition", "0"], ["oldest", "2026-01-02"]]
