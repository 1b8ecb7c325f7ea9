"""Figures, times and events of the stream, as the page reads and writes them."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

_CALL = """async ([name, values]) => (await import("/static/format.js"))[name](...values)"""
_PARSE = """async (pieces) => {
  const { EventParser } = await import("/static/sse.js");
  const parser = new EventParser();
  return [pieces.flatMap((piece) => parser.push(piece)), parser.id];
}"""
CASES: tuple[tuple[str, list[Any], str], ...] = (
    ("count", [1284], "1,284"),
    ("count", [1_284_000], "1.28 M"),
    ("count", [None], "–"),
    ("rate", [0], "0"),
    ("rate", [0.25], "0.25"),
    ("rate", [3.44], "3.4"),
    ("rate", [9.96], "10"),
    ("rate", [1284.3], "1,284"),
    ("seconds", [0], "0 s"),
    ("seconds", [0.004], "4 ms"),
    ("seconds", [0.21], "0.21 s"),
    ("seconds", [5.14], "5.1 s"),
    ("seconds", [41], "41 s"),
    ("seconds", [59.7], "1 min"),
    ("seconds", [200], "3 min 20 s"),
    ("seconds", [7500], "2 h 5 min"),
    ("seconds", [86399], "1 d"),
    ("seconds", [273_600], "3 d 4 h"),
    ("seconds", [-2], "−2.0 s"),
    ("bytes", [0], "0 B"),
    ("bytes", [960_000], "960 kB"),
    ("bytes", [48_000_000], "48.0 MB"),
    ("percent", [0.0182], "1.8 %"),
    ("percent", [0.5], "50 %"),
    ("percent", [0.99996], ">99.9 %"),
    ("percent", [0.0001], "<0.1 %"),
    ("percent", [1], "100 %"),
    ("cell", [None], "–"),
    ("cell", [3817], "3817"),
    ("cell", [{"a": 1}], '{"a":1}'),
    ("cell", [0.5, "DOUBLE", 3], "0.500"),
    ("plural", [1, "row"], "1 row"),
    ("plural", [0, "row"], "0 rows"),
)


@pytest.fixture
def app(page: Page, troubled: str) -> Page:
    page.goto(f"{troubled}#/operations")
    return page


def test_figures_are_short_and_none_is_a_dash(app: Page) -> None:
    for name, values, text in CASES:
        assert (name, values, app.evaluate(_CALL, [name, values])) == (name, values, text)


def test_a_time_has_its_date_where_that_is_not_today(app: Page) -> None:
    app.clock.set_fixed_time("2026-05-04T12:00:00Z")
    today, before = "2026-05-04T11:00:00Z", "2026-05-01T11:00:00Z"
    assert len(app.evaluate(_CALL, ["time", [today]])) == len("11:00:00")
    assert app.evaluate(_CALL, ["time", [before]]).startswith("2026-05-01 ")


def test_types_of_columns_are_told_apart(app: Page) -> None:
    numbers = ("BIGINT", "int", "DECIMAL(10,2)", "double", "int64", "float", "decimal128(10, 2)")
    for kind in numbers:
        assert app.evaluate(_CALL, ["isNumber", [kind]]), kind
    for kind in ("STRING", "TIMESTAMP", "ARRAY<INT>", "interval", "boolean"):
        assert not app.evaluate(_CALL, ["isNumber", [kind]]), kind
    assert app.evaluate(_CALL, ["isTime", ["timestamp[us, tz=UTC]"]])


def test_events_are_the_same_wherever_the_text_is_cut(app: Page) -> None:
    text = 'id: 7\nevent: change\ndata: {"a":1}\n\n: heartbeat\nid: 8\n\ndata: x\ndata:y\r\n\r\n'
    whole = app.evaluate(_PARSE, [text])
    assert whole == [
        [{"type": "change", "id": "7", "data": '{"a":1}'}, {"type": "message", "id": "8", "data": "x\ny"}],
        "8",
    ]
    for at in range(len(text)):
        assert app.evaluate(_PARSE, [text[:at], text[at:]]) == whole
