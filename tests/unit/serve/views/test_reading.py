"""Rows of views over HTTP: pages, keys, forms, tags, and one's own writes."""

from __future__ import annotations

import csv
import io
import json
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater import Position, Server
from headwater.sinks import Batch
from headwater.views import ViewStore
from serve_kit import Answer, call, make_log, make_views, serving, stock_rows


def get(server: Server, path: str, **headers: str) -> Answer:
    return call(
        server.url, "GET", f"/v1/views{path}", headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def test_views_are_listed_with_what_a_page_needs(server: Server) -> None:
    (view,) = get(server, "").json()["views"]
    assert (view["name"], view["pipeline"], view["key"], view["rows"]) == (
        "stock",
        "shop",
        ["shop", "item"],
        10,
    )
    assert {"name": "price", "type": "DECIMAL(10,2)", "numeric": True} in view["columns"]


@pytest.mark.parametrize("order", ["", "&order=count", "&order=rate&desc=true", "&order=at"])
def test_pages_make_up_the_view(server: Server, order: str) -> None:
    whole, paged, more = get(server, f"/stock?limit=100{order}").json(), list[Any](), ""
    while True:
        page = get(server, f"/stock?limit=3{order}{more}").json()
        paged += page["rows"]
        if page["next"] is None:
            break
        more = f"&cursor={page['next']}"
    assert paged == whole["rows"] and len(paged) == 10
    assert whole["next"] is None and whole["sequence"] == 10


def test_ranges_are_of_the_key(server: Server) -> None:
    rows = get(server, "/stock?prefix=a&start=i/2&end=i/6").json()["rows"]
    assert [row["item"] for row in rows] == ["i/2", "i/4"]


def test_values_are_written_as_the_command_line_writes_them(server: Server) -> None:
    row = get(server, "/stock/a/i%2F0").json()
    assert row == {"shop": "a", "item": "i/0", "price": "0.50", "rate": "NaN", "raw": "AA==",
                   "at": "2026-01-02T03:04:05.000000Z"}  # fmt: skip
    assert row == get(server, "/stock?key=a&key=i/0").json()


def test_rows_come_in_the_form_that_is_asked_for(server: Server) -> None:
    lines = get(server, "/stock?limit=2", Accept="application/x-ndjson")
    assert [json.loads(line)["item"] for line in lines.body.splitlines()] == ["i/0", "i/2"]
    assert lines.headers["headwater-next"]
    table = csv.DictReader(io.StringIO(get(server, "/stock", Accept="text/csv").body.decode()))
    assert len(list(table)) == 10
    arrow = get(server, "/stock", Accept="application/vnd.apache.arrow.stream;q=0.9, text/csv;q=0.1")
    assert pa.ipc.open_stream(arrow.body).read_all().num_rows == 10
    assert get(server, "/stock", Accept="image/png").status == 406


def test_what_is_not_there_is_told(server: Server) -> None:
    assert get(server, "/stock/a/none").status == 404
    kinds = [
        get(server, path).json()["kind"] for path in ("/stock/a/none", "/stock?key=a&key=x", "/stocks/a")
    ]
    assert kinds == ["no_row", "no_row", "unknown_view"]
    assert get(server, "/stocks").status == get(server, "/stocks/a").status == 404
    assert get(server, "/stock/a").status == 400
    for wrong in ("limit=0", "limit=x", "desc=yes", "order=none", "cursor=xx", "timeout=-1", "after=x=y"):
        assert get(server, f"/stock?{wrong}").status == 400, wrong


def test_rows_that_have_not_changed_are_not_sent_again(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    with make_views(tmp_path) as store, serving(tmp_path) as server:
        tag = get(server, "/stock").headers["etag"]
        for path in ("/stock", "/stock/a/i%2F0"):
            again = get(server, path, If_None_Match=tag)
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        commit(store, 1)
        changed = get(server, "/stock", If_None_Match=tag)
        assert changed.status == 200 and changed.headers["etag"] != tag


def commit(store: ViewStore, number: int) -> None:
    sink = store.sink("stock", store.view("stock").schema, ("shop", "item"))
    sink.begin()
    sink.commit(Batch(number, stock_rows(20 * number), positions=(Position("orders", {0: 3 + number}),)))


def test_a_read_waits_for_ones_own_writes(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    with make_views(tmp_path) as store, serving(tmp_path) as server:
        assert get(server, "/stock?after=orders:0=3").status == 200
        behind = get(server, "/stock?after=orders:0=4&timeout=0.1")
        assert behind.status == 504 and "0.1 seconds" in behind.json()["title"]
        later = threading.Thread(target=lambda: (time.sleep(0.2), commit(store, 1)))
        later.start()
        assert len(get(server, "/stock?after=orders:0=4&timeout=20").json()["rows"]) == 20
        later.join()
        assert get(server, "/stock/a/i%2F0?after=nothing:0=4").status == 400
