"""The API's answers for a pipeline in all sorts of trouble, which a healthy demo does not show.

A node that is broken, one that waits, late and dead rows, a capture that lags, an operation that fails: the
shapes are those of the real routes, the figures invented, and the page is the real one.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from headwater.serve.dashboard.page import PAGE

SOURCES = {"orders": 62.0, "parcels": 34.0, "searches": 41.0, "clicks": 17.0}
TABLES = ("products", "customers", "taxes", "reviews", "follows")
COMPUTED = {
    "gold_customers": ("view", ["customers"]),
    "unique_orders": ("stream", ["orders"]),
    "spending": ("view", ["unique_orders"]),
    "deliveries": ("view", ["parcels"]),
    "big_orders": ("view", ["unique_orders"]),
    "price_list": ("view", ["products"]),
    "search_outcomes": ("stream", ["searches", "clicks"]),
    "click_through": ("view", ["search_outcomes"]),
    "visits": ("view", ["searches"]),
    "placed_orders": ("stream", ["unique_orders", "customers"]),
    "invoices": ("view", ["placed_orders", "taxes"]),
    "timelines": ("view", ["reviews", "follows"]),
    "mailed": ("sink", ["big_orders"]),
}
STATES = {"invoices": "waiting", "mailed": "broken"}
PRODUCTS = ("tea", "coffee", "mug", "kettle", "scale", "grinder", "machine")
COLUMNS = [
    {"name": "product", "type": "STRING", "numeric": False},
    {"name": "window_start", "type": "TIMESTAMP", "numeric": False},
    {"name": "found", "type": "BIGINT", "numeric": True},
    {"name": "clicked", "type": "BIGINT", "numeric": True},
    {"name": "rate", "type": "DOUBLE", "numeric": True},
]
SOURCE = '''@shop.view(key="product, window_start")
def click_through(search_outcomes):
    """How many of the searches that found a product were followed by a click, minute by minute."""
    clicked = F.when(F.col("click_at").isNotNull(), F.col("search_id"))
    return search_outcomes.withColumn("clicked", clicked)
'''
STARTED = time.time()
VERDICT = {"ok": True, "equal": 1204, "missing": 0, "extra": 0, "different": 0, "unproved": None}
OPERATIONS: dict[str, dict[str, Any]] = {}


def iso(seconds_ago: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat()


def node(name: str) -> dict[str, Any]:
    kind, upstreams = COMPUTED.get(name, ("source" if name in SOURCES else "table", []))
    ran = time.time() - STARTED + 900
    rate = SOURCES.get(name, 1.3 if kind == "table" else 38 + 8 * math.sin(ran / 9 + len(name)))
    rows = int(ran * SOURCES.get(name, 40))
    late = int(rows * 0.018) if name == "unique_orders" else 0
    dead = 125 if name == "mailed" else 0
    duplicates = int(rows * 0.05) if name == "unique_orders" else 0
    return {
        "name": name,
        "kind": kind,
        "doc": "How many of the searches that found a product were followed by a click, minute by minute.",
        "upstreams": list(upstreams),
        "key": ["product", "window_start"] if name == "click_through" else ["id"],
        "topic": name if kind != "view" else None,
        "state": STATES.get(name, "running"),
        "rows": rows,
        "rate": rate,
        "out": rows - late - dead - duplicates,
        "late": late,
        "duplicates": duplicates,
        "dead": dead,
        "used": rows - late - dead - duplicates,
        "lag": 5102 if name == "invoices" else int(rate % 7),
        "clock": None if name == "price_list" else iso(41 if name in ("taxes", "invoices") else 2.2),
        "waits_for": "taxes" if name == "invoices" else None,
        "batch_seconds": 0.08,
        "state_bytes": 481_000,
        "error": "smtp server refused the mail" if name == "mailed" else None,
        "alert": None,
        "view_rows": 280 if kind == "view" else None,
    }


def attention() -> list[dict[str, Any]]:
    return [
        {
            "node": "mailed",
            "severity": "broken",
            "message": 'sink "mailed" is broken: the server refused the mail',
            "hint": "mend the function, then redrive the rows on the page of the node",
            "since": iso(610),
        },
        {
            "node": "invoices",
            "severity": "waiting",
            "message": 'view "invoices" waits for table "taxes", of which nothing was received yet',
            "hint": "if nothing changes there, mark its time: headwater mark taxes --time now",
            "since": iso(41),
        },
        {
            "node": "unique_orders",
            "severity": "late",
            "message": '1.8% of the rows of stream "unique_orders" came too late (804 of 44,673)',
            "hint": "a lateness of 4 seconds would have kept all but 0.1 % of them",
            "since": iso(300),
        },
    ]


def capture() -> dict[str, Any]:
    return {
        "pipeline": "shop",
        "capture": "crm",
        "state": "snapshot",
        "position": "0/1A2B3C8",
        "delay": 0.004,
        "behind": 0.9,
        "rate": 2.0,
        "snapshot_rate": 900.0,
        "changes": 18_204,
        "retained": 48_000_000,
        "snapshots": {"customers": {"rows": 9000, "done": False}, "orders": {"rows": 13, "done": True}},
        "expected": {"customers": 15_000, "orders": 13},
        "stopped": {"returns": "its primary key was dropped"},
        "committed": iso(1),
        "noted": iso(0.3),
        "error": None,
        "alert": "the database keeps 48 MB for it, more than alert_retained",
    }


def everything() -> list[dict[str, Any]]:
    return [node(name) for name in (*SOURCES, *TABLES, *COMPUTED)]


async def pipelines(_request: Request) -> Response:
    return JSONResponse(
        {"pipelines": [{"name": "shop", "running": True, "nodes": len(COMPUTED), "noted": iso(1)}]}
    )


async def pipeline(_request: Request) -> Response:
    found = {"name": "shop", "running": True, "noted": iso(0), "started": iso(900)}
    return JSONResponse({**found, "nodes": everything(), "captures": [capture()], "attention": attention()})


async def one_node(request: Request) -> Response:
    found = node(request.path_params["node"])
    parts = {each: found[each] for each in ("rows", "used", "late", "duplicates", "dead")}
    downstreams = [name for name, (_, upstreams) in COMPUTED.items() if found["name"] in upstreams]
    lateness = {"bounds": [0, 0.5, 1, 2, 4, 8], "counts": [23_700, 420, 130, 44, 12, 3, 1]}
    possible = {"view": ["verify", "rebuild", "reset"], "stream": ["verify"], "sink": ["rebuild"]}
    more = {"source": SOURCE, "file": "shop.py", "line": 92, "downstreams": downstreams}
    more["operations"] = possible.get(found["kind"], [])
    return JSONResponse({**found, **more, "accounting": parts, "lateness": lateness, "deliveries": None})


async def history(request: Request) -> Response:
    points, since = 240, float(request.query_params["since"])
    times = [time.time() - since * (1 - at / points) for at in range(points)]

    def wave(height: float, length: float) -> list[float | None]:
        return [
            None
            if 0.3 < at / points < 0.33
            else height * (1 + 0.3 * math.sin(at / length) + 0.1 * math.sin(at))
            for at in range(points)
        ]

    series = {"rate": wave(38, 9), "batch_seconds": wave(0.08, 7), "lag": wave(4, 5), "late": wave(0, 1)}
    more = {"clock_behind": wave(16, 13), "dead": wave(0, 1), "state_bytes": wave(481_000, 20)}
    return JSONResponse({"time": times, **series, **more})


async def set_aside(request: Request) -> Response:
    dead, value = request.url.path.endswith("dead"), {"order_id": 7, "customer": "ada"}
    rows = [
        {
            "partition": 0,
            "offset": 100 + at,
            "received": iso(at),
            **({"record": value, "error": "division by zero"} if dead else {"value": value}),
        }
        for at in range(4)
    ]
    return JSONResponse({"records": rows, "count": 125})


def rows(minutes: int = 60) -> list[dict[str, Any]]:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    found = []
    for at in range(minutes):
        for number, product in enumerate(PRODUCTS):
            shown, clicked = 120 + (at * 7 + number * 31) % 40, 50 + (at * 5 + number * 17) % 30
            start = (now - timedelta(minutes=minutes - at)).isoformat()
            row = {"product": product, "window_start": start, "found": shown, "clicked": clicked}
            found.append({**row, "rate": clicked / shown})
    return found


async def views(_request: Request) -> Response:
    names = [name for name, (kind, _) in COMPUTED.items() if kind == "view"]
    described = {"pipeline": "shop", "key": ["product", "window_start"], "columns": COLUMNS, "rows": 420}
    return JSONResponse(
        {"views": [{"name": name, **described, "version": 1, "batch": 7, "clock": iso(2)} for name in names]}
    )


async def view(request: Request) -> Response:
    asked = request.query_params
    order, descending = asked.get("order", "product"), asked.get("desc") == "true"
    found = sorted(rows(), key=lambda row: row[order], reverse=descending)
    start, limit = int(asked.get("cursor", 0)), int(asked.get("limit", 1000))
    more = str(start + limit) if start + limit < len(found) else None
    return JSONResponse({"rows": found[start : start + limit], "next": more, "sequence": 7, "version": 1})


async def row(_request: Request) -> Response:
    return JSONResponse(rows()[0])


def events(make: Any) -> Response:
    async def stream() -> AsyncIterator[str]:
        for number in range(10_000):
            yield make(number)
            await asyncio.sleep(1)

    return StreamingResponse(stream(), media_type="text/event-stream")


async def changes(_request: Request) -> Response:
    def change(number: int) -> str:
        old = rows()[-1 - number % 7]
        new = {**old, "clicked": old["clicked"] + 1, "rate": (old["clicked"] + 1) / old["found"]}
        key = [old["product"], old["window_start"]]
        value = {"sequence": number, "kind": "update", "key": key, "old": old, "new": new, "batch": number}
        return f"event: change\nid: {number}\ndata: {json.dumps(value)}\n\n"

    return events(change)


def record(offset: int) -> dict[str, Any]:
    value = {
        "order_id": offset,
        "customer": "ada",
        "product": PRODUCTS[offset % 7],
        "amount": "12.00",
        "at": iso(1),
    }
    return {
        "partition": 0,
        "offset": offset,
        "received": iso(0),
        "key": ["ada"],
        "value": value,
        "headers": {},
    }


async def records(request: Request) -> Response:
    if "text/event-stream" in request.headers.get("accept", ""):
        return events(
            lambda number: f"event: record\nid: {number}\ndata: {json.dumps(record(4000 + number))}\n\n"
        )
    return JSONResponse({"records": [record(3980 + at) for at in range(20)], "next": None})


def topic(name: str) -> dict[str, Any]:
    found = {"name": name, "partitions": 1, "records": 4000, "size": 960_000, "rate": SOURCES.get(name, 1.3)}
    return {
        **found,
        "key": ["customer"],
        "event_time": "at",
        "compacted": name in TABLES,
        "pipeline_of": None,
    }


async def topics(_request: Request) -> Response:
    return JSONResponse({"topics": [topic(name) for name in (*SOURCES, *TABLES)]})


async def one_topic(request: Request) -> Response:
    name = request.path_params["topic"]
    types = {"order_id": "BIGINT", "customer": "STRING", "product": "STRING", "amount": "DECIMAL(10,2)"}
    schema = [{"name": each, "type": kind} for each, kind in {**types, "at": "TIMESTAMP"}.items()]
    parts = {
        "partition": 0,
        "earliest": 0,
        "end": 4000,
        "size": 960_000,
        "oldest": iso(900),
        "newest": iso(0.4),
    }
    producers = [
        {"producer": each, "partition": 0, "clock": iso(2), "last": iso(1)} for each in ("web", "app")
    ]
    groups = {"group": "mailer", "partition": 0, "committed": 3990, "end": 4000, "records": 10, "behind": 0.3}
    more = {"schema": schema, "partitions": [parts], "producers": producers, "groups": [groups]}
    return JSONResponse({**topic(name), **more})


async def lateness(_request: Request) -> Response:
    return JSONResponse({"bounds": [0, 0.5, 1, 2, 4, 8], "counts": [3900, 60, 25, 10, 3, 1, 1]})


async def captures(_request: Request) -> Response:
    return JSONResponse({"captures": [capture()]})


async def begin(request: Request) -> Response:
    kind = request.url.path.rsplit("/", 1)[1]
    name = str(len(OPERATIONS) + 1)
    target = request.path_params.get("node") or request.path_params.get("group")
    OPERATIONS[name] = {"id": name, "kind": kind, "target": target, "begun": time.time()}
    return JSONResponse({"operation": name}, 202)


def state(operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return how an operation is: a second of work, after which a reset fails."""
    spent = time.time() - operation["begun"]
    done, failed = spent > 1, spent > 1 and operation["kind"] == "reset"
    return {
        **{name: operation[name] for name in ("id", "kind", "target")},
        "state": "failed" if failed else "done" if done else "running",
        "progress": min(1.0, spent),
        "message": "computing everything again",
        "result": VERDICT if done and not failed else None,
        "error": {"message": "pipeline shop runs", "detail": None, "hint": "stop it"} if failed else None,
        "started": iso(spent),
        "ended": iso(spent - 1) if done else None,
    }


