"""Captures an outbox until it is killed: ``outbox_worker.py DATABASE LOG KEEP``."""

from __future__ import annotations

import sys
import threading

from headwater import topic as topics
from headwater.capture import snapshot
from headwater.capture.capture import Capture
from headwater.capture.opening import open_capture
from headwater.capture.outbox import cleaning
from headwater.capture.outbox.captured_outbox import CapturedOutbox
from headwater.capture.worker import CaptureWorker

NAME = "till"
DECLARED = topics.create("sales", "n BIGINT, committed_at TIMESTAMP", key="n", event_time="committed_at")

snapshot.CHUNK_ROWS = 50
cleaning.ROWS = 20


def opened(database: str, log: str, delete: bool) -> Capture:
    """Open the capture where it ended."""
    outbox = CapturedOutbox("outbox", DECLARED, "payload", delete=delete)
    return open_capture(database, log, NAME, [outbox])


if __name__ == "__main__":
    database, log, keep = sys.argv[1:]
    CaptureWorker(NAME, lambda: opened(database, log, keep != "keep")).run(threading.Event())
