"""Time that goes on though nothing is appended."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tests.unit.cli.conftest import Run

import headwater
from headwater.durations import micros


def marks(place: Path) -> list[int | None]:
    with headwater.open(f"file:{place / 'log'}") as log:
        return [each.newest for each in log.appended_ranges("rates", 0, 0) if each.mark]


def test_a_mark_promises_a_time_and_now_if_none_is_given(run: Run, tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'log'}"
    with headwater.open(url) as log:
        log.create_topic("rates", "land STRING, since TIMESTAMP", key="land", event_time="since")
        log.create_topic("plain", "id BIGINT")
    assert "2026-01-02T03:00:00Z" in run("mark", "rates", "2026-01-02T03:00:00Z", "--log", url).stdout
    before = micros(datetime.now(UTC))
    run("mark", "rates", "--producer-id", "office", "--log", url)
    first, second = marks(tmp_path)
    assert first == micros(datetime(2026, 1, 2, 3, tzinfo=UTC)) and second is not None and second >= before
    for wrong in ("12", "soon", "latest"):
        assert run("mark", "rates", wrong, "--log", url).stderr.startswith(f'error: invalid time "{wrong}"')
    assert run("mark", "plain", "--log", url).stderr.startswith('error: topic "plain" has no event time')
    assert run("mark", "nothing", "--log", url).exit_code == 1
