"""Whether axe finds a fault in a page, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

Scheme = Literal["light", "dark"]
TROUBLED: Sequence[tuple[Scheme, int]] = (("light", 1280), ("dark", 390))
RUNNING: Sequence[tuple[Scheme, int]] = (("dark", 1280), ("light", 390))
"""Colour schemes and widths: either server's pages are looked at in both of each."""
_ONLY_VIOLATIONS = {"resultTypes": ["violations"]}


def violations(page: Page, looks: Sequence[tuple[Scheme, int]]) -> list[str]:
    """Return what axe finds, each time with where."""
    found = []
    for scheme, width in looks:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 900})
        for each in Axe().run(page, options=_ONLY_VIOLATIONS).response["violations"]:
            where = "; ".join(" ".join(node["target"]) for node in each["nodes"][:3])
            found.append(f"{scheme} {width}: {each['id']}: {each['help']} ({where})")
    return found


def overflow(page: Page, width: int) -> int:
    """Return by how many pixels a page is wider than its window."""
    page.set_viewport_size({"width": width, "height": 800})
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
