"""A server over a topic of Kafka and views in PostgreSQL that a pipeline fills: killed, and started again."""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from websockets.sync.client import connect

import headwater
import postgres_server
from headwater import Client, RowRange
from headwater_server import HeadwaterServer, start_headwater, wait_until
from kafka_kit import consume, rows
from push_kit import EventReader
from serve_kit import call
from server_process import stop

pytestmark = pytest.mark.kafka
FILE = """
from headwater import Pipeline

shop = Pipeline({name!r}, log={log!r}, views={views!r})
shop.source("orders", "id BIGINT, city STRING, cents BIGINT", key="city", topic={topic!r})


@shop.view(key="city")
def totals(orders):
    "The newest order of each city, whose orders are numbered from 0 on, and how many that makes."
    return orders.selectExpr("city", "id + 1 AS n", "cents")
"""
CHANGES = "/v1/views/totals/changes"


@dataclass(frozen=True)
class ServedShop:
    """A pipeline at work in a process, and a server of it in another."""

    server: HeadwaterServer
    broker: str
    topic: str

    @property
    def url(self) -> str:
        return self.server.address.rstrip("/")

    @property
    def records(self) -> str:
        return f"/v1/topics/{self.topic}/records"

    def client(self) -> Client:
        return Client(self.url, retry_timeout=60)

    def post(self, key: str, *rows: dict[str, Any]) -> Any:
        """Send events without a library, with a key."""
        return call(self.url, "POST", f"/v1/topics/{self.topic}", list(rows), {"Idempotency-Key": key})

    def stored(self, city: str) -> list[int]:
        """Return the ids of a city's orders, as Kafka has them."""
        with headwater.open(f"kafka://{self.broker}") as log:
            return [row["id"] for row in rows(log, self.topic) if row["city"] == city]

    def follow(self, path: str, last: str | None = None) -> EventReader:
        return EventReader(self.server.port, path, last, timeout=60)


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory, kafka_broker: str, server: postgres_server.Server
) -> Iterator[ServedShop]:
    folder, end = tmp_path_factory.mktemp("shop"), uuid.uuid4().hex[:8]
    topic, log = f"orders-{end}", f"kafka://{kafka_broker}"
    with headwater.open(log) as made:
        made.create_topic(topic, "id BIGINT, city STRING, cents BIGINT", key="city", partitions=2)
    with postgres_server.own_schema(server) as views:
        text = FILE.format(name=f"shop-{end}", log=log, views=views, topic=topic)
        (folder / "shop.py").write_text(text)
        served = HeadwaterServer(folder, "shop.py")
        pipeline = start_headwater(folder, "run", "shop.py")
        try:
            served.start()  # before the pipeline has made its views
            yield ServedShop(served, kafka_broker, topic)
        finally:
            served.stop()
            stop(pipeline, 30)


@pytest.fixture
def city() -> str:
    return f"c-{uuid.uuid4().hex[:8]}"


def orders(city: str, first: int, count: int) -> list[dict[str, Any]]:
    return [{"id": first + n, "city": city, "cents": 5} for n in range(count)]


def test_events_go_to_kafka_once_also_across_a_restart_and_a_kill(shop: ServedShop, city: str) -> None:
    events = [*orders(city, 0, 3), *orders(f"{city}-b", 0, 2)]
    first = shop.post(city, *events)
    again = shop.post(city, *events)
    assert first.status == again.status == 200 and first.json()["rows"] == 5
    assert again.json() == first.json() and again.headers["idempotency-replayed"] == "true"
    for end in (shop.server.stop, shop.server.kill):
        end()
        shop.server.start()
        repeated = shop.post(city, *events)
        assert repeated.json() == first.json() and repeated.headers["idempotency-replayed"] == "true"
        other = shop.post(city, *orders(city, 9, 1))
        assert other.status == 422 and "another request" in other.json()["title"]
    assert shop.post(f"{city}-next", *orders(city, 3, 1)).json()["rows"] == 1
    assert shop.stored(city) == [0, 1, 2, 3] and sorted(shop.stored(f"{city}-b")) == [0, 1]


