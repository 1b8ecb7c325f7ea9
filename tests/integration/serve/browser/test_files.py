"""The browser client's file as a browser gets it; ``tests/browser`` runs it."""

from __future__ import annotations

import urllib.request
from pathlib import Path

from headwater.serve.server import Server
from push_kit import Shop


def test_the_module_is_served_as_a_script_of_a_few_kilobytes(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with (
        Server(shop.served()) as server,
        urllib.request.urlopen(f"{server.url}/client/headwater.js") as answer,
    ):
        body = answer.read()
    shop.close()
    assert answer.headers["content-type"].startswith("text/javascript")
    assert b"export function view" in body and len(body) < 12_000
