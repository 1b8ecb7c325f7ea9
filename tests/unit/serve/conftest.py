"""A server for all tests of a module: a log of two topics, a view of ten rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater import Server
from serve_kit import make_log, make_views, serving


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Server]:
    make_log(root).close()
    with make_views(root), serving(root, body_bytes=100_000) as server:
        yield server
