"""Notifications of a pipeline in Chromium: asked for on the page of a sink, shown by a real service worker.

No push service of a browser maker is reached from a test: what the browser would get from its own is set by a
script, and a message comes in by the DevTools protocol as it would from there, after decryption, which
``tests/unit/sinks/push`` shows.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

import headwater
from accessibility import RUNNING, overflow, violations
from browser_kit import SubscribedBrowser
from headwater import Pipeline, push
from headwater.sinks.push.subscriptions import PushSubscriptions
from server_process import stop

FILE = '''
from headwater import Pipeline, targets

shop = Pipeline("shop", log="file:./data")
shop.source("orders", "id BIGINT, item STRING")


@shop.sink(targets.push("{item} is out", "mailto:ops@shop.example", url="/stock/{item}"))
def alerts(orders):
    """Tells whoever keeps the stock that something is out."""
    return orders


@shop.sink(targets.parquet("./archive"))
def archive(orders):
    """All orders."""
    return orders
'''
PAGE = "#/pipelines/shop/nodes/alerts"
BROWSER = SubscribedBrowser("https://fcm.googleapis.com/fcm/send/of-this-browser")
STAND_IN = """
(() => {
  const stored = () => JSON.parse(sessionStorage.getItem("stand-in"));
  const bytes = (numbers) => (numbers ? new Uint8Array(numbers).buffer : null);
  const made = (found) =>
    found && {
      endpoint: found.json.endpoint,
      options: { applicationServerKey: bytes(found.key) },
      toJSON: () => found.json,
      unsubscribe: async () => sessionStorage.removeItem("stand-in") ?? true,
    };
  PushManager.prototype.subscribe = async function ({ applicationServerKey, userVisibleOnly }) {
    if (window.offline) throw new DOMException("Registration failed - push service error", "AbortError");
    if (!userVisibleOnly) throw new Error("a browser refuses that");
    const found = { json: SUBSCRIPTION, key: [...applicationServerKey] };
    sessionStorage.setItem("stand-in", JSON.stringify(found));
    return made(stored());
  };
  PushManager.prototype.getSubscription = async () => made(stored());
})();
""".replace("SUBSCRIPTION", json.dumps(BROWSER.subscription))
SHOWN = """async () => {
  const [registration] = await navigator.serviceWorker.getRegistrations();
  const shown = await registration.getNotifications();
  return shown.map(({ title, body, tag, data }) => ({ title, body, tag, url: data.url }));
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("alerting")
    (made / "shop.py").write_text(FILE)
    with headwater.open(f"file:{made / 'data'}") as log:
        log.create_topic("orders", "id BIGINT, item STRING")
    return made


@pytest.fixture(scope="module")
def address(folder: Path, browser: Browser) -> Iterator[str]:
    command = [sys.executable, "-m", "headwater", "serve", "shop.py", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield process.stderr.readline().split()[-1] + "/"
        finally:
            stop(process)  # type: ignore[arg-type]


@pytest.fixture
def shop(folder: Path) -> Pipeline:
    return Pipeline("shop", log=f"file:{folder / 'data'}")


@pytest.fixture
def asked(page: Page, address: str, shop: Pipeline) -> Iterator[Page]:
    """The page of the sink in a browser whose user allows notifications, and that knows a push service."""
    page.context.grant_permissions(["notifications"], origin=address.rstrip("/"))
    page.add_init_script(STAND_IN)
    page.goto(address + PAGE)
    yield page
    push.unsubscribe(shop, BROWSER.endpoint)


def told(shop: Pipeline) -> list[str]:
    with PushSubscriptions(shop.home) as stored:
        return stored.endpoints()


def turn_on(page: Page) -> None:
    page.get_by_role("button", name="Notify me in this browser").click()
    expect(page.locator(".notify")).to_contain_text("On: this browser shows")


class PushService:
    """Hands messages to the service worker of a page, as a browser does that got them."""

    def __init__(self, page: Page, address: str):
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._origin, self._registrations = address.rstrip("/"), list[dict[str, Any]]()
        self._session.on("ServiceWorker.workerRegistrationUpdated", self._updated)
        self._session.send("ServiceWorker.enable")
        while not self._registrations:
            page.wait_for_timeout(20)

    def deliver(self, text: str) -> None:
        [id] = {each["registrationId"] for each in self._registrations if not each["isDeleted"]}
        message = {"origin": self._origin, "registrationId": id, "data": text}
        self._session.send("ServiceWorker.deliverPushMessage", message)

    def _updated(self, event: dict[str, Any]) -> None:
        self._registrations += event["registrations"]


def notifications(page: Page, count: int) -> list[dict[str, str]]:
    """Return what is shown, when there is so much."""
    found: list[dict[str, str]] = []
    for _ in range(500):
        if len(found := page.evaluate(SHOWN)) == count:
            break
        page.wait_for_timeout(20)
    return found


def test_a_browser_is_told_of_turned_on_and_off(asked: Page, address: str, shop: Pipeline) -> None:
    expect(asked.locator(".notify")).to_contain_text("the browser can show it")
    assert violations(asked, RUNNING) == [] and overflow(asked, 360) == 0 and told(shop) == []
    turn_on(asked)
    assert told(shop) == [BROWSER.endpoint]
    key = asked.evaluate('JSON.parse(sessionStorage.getItem("stand-in")).key')
    assert bytes(key).hex().startswith("04") and len(key) == 65
    [scope] = asked.evaluate(
        "async () => (await navigator.serviceWorker.getRegistrations()).map((each) => each.scope)"
    )
    assert scope == f"{address}notifications/shop/"
    assert violations(asked, RUNNING) == []
    asked.get_by_role("button", name="Stop notifying me").click()
    expect(asked.get_by_role("button", name="Notify me in this browser")).to_be_visible()
    assert told(shop) == []


def test_a_server_that_has_forgotten_a_browser_is_told_again(asked: Page, shop: Pipeline) -> None:
    turn_on(asked)
    push.unsubscribe(shop, BROWSER.endpoint)
    asked.reload()
    expect(asked.locator(".notify")).to_contain_text("On: this browser shows")
    assert told(shop) == [BROWSER.endpoint]


def test_a_message_is_shown_once_and_a_click_opens_its_link(
    asked: Page, address: str, shop: Pipeline
) -> None:
    turn_on(asked)
    service = PushService(asked, address)
    message = {"title": "tea is out", "body": "3 are ordered", "url": "/stock/tea", "id": "msg_1"}
    for _ in range(2):  # at least once: the second has the same id
        service.deliver(json.dumps(message))
    service.deliver(
        json.dumps({**message, "title": "rum is out", "url": "javascript:alert(1)", "id": "msg_2"})
    )
    service.deliver("no JSON")
    shown = {each["title"]: each for each in notifications(asked, 3)}
    tea = {"title": "tea is out", "body": "3 are ordered", "tag": "msg_1", "url": f"{address}stock/tea"}
    assert len(shown) == 3 and shown["tea is out"] == tea
    own = f"{address}#/pipelines/shop"
    assert (shown["rum is out"]["url"], shown["Headwater"]["url"]) == (own, own)
    assert clicked(asked, "msg_1") == [f"{address}stock/tea"]
    assert {each["title"] for each in notifications(asked, 2)} == {"rum is out", "Headwater"}


def test_a_message_is_shown_while_no_page_of_the_dashboard_is_open(asked: Page, address: str) -> None:
    turn_on(asked)
    asked.goto(f"{address}v1/health")
    PushService(asked, address).deliver('{"title": "tea is out", "id": "msg_3"}')
    assert [each["title"] for each in notifications(asked, 1)] == ["tea is out"]


def clicked(page: Page, tag: str) -> list[str]:
    """Click on a notification, and return what was opened.

    A browser lets a worker open windows only after a click of a person, so it is written down instead.
    """
    [worker] = page.context.service_workers
    opened: list[str] = worker.evaluate(
        """async (tag) => {
          const opened = [];
          self.clients.openWindow = async (url) => opened.push(url);
          const [notification] = await self.registration.getNotifications({ tag });
          const event = new NotificationEvent("notificationclick", { notification });
          const waited = [];
          event.waitUntil = (work) => waited.push(work);
          self.dispatchEvent(event);
          await Promise.all(waited);
          return opened;
        }""",
        tag,
    )
    return opened


def test_a_push_service_that_is_not_reached_is_told(asked: Page, shop: Pipeline) -> None:
    asked.evaluate("window.offline = true")
    asked.get_by_role("button", name="Notify me in this browser").click()
    expect(asked.get_by_role("alert")).to_contain_text("The browser could not subscribe at its push service")
    expect(asked.get_by_role("alert")).to_contain_text("push service error")
    expect(asked.get_by_role("button", name="Notify me in this browser")).to_be_enabled()
    assert told(shop) == []


def test_a_server_that_refuses_leaves_the_browser_unsubscribed(
    asked: Page, shop: Pipeline, expected_errors: list[str]
) -> None:
    expected_errors.append("400")
    asked.route(
        "**/push/subscribe",
        lambda route: route.continue_(post_data=json.dumps({**BROWSER.subscription, "keys": {}})),
    )
    asked.get_by_role("button", name="Notify me in this browser").click()
    expect(asked.get_by_role("alert")).to_contain_text("This is no push subscription")
    assert asked.evaluate('sessionStorage.getItem("stand-in")') is None and told(shop) == []


def test_a_browser_that_was_told_not_to_says_what_to_do(page: Page, address: str) -> None:
    page.add_init_script('Object.defineProperty(Notification, "permission", { get: () => "denied" });')
    page.goto(address + PAGE)
    expect(page.locator(".notify")).to_contain_text("Allow them in its settings")
    expect(page.get_by_role("button", name="Notify me in this browser")).to_have_count(0)


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        ("delete window.PushManager", "has no notifications for pages"),
        ('Object.defineProperty(window, "isSecureContext", { value: false })', "pages that come by HTTPS"),
    ],
)
def test_a_browser_that_cannot_says_so(page: Page, address: str, lacking: str, words: str) -> None:
    page.add_init_script(lacking)
    page.goto(address + PAGE)
    expect(page.locator(".notify")).to_contain_text(words)
    expect(page.get_by_role("button", name="Notify me in this browser")).to_have_count(0)


def test_a_sink_that_sends_no_notifications_offers_none(page: Page, address: str) -> None:
    page.goto(f"{address}#/pipelines/shop/nodes/archive")
    expect(page.locator("h1")).to_have_text("archive")
    expect(page.locator(".notify")).to_have_count(0)


def test_a_sink_is_offered_what_can_be_asked_of_it(asked: Page) -> None:
    expect(asked.get_by_role("button", name="Rebuild…")).to_be_visible()
    for name in ("Verify…", "Reset…"):
        expect(asked.get_by_role("button", name=name)).to_have_count(0)