def test_a_batch_with_a_row_that_does_not_fit_stores_nothing(shop: ServedShop, city: str) -> None:
    refused = shop.post(city, *orders(city, 0, 2), {"id": "x", "city": city, "cents": 1})
    assert (refused.status, refused.json()["row"], refused.json()["column"]) == (422, 2, "id")
    assert shop.stored(city) == []
    assert shop.post(city, *orders(city, 0, 2)).status == 200  # the key is free


def test_one_s_own_writes_are_read_from_postgres(shop: ServedShop, city: str) -> None:
    with shop.client() as client:
        wait_until(lambda: made(client))
        sent = client.send(shop.topic, orders(city, 0, 4))
        assert client.get("totals", city, after=sent) == {"city": city, "n": 4, "cents": 5}
        assert client.get("totals", f"{city}-none") is None
        others = [{"id": n, "city": f"{city}-{n:02}", "cents": n} for n in range(30)]
        sent = client.send(shop.topic, others)
        pages = client.scan("totals", RowRange(start=f"{city}-", end=f"{city}-99", page=7), after=sent)
        assert [row["cents"] for row in pages] == list(range(30))
    row = call(shop.url, "GET", f"/v1/views/totals/{city}")
    known = {"If-None-Match": row.headers["etag"]}
    assert call(shop.url, "GET", f"/v1/views/totals/{city}", headers=known).status == 304
    [listed] = call(shop.url, "GET", "/v1/views").json()["views"]
    assert (listed["name"], listed["key"]) == ("totals", ["city"])


def made(client: Client) -> bool:
    """Tell whether the pipeline has made its view."""
    try:
        client.get("totals", "nowhere")
    except headwater.HeadwaterError:
        return False
    return True


def test_changes_in_postgres_go_on_after_the_last_id_through_a_kill(shop: ServedShop, city: str) -> None:
    with shop.client() as client:
        wait_until(lambda: made(client))
        client.get("totals", city, after=client.send(shop.topic, orders(city, 0, 2)))
        with shop.follow(f"{CHANGES}?snapshot=true&key={city}") as reader:
            begin, row, ready = reader.until("ready")
            client.send(shop.topic, orders(city, 2, 1))
            [change] = reader.take(1)
            last = reader.last
        assert [begin.name, row.data["n"], ready.name] == ["snapshot", 2, "ready"]
        assert (change.data["kind"], change.data["old"]["n"], change.data["new"]["n"]) == ("update", 2, 3)
        shop.server.kill()
        shop.server.start()
        client.get("totals", city, after=client.send(shop.topic, orders(city, 3, 1)))
        with shop.follow(f"{CHANGES}?key={city}", last) as again:
            ready, missed = again.take(2)
            client.send(shop.topic, orders(city, 4, 1))
            [live] = again.take(1)
    assert ready.id == last
    assert [each.data["new"]["n"] for each in (missed, live)] == [4, 5]


def test_a_client_follows_through_a_restart_without_a_gap(shop: ServedShop, city: str) -> None:
    with shop.client() as client, shop.client() as sender:
        wait_until(lambda: made(client))
        changes = client.follow("totals", key=city, snapshot=True)
        assert [each.kind for each in itertools.islice(changes, 2)] == ["snapshot", "ready"]
        seen = list[int]()
        for number in range(3):
            after = sender.send(shop.topic, orders(city, number, 1))
            sender.get("totals", city, after=after)  # a batch of its own, so a change of its own
            if number == 1:
                shop.server.stop()
                shop.server.start()
        while len(seen) < 3:
            change = next(changes)
            seen += [change.new["n"]] if change.kind in ("insert", "update") and change.new else []
    assert seen == [1, 2, 3]


def test_a_websocket_tells_the_same(shop: ServedShop, city: str) -> None:
    with shop.client() as client:
        wait_until(lambda: made(client))
        client.get("totals", city, after=client.send(shop.topic, orders(city, 0, 2)))
        with connect(shop.url.replace("http:", "ws:") + f"{CHANGES}?snapshot=true&key={city}") as socket:
            events = [json.loads(socket.recv(timeout=30)) for _ in range(3)]
            client.send(shop.topic, orders(city, 2, 1))
            change = within(30, lambda: json.loads(socket.recv(timeout=30)), "change")
    assert [each["event"] for each in events] == ["snapshot", "row", "ready"]
    assert change["data"]["new"]["n"] == 3


