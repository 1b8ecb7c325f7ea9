"""Operations pressed on the page of a pipeline that runs: confirmed, followed, and found in log and store.

Each that needs Spark starts a process of its own beside the pipeline's, so each is tried once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import headwater
from headwater import open_views
from headwater_server import HeadwaterServer, start_headwater, wait_until
from server_process import stop

FILE = '''
from pathlib import Path

from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from headwater import Pipeline

MENDED = Path(__file__).with_name("mended")
shop = Pipeline("shop", log="file:./data")
shop.source("orders", "id BIGINT, amount STRING")


@F.udf(LongType(), useArrow=False)
def number(text):
    return 2 if text == "two" and MENDED.exists() else int(text)


@shop.view(key="id", on_error="dead_letter")
def amounts(orders):
    """The newest amount of each order."""
    return orders.withColumn("amount", number("amount"))
'''
ORDERS = 40
SPARK = 180_000
"""Milliseconds for what starts Spark."""


@dataclass(frozen=True)
class RunningShop:
    """A pipeline that runs, with two records that it has set aside, and a server of it."""

    folder: Path
    address: str

    @property
    def log(self) -> str:
        return f"file:{self.folder / 'data'}"

    def send(self, *rows: tuple[int, str]) -> None:
        with headwater.open(self.log) as log, log.producer("orders") as producer:
            producer.send_batch([{"id": id, "amount": amount} for id, amount in rows])

    def records(self) -> int:
        with headwater.open(self.log) as log:
            return sum(log.resolve("orders", "latest").offsets.values())

    def rows(self) -> dict[int, int]:
        with open_views(self.folder / "data" / "pipelines" / "shop") as views:
            return {row["id"]: row["amount"] for row in views["amounts"].scan().to_pylist()}

    def version(self) -> int:
        with open_views(self.folder / "data" / "pipelines" / "shop") as views:
            return next(number for number, seen in views.versions("amounts").items() if seen)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[RunningShop]:
    folder = tmp_path_factory.mktemp("operated")
    (folder / "shop.py").write_text(FILE)
    server = HeadwaterServer(folder, "shop.py")
    made = RunningShop(folder, server.address)
    with headwater.open(made.log) as log:
        log.create_topic("orders", "id BIGINT, amount STRING")
        log.seek("mailer", "orders", "earliest")
    made.send(*((n, "two" if n in (5, 17) else str(n)) for n in range(ORDERS)))
    pipeline = start_headwater(folder, "run", "shop.py")
    try:
        wait_until(lambda: running_with_rows(made, pipeline))
        server.start()
        yield made
    finally:
        server.stop()
        stop(pipeline, 30)


def running_with_rows(shop: RunningShop, process: Any) -> bool:
    assert process.poll() is None, (shop.folder / "run.log").read_text()[-3000:]
    try:
        return len(shop.rows()) == ORDERS - 2
    except headwater.HeadwaterError:  # not yet
        return False


def pressed(page: Page, name: str, says: str) -> Locator:
    """Press a button, and its like in the question that comes."""
    page.get_by_role("button", name=f"{name}…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(says)
    return dialog


def confirmed(dialog: Locator, name: str) -> None:
    dialog.get_by_role("button", name=name, exact=True).click()


def open_node(page: Page, shop: RunningShop) -> None:
    page.goto(f"{shop.address}#/pipelines/shop/nodes/amounts")


def test_dead_rows_are_redriven_and_counted(page: Page, shop: RunningShop) -> None:
    open_node(page, shop)
    expect(page.locator("tr", has_text="invalid literal")).to_have_count(2)
    (shop.folder / "mended").touch()
    dialog = pressed(page, "Redrive", "given to the node once more")
    assert shop.records() == ORDERS
    confirmed(dialog, "Redrive")
    expect(dialog).to_contain_text("ecords: 2")
    assert shop.records() == ORDERS + 2
    wait_until(lambda: len(shop.rows()) == ORDERS)
    assert (shop.rows()[5], shop.rows()[17], shop.rows()[18]) == (2, 2, 18)


def test_a_view_is_proved_right(page: Page, shop: RunningShop) -> None:
    before = shop.rows()
    open_node(page, shop)
    dialog = pressed(page, "Verify", "Nothing is changed")
    confirmed(dialog, "Verify")
    expect(dialog.get_by_role("progressbar")).to_be_visible()
    expect(dialog).to_contain_text('verifying view "amounts"')
    expect(dialog).to_contain_text(f"Proved: {len(before)} rows as the log gives them.", timeout=SPARK)
    assert shop.rows() == before and shop.version() == 1


def test_a_view_is_rebuilt_into_a_new_version(page: Page, shop: RunningShop) -> None:
    before = shop.rows()
    open_node(page, shop)
    dialog = pressed(page, "Rebuild", "served until the new one has caught up")
    assert shop.version() == 1
    confirmed(dialog, "Rebuild")
    expect(dialog.get_by_role("progressbar")).to_be_visible()
    expect(dialog).to_contain_text("version: 2", timeout=SPARK)
    assert shop.version() == 2 and shop.rows() == before


def test_a_view_is_reset_and_fills_with_what_comes(page: Page, shop: RunningShop) -> None:
    open_node(page, shop)
    dialog = pressed(page, "Reset", "begins anew, empty")
    dialog.get_by_label("to:").fill("latest")
    confirmed(dialog, "Reset")
    expect(dialog.get_by_role("progressbar")).to_be_visible()
    expect(dialog).to_contain_text("version: 3", timeout=SPARK)
    assert shop.version() == 3 and shop.rows() == {}
    shop.send((99, "7"))
    wait_until(lambda: shop.rows() == {99: 7})


def test_a_group_is_moved(page: Page, shop: RunningShop) -> None:
    page.goto(f"{shop.address}#/topics/orders")
    page.get_by_role("button", name="Seek group mailer").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The group goes on reading orders from there")
    dialog.get_by_label("to:").fill("12")
    confirmed(dialog, "Seek")
    expect(dialog).to_contain_text("osition: orders:0=12")
    with headwater.open(shop.log) as log:
        assert [each.committed for each in log.lag("mailer")] == [12]
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator("tr", has_text="mailer")).to_contain_text("12")


def test_a_position_that_is_none_is_told_and_nothing_is_moved(
    page: Page, shop: RunningShop, expected_errors: list[str]
) -> None:
    expected_errors.append("400")
    page.goto(f"{shop.address}#/topics/orders")
    page.get_by_role("button", name="Seek group mailer").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("to:").fill("somewhere")
    confirmed(dialog, "Seek")
    expect(dialog.get_by_role("alert")).to_contain_text("somewhere")
    expect(dialog.get_by_role("button", name="Seek", exact=True)).to_be_enabled()


def test_all_that_was_asked_is_listed_with_its_result(page: Page, shop: RunningShop) -> None:
    page.goto(f"{shop.address}#/operations")
    rows = page.locator("tbody tr")
    expect(rows.first).to_contain_text("done")
    kinds = [text.split()[0] for text in rows.all_inner_texts()]
    assert kinds == ["seek", "reset", "rebuild", "verify", "redrive"]
    expect(rows.nth(3)).to_contain_text("Proved: 40 rows")
