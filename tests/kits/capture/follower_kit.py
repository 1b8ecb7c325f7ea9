"""Followers of a table of customers, one for each kind of target, and how each is read and tampered with.

What a test does behind a follower's back it does as a stranger would: with the target's own client.
"""

from __future__ import annotations

import json
import sqlite3
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import redis
from deltalake import DeltaTable, write_deltalake

from headwater.pipeline import targets
from headwater.pipeline.sink_target import SinkTarget

COLUMNS = "id BIGINT, name STRING"
Held = Mapping[int, str | None]


@dataclass(frozen=True)
class Follower:
    """A target, and a stranger's way to it."""

    target: SinkTarget
    held: Callable[[], Held]
    """The names that a reader sees, by id."""
    delete: Callable[[int], None]
    change: Callable[[int, str], None]
    add: Callable[[int, str], None]


def sqlite_table(path: Path) -> Follower:
    """A table in an SQLite file."""
    return _in_sqlite(targets.sqlite(path / "shop.db", "people", "id"), path / "shop.db", "people")


def embedded_index(path: Path) -> Follower:
    """An index in a directory."""
    file = path / "index" / "index.db"
    return _in_sqlite(targets.search(f"file:{path / 'index'}", "id", "name"), file, None)


def _in_sqlite(target: SinkTarget, file: Path, view: str | None) -> Follower:
    def table(db: sqlite3.Connection) -> str:
        if view is None:
            (number,) = db.execute("SELECT version FROM search WHERE published").fetchone()
            return "rows" if number == 1 else f"rows_{number}"
        (number,) = db.execute("SELECT id FROM views WHERE name = ? AND published", (view,)).fetchone()
        return f"rows_{number}"

    def run(statement: str, *values: object) -> list[Any]:
        with closing(sqlite3.connect(file, timeout=30)) as db, db:
            names = ("id", "name") if view else ("c0", "c1")
            text = statement.format(table=table(db), id=names[0], name=names[1])
            return db.execute(text, values).fetchall()

    return Follower(
        target,
        lambda: dict(run("SELECT {id}, {name} FROM {table}")),
        lambda id: run("DELETE FROM {table} WHERE {id} = ?", id) and None,
        lambda id, name: run("UPDATE {table} SET {name} = ? WHERE {id} = ?", name, id) and None,
        lambda id, name: run("INSERT INTO {table} ({id}, {name}) VALUES (?, ?)", id, name) and None,
    )


def postgres_table(url: str) -> Follower:
    """A table in PostgreSQL."""

    def run(statement: str, *values: object) -> list[Any]:
        with psycopg.connect(url) as db:
            cursor = db.execute(statement, values)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    return Follower(
        targets.postgres(url, "people", "id"),
        lambda: dict(run("SELECT id, name FROM people")),
        lambda id: run("DELETE FROM people WHERE id = %s", id) and None,
        lambda id, name: run("UPDATE people SET name = %s WHERE id = %s", name, id) and None,
        lambda id, name: run("INSERT INTO people VALUES (%s, %s)", id, name) and None,
    )


def mysql_table(url: str, connect: Callable[[], Any]) -> Follower:
    """A table in MariaDB."""

    def run(statement: str, *values: object) -> list[Any]:
        with connect() as db, db.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())

    return Follower(
        targets.mysql(url, "people", "id"),
        lambda: dict(run("SELECT id, name FROM people")),
        lambda id: run("DELETE FROM people WHERE id = %s", id) and None,
        lambda id, name: run("UPDATE people SET name = %s WHERE id = %s", name, id) and None,
        lambda id, name: run("INSERT INTO people VALUES (%s, %s)", id, name) and None,
    )


def cache(url: str, **options: Any) -> Follower:
    """Keys in Redis."""
    prefix, client = f"f{uuid.uuid4().hex[:12]}:", redis.Redis.from_url(url)

    def held() -> Held:
        rows = [json.loads(client.get(key)) for key in client.scan_iter(match=f"{prefix}*", count=1000)]
        return {row["id"]: row.get("name") for row in rows}

    def put(id: int, name: str) -> None:
        client.set(f"{prefix}{id}", json.dumps({"id": id, "name": name}))

    target = targets.cache(url, "id", prefix=prefix, **options)
    return Follower(target, held, lambda id: client.delete(f"{prefix}{id}") and None, put, put)


def index_on_server(url: str) -> Follower:
    """An index in OpenSearch."""
    index, server = f"f-{uuid.uuid4().hex[:12]}", url.replace("http://", "opensearch://")

    def call(method: str, path: str, body: Any = None) -> dict[str, Any]:
        request = urllib.request.Request(f"{url}/{index}/{path}", method=method)
        request.add_header("Content-Type", "application/json")
        request.data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, timeout=60) as answer:
            return dict(json.loads(answer.read()))

    def held() -> Held:
        hits = call("GET", "_search?size=10000")["hits"]["hits"]
        sources = [hit["_source"] for hit in hits if hit["_id"] != "headwater_sink"]
        return {source["id"]: source.get("name") for source in sources}

    def put(id: int, name: str) -> None:
        call("PUT", f"_doc/{id}?refresh=true", {"id": id, "name": name})

    target = targets.search(f"{server}/{index}", "id", "name")
    return Follower(target, held, lambda id: call("DELETE", f"_doc/{id}?refresh=true") and None, put, put)


def delta_table(path: Path, *, history: bool) -> Follower:
    """A Delta Lake table, with or without its history."""
    place, current = path / f"delta-{history}", "is_current = true AND " if history else ""

    def held() -> Held:
        rows = DeltaTable(place).to_pyarrow_table().to_pylist()
        return {row["id"]: row["name"] for row in rows if row.get("is_current", True)}

    def add(id: int, name: str) -> None:
        own = {"valid_from": [None], "valid_to": [None], "is_current": [True]} if history else {}
        schema = pa.schema(DeltaTable(place).schema())
        write_deltalake(place, pa.table({"id": [id], "name": [name], **own}, schema=schema), mode="append")

    return Follower(
        targets.warehouse(place, "id", history=history),
        held,
        lambda id: DeltaTable(place).delete(f"{current}id = {id}") and None,
        lambda id, name: (
            DeltaTable(place).update(new_values={"name": name}, predicate=f"{current}id = {id}") and None
        ),
        add,
    )
