"""Where a server keeps what it has to know."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.serve.settings import state_home

BROKER = "kafka://b1.example:9092,b2.example:9092"


def test_state_is_within_a_log_in_a_directory() -> None:
    assert state_home("file:/srv/data") == Path("/srv/data/serve")


def test_state_for_a_broker_is_in_one_place_wherever_the_server_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    home = state_home(BROKER)
    monkeypatch.chdir(tmp_path)
    assert state_home(BROKER) == home and home.parent == tmp_path / "headwater" / "serve"
    assert state_home("kafka://b2.example:9092,b1.example:9092?sasl.password=secret") == home
    assert state_home("kafka://b3.example:9092") != home
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert state_home(BROKER) == Path.home() / ".local" / "state" / "headwater" / "serve" / home.name
