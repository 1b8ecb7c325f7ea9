"""A way in at work in a thread of its own."""

from __future__ import annotations

import threading

import pytest

import headwater
from headwater.errors import LogRefused
from headwater.ingest.background import BackgroundIngest
from headwater.ingest.ingest import Ingest


class Waiting(Ingest):
    """Waits until it is stopped, or fails."""

    fails = False

    def _run(self, stop: threading.Event) -> None:
        if self.fails:
            raise LogRefused("no")
        stop.wait()
        self.counts.add(rows=1)


def test_closing_waits_until_it_has_ended() -> None:
    with headwater.open("memory:") as log:
        with BackgroundIngest(Waiting(log, "n", "test:")) as work:
            assert not work.ended()
        assert work.status().counts == {"rows": 1}
        assert work.status().state == "ended"


def test_why_it_failed_is_raised() -> None:
    with headwater.open("memory:") as log:
        waiting = Waiting(log, "n", "test:")
        waiting.fails = True
        work = BackgroundIngest(waiting)
        with pytest.raises(LogRefused):
            work.result()
        with pytest.raises(LogRefused):
            work.close()
