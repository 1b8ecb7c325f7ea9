"""A server over a pipeline that looks as if it ran, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import headwater
from figures_kit import note, orders_shop
from headwater import Pipeline
from headwater.serve.app import create_app
from headwater.serve.http.served import Served


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    """A pipeline of which figures were noted just now."""
    made = orders_shop(tmp_path)
    note(made)
    return made


@pytest.fixture
def client(shop: Pipeline) -> Iterator[TestClient]:
    """A client of a server of the pipeline."""
    served = Served(headwater.open(shop.log), {"shop": shop}, {"shop": headwater.open_views(shop)})
    with served, TestClient(create_app(served), base_url="http://127.0.0.1") as client:
        yield client
