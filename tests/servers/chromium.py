"""Chromium for tests of pages: the machine's own, else Debian's, unpacked into ``.cache/chromium``.

Invariant: it calls nobody but the servers that a test names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

import debian_packages

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class NoChromium(Exception):
    """The machine has no Chromium, and cannot fetch one."""


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Start a browser without a window."""
    program, environment = _program()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_SWITCHES), env=environment)
        try:
            yield browser
        finally:
            browser.close()


def _program() -> tuple[str, dict[str, str]]:
    """Return a Chromium, and the environment to start it in."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is not None:
        return program, dict(os.environ)
    try:
        folder = debian_packages.unpacked("chromium", debian_packages.with_dependencies("chromium"))
    except debian_packages.NoPackages as error:
        raise NoChromium(f"no Chromium on this machine, and {error}: apt-get install chromium") from None
    return str(folder / "usr/lib/chromium/chromium"), {**os.environ, **debian_packages.environment(folder)}
