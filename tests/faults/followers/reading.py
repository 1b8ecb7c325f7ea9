"""The source and its followers, each read with its own means and not by the pipeline that has filled it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from deltalake import DeltaTable

from headwater.views import open_views

Rows = dict[int, tuple[Any, ...]]
PERSON = ("id", "name", "account", "bio")
ACCOUNT = ("id", "balance", "rate", "note")


def sources(database: str) -> dict[str, Rows]:
    """Return what each follower has to hold, as the database has it."""
    with psycopg.connect(database) as db:
        people = by_id(db.execute("SELECT id, name, account, bio FROM people"))
        accounts = by_id(db.execute("SELECT id, balance, rate, note FROM accounts"))
        moves = by_id(db.execute("SELECT id, account, amount FROM moves"))
        joined = "SELECT p.id, p.name, a.id, a.balance FROM people p JOIN accounts a ON a.id = p.account"
        holders = by_id(db.execute(joined))
    cached = {id: row[:3] for id, row in people.items()}
    return {
        "balances": accounts, "holders": holders, "search": people, "warehouse": accounts, "moves": moves,
        "people_copy": people, "cache": cached,
    }  # fmt: skip


def followers(root: Path, database: str, redis: str) -> dict[str, Rows]:
    """Return what each follower holds."""
    with open_views(root / "log" / "pipelines" / "bank" / "views.db") as views:
        balances = [tuple(row[name] for name in ACCOUNT) for row in views["balances"].scan().to_pylist()]
        columns = ("id", "name", "account", "balance")
        holders = [tuple(row[name] for name in columns) for row in views["holders"].scan().to_pylist()]
    with open_views(root / "moves.db") as views:
        moves = [
            tuple(row[name] for name in ("id", "account", "amount"))
            for row in views["moves"].scan().to_pylist()
        ]
    with psycopg.connect(database) as db:
        copy = by_id(db.execute("SELECT id, name, account, bio FROM people_copy"))
    held = {
        "balances": by_id(balances), "holders": by_id(holders), "moves": by_id(moves), "people_copy": copy,
        "search": index(root / "index"), "warehouse": warehouse(root / "warehouse"),
    }  # fmt: skip
    return {**held, "cache": cache(redis)} if redis else held


def index(folder: Path) -> Rows:
    """Return the rows of the search index, of which SQLite says that their words are those of the index."""
    with closing(sqlite3.connect(folder / "index.db")) as db:
        db.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        return by_id(db.execute("SELECT c0, c1, c2, c3 FROM rows"))


def warehouse(folder: Path) -> Rows:
    """Return the current rows of the warehouse."""
    rows = DeltaTable(folder).to_pyarrow_table().to_pylist()
    return by_id(tuple(row[name] for name in ACCOUNT) for row in rows if row["is_current"])


def cache(url: str) -> Rows:
    """Return the rows in Redis."""
    import redis

    with redis.Redis.from_url(url) as client:
        keys = list(client.scan_iter(match="person:*", count=10_000))
        rows = [json.loads(text) for text in client.mget(keys)] if keys else []
    return by_id(tuple(row.get(name) for name in PERSON[:3]) for row in rows)


def by_id(rows: Iterable[tuple[Any, ...]]) -> Rows:
    """Return rows by their first column."""
    listed = list(rows)
    found = {row[0]: tuple(row) for row in listed}
    assert len(found) == len(listed), "a key is there twice"
    return found
