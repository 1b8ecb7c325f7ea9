"""The browser client in Chromium: live, through a killed server, across reloads, offline, sends once."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route

from push_kit import Shop
from server_process import free_ports

EXAMPLE = Path(__file__).parents[2] / "examples" / "browser"
SERVER = """
import sys, headwater
from headwater.serve.http.served import Served
from headwater.serve.server import Server
home, port = sys.argv[1:]
log, views = headwater.open(f"file:{home}/log"), headwater.open_views(home + "/views.db")
settings = headwater.ServeSettings(port=int(port))
Server(Served(log, {}, {"shop": views}, settings)).wait()
"""
COUNTS = "[...document.querySelectorAll('#rows tr')].map((row) => row.innerText.split('\\t').join(' '))"
LIVE = "document.getElementById('state').textContent === 'live'"


class ServerProcess:
    """A server that can be killed and started again at the same address."""

    def __init__(self, home: Path):
        [self._port] = free_ports(1)
        self._home, self.url = home, f"http://127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-c", SERVER, str(self._home), str(self._port)]
        self._process = subprocess.Popen(command)
        while self._process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/v1/health", timeout=1):
                return
            time.sleep(0.05)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    shop = Shop(tmp_path_factory.mktemp("shop"))
    shop.commit(("Oslo", 1, 1))
    yield shop
    shop.close()


@pytest.fixture(scope="module")
def server(shop: Shop) -> Iterator[ServerProcess]:
    server = ServerProcess(shop.home)
    yield server
    server.kill()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    context.set_default_timeout(15_000)
    yield context
    context.close()


def opened(context: BrowserContext, server: ServerProcess) -> Page:
    """Open the example, whose files are served by the test at the server's own address."""

    def example(route: Route) -> None:
        route.fulfill(path=EXAMPLE / (route.request.url.rpartition("/")[2] or "index.html"))

    page = context.new_page()
    page.route("**/example/*", example)
    page.goto(f"{server.url}/example/")
    page.wait_for_function(LIVE)
    return page


def shows(page: Page, *rows: str, within: float = 15_000) -> None:
    wanted = ",".join(f"'{row}'" for row in rows)
    page.wait_for_function(f"[{wanted}].every((row) => {COUNTS}.includes(row))", timeout=within)


def test_a_change_is_shown_within_two_seconds(
    context: BrowserContext, server: ServerProcess, shop: Shop
) -> None:
    page = opened(context, server)
    shows(page, "Oslo 1 1")
    shop.commit(("Oslo", 1, 2), ("Rome", 1, 5))
    shows(page, "Oslo 1 2", "Rome 1 5", within=2_000)


def test_after_a_killed_server_nothing_is_missed_or_repeated(
    context: BrowserContext, server: ServerProcess, shop: Shop
) -> None:
    page = opened(context, server)
    page.evaluate(
        """async () => {
          const { view } = await import("/client/headwater.js");
          window.seen = [];
          window.counted = view("totals", "Bonn");
          counted.addEventListener("change", ({ detail }) => detail.sequence && seen.push(detail.new.n));
          while (!window.counted.ready) await new Promise((resolve) => setTimeout(resolve, 10));
        }"""
    )
    shop.commit(("Bonn", 1, 1))
    page.wait_for_function("seen.length === 1")
    server.kill()
    page.wait_for_function("!counted.live")
    shop.commit(("Bonn", 1, 2))
    shop.commit(("Bonn", 1, 3))
    server.start()
    page.wait_for_function("seen.length === 3")
    shop.commit(("Bonn", 1, 4))
    page.wait_for_function("seen.length >= 4")
    assert page.evaluate("seen") == [1, 2, 3, 4]
    assert page.evaluate("counted.rows.map((row) => row.n)") == [4]


def test_rows_outlive_a_reload_and_what_was_missed_offline_is_caught_up(
    context: BrowserContext, server: ServerProcess, shop: Shop
) -> None:
    shop.commit(("Wien", 1, 1))
    page = opened(context, server)
    shows(page, "Wien 1 1")
    server.kill()  # only what is in IndexedDB can be shown now
    page.wait_for_function(f"!({LIVE})")
    page.evaluate(
        """async () => {
          const { view } = await import("/client/headwater.js");
          window.again = view("totals");
          while (!window.again.ready) await new Promise((resolve) => setTimeout(resolve, 10));
        }"""
    )
    assert {"city": "Wien", "day": 1, "n": 1} in page.evaluate("again.rows")
    server.start()
    page.wait_for_function(LIVE)
    context.set_offline(True)
    page.wait_for_function(f"!({LIVE})")
    shop.commit(("Wien", 1, 2), ("Wien", 2, 9))
    context.set_offline(False)
    shows(page, "Wien 1 2", "Wien 2 9")


def test_what_is_sent_offline_is_delivered_once(
    context: BrowserContext, server: ServerProcess, shop: Shop
) -> None:
    page = opened(context, server)
    before = shop.log.resolve("orders", "latest")
    context.set_offline(True)
    for city in ("Pisa", "Lima"):
        page.fill("[name=city]", city)
        page.click("button")
        page.wait_for_function("document.getElementById('sent').textContent.endsWith('waiting')")
    assert list(shop.log.read("orders", start=before)) == []
    context.set_offline(False)
    page.wait_for_function("document.getElementById('sent').textContent === 'delivered'")
    page.evaluate(
        """async () => {
          const { pending } = await import("/client/headwater.js");
          while (await pending()) await new Promise((resolve) => setTimeout(resolve, 10));
        }"""
    )
    sent = [row["city"] for batch in shop.log.read("orders", start=before) for row in batch.to_pylist()]
    assert sorted(sent) == ["Lima", "Pisa"]


def test_an_answer_that_is_lost_leads_to_no_second_event(
    context: BrowserContext, server: ServerProcess, shop: Shop
) -> None:
    page, lost = opened(context, server), []

    def lose(route: Route) -> None:
        if not lost:
            lost.append(route.fetch().status)  # the server has it, the page never hears of it
            route.abort()
        else:
            route.continue_()

    page.route("**/v1/topics/orders", lose)
    before = shop.log.resolve("orders", "latest")
    page.fill("[name=city]", "Kyiv")
    page.click("button")
    page.wait_for_function("document.getElementById('sent').textContent === 'delivered'")
    sent = [row["city"] for batch in shop.log.read("orders", start=before) for row in batch.to_pylist()]
    assert lost == [200] and sent == ["Kyiv"]
