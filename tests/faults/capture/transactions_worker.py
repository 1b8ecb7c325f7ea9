"""Captures accounts and entries, and tells whole transactions, until it is killed: ``… DATABASE LOG``."""

from __future__ import annotations

import sys
import threading

import pyarrow as pa

from headwater.capture.capture import Capture
from headwater.capture.opening import open_capture
from headwater.capture.settings import CaptureSettings
from headwater.capture.worker import CaptureWorker
from headwater.capture.writing.captured_table import CapturedTable

NAME = "ledger"
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
TABLES = [CapturedTable(name, name, SCHEMA, ("id",)) for name in ("accounts", "entries")]


def opened(database: str, log: str) -> Capture:
    """Open the capture where it ended."""
    return open_capture(database, log, NAME, TABLES, CaptureSettings(transactions=True))


if __name__ == "__main__":
    database, log = sys.argv[1:]
    CaptureWorker(NAME, lambda: opened(database, log)).run(threading.Event())
