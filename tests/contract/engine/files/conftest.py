"""The places that files of a state may be: a directory, and a bucket of a real S3 server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from faulty_http import FaultyServer, faulty_http
from headwater.engine.files import store_calls
from headwater.engine.files.home_files import HomeFiles
from headwater.engine.files.opening import open_files

Opened = Callable[[], HomeFiles]


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Credentials, and a disk of the test's own to fetch to."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wonderland-7391")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HEADWATER_FETCHED", str(tmp_path / "fetched"))
    return tmp_path / "fetched"


@pytest.fixture(params=["directory", "s3"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Opens the same files, as often as it is called."""
    if request.param == "directory":
        location = str(tmp_path / "state")
    else:
        s3 = request.getfixturevalue("s3")
        location = f"s3://{s3.new_bucket()}/shop/state?endpoint={s3.endpoint}"
    return lambda: open_files(location)


@pytest.fixture
def files(opened: Opened) -> HomeFiles:
    made = opened()
    made.make()
    return made


@pytest.fixture
def proxy(s3: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    monkeypatch.setattr(store_calls, "PATIENCE_SECONDS", 2.0)
    with faulty_http(s3.port) as server:
        yield server


@pytest.fixture
def faulty(s3: Any, proxy: FaultyServer) -> HomeFiles:
    """Files in a bucket of which requests may fail."""
    return open_files(f"s3://{s3.new_bucket()}/shop/state?endpoint={proxy.endpoint}")
