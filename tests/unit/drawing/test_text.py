"""The drawing for a terminal: who reads whom, within the window."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from tests.unit.pipeline.test_graph import Edges, acyclic, pipeline

from headwater import Pipeline
from headwater.drawing.text import as_text


def test_the_text_shows_who_reads_whom(shop: Pipeline) -> None:
    assert as_text(shop).splitlines() == [
        "clicks                source",
        "│  orders             source, key id",
        "└──┼▶ visits          stream",
        "   └──┼▶ sent         sink",
        "      │  customers    table, key id",
        "      └──┴▶ per_day   view, key id, day",
        "unused                source",
    ]


def test_a_line_that_is_passed_is_not_joined() -> None:
    made = pipeline({"a": ["s"], "b": ["a"], "c": ["s", "b"], "d": ["a", "c"]})
    assert [line.split("   str")[0].rstrip() for line in as_text(made).splitlines()[1:]] == [
        "├▶ a",
        "│  ├▶ b",
        "└──│──┴▶ c",
        "   └─────┴▶ d",
    ]


def test_long_keys_wrap_beside_the_drawing(shop: Pipeline) -> None:
    lines = as_text(shop, 40).splitlines()
    assert "      └──┴▶ per_day   view, key id, day" in lines
    narrow = as_text(shop, 38).splitlines()
    assert narrow[-3:-1] == ["      └──┴▶ per_day   view, key id,", "                      day"]


def test_a_narrow_window_gets_a_list(shop: Pipeline) -> None:
    lines = as_text(shop, 30).splitlines()
    at = lines.index("per_day")
    assert lines[at : at + 4] == ["per_day", "  view, key id, day", "  ◀ visits", "  ◀ customers"]


@pytest.mark.parametrize("width", [20, 30, 40, 60, 80, 200])
@given(edges=acyclic())
def test_no_line_is_wider_than_the_window(width: int, edges: Edges) -> None:
    assert max(map(len, as_text(pipeline(edges), width).splitlines())) <= width


@given(acyclic())
def test_the_text_names_everything_once(edges: Edges) -> None:
    lines = as_text(pipeline(edges)).splitlines()
    found = [re.sub(r"[│├└┴┼─▶ ]+", " ", line).split()[0] for line in lines]
    assert sorted(found) == sorted([*edges, "s"])


@given(acyclic())
def test_every_line_of_the_text_ends_where_it_is_read(edges: Edges) -> None:
    """Follow the lines from each name upwards: they lead to what the node reads."""
    rows = [line.rstrip() for line in as_text(pipeline(edges)).splitlines()]
    for number, row in enumerate(rows):
        name = re.search(r"\w+", row)
        assert name is not None
        assert sorted(read_by(rows, number)) == sorted(edges.get(name[0], []))


def read_by(rows: list[str], number: int) -> list[str]:
    """Return the names from which lines lead into the name of a row."""
    row = rows[number]
    lead = row[: row.index("▶")] if "▶" in row else ""
    joins = [at for at, mark in enumerate(lead) if mark in "├└┴┼"]
    return [above(rows, number, at) for at in joins]


def above(rows: list[str], number: int, column: int) -> str:
    """Follow a line up to the name that it comes from."""
    for row in reversed(rows[:number]):
        if row[column] not in "│├┼":
            name = re.match(r"\w+", row[column:])
            assert name is not None, f"a line begins at nothing in {row!r}"
            return name[0]
    raise AssertionError("a line begins above the first row")
