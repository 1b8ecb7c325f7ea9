"""Follows a file into a topic until it is killed: ``lines_worker.py LOG PATH``."""

from __future__ import annotations

import sys
import threading

import headwater
from headwater import ingest
from headwater.ingest import IngestSettings
from headwater.ingest.lines import file

file.PIECE = 4096
file.NOTED_SECONDS = 0.05
file.SETTLED_SECONDS = 0.05
file.IDLE_SECONDS = 0.02

if __name__ == "__main__":
    url, path = sys.argv[1:]
    settings = IngestSettings(follow=True, on_error="dead_letter")
    with headwater.open(url) as log, ingest.open(f"file:{path}", "lines", log=log, settings=settings) as work:
        work.run(threading.Event())
