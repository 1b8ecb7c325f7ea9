"""The sinks of views against the public suite of sinks."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest
from tests.contract.views.conftest import Reopen

from headwater.sinks import Sink
from headwater.sinks.owning import OwningSink
from headwater.testing.sink_suite import KEY, SCHEMA, Check, TargetUnderTest, checks
from headwater.views import open_views
from postgres_server import save


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
def test_a_view_is_effectively_once(check: Check, place: str, open_store: Reopen) -> None:
    def visible() -> list[dict[str, Any]]:
        with open_views(place) as views:
            return views["rows"].scan().to_pylist()

    def opened() -> Sink:
        store = open_store()
        return OwningSink(store.sink("rows", SCHEMA, KEY), store)

    def saved() -> Callable[[], object]:
        if "://" in place:
            return save(place, "rows")
        shutil.copy(place, f"{place}-saved")
        return lambda: shutil.copy(f"{place}-saved", place)

    opened().close()
    check(TargetUnderTest(opened, visible, saved))
