"""Captures a table of accounts until it is killed: ``capture_worker.py DATABASE LOG``."""

from __future__ import annotations

import sys
import threading

import pyarrow as pa

from headwater.capture import snapshot
from headwater.capture.capture import Capture
from headwater.capture.opening import open_capture
from headwater.capture.worker import CaptureWorker
from headwater.capture.writing.captured_table import CapturedTable

NAME = "bank"
SCHEMA = pa.schema([("id", pa.int64()), ("version", pa.int64()), ("note", pa.string())])
ACCOUNTS = CapturedTable("accounts", "accounts", SCHEMA, ("id",), history=True)

snapshot.CHUNK_ROWS = 50


def opened(database: str, log: str) -> Capture:
    """Open the capture where it ended."""
    return open_capture(database, log, NAME, [ACCOUNTS])


if __name__ == "__main__":
    database, log = sys.argv[1:]
    CaptureWorker(NAME, lambda: opened(database, log)).run(threading.Event())
