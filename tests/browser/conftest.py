"""A browser for each file, and pages that fail a test which leaves an error in their console."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import Browser, ConsoleMessage, Page

from chromium import NoChromium, running_chromium
from fake_api import fake_api
from server_process import free_ports, or_skipped

PATIENCE = 10_000
"""Milliseconds that a page has to show what it should."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for a file: while it is there, an event loop runs in this thread, and nobody else's can."""
    with or_skipped("browser", running_chromium(), NoChromium) as started:
        yield started


@pytest.fixture
def expected_errors() -> list[str]:
    """Parts of messages that a test expects in the console: a server that is away is told there."""
    return []


@pytest.fixture
def page(browser: Browser, expected_errors: list[str]) -> Iterator[Page]:
    """An empty page of its own context."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    opened, errors = context.new_page(), list[str]()

    def listen(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(message.text)

    opened.on("console", listen)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    try:
        yield opened
    finally:
        opened.unroute_all(behavior="ignoreErrors")
        context.close()
    assert [each for each in errors if not any(part in each for part in expected_errors)] == []


@pytest.fixture(scope="session")
def troubled() -> Iterator[str]:
    """The address of the page over a pipeline in all sorts of trouble, with invented figures."""
    [port] = free_ports(1)
    server = uvicorn.Server(uvicorn.Config(fake_api(), port=port, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.force_exit = server.should_exit = True  # streams of events have no end
        thread.join()
