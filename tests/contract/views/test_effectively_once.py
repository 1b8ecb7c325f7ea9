"""The sinks of views against the public suite of sinks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.views.conftest import Reopen

from headwater.sinks import Batch, Sink
from headwater.sinks.views import Store, open_views
from headwater.testing.sink_suite import KEY, SCHEMA, Check, Target, checks


class Together(Sink):
    """A sink that is closed together with its store, as a runner does."""

    def __init__(self, store: Store):
        self._store, self._sink = store, store.sink("rows", SCHEMA, KEY)

    def begin(self) -> int:
        return self._sink.begin()

    def commit(self, batch: Batch) -> bool:
        return self._sink.commit(batch)

    def close(self) -> None:
        self._sink.close()
        self._store.close()


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
def test_a_view_is_effectively_once(check: Check, place: str, open_store: Reopen) -> None:
    def visible() -> list[dict[str, Any]]:
        with open_views(place) as views:
            return views["rows"].scan().to_pylist()

    Together(open_store()).close()
    check(Target(lambda: Together(open_store()), visible))
