"""Which log and which views a server serves."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from headwater import Pipeline, ServeSettings
from headwater.errors import UsageError
from serve_kit import call, make_log, make_views

PORT = ServeSettings(port=0)


def test_a_log_is_served_with_the_views_beside_it_or_those_of_a_pipeline(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    url = f"file:{tmp_path / 'data'}"
    with make_views(tmp_path):
        with headwater.open_server(log=url, settings=PORT) as server:
            assert call(server.url, "GET", "/v1/views/stock/a/i%2F0").status == 200
        with headwater.open_server(Pipeline("shop", log=url), settings=PORT) as server:
            assert call(server.url, "GET", "/v1/views").json()["views"][0]["pipeline"] == "shop"


def test_one_server_has_one_log(tmp_path: Path) -> None:
    one, other = (Pipeline(name, log=f"file:{tmp_path / name}") for name in ("a", "b"))
    with pytest.raises(UsageError):
        headwater.open_server(one, other, settings=PORT)
    with pytest.raises(UsageError):
        headwater.open_server(one, log="file:data", settings=PORT)
