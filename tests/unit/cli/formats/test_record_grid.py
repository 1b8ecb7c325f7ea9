from __future__ import annotations

import pytest

from headwater.cli.formats import record_grid as grids
from headwater.cli.formats.record_grid import RecordGrid

Capture = pytest.CaptureFixture[str]


def window() -> int:
    """Return the width of a terminal of 24 columns."""
    return 24


def test_columns_grow_in_a_pipe_and_nothing_is_cut(capsys: Capture) -> None:
    grid = RecordGrid(["id", "text"], [True, False])
    grid.write([("1", "a")])
    grid.write([("100", "b" * 50)])
    assert capsys.readouterr().out.splitlines() == ["id  text", " 1  a", "100  " + "b" * 50]


def test_wide_cells_are_cut_to_the_window(capsys: Capture) -> None:
    RecordGrid(["id", "text"], [True, False], window).write([("1", "x" * 50)])
    _, line = capsys.readouterr().out.splitlines()
    assert line == " 1  " + "x" * 19 + "…"


def test_wide_characters_count_double(capsys: Capture) -> None:
    RecordGrid(["id", "text"], [True, False], window).write([("1", "日本語" * 10), ("2", "x")])
    assert max(map(grids.cell_len, capsys.readouterr().out.splitlines())) <= 24


def test_columns_without_room_are_left_out_and_named(capsys: Capture) -> None:
    grid = RecordGrid(["first", "second", "third", "fourth"], [False] * 4, window)
    grid.write([("a" * 9, "b" * 9, "c" * 9, "d" * 9)])
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].split() == ["first", "second"]
    assert "no room for third, fourth" in captured.err


def test_the_header_comes_again_when_columns_grow(capsys: Capture) -> None:
    grid = RecordGrid(["id", "text"], [True, False], window)
    grid.write([("1", "a")])
    grid.write([("2", "longer text")])
    grid.write([("3", "x" * 99)])
    grid.write([("4", "y" * 99)])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "id",
        "1",
        "id",
        "2",
        "id",
        "3",
        "4",
    ]