async def operations(_request: Request) -> Response:
    return JSONResponse({"operations": [state(each) for each in OPERATIONS.values()]})


async def operation(request: Request) -> Response:
    return JSONResponse(state(OPERATIONS[request.path_params["id"]]))


async def permissions(_request: Request) -> Response:
    return JSONResponse({"token": None, "scopes": ["send:*", "read:*", "operate"]})


async def send(_request: Request) -> Response:
    return JSONResponse({"partition": 0, "offset": 4000}, 201)


def fake_api() -> Starlette:
    """Return the application: the real page, and these answers."""
    at = "/pipelines/shop/nodes/{node}"
    routes = [
        Route("/permissions", permissions),
        Route("/pipelines", pipelines),
        Route("/pipelines/shop", pipeline),
        Route("/pipelines/shop/history", history),
        Route(at, one_node),
        *(Route(f"{at}/{kind}", set_aside) for kind in ("late", "dead")),
        *(
            Route(f"{at}/{kind}", begin, methods=["POST"])
            for kind in ("verify", "rebuild", "reset", "redrive")
        ),
        Route("/views", views),
        Route("/views/{view}", view),
        Route("/views/{view}/changes", changes),
        Route("/views/{view}/{key:path}", row),
        Route("/topics", topics),
        Route("/topics/{topic}", one_topic),
        Route("/topics/{topic}", send, methods=["POST"]),
        Route("/topics/{topic}/records", records),
        Route("/topics/{topic}/lateness", lateness),
        Route("/topics/{topic}/groups/{group}/seek", begin, methods=["POST"]),
        Route("/captures", captures),
        Route("/operations", operations),
        Route("/operations/{id}", operation),
    ]
    return Starlette(routes=[Mount("/v1", routes=routes), *PAGE])