def within(seconds: float, receive: Callable[[], Any], event: str) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (message := receive())["event"] == event:
            return message
    raise AssertionError(f"no {event}")


def test_a_database_that_is_away_is_told_without_its_address_and_gone_on_with(
    shop: ServedShop, city: str, server: postgres_server.Server
) -> None:
    with shop.client() as client:
        wait_until(lambda: made(client))
        client.get("totals", city, after=client.send(shop.topic, orders(city, 0, 1)))
        changes = client.follow("totals", key=city, snapshot=True)
        assert [each.kind for each in itertools.islice(changes, 3)] == ["snapshot", "row", "ready"]
        server.stop()
        try:
            away = call(shop.url, "GET", f"/v1/views/totals/{city}")
        finally:
            server.start()
        assert (away.status, away.headers["retry-after"]) == (503, "1")
        assert b"postgres" not in away.body and str(server.port).encode() not in away.body
        sent = client.send(shop.topic, orders(city, 1, 1))
        assert client.get("totals", city, after=sent) == {"city": city, "n": 2, "cents": 5}
        told = [each.new for each in itertools.islice(changes, 1)]
    assert told == [{"city": city, "n": 2, "cents": 5}]


def test_records_of_kafka_go_on_after_the_last_id_through_a_kill(shop: ServedShop, city: str) -> None:
    with shop.client() as client:
        with shop.follow(f"{shop.records}?since=latest&key={city}") as reader:
            reader.take(1)
            client.send(shop.topic, orders(city, 0, 5))
            first = [each.data["value"]["id"] for each in reader.take(3)]
            last = reader.last
        shop.server.kill()
        shop.server.start()
        client.send(shop.topic, orders(city, 5, 5))
        with shop.follow(f"{shop.records}?key={city}", last) as again:
            rest = [each.data["value"]["id"] for each in again.take(8)[1:]]
            client.send(shop.topic, orders(city, 10, 1))
            [live] = again.take(1)
    assert first + rest == list(range(10)) and live.data["value"]["id"] == 10


def test_pages_of_kafka_hold_every_record_once(shop: ServedShop, city: str) -> None:
    with shop.client() as client:
        client.send(shop.topic, [*orders(city, 0, 9), *orders(f"{city}-b", 0, 9)])
    seen, start = list[tuple[int, int]](), "earliest"
    while start:
        answer = call(shop.url, "GET", f"{shop.records}?limit=7&from={quote(start)}")
        if answer.status == 503:  # a broker that is busy, as a machine of tests may be: to be asked again
            continue
        page = answer.json()
        assert answer.status == 200, page
        seen += [(each["partition"], each["offset"]) for each in page["records"]]
        start = page["next"]
    known = [(each.partition(), each.offset()) for each in consume(shop.broker, shop.topic, len(seen))]
    assert len(seen) >= 18 and sorted(seen) == sorted(known)  # offsets have gaps where transactions ended
    with headwater.open(f"kafka://{shop.broker}") as log:
        assert len(rows(log, shop.topic)) == len(seen)


def test_operators_see_topic_and_groups(shop: ServedShop, city: str) -> None:
    with headwater.open(f"kafka://{shop.broker}") as log:
        log.seek(city, shop.topic, "latest")
    details = call(shop.url, "GET", f"/v1/topics/{shop.topic}").json()
    assert len(details["partitions"]) == 2
    assert city in {each["group"] for each in details["groups"]}
    begun = call(shop.url, "POST", f"/v1/topics/{shop.topic}/groups/{city}/seek", {"to": "earliest"})
    wait_until(lambda: operation(shop, begun.json()["operation"]) == "done", 30)
    with headwater.open(f"kafka://{shop.broker}") as log:
        assert {each.committed for each in log.lag(city)} == {0}
    [overview] = call(shop.url, "GET", "/v1/pipelines").json()["pipelines"]
    assert overview["running"]


def operation(shop: ServedShop, id: str) -> str:
    state: str = call(shop.url, "GET", f"/v1/operations/{id}").json()["state"]
    return state
