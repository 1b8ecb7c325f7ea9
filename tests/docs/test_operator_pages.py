"""Each operator's page shows how it is called, with all settings and what they are if not given."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater import dedup, joins, latest, scan, tables, windows

PAGES = Path(__file__).parents[2] / "docs" / "operators"
CALLS: dict[str, tuple[str, Callable[..., Any]]] = {
    "dedup": ("dedup", dedup),
    "latest": ("latest", latest),
    "scan": ("scan", scan),
    "tumbling": ("windows.tumbling", windows.tumbling),
    "hopping": ("windows.hopping", windows.hopping),
    "sliding": ("windows.sliding", windows.sliding),
    "session": ("windows.session", windows.session),
    "within": ("joins.within", joins.within),
    "as_of": ("joins.as_of", joins.as_of),
    "lookup": ("joins.lookup", joins.lookup),
    "tables": ("joins.tables", joins.tables),
    "group": ("tables.group", tables.group),
}


def signature(name: str, call: Callable[..., Any]) -> str:
    bare = [each.replace(annotation=each.empty) for each in inspect.signature(call).parameters.values()]
    return name + str(inspect.Signature(bare)).replace("'", '"')


@pytest.mark.parametrize("page", CALLS)
def test_a_page_begins_with_how_its_operator_is_called(page: str) -> None:
    text = (PAGES / f"{page}.md").read_text()
    found = re.search(r"^```\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert found is not None
    told = re.sub(r"\s+", " ", found[1]).replace("( ", "(").replace(" )", ")").strip()
    assert told == signature(*CALLS[page])


def test_every_operator_has_a_page() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {*CALLS, "aggregates"}
