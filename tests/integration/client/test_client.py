"""The clients against a real server: send once, read one's own writes, follow through restarts."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater import AsyncClient, Client, LiveChange, RowRange, ServeSettings
from headwater.client.errors_of_server import RequestRefused
from headwater.errors import LogUnavailable, OffsetLost, RowError, UnknownTopic, UnknownView, UsageError
from headwater.serve.server import Server
from push_kit import Shop, run_async


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    shop = Shop(tmp_path_factory.mktemp("shop"), feed=50)
    shop.commit(*((f"c{n:03}", n % 3, n) for n in range(120)))
    yield shop
    shop.close()


@pytest.fixture(scope="module")
def server(shop: Shop) -> Iterator[Server]:
    with Server(shop.served()) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, retry_timeout=5) as client:
        yield client


def records(shop: Shop) -> int:
    return sum(shop.log.resolve("orders", "latest").offsets.values())


def test_events_are_sent_once_though_the_call_is_repeated(client: Client, shop: Shop) -> None:
    before = records(shop)
    one = client.send("orders", {"id": 1, "city": "Oslo"}, idempotency_key="order-1")
    two = client.send("orders", {"id": 1, "city": "Oslo"}, idempotency_key="order-1")
    assert records(shop) == before + 1
    assert (one.rows, one.repeated, two.repeated) == (1, False, True)
    many = client.send("orders", [{"id": n, "city": "Rome"} for n in range(5)])
    assert many.rows == 5 and many.position.startswith("orders")


def test_a_row_that_does_not_fit_is_told_with_its_number(client: Client, shop: Shop) -> None:
    before = records(shop)
    with pytest.raises(RowError) as refused:
        client.send("orders", [{"id": 1, "city": "a"}, {"id": "x", "city": "a"}])
    assert refused.value.row == 1 and records(shop) == before


def test_rows_are_got_by_key_and_scanned_page_by_page(client: Client) -> None:
    assert client.get("totals", ("c007", 1)) == {"city": "c007", "day": 1, "n": 7}
    assert client.get("totals", ("nowhere", 1)) is None
    assert [row["n"] for row in client.scan("totals", RowRange(page=50))] == list(range(120))
    newest = client.scan("totals", RowRange(order="n", descending=True, page=7))
    assert [row["n"] for row in itertools.islice(newest, 20)] == list(range(119, 99, -1))
    assert [row["city"] for row in client.scan("totals", RowRange("c003"))] == ["c003"]


def test_what_a_server_refuses_is_the_error_that_the_call_itself_would_raise(client: Client) -> None:
    with pytest.raises(UnknownView, match='no view "nothing"'):
        client.get("nothing", 1)
    with pytest.raises(UnknownTopic, match="no topic"):
        client.send("nothing", {})
    with pytest.raises(OffsetLost):
        next(client.follow("totals", since=1))
    with pytest.raises(UsageError, match='no column "x"'):
        next(client.follow("totals", where={"x": 1}))
    with pytest.raises(LogUnavailable), Client("http://127.0.0.1:9", retry_timeout=0.1) as nobody:
        nobody.get("totals", ("c007", 1))
    assert issubclass(RequestRefused, headwater.HeadwaterError)


def test_a_snapshot_and_what_changes_are_followed(client: Client, shop: Shop) -> None:
    changes = client.follow("totals", key="c001", snapshot=True)
    first = list(itertools.islice(changes, 3))
    shop.commit(("c001", 1, 100), ("c002", 2, 100))
    change = next(changes)
    assert [each.kind for each in first] == ["snapshot", "row", "ready"]
    assert first[1].new == {"city": "c001", "day": 1, "n": 1}
    assert (change.kind, change.key, change.new) == (
        "update", ("c001", 1), {"city": "c001", "day": 1, "n": 100},
    )  # fmt: skip


def test_records_of_a_topic_are_followed(client: Client, shop: Shop) -> None:
    following = client.records("orders", since="earliest", key="Pisa")
    client.send("orders", [{"id": n, "city": "Pisa"} for n in range(3)])
    assert [next(following).value["id"] for _ in range(3)] == [0, 1, 2]


def test_a_follower_goes_on_when_the_server_was_restarted(tmp_path: Path) -> None:
    shop, seen = Shop(tmp_path), list[int]()
    with Server(shop.served()) as server:
        port = int(server.url.rpartition(":")[2])
        client = Client(server.url)
        changes = client.follow("totals", since=0)
        shop.commit(*((f"c{n}", 0, n) for n in range(10)))
        seen += numbers(changes, 6)
    shop.log_of_server = headwater.open(f"file:{tmp_path}/log")
    shop.views_of_server = headwater.open_views(tmp_path / "views.db")
    shop.commit(*((f"d{n}", 0, n) for n in range(10)))
    with Server(shop.served(), ServeSettings(port=port)):
        seen += numbers(changes, 14)
        client.close()
    shop.close()
    assert seen == list(range(1, 21))


def numbers(changes: Iterator[LiveChange], count: int) -> list[int]:
    found = (each.sequence for each in changes if each.kind in ("insert", "update", "delete"))
    return [int(each or 0) for each in itertools.islice(found, count)]


def test_the_async_client_does_the_same(server: Server, shop: Shop) -> None:
    async def scenario() -> tuple[Any, ...]:
        async with AsyncClient(server.url) as client:
            sent = await client.send("orders", {"id": 9, "city": "Oslo"})
            row = await client.get("totals", ("c009", 0))
            rows = [each async for each in client.scan("totals", RowRange(page=100))]
            kinds = []
            async for change in client.follow("totals", key="c009", snapshot=True):
                kinds.append(change.kind)
                if change.kind == "ready":
                    await asyncio.to_thread(shop.commit, ("c009", 0, 900))
                if change.kind == "update":
                    break
            return sent.rows, row, len(rows), kinds

    assert run_async(scenario()) == (
        1, {"city": "c009", "day": 0, "n": 9}, 120, ["snapshot", "row", "ready", "update"],
    )  # fmt: skip
