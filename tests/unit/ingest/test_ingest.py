"""What every way in does."""

from __future__ import annotations

import threading

import pytest

import headwater
from headwater.ingest import ingest
from headwater.ingest.checkpoints import load_checkpoint
from headwater.ingest.ingest import Ingest


class Counting(Ingest):
    """Counts to three."""

    def _run(self, stop: threading.Event) -> None:
        for _ in range(3):
            self.counts.add(rows=1)
            self.checkpoint()


def test_counts_outlive_a_restart_and_the_last_note_says_that_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ingest, "CHECKPOINT_SECONDS", 0.0)
    with headwater.open("memory:") as log:
        for runs in (1, 2):
            with Counting(log, "n", "test:") as work:
                assert work.status().state == "running"
                work.run(threading.Event())
            note = load_checkpoint(log, "n")
            assert note is not None
            assert (note.state, note.counts) == ("ended", {"rows": 3 * runs})
