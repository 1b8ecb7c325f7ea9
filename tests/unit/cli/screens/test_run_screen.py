"""The screen of ``headwater run`` in windows of all sizes, drawn from statuses alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console

from headwater import CaptureStatus
from headwater.cli.screens.run_screen import Screen
from headwater.durations import micros
from headwater.engine.figures.status import Status
from headwater.engine.home.checkpoint import ClockSkew
from headwater.errors import HeadwaterError, PipelineError

SIZES = [(80, 24), (120, 40), (60, 16), (60, 24), (40, 12)]
FINE = Status(
    node="click_through",
    kind="view",
    state="running",
    batches=812,
    rows=1_234_567,
    rate=12_345.6,
    out=99,
    late=17,
    dead=None,
    duplicates=0,
    seconds=0.512,
    lag=1_200,
    clock=micros(datetime.now(UTC)),
    state_bytes=12_300_000,
    error=None,
)
ERROR = PipelineError('view "totals" failed: ValueError', detail="no tax on 0.0", location="shop.py:12")
BROKEN = replace(FINE, node="totals", state="broken", batches=0, rate=0.0, error=ERROR)


def drawn(statuses: Sequence[Status], width: int, height: int, step: str | None = None) -> list[str]:
    console = Console(width=width, height=height)
    with console.capture() as text:
        console.print(Screen("shop", "Ctrl-C stops").draw(statuses, step, width, height))
    return [line.rstrip() for line in text.get().splitlines()]


def line(lines: list[str], beginning: str) -> str:
    [found] = [each for each in lines if each.startswith(beginning)]
    return found


def test_every_figure_is_shown_in_80_columns() -> None:
    lines = drawn([FINE], 80, 24)
    heads = ["node", "state", "rows/s", "batch", "lag", "clock", "late", "size"]
    assert line(lines, "node").split() == heads
    cells = line(lines, "click_through").split()
    assert cells[:6] == ["click_through", "running", "12,346", "0.51", "s", "1,200"]
    assert cells[7:] == ["17", "12.3", "MB"]


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("count", [1, 5, 60])
@pytest.mark.parametrize("broken", [0, 1, 9])
def test_the_whole_screen_fits_the_window(width: int, height: int, count: int, broken: int) -> None:
    statuses = [replace(FINE, node=f"node_number_{n}") for n in range(count)]
    statuses += [replace(BROKEN, node=f"broken_{n}") for n in range(broken)]
    lines = drawn(statuses, width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    assert not broken or any("broken" in each for each in lines)
    assert not broken or any(each.startswith("error: view") for each in lines)


def test_a_narrow_window_leaves_out_what_matters_least() -> None:
    assert line(drawn([FINE], 60, 24), "node").split() == ["node", "state", "rows/s", "lag", "clock", "late"]
    assert line(drawn([FINE], 40, 24), "node").split()[-1] == "lag"


def test_what_is_set_aside_has_a_column_where_a_node_sets_aside() -> None:
    lines = drawn([FINE, replace(FINE, node="careful", dead=3)], 100, 24)
    assert line(lines, "node").split()[-3:] == ["late", "dead", "size"]
    assert line(lines, "careful").split()[-3:] == ["3", "12.3", "MB"]


def test_a_long_name_is_cut_not_the_figures() -> None:
    text = "\n".join(drawn([replace(FINE, node="n" * 90)], 80, 24))
    assert "nnn…" in text and "12,346" in text and "1,200" in text


def test_nodes_that_there_is_no_room_for_are_counted_and_none_that_fails_is_hidden() -> None:
    lines = drawn([*(replace(FINE, node=f"fine_{n}") for n in range(60)), BROKEN], 80, 24)
    assert line(lines, "totals").split()[1] == "broken"
    shown = sum(each.startswith("fine_") for each in lines)
    assert line(lines, "and ") == f"and {60 - shown} nodes more"


def test_an_error_is_one_line_in_the_users_terms() -> None:
    lines = drawn([FINE, BROKEN], 80, 24)
    assert line(lines, "error") == 'error: view "totals" failed: ValueError (shop.py:12: no tax on 0.0)'


def test_a_very_long_error_is_cut() -> None:
    error = PipelineError("it failed", detail="because " * 500)
    lines = drawn([replace(BROKEN, error=error)], 80, 24)
    assert [each for each in lines if each][-1].endswith("because …")
    assert sum("because" in each for each in lines) == 2


def test_before_the_nodes_run_it_says_what_goes_on() -> None:
    assert any("starting Spark … 0 s" in each for each in drawn([], 80, 24, "starting Spark"))


def test_what_a_node_has_not_is_blank() -> None:
    bare = replace(FINE, batches=0, clock=None, state_bytes=0, late=0)
    assert line(drawn([bare], 80, 24), "click_through").split() == [
        "click_through",
        "running",
        "12,346",
        "1,200",
        "0",
    ]


def test_what_somebody_should_look_at_stands_below_the_table() -> None:
    lines = drawn([replace(FINE, alert="2.0% of the rows came too late")], 80, 24)
    assert line(lines, "warning:") == "warning: 2.0% of the rows came too late"


def test_a_producer_that_is_ahead_of_time_is_named_once_below_the_table() -> None:
    ahead = ClockSkew("orders", 0, "meter-7", 3 * 3600 * 1_000_000)
    lines = drawn([replace(FINE, node=name, ahead=(ahead,)) for name in ("one", "two")], 120, 24)
    assert 'producer "meter-7" of topic "orders" is 3 h ahead of time' in line(lines, "warning:")


CAPTURE = CaptureStatus("crm", "waiting", 1200, error=HeadwaterError("the database is away"), retained=5_000)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_captures_are_drawn_below_and_fit_the_window(width: int, height: int) -> None:
    told = StringIO()
    console = Console(file=told, width=width, height=height)
    for captures in ([CAPTURE], [CAPTURE] * 9):
        console.print(Screen("shop", "").draw([FINE, BROKEN], None, width, height, captures))
        drawn = told.getvalue()
        assert "totals" in drawn
        assert ("capture crm: waiting" in drawn) == (height > 12)
        assert all(len(line) <= width for line in drawn.splitlines())
        assert len(drawn.splitlines()) < height
        told.seek(0)
        told.truncate()
    assert "the database is away" in drawn or height < 40
