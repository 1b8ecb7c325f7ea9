"""A picture of the dashboard for the documentation: ``python tools/screenshot.py ADDRESS FILE``.

It waits until rates are known, so that what it shows moves.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "servers"))

from chromium import running_chromium

WIDTH, SETTLED = 1280, 12_000
"""Pixels; milliseconds until rates are those of some batches."""


def main(address: str, file: str) -> None:
    """Write a picture of the pipeline's page."""
    with running_chromium() as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.goto(address)
        page.wait_for_selector(".node")
        page.wait_for_timeout(SETTLED)
        page.screenshot(path=file, full_page=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
