"""Listens for deliveries until it is killed: ``webhook_worker.py LOG PORT``."""

from __future__ import annotations

import sys
import threading

import headwater
from headwater import ingest
from headwater.ingest import WebhookSettings

if __name__ == "__main__":
    url, port = sys.argv[1:]
    settings = WebhookSettings("env:HOOK_SECRET", listen=f"127.0.0.1:{port}")
    with headwater.open(url) as log, ingest.open_webhook("hook", "hooks", log=log, settings=settings) as work:
        work.run(threading.Event())
