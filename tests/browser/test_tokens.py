"""The dashboard of a server that asks for a token: what it says, and what it shows to whom, live."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, Route, expect

import headwater
from accessibility import RUNNING, overflow, violations
from figures_kit import COLUMNS, note, orders_shop
from headwater import Pipeline
from headwater.sinks import Batch
from headwater.views import ViewStore
from server_process import stop

FILE = '''
from headwater import Pipeline

shop = Pipeline("shop", log="file:./data")
shop.source("orders", "id BIGINT, item STRING, at TIMESTAMP", event_time="at", lateness="1 second")


@shop.view(key="id", on_error="dead_letter")
def seen(orders):
    """Orders that were seen."""
    return orders
'''
NODE, TOPIC, VIEW = "pipelines/shop/nodes/seen", "topics/orders", "views/seen"
OPERATIONS = ("Verify…", "Rebuild…", "Reset…", "Redrive…")


@dataclass(frozen=True)
class GuardedShop:
    """A server that asks for tokens, over a pipeline that looks as if it ran."""

    folder: Path
    address: str
    pipeline: Pipeline

    def token(self, name: str, *scopes: str) -> str:
        """Make a token, as somebody does who runs a server."""
        asked = [part for scope in scopes for part in ("--scope", scope)]
        return self._headwater("create", name, *asked)

    def revoke(self, name: str) -> None:
        self._headwater("revoke", name)

    def open(self, page: Page, where: str, token: str) -> None:
        """Open a page, and show a token when it is asked for."""
        page.goto(f"{self.address}#/{where}")
        show(page, token)

    def commit(self, number: int, item: str) -> None:
        """Let the view have one more row."""
        rows = {"id": [number], "item": [item], "at": pa.array([number], pa.timestamp("us", "UTC"))}
        with ViewStore(self.pipeline.home / "views.db") as store, store.sink("seen", COLUMNS, "id") as sink:
            sink.commit(Batch(sink.begin() + 1, pa.table(rows)))

    def _headwater(self, *command: str) -> str:
        whole = [sys.executable, "-m", "headwater", "token", *command, "--token-file", "tokens.json"]
        done = subprocess.run(whole, cwd=self.folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[GuardedShop]:
    folder = tmp_path_factory.mktemp("guarded")
    pipeline = orders_shop(folder)
    note(pipeline)
    (folder / "shop.py").write_text(FILE)
    with headwater.open(pipeline.log) as log:
        log.seek("mailer", "orders", "earliest")
    GuardedShop(folder, "", pipeline).token("first", "read:*")
    command = [sys.executable, "-m", "headwater", "serve", "shop.py", "--port", "0"]
    asking = [*command, "--token-file", "tokens.json"]
    with subprocess.Popen(asking, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield GuardedShop(folder, process.stderr.readline().split()[-1] + "/", pipeline)
        finally:
            stop(process)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def reader(shop: GuardedShop) -> str:
    return shop.token("reader", "read:*")


@pytest.fixture(scope="module")
def operator(shop: GuardedShop) -> str:
    return shop.token("operator", "operate", "send:orders")


@pytest.fixture(autouse=True)
def refusals(expected_errors: list[str]) -> None:
    """A browser tells of every refusal in its console."""
    expected_errors.append("401")


def show(page: Page, token: str) -> None:
    page.get_by_role("dialog").get_by_label("Token").fill(token)
    page.get_by_role("dialog").get_by_role("button", name="Continue").click()


def test_a_token_is_asked_for_and_a_wrong_one_is_told(page: Page, shop: GuardedShop, reader: str) -> None:
    shop.open(page, "", "hw_wrong")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("This token is not known")
    expect(dialog.get_by_role("alert")).to_contain_text("headwater token create")
    assert violations(page, RUNNING) == []
    dialog.get_by_label("Token").fill("no word")
    dialog.get_by_role("button", name="Continue").click()
    expect(dialog).to_be_visible()  # the browser says why
    show(page, reader)
    expect(dialog).to_have_count(0)
    expect(page.locator("main")).to_contain_text("shop, in the direction of the data")
    page.reload()
    expect(page.locator("main")).to_contain_text("shop, in the direction of the data")


def test_who_may_only_read_is_offered_nothing_else(page: Page, shop: GuardedShop, reader: str) -> None:
    shop.open(page, NODE, reader)
    expect(page.locator("main")).to_contain_text("The token reader does not allow to operate.")
    expect(page.get_by_role("heading", name="Dead rows")).to_be_visible()
    for name in OPERATIONS:
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    assert violations(page, RUNNING) == [] and overflow(page, 360) == 0
    page.goto(f"{shop.address}#/{TOPIC}")
    expect(page.locator("main")).to_contain_text("The token reader does not allow to send to orders.")
    expect(page.locator("td", has_text="mailer")).to_be_visible()
    expect(page.get_by_role("button", name="Seek group mailer")).to_have_count(0)
    expect(page.get_by_role("button", name="Send event")).to_have_count(0)
    page.goto(f"{shop.address}#/operations")
    expect(page.locator("main")).to_contain_text("The token reader does not allow to see operations.")


def test_a_topic_that_is_left_before_its_records_have_come_leaves_no_error(
    page: Page, shop: GuardedShop, reader: str
) -> None:
    asked: list[Route] = []
    page.route("**/records?*", lambda route: asked.append(route))  # and nobody answers
    shop.open(page, TOPIC, reader)
    expect(page.get_by_text("No record has come yet.")).to_be_visible()
    assert asked
    page.goto(f"{shop.address}#/operations")
    expect(page.locator("main")).to_contain_text("does not allow to see operations")


def test_what_is_not_offered_is_refused_too(
    page: Page, shop: GuardedShop, reader: str, expected_errors: list[str]
) -> None:
    expected_errors.append("403")
    shop.open(page, NODE, reader)
    expect(page.locator("main")).to_contain_text("does not allow to operate")
    statuses = page.evaluate(
        """async (paths) => {
          const headers = { Authorization: `Bearer ${sessionStorage.getItem("headwater-token")}` };
          const post = (path) => fetch(path, { method: "POST", headers, body: '{"to": "latest"}' });
          return Promise.all(paths.map(async (path) => (await post(path)).status));
        }""",
        ["v1/pipelines/shop/nodes/seen/redrive", "v1/topics/orders/groups/mailer/seek", "v1/topics/orders"],
    )
    assert statuses == [403, 403, 403]
    assert committed(shop) == 0 and records(shop) == 2


def committed(shop: GuardedShop) -> int:
    with headwater.open(shop.pipeline.log) as log:
        return int(log.lag("mailer")[0].committed or 0)


def records(shop: GuardedShop) -> int:
    with headwater.open(shop.pipeline.log) as log:
        return sum(log.resolve("orders", "latest").offsets.values())


def test_a_view_is_live_for_who_may_read(page: Page, shop: GuardedShop, reader: str) -> None:
    shop.open(page, VIEW, reader)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    shop.commit(3, "samovar")
    expect(page.locator("tr.new", has_text="samovar")).to_be_visible()


def test_a_ticket_lets_a_page_follow_by_the_browser_s_own_event_source(
    page: Page, shop: GuardedShop, reader: str
) -> None:
    shop.open(page, VIEW, reader)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.evaluate(
        """async () => {
          const headers = { Authorization: `Bearer ${sessionStorage.getItem("headwater-token")}` };
          const { ticket } = await (await fetch("v1/tickets", { method: "POST", headers })).json();
          const url = `v1/views/seen/changes?${new URLSearchParams({ ticket })}`;
          const ready = await new Promise((resolve, reject) => {
            window.source = new EventSource(url);
            window.source.addEventListener("ready", resolve);
            window.source.onerror = () => reject(new Error("refused"));
          });
          window.told = new Promise((resolve) => {
            window.source.addEventListener("change", (event) => resolve(JSON.parse(event.data).new.item));
          });
          return ready.type;
        }"""
    )
    shop.commit(4, "kettle")
    assert page.evaluate("window.told") == "kettle"
    page.evaluate("window.source.close()")


def test_who_may_operate_moves_a_group_and_sends_an_event(
    page: Page, shop: GuardedShop, operator: str
) -> None:
    shop.open(page, TOPIC, operator)
    page.get_by_role("button", name="Seek group mailer").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("to:").fill("latest")
    dialog.get_by_role("button", name="Seek", exact=True).click()
    expect(dialog).to_contain_text("osition: orders")
    dialog.get_by_role("button", name="Close").click()
    assert committed(shop) == records(shop) == 2
    page.get_by_label("id ·").fill("9")
    page.get_by_role("button", name="Send event").click()
    expect(page.locator(".says")).to_contain_text("Sent")
    assert records(shop) == 3
    page.goto(f"{shop.address}#/{NODE}")
    for name in OPERATIONS:
        expect(page.get_by_role("button", name=name)).to_be_visible()


def test_another_token_is_shown_by_a_button(
    page: Page, shop: GuardedShop, reader: str, operator: str
) -> None:
    shop.open(page, NODE, reader)
    page.get_by_role("button", name="Use another token").click()
    show(page, operator)
    expect(page.get_by_role("button", name="Verify…")).to_be_visible()


def test_a_token_that_was_revoked_is_asked_for_anew(page: Page, shop: GuardedShop, reader: str) -> None:
    guest = shop.token("guest", "read:*")
    shop.open(page, "", guest)
    expect(page.locator("main")).to_contain_text("shop, in the direction of the data")
    shop.revoke("guest")
    expect(page.get_by_role("dialog")).to_contain_text("This token is not known")
    show(page, reader)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_token_for_one_view_is_told_what_it_lacks(
    page: Page, shop: GuardedShop, expected_errors: list[str]
) -> None:
    expected_errors.append("403")
    shop.open(page, "", shop.token("narrow", "read:seen"))
    expect(page.get_by_role("alert")).to_contain_text('The token does not allow "read:*"')
    expect(page.get_by_role("button", name="Use another token")).to_be_visible()
