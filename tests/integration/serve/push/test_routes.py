"""Following views and topics over a real server: events, ids, snapshots, filters, rebuilds, what is lost."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.sync.client import connect

from headwater.serve.push.live_push import LivePush
from push_kit import EventReader, RunningServer, Shop, running

CHANGES = "/v1/views/totals/changes"
RECORDS = "/v1/topics/orders/records"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    shop = Shop(tmp_path_factory.mktemp("shop"), feed=20)
    yield shop
    shop.close()


@pytest.fixture(scope="module")
def server(shop: Shop) -> Iterator[RunningServer]:
    with shop.served() as served, running(served, LivePush(heartbeat=0.1)) as server:
        yield server


def get(server: RunningServer, path: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    body = json.loads(response.read())
    connection.close()
    return response.status, body


def follow(server: RunningServer, path: str, last: str | None = None) -> EventReader:
    return EventReader(server.port, path, last)


# Views


def test_a_change_is_told_with_the_rows_before_and_after(server: RunningServer, shop: Shop) -> None:
    with follow(server, CHANGES) as reader:
        [ready] = reader.take(1)
        shop.commit(("Oslo", 1, 5))
        shop.commit(("Oslo", 1, 6))
        insert, update = reader.take(2)
    assert ready.name == "ready" and ready.id == str(ready.data["sequence"])
    row = {"city": "Oslo", "day": 1, "n": 5}
    assert insert.name == "change" and insert.id == str(insert.data["sequence"])
    assert (insert.data["kind"], insert.data["key"]) == ("insert", ["Oslo", 1])
    assert (insert.data["old"], insert.data["new"]) == (None, row)
    assert (update.data["kind"], update.data["old"], update.data["new"]) == ("update", row, row | {"n": 6})
    assert update.data["batch"] == insert.data["batch"] + 1


def test_a_client_that_comes_back_goes_on_after_its_last_id(server: RunningServer, shop: Shop) -> None:
    with follow(server, CHANGES) as reader:
        reader.take(1)
        shop.commit(("Rome", 1, 1))
        reader.take(1)
    shop.commit(("Rome", 1, 2))
    with follow(server, CHANGES, reader.last) as again:
        ready, change = again.take(2)
        shop.commit(("Rome", 1, 3))
        [live] = again.take(1)
    assert ready.id == reader.last
    assert [each.data["new"]["n"] for each in (change, live)] == [2, 3]


def test_a_snapshot_is_followed_by_what_changes(server: RunningServer, shop: Shop) -> None:
    shop.commit(("Bonn", 1, 1), ("Bonn", 2, 2))
    with follow(server, f"{CHANGES}?snapshot=true&key=Bonn") as reader:
        begin, *rows, ready = reader.until("ready")
        shop.commit(("Bonn", 2, None), ("Lima", 1, 1))
        [change] = reader.take(1)
    assert (begin.name, begin.id, ready.data) == ("snapshot", None, begin.data)
    assert [(each.name, each.id, each.data["n"]) for each in rows] == [("row", None, 1), ("row", None, 2)]
    assert (change.data["kind"], change.data["key"], change.data["new"]) == ("delete", ["Bonn", 2], None)


def test_a_row_that_comes_into_sight_is_an_insert_and_out_of_sight_a_delete(
    server: RunningServer, shop: Shop
) -> None:
    shop.commit(("Kyiv", 1, 1))
    with follow(server, f"{CHANGES}?snapshot=true&key=Kyiv&where=n:7") as reader:
        assert [each.name for each in reader.until("ready")] == ["snapshot", "ready"]
        shop.commit(("Kyiv", 1, 7))
        shop.commit(("Kyiv", 1, 8))
        come, gone = reader.take(2)
    assert (come.data["kind"], come.data["old"], come.data["new"]["n"]) == ("insert", None, 7)
    assert (gone.data["kind"], gone.data["old"]["n"], gone.data["new"]) == ("delete", 7, None)


def test_heartbeats_move_the_id_of_a_client_whose_filter_takes_nothing(
    server: RunningServer, shop: Shop
) -> None:
    with follow(server, f"{CHANGES}?key=Nowhere") as reader:
        [ready] = reader.take(1)
        shop.commit(("Oslo", 9, 9))
        newest = str(shop.store["totals"].sequence())
        events = iter(reader)
        while reader.last != newest:
            line = reader.response.readline().decode()
            reader.last = line.split()[1] if line.startswith("id:") else reader.last
        del events
    assert ready.id != newest


def test_a_rebuild_is_told_and_followed_by_a_new_snapshot(server: RunningServer, shop: Shop) -> None:
    shop.commit(("Oslo", 1, 50))
    with follow(server, f"{CHANGES}?snapshot=true&key=Oslo") as reader, follow(server, CHANGES) as plain:
        reader.until("ready")
        plain.until("ready")
        shop.rebuild(("Oslo", 1, 100))
        told, begin, row, ready = reader.until("ready")
        [told_plain] = plain.take(1)
        shop.commit(("Oslo", 1, 101))
        [change], [change_plain] = reader.take(1), plain.take(1)
    assert [told.name, begin.name, row.name] == ["rebuilt", "snapshot", "row"]
    assert row.data["n"] == 100 and ready.data["version"] == shop.version
    assert (told_plain.name, told_plain.data) == ("rebuilt", told.data)
    assert change.data == change_plain.data and change.data["new"]["n"] == 101


def test_a_rebuild_while_a_client_was_away_is_told_when_it_comes_back(
    server: RunningServer, shop: Shop
) -> None:
    shop.commit(("Oslo", 1, 1))  # who has seen nothing yet gets all changes of the new version instead
    with follow(server, CHANGES) as reader:
        reader.until("ready")
    shop.rebuild(("Oslo", 1, 7))
    with follow(server, f"{CHANGES}?snapshot=true", reader.last) as again:
        names = [each.name for each in again.until("ready")]
    assert names == ["rebuilt", "snapshot", "row", "ready"]


def test_changes_that_are_no_longer_kept_are_told_with_what_to_do(server: RunningServer, shop: Shop) -> None:
    shop.rebuild(("Oslo", 1, 0))
    with follow(server, CHANGES) as reader:
        reader.until("ready")
    for n in range(1, 60):  # the view keeps 20 at least
        shop.commit(("Oslo", 1, n))
    with follow(server, CHANGES, reader.last) as again:
        [lost] = list(again)
    with follow(server, f"{CHANGES}?snapshot=true", reader.last) as anew:
        names = [each.name for each in anew.until("ready")]
    assert lost.name == "lost" and lost.id is None and lost.data["missed"] > 0
    assert "snapshot" in lost.data["hint"]
    assert names == ["lost", "snapshot", "row", "ready"]


def test_an_id_from_a_store_that_was_begun_anew_is_lost_not_waited_for(
    server: RunningServer, shop: Shop
) -> None:
    ahead = str(shop.store["totals"].sequence() + 1_000)
    with follow(server, CHANGES, ahead) as reader:
        [lost] = list(reader)
    assert lost.name == "lost"


def test_a_websocket_has_the_same_events(server: RunningServer, shop: Shop) -> None:
    url = f"ws://127.0.0.1:{server.port}{CHANGES}?snapshot=true&key=Oslo"
    with connect(url) as socket:
        names = []
        while "ready" not in names:
            message = json.loads(socket.recv(timeout=10))
            names.append(message["event"])
        shop.commit(("Oslo", 1, 555))
        while (message := json.loads(socket.recv(timeout=10)))["event"] == "heartbeat":
            pass
    assert names == ["snapshot", "row", "ready"]
    assert message["event"] == "change" and message["data"]["new"]["n"] == 555
    assert message["id"] == str(message["data"]["sequence"])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/views/nothing/changes", 404),
        ("/v1/topics/nothing/records", 404),
        (f"{CHANGES}?since=x", 400),
        (f"{CHANGES}?since={'9' * 5000}", 400),
        (f"{CHANGES}?where=nothing:1", 400),
        (f"{CHANGES}?where=n", 400),
        (f"{CHANGES}?key=a&key=b", 400),
        (f"{CHANGES}?key=a&key=1&key=c", 400),
        (f"{CHANGES}?snapshot=maybe", 400),
        (f"{RECORDS}?limit=0", 400),
        (f"{RECORDS}?from={'9' * 5000}", 400),
        (f"{RECORDS}?partition=x", 400),
        (f"{RECORDS}?from=orders:0=99999", 410),
    ],
)
def test_what_cannot_be_meant_is_a_problem_document(server: RunningServer, path: str, status: int) -> None:
    answered, document = get(server, path)
    assert answered == status and document["status"] == status


# Topics


def test_records_are_told_in_the_order_of_their_partition(server: RunningServer, shop: Shop) -> None:
    with follow(server, f"{RECORDS}?since=latest") as reader:
        [ready] = reader.take(1)
        cities = ["Oslo", "Rome", "Bonn", "Lima"]
        shop.append(*((n, cities[n % 4]) for n in range(20)))
        shop.append(*((n, cities[n % 4]) for n in range(20, 40)))
        records = reader.take(40)
    assert ready.name == "ready" and ready.id == ready.data["position"]
    assert all(each.name == "record" for each in records)
    for city in cities:
        numbers = [e.data["value"]["id"] for e in records if e.data["key"] == [city]]
        assert numbers == sorted(numbers) and len(numbers) == 10


def test_a_reader_of_a_topic_comes_back_without_missing_or_repeating(
    server: RunningServer, shop: Shop
) -> None:
    with follow(server, f"{RECORDS}?since=latest") as reader:
        reader.take(1)
        shop.append(*((n, f"c{n}") for n in range(100, 110)))
        first = [each.data["value"]["id"] for each in reader.take(4)]
        last = reader.last
    shop.append(*((n, f"c{n}") for n in range(110, 120)))
    with follow(server, RECORDS, last) as again:
        rest = [each.data["value"]["id"] for each in again.take(17)[1:]]
    assert sorted(first + rest) == list(range(100, 120))


def test_records_are_filtered_by_key_and_column_live_and_behind(server: RunningServer, shop: Shop) -> None:
    shop.append((1, "Oslo"), (2, "Wien"), (3, "Wien"))
    start = f"{RECORDS}?since=earliest&key=Wien"
    with follow(server, start) as reader, follow(server, f"{start}&where=id:3") as narrow:
        seen = reader.take(3)
        shop.append((3, "Oslo"), (4, "Wien"), (3, "Wien"))
        seen += reader.take(2)
        narrowed = narrow.take(3)
    assert [each.data["value"]["id"] for each in seen[1:]] == [2, 3, 4, 3]
    assert [each.data["value"]["id"] for each in narrowed[1:]] == [3, 3]


def test_pages_hold_every_record_once(server: RunningServer, shop: Shop) -> None:
    shop.append(*((n, f"p{n}") for n in range(30)))
    seen, start = [], "earliest"
    while start:
        status, page = get(server, f"{RECORDS}?limit=7&from={start}")
        assert status == 200 and len(page["records"]) <= 7
        seen += [(each["partition"], each["offset"]) for each in page["records"]]
        start = page["next"]
    end = shop.log.resolve("orders", "latest").offsets
    assert sorted(seen) == [(p, o) for p in sorted(end) for o in range(end[p])]


def test_a_page_is_of_a_partition_an_offset_a_key(server: RunningServer, shop: Shop) -> None:
    shop.append((77, "Pisa"))
    _, by_key = get(server, f"{RECORDS}?key=Pisa")
    [found] = by_key["records"]
    assert found["value"] == {"id": 77, "city": "Pisa"} and found["key"] == ["Pisa"]
    assert not found["deleted"] and found["received"].endswith("Z") and by_key["next"] is None
    _, page = get(server, f"{RECORDS}?partition={found['partition']}&from={found['offset']}&limit=1")
    assert page["records"] == [found]
    _, later = get(server, f"{RECORDS}?from={found['received']}&key=Pisa")
    assert later["records"] == [found]
