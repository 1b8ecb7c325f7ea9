"""Sinks that follow a captured table: proved row by row, on every kind of target that can be read back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import follower_kit
import headwater
import opensearch_server
import redis_server
from changes_kit import execute
from follower_kit import Follower
from headwater import Pipeline, Verdict, targets
from headwater.sinks.cache.connection import connect

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "crm.db"
    execute(path, "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
    execute(path, *(("INSERT INTO customers VALUES (?, ?)", (id, f"name {id}")) for id in range(1, 51)))
    return path


def shop(root: Path, file: Path, followers: Mapping[str, Follower]) -> Pipeline:
    declared = Pipeline("shop", log=f"file:{root / 'log'}", home=root / "home")
    declared.capture("crm", f"sqlite:{file}")
    declared.table("customers", follower_kit.COLUMNS, key="id", captured="crm.customers")

    def people(customers: DataFrame) -> DataFrame:
        return customers.filter("name <> 'hidden'").select("id", "name")

    for name, follower in followers.items():
        people.__name__ = name
        declared.sink(follower.target)(people)
    people.__name__ = "told"
    declared.sink(targets.foreach(lambda rows, number: None))(people)
    return declared


@pytest.fixture
def followers(
    tmp_path: Path, redis: redis_server.Server, opensearch: opensearch_server.Server, database: str
) -> dict[str, Follower]:
    return {
        "sqlite": follower_kit.sqlite_table(tmp_path),
        "postgres": follower_kit.postgres_table(database),
        "embedded": follower_kit.embedded_index(tmp_path),
        "opensearch": follower_kit.index_on_server(opensearch.url),
        "cache": follower_kit.cache(redis.url),
        "delta": follower_kit.delta_table(tmp_path, history=False),
        "history": follower_kit.delta_table(tmp_path, history=True),
    }


def by_name(verdicts: list[Verdict]) -> dict[str, Verdict]:
    return {verdict.node: verdict for verdict in verdicts}


def test_a_row_that_was_changed_behind_a_followers_back_is_named_by_its_key(
    tmp_path: Path, file: Path, followers: dict[str, Follower]
) -> None:
    pipeline = shop(tmp_path, file, followers)
    headwater.run(pipeline, until_caught_up=True)
    execute(file, "UPDATE customers SET name = 'hidden' WHERE id = 7", "DELETE FROM customers WHERE id = 8")
    execute(file, "UPDATE customers SET name = 'née \"Ada\"' WHERE id = 9")
    headwater.run(pipeline, until_caught_up=True)
    right = by_name(headwater.verify_source(pipeline))
    assert list(right) == ["customers", *followers]
    assert all(verdict.ok and verdict.unproved is None for verdict in right.values()), right
    assert {name: right[name].equal for name in followers} == dict.fromkeys(followers, 48)
    for follower in followers.values():
        assert follower.held()[9] == 'née "Ada"'
        follower.delete(11)
        follower.change(12, "mallory")
        follower.add(99, "nobody")
    wrong = by_name(headwater.verify_source(pipeline, list(followers)))
    for name, verdict in wrong.items():
        assert (name, verdict.counts) == (name, {"equal": 46, "missing": 1, "extra": 1, "different": 1})
        assert verdict.missing == ({"id": 11, "name": "name 11"},)
        assert verdict.extra == ({"id": 99, "name": "nobody"},)
        assert verdict.different == (({"id": 12, "name": "name 12"}, {"id": 12, "name": "mallory"}),)


def test_rows_that_go_by_themselves_are_not_missing_and_what_is_no_row_is_told(
    tmp_path: Path, file: Path, redis: redis_server.Server
) -> None:
    follower = follower_kit.cache(redis.url, ttl="1 hour")
    pipeline = shop(tmp_path, file, {"cache": follower})
    headwater.run(pipeline, until_caught_up=True)
    follower.delete(11)
    with connect(redis.url) as client:
        client.set(f"{follower.target.tables[0]}12", "OK")
    [verdict] = headwater.verify(pipeline, "cache")
    assert (verdict.expired, verdict.missing) == (2, ())
    assert verdict.extra == ({"place": "12", "text": "OK"},)
