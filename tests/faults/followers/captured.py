"""Captures the tables of the load until it is killed: ``captured.py DATABASE LOG``."""

from __future__ import annotations

import sys
import threading
from functools import partial

from headwater import schema
from headwater.capture import snapshot
from headwater.capture.capture import Capture
from headwater.capture.opening import open_capture
from headwater.capture.state import load
from headwater.capture.worker import CaptureWorker
from headwater.capture.writing.captured_table import CapturedTable
from headwater.log.open import open as open_log

NAME = "bank"
COLUMNS = {
    "accounts": "id BIGINT, balance BIGINT, rate DECIMAL(20,2), note STRING",
    "people": "id BIGINT, name STRING, account BIGINT, bio STRING",
    "moves": "id BIGINT, account BIGINT, amount BIGINT",
}
TABLES = [CapturedTable(name, name, schema.parse(columns), ("id",)) for name, columns in COLUMNS.items()]

snapshot.CHUNK_ROWS = 500


def opened(database: str, log: str) -> Capture:
    """Open the capture where it ended."""
    return open_capture(database, log, NAME, TABLES)


def requests(log: str) -> int:
    """Return how often somebody has asked for a new snapshot."""
    with open_log(log) as found:
        state = load(found, NAME)
    return 0 if state is None else state.requests


if __name__ == "__main__":
    where = sys.argv[1:]
    CaptureWorker(NAME, partial(opened, *where), partial(requests, where[1])).run(threading.Event())
