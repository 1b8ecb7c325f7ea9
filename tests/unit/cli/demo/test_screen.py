"""The demo's screen in windows of all sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from rich.console import Console
from tests.unit.cli.screens.test_run_screen import BROKEN, FINE

from headwater.cli.demo.customers import Update
from headwater.cli.demo.screen import DemoScreen, Scene
from headwater.cli.demo.views import ViewSample
from headwater.schema import TIMESTAMP

SIZES = [(80, 24), (100, 30), (120, 40), (60, 24), (60, 16), (40, 12)]
SCHEMA = pa.schema(
    [("customer", pa.string()), ("at", TIMESTAMP), ("orders", pa.int64()), ("total", pa.decimal128(12, 2))]
)
MORE = "headwater view list --log file:/tmp/x/data"


def view(name: str, rows: int) -> ViewSample:
    made = tuple((f"c{n}", "12:00:00", f"{n}", f"{n}.00") for n in range(rows))
    return ViewSample(name, "What each customer has spent.", 1200, SCHEMA, made)


def scene(views: Sequence[ViewSample], nodes: int = 5) -> Scene:
    statuses = [replace(FINE, node=f"node_{n}") for n in range(nodes)]
    return Scene(12_345, statuses, views, update=Update("gold", 0.4))


def drawn(made: Scene, width: int, height: int, screen: DemoScreen | None = None) -> list[str]:
    console = Console(width=width, height=height)
    with console.capture() as text:
        console.print((screen or DemoScreen("Ctrl-C ends", MORE)).draw(made, console))
    return [line.rstrip() for line in text.get().splitlines()]


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("views", [0, 1, 4, 7])
@pytest.mark.parametrize("rows", [0, 12])
@pytest.mark.parametrize("nodes", [1, 5, 12])
def test_the_whole_screen_fits_the_window(width: int, height: int, views: int, rows: int, nodes: int) -> None:
    made = scene([view(f"view_{n}", rows) for n in range(views)], nodes)
    lines = drawn(made, width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width


def test_a_node_that_fails_leaves_room_for_its_error() -> None:
    made = Scene(1, [replace(FINE, node="fine"), BROKEN], [view("spending", 12)])
    lines = drawn(made, 80, 24)
    assert len(lines) < 24
    assert any(line.startswith("error: view") for line in lines)
    assert any(line.startswith("spending  1,200 rows") for line in lines)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30)])
def test_nodes_and_rows_of_four_views_and_a_command_are_seen_in_a_usual_window(
    width: int, height: int
) -> None:
    text = "\n".join(drawn(scene([view(f"view_{n}", 12) for n in range(4)]), width, height))
    assert all(f"node_{n}" in text for n in range(5))
    assert all(f"view_{n}" in text for n in range(4))
    assert text.count("c1 ") == 4, "two rows of each"
    assert MORE in text


def test_an_update_of_the_database_is_told_below_the_title() -> None:
    made = scene([view("spending", 3)])
    assert drawn(made, 80, 24)[1] == "crm.db: zoe is gold  ▶  gold_customers after 0.4 s"
    assert drawn(replace(made, update=None), 80, 24)[1] == ""


def test_a_narrow_view_leaves_out_times_first() -> None:
    lines = drawn(scene([view("spending", 3)], 1), 30, 24)
    assert [line.split() for line in lines if line.startswith("customer")] == [
        ["customer", "orders", "total"]
    ]


def test_a_view_without_rows_says_so() -> None:
    assert "nothing yet" in drawn(scene([view("spending", 0)]), 80, 24)


def test_before_the_nodes_run_it_says_what_goes_on() -> None:
    lines = drawn(Scene(17, step="starting Spark"), 80, 24)
    assert lines[0] == "Headwater demo, a shop, 0 s, 17 events written  Ctrl-C ends"
    assert lines[2].endswith("starting Spark … 0 s")


def test_new_rows_stand_out_until_the_next_reading() -> None:
    screen, before = DemoScreen("", ""), scene([view("spending", 3)])
    console = Console(width=80, height=24, force_terminal=True, color_system="standard", no_color=False)

    def green(made: Scene) -> bool:
        with console.capture() as text:
            console.print(screen.draw(replace(made, statuses=(), update=None), console))
        return "\x1b[32m" in text.get()

    after = scene([view("spending", 4)])
    assert [green(each) for each in (before, after, after, scene([view("spending", 4)]))] == [
        False,
        True,
        True,
        False,
    ]


def test_outside_of_a_terminal_a_scene_is_a_line() -> None:
    line = DemoScreen("", "").line(scene([view("spending", 3), view("deliveries", 1)]))
    told = "12,345 events written, 6,000 to process; spending 1,200 rows, deliveries 1,200 rows"
    assert line == f"   0 s  {told}"
