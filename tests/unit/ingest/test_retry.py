"""What waiting mends is waited for."""

from __future__ import annotations

import threading

import pytest

from headwater.backoff import Backoff
from headwater.errors import LogRefused, LogUnavailable
from headwater.ingest import retry
from headwater.ingest.retry import retry_while_away


def test_a_log_that_comes_back_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BACKOFF", Backoff(0.001, 0.001))
    failures = [LogUnavailable("away"), LogUnavailable("away")]

    def call() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert retry_while_away(call, threading.Event()) == "done"


@pytest.mark.parametrize(("error", "stopped"), [(LogRefused("no"), False), (LogUnavailable("away"), True)])
def test_what_waiting_does_not_mend_is_raised_and_so_is_all_when_it_is_to_end(
    error: LogUnavailable, stopped: bool
) -> None:
    stop = threading.Event()
    if stopped:
        stop.set()

    def call() -> None:
        raise error

    with pytest.raises(LogUnavailable):
        retry_while_away(call, stop)
