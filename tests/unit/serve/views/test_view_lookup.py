"""Which view is meant where several pipelines have one of its name."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import HTTPConnection

from headwater.errors import UnknownView, UsageError
from headwater.serve.http.served import Served
from headwater.serve.views.view_lookup import found, locate
from headwater.views import ViewStore
from serve_kit import make_log, make_views


def test_the_pipeline_is_asked_for_only_where_it_matters(tmp_path: Path) -> None:
    with make_log(tmp_path) as log, make_views(tmp_path) as one, ViewStore(tmp_path / "other.db") as other:
        other.sink("totals", "id BIGINT", "id")
        served = Served(log, {}, {"shop": one, "audit": other})
        assert found(served, "stock", None) is one and found(served, "totals", None) is other
        other.sink("stock", "id BIGINT", "id")
        with pytest.raises(UsageError, match="several"):
            found(served, "stock", None)
        assert found(served, "stock", "audit") is other
        with pytest.raises(UnknownView) as missing:
            found(served, "stok", None)
        assert missing.value.hint == 'did you mean "stock"?'


def test_a_store_is_asked_in_a_thread_and_the_only_one_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_in: list[threading.Thread] = []
    versions = ViewStore.versions

    def watched(store: ViewStore, view: str) -> dict[int, bool]:
        asked_in.append(threading.current_thread())
        return versions(store, view)

    monkeypatch.setattr(ViewStore, "versions", watched)
    with make_log(tmp_path) as log, make_views(tmp_path) as one, ViewStore(tmp_path / "other.db") as other:
        assert asyncio.run(locate(asking(Served(log, {}, {"shop": one})))) == ("stock", one)
        assert asyncio.run(locate(asking(Served(log, {}, {"a": one, "b": other}), b"pipeline=b")))[1] is other
        assert asked_in == []
        assert asyncio.run(locate(asking(Served(log, {}, {"shop": one, "audit": other})))) == ("stock", one)
    assert asked_in and threading.main_thread() not in asked_in


def asking(served: Served, query: bytes = b"") -> HTTPConnection:
    app = Starlette()
    app.state.served = served
    scope = {
        "type": "http",
        "app": app,
        "path_params": {"view": "stock"},
        "query_string": query,
        "headers": [],
    }
    return HTTPConnection(scope)
