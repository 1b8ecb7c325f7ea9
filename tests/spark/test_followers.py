"""Sinks that follow a captured table: proved row by row, on every kind of target that can be read back."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import follower_kit
import headwater
import mariadb_server
import opensearch_server
import redis_server
from changes_kit import execute
from follower_kit import Follower
from headwater import Pipeline, Rebuilt, Verdict, targets
from headwater.errors import UsageError
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
    tmp_path: Path,
    redis: redis_server.Server,
    opensearch: opensearch_server.Server,
    database: str,
    mariadb: mariadb_server.Server,
    mariadb_database: str,
) -> dict[str, Follower]:
    return {
        "mysql": follower_kit.mysql_table(
            mariadb.url(mariadb_database), partial(mariadb.connect, mariadb_database)
        ),
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


def test_followers_are_built_anew_beside_what_readers_see_and_go_on(
    tmp_path: Path, file: Path, followers: dict[str, Follower]
) -> None:
    pipeline = shop(tmp_path, file, followers)
    headwater.run(pipeline, until_caught_up=True)
    for name, follower in followers.items():
        follower.delete(11)
        follower.change(12, "mallory")
        follower.add(99, "nobody")
        assert headwater.rebuild(pipeline, name) == Rebuilt(name, 2)
        assert follower.held() == {id: f"name {id}" for id in range(1, 51)}, name
    execute(file, "UPDATE customers SET name = 'later' WHERE id = 12", "DELETE FROM customers WHERE id = 13")
    headwater.run(pipeline, until_caught_up=True)
    for name, follower in followers.items():
        assert (name, follower.held()[12], 13 in follower.held()) == (name, "later", False)
    verdicts = headwater.verify(pipeline)
    assert [verdict.node for verdict in verdicts] == list(followers)
    assert all(verdict.ok and verdict.equal == 49 for verdict in verdicts), verdicts
    with pytest.raises(UsageError, match='sink "told" cannot be built anew'):
        headwater.rebuild(pipeline, "told")
    with pytest.raises(UsageError, match='sink "cache" cannot be reset'):
        headwater.reset(pipeline, "cache", "latest")


def test_a_pipeline_that_runs_goes_on_with_the_version_that_was_built(
    tmp_path: Path, file: Path, redis: redis_server.Server
) -> None:
    follower = follower_kit.cache(redis.url)
    pipeline = shop(tmp_path, file, {"cache": follower, "embedded": follower_kit.embedded_index(tmp_path)})
    with headwater.run(pipeline):
        wait_for(lambda: len(follower.held()) == 50)
        follower.change(12, "mallory")
        headwater.rebuild(pipeline, "cache")
        assert follower.held()[12] == "name 12"
        execute(file, "UPDATE customers SET name = 'later' WHERE id = 13")
        wait_for(lambda: follower.held()[13] == "later")
    assert all(verdict.ok for verdict in headwater.verify(pipeline))


def test_a_rebuild_that_is_killed_leaves_what_readers_see(tmp_path: Path, file: Path) -> None:
    follower = follower_kit.sqlite_table(tmp_path)
    pipeline = shop(tmp_path, file, {"people": follower})
    headwater.run(pipeline, until_caught_up=True)
    follower.change(12, "mallory")
    program = tmp_path / "rebuild.py"
    program.write_text(KILLED.format(root=str(tmp_path), file=str(file)))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=250)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert follower.held()[12] == "mallory"
    headwater.run(pipeline, until_caught_up=True)
    assert follower.held()[12] == "mallory"
    assert headwater.rebuild(pipeline, "people").version == 2
    assert follower.held()[12] == "name 12"
    assert headwater.verify(pipeline)[0].ok


KILLED = """
import os, signal, sys
from functools import partial
from pathlib import Path
sys.path[:0] = {paths!r}
import headwater
import mariadb_server
from headwater.sinks import crash
from follower_kit import sqlite_table
from tests.spark.test_followers import shop

def reached(name):
    if name == "view: committed":
        os.kill(os.getpid(), signal.SIGKILL)

crash.watch(reached)
root = Path({root!r})
headwater.rebuild(shop(root, Path({file!r}), {{"people": sqlite_table(root)}}), "people")
""".replace("{paths!r}", repr(sys.path))


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
