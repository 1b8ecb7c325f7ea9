from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import headwater
from headwater import Log
from headwater.cli import main

Run = Callable[..., Result]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file:{tmp_path}/data"


@pytest.fixture
def run(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command against the test's own log."""
    monkeypatch.setenv("HEADWATER_LOG", url)
    monkeypatch.chdir(tmp_path)

    def invoke(*args: object, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(main, [str(arg) for arg in args], input=input)

    return invoke


@pytest.fixture
def log(url: str) -> Iterator[Log]:
    with headwater.open(url) as opened:
        yield opened


@pytest.fixture
def orders(log: Log) -> Log:
    """A log with an empty topic ``orders``."""
    log.create_topic("orders", "id BIGINT NOT NULL, item STRING, at TIMESTAMP", key="id", event_time="at")
    return log
