"""Headwater's side of ``bench/capture.py``: ``capture_child.py KIND URL LOG TABLE [COUNT]``."""

from __future__ import annotations

import json
import resource
import sys
import threading
import time

import pyarrow as pa

import headwater
from headwater.capture.opening import open_capture
from headwater.capture.writing.captured_table import CapturedTable

SCHEMA = pa.schema([("id", pa.int64()), ("bid", pa.int32()), ("balance", pa.int32()),
                    ("filler", pa.string()), ("at", pa.float64())])  # fmt: skip


def catch_up(url: str, log: str, table: str) -> None:
    """Capture what there is, durably, and print what it took from when it was open on."""
    with open_capture(url, log, table, [captured(table)]) as capture:
        began, before = time.time(), cpu()
        capture.catch_up()
        seconds, spent = time.time() - began, cpu() - before
        found = capture.changes or capture.state.snapshots[table].rows
    print(json.dumps({"count": found, "seconds": seconds, "cpu": spent, "peak": peak()}))


def follow(url: str, log: str, table: str) -> None:
    """Capture until it is ended."""
    with open_capture(url, log, table, [captured(table)]) as capture:
        capture.run(threading.Event())


def delays(_: str, log: str, table: str, count: str) -> None:
    """Read the topic until so many rows have come, and print how old each was when it could be read."""
    found: list[float] = []
    with headwater.open(log) as opened:
        for batch in opened.read(table, follow=True, start="earliest"):
            now = time.time()
            rows = zip(batch.column("at").to_pylist(), batch.column("bid").to_pylist(), strict=True)
            found += [now - at for at, bid in rows if bid]
            if len(found) >= int(count):
                break
    print(json.dumps({"delays": found}))


def captured(table: str) -> CapturedTable:
    return CapturedTable(table, table, SCHEMA, ("id",))


def cpu() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def peak() -> float:
    # Not ru_maxrss: that starts with what the parent process had when it forked.
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    {"catch_up": catch_up, "follow": follow, "delays": delays}[sys.argv[1]](*sys.argv[2:])
