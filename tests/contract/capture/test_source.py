"""What every source of changes does, whichever database it reads."""

# ruff: noqa: S608  # statements of an application, made of numbers

from __future__ import annotations

import itertools
import random
import threading
import time
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from headwater.capture.change import DELETE, INSERT, UPDATE, TableChanges
from headwater.capture.heartbeat import SAFETY
from headwater.capture.source import CaptureSource
from headwater.durations import now
from headwater.errors import SourceRefused, UsageError
from soaking import examples
from source_kit import Database, Replica, drain, snapshot, told, values

CUSTOMERS = "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, tier TEXT)"
ORDERS = (
    "CREATE TABLE orders (shop TEXT NOT NULL, number INTEGER NOT NULL, note TEXT, PRIMARY KEY (shop, number))"
)


@pytest.fixture
def shop(application: Database) -> Database:
    application.execute(CUSTOMERS, ORDERS)
    return application


def insert(*ids: int) -> list[str]:
    return [f"INSERT INTO customers VALUES ({each}, 'n{each}', NULL)" for each in ids]


# Tables


def test_tables_are_told_with_their_keys(shop: Database) -> None:
    shop.execute("CREATE TABLE lines (text TEXT)")
    found = {each.name: each for each in shop.source().tables()}
    assert {name: each.key for name, each in found.items()} == {
        "customers": ("id",),
        "lines": (),
        "orders": ("shop", "number"),
    }
    assert [each.name for each in found["customers"].columns] == ["id", "name", "tier"]
    assert [each.nullable for each in found["customers"].columns] == [False, True, True]


def test_a_table_that_is_not_there_is_refused(shop: Database) -> None:
    with pytest.raises(SourceRefused, match='"custmers"'):
        shop.source().begin(["custmers"], None)


def test_a_table_without_a_key_is_refused(shop: Database) -> None:
    shop.execute("CREATE TABLE lines (text TEXT)")
    with pytest.raises(SourceRefused, match="key"):
        shop.source().begin(["lines"], None)


# The stream


def test_changes_come_in_the_order_in_which_they_were_made(shop: Database) -> None:
    source = shop.source()
    position = source.begin(["customers", "orders"], None)
    shop.transaction(
        *insert(1, 2),
        "INSERT INTO orders VALUES ('a', 1, 'x')",
        "UPDATE customers SET tier = 'gold' WHERE id = 2",
        "DELETE FROM customers WHERE id = 1",
    )
    shop.execute(*insert(1))
    found = [(name, operation, row[0]) for name, operation, row in told(source, position)]
    assert found == [
        ("customers", INSERT, 1),
        ("customers", INSERT, 2),
        ("orders", INSERT, "a"),
        ("customers", UPDATE, 2),
        ("customers", DELETE, 1),
        ("customers", INSERT, 1),
    ]


def test_rows_come_with_all_values_and_nulls(shop: Database) -> None:
    source = shop.source()
    position = source.begin(["customers"], None)
    shop.execute(
        "INSERT INTO customers VALUES (1, 'Ada', NULL)", "UPDATE customers SET name = NULL, tier = ''"
    )
    assert [row for _, _, row in told(source, position)] == [(1, "Ada", None), (1, None, "")]


def test_an_update_of_the_key_is_a_deletion_and_an_insertion(shop: Database) -> None:
    source = shop.source()
    shop.execute("INSERT INTO customers VALUES (1, 'Ada', 'gold')")
    position = source.begin(["customers"], None)
    shop.execute("UPDATE customers SET id = 5")
    (_, first, gone), (_, second, row) = told(source, position)
    assert (first, gone[0], second, row) == (DELETE, 1, INSERT, (5, "Ada", "gold"))


def test_nothing_comes_of_what_was_rolled_back(shop: Database) -> None:
    source = shop.source()
    position = source.begin(["customers"], None)
    shop.transaction(*insert(1), end="ROLLBACK")
    shop.transaction(
        *insert(2), "SAVEPOINT a", *insert(3), "ROLLBACK TO SAVEPOINT a", "RELEASE SAVEPOINT a", *insert(4)
    )
    assert [row[0] for _, _, row in told(source, position)] == [2, 4]


def test_other_tables_are_left_out(shop: Database) -> None:
    source = shop.source()
    position = source.begin(["customers"], None)
    shop.execute("INSERT INTO orders VALUES ('a', 1, 'x')", *insert(1))
    assert [name for name, _, _ in told(source, position)] == ["customers"]


def test_what_was_there_before_does_not_come(shop: Database) -> None:
    shop.execute(*insert(1))
    source = shop.source()
    position = source.begin(["customers"], None)
    shop.execute(*insert(2))
    assert [row[0] for _, _, row in told(source, position)] == [2]


def test_where_nothing_happens_an_empty_delivery_comes(shop: Database) -> None:
    source = shop.source()
    source.begin(["customers"], None)
    assert source.read(0.05).changes == ()


def test_a_table_that_comes_later_is_delivered_from_then_on(shop: Database) -> None:
    source = shop.source()
    position = source.begin(["customers"], None)
    shop.execute("INSERT INTO orders VALUES ('a', 1, NULL)", *insert(1))
    position = source.begin(["customers", "orders"], position)
    shop.execute("INSERT INTO orders VALUES ('a', 2, NULL)")
    found = [(name, row[:2]) for name, _, row in told(source, position)]
    assert found == [("customers", (1, "n1")), ("orders", ("a", 2))]


def test_a_change_knows_its_transaction(shop: Database) -> None:
    source = shop.source()
    position = source.begin(["customers"], None)
    shop.transaction(*insert(1, 2, 3))
    changes = everything(source, position)
    assert [index for each in changes for index in each.index] == [0, 1, 2]
    for each in changes:  # which may have come in several deliveries
        assert set(each.transaction) == {0}
        assert source.passed(source.end(), each.transactions.position[0])
        assert each.transactions.committed[0] > 1_600_000_000_000_000


def test_what_is_committed_later_is_behind_a_moment_by_position_and_time(shop: Database) -> None:
    source = shop.source()
    position = source.begin(["customers"], None)
    shop.execute(*insert(1))
    [first] = everything(source, position)
    moment = source.moment()
    shop.execute(*insert(2))
    [second] = everything(source, moment.position)
    assert source.passed(moment.position, first.transactions.position[-1])
    assert first.transactions.committed[-1] <= moment.time
    assert second.transactions.committed[-1] >= moment.time - SAFETY
    assert source.passed(source.end(), moment.position) and abs(moment.time - now()) < 60_000_000


def everything(source: CaptureSource, position: str) -> list[TableChanges]:
    found: list[Any] = []
    drain(source, lambda delivery: found.extend(delivery.changes), position)
    return found


# Positions


def test_a_position_delivers_the_same_changes_again(shop: Database) -> None:
    source = shop.source()
    position = source.begin(["customers", "orders"], None)
    for number in range(20):
        shop.transaction(*insert(number), f"INSERT INTO orders VALUES ('a', {number}, NULL)")
    shop.execute("UPDATE customers SET tier = 'x' WHERE id < 5", "DELETE FROM orders WHERE number > 10")
    first = told(source, position)
    source.close()
    again = shop.source()
    assert again.begin(["customers", "orders"], position) == position
    assert told(again, position) == first


def test_a_stream_that_begins_where_a_delivery_ended_goes_on_behind_it(shop: Database) -> None:
    source = shop.source()
    position = source.begin(["customers"], None)
    for number in range(5):
        shop.execute(*insert(number))
        position = drain(source, lambda _: None, position)
    source.close()
    shop.execute(*insert(7, 8))
    again = shop.source()
    again.begin(["customers"], position)
    assert [row[0] for _, _, row in told(again, position)] == [7, 8]


def test_what_is_not_confirmed_is_not_forgotten(shop: Database) -> None:
    source = shop.source()
    begun = source.begin(["customers"], None)
    shop.execute(*insert(1, 2))
    confirmed = drain(source, lambda _: None, begun)
    shop.execute(*insert(3, 4))
    drain(source, lambda _: None, confirmed)
    source.confirm(confirmed)
    source.close()
    again = shop.source()
    again.begin(["customers"], confirmed)
    assert [row[0] for _, _, row in told(again, confirmed)] == [3, 4]


def test_confirming_twice_changes_nothing(shop: Database) -> None:
    source = shop.source()
    position = source.begin(["customers"], None)
    shop.execute(*insert(1))
    position = drain(source, lambda _: None, position)
    source.confirm(position)
    source.confirm(position)
    shop.execute(*insert(2))
    assert [row[0] for _, _, row in told(source, position)] == [2]


def test_a_position_that_was_forgotten_is_refused(shop: Database) -> None:
    source = shop.source()
    begun = source.begin(["customers"], None)
    shop.execute(*insert(*range(50)))
    source.confirm(drain(source, lambda _: None, begun))
    source.close()
    shop.forget()
    with pytest.raises(SourceRefused):
        shop.source().begin(["customers"], begun)


def test_a_position_of_another_database_is_refused(shop: Database) -> None:
    with closing(shop.other()) as other:
        other.execute(CUSTOMERS)
        source = other.source()
        source.begin(["customers"], None)
        other.execute(*insert(*range(50)))
        foreign = source.end()
    source = shop.source()
    source.begin(["customers"], None)
    source.close()
    with pytest.raises(SourceRefused):
        shop.source().begin(["customers"], foreign)


def test_a_text_that_is_no_position_is_refused(shop: Database) -> None:
    with pytest.raises((SourceRefused, UsageError), match="nonsense"):
        shop.source().begin(["customers"], "nonsense")


def test_positions_are_in_order(shop: Database) -> None:
    source = shop.source()
    first = source.begin(["customers"], None)
    shop.execute(*insert(1))
    last = source.end()
    assert source.passed(last, first)
    assert source.passed(first, first)
    assert not source.passed(first, last)


# Chunks


def test_chunks_have_every_row_in_the_order_of_the_key(shop: Database) -> None:
    shop.execute(*insert(*random.Random(7).sample(range(-50, 50), 40)))
    source = shop.source()
    source.begin(["customers"], None)
    found, after = [], None
    while not (chunk := source.chunk("customers", after, 12)).last:
        found += values(chunk.rows)
        assert len(chunk.rows) == 12
        after = chunk.after
    found += values(chunk.rows)
    assert found == shop.rows("SELECT * FROM customers ORDER BY id")
    assert source.count("customers") == 40


def test_keys_of_several_columns_are_read_in_chunks(shop: Database) -> None:
    rows = [(name, number) for name in "abc" for number in range(5)]
    shop.execute(*(f"INSERT INTO orders VALUES ('{name}', {number}, NULL)" for name, number in rows))
    source, replica = shop.source(), Replica()
    snapshot(source, replica, "orders", source.begin(["orders"], None), limit=4)
    assert [row[:2] for row in replica.rows("orders")] == rows


def test_an_empty_table_has_one_chunk_that_is_empty(shop: Database) -> None:
    source = shop.source()
    source.begin(["customers"], None)
    chunk = source.chunk("customers", None, 10)
    assert (len(chunk.rows), chunk.last, chunk.after) == (0, True, None)
    assert chunk.rows.schema.names == ["id", "name", "tier"]


def test_what_was_delivered_is_in_the_next_chunk(shop: Database) -> None:
    source = shop.source()
    position = source.begin(["customers"], None)
    for number in range(10):
        shop.execute(*insert(number))
        position = drain(source, lambda _: None, position)
        assert len(source.chunk("customers", None, 100).rows) == number + 1


@pytest.mark.parametrize("restart", [False, True])
def test_chunks_and_the_stream_make_the_table_while_others_write(shop: Database, restart: bool) -> None:
    shop.execute(*insert(*range(0, 200, 2)))
    source, replica = shop.source(), Replica()
    position = source.begin(["customers"], None)
    enough = threading.Event()
    writers = [threading.Thread(target=write, args=(shop, seed, enough)) for seed in range(3)]
    for each in writers:
        each.start()
    try:
        position = snapshot(source, replica, "customers", position)
    except BaseException:
        enough.set()
        raise
    if restart:
        source.confirm(position)
        source.close()
        source = shop.source()
        source.begin(["customers"], position)
    enough.set()
    for each in writers:
        each.join()
    drain(source, replica.apply, position)
    assert replica.rows("customers") == sorted(shop.rows("SELECT * FROM customers"), key=repr)


def write(database: Database, seed: int, enough: threading.Event) -> None:
    """Write until it is enough, keys that others write too."""
    chance = random.Random(seed)
    with closing(database.connect()) as db:
        for number in itertools.takewhile(lambda _: not enough.is_set(), itertools.count()):
            id, other = chance.randrange(220), chance.randrange(220)
            statement = chance.choice(
                [
                    f"INSERT INTO customers VALUES ({id}, 'w{seed}', '{number}') ON CONFLICT (id) DO NOTHING",
                    f"UPDATE customers SET tier = '{seed}/{number}' WHERE id BETWEEN {id} AND {id + 5}",
                    f"UPDATE customers SET id = {other} WHERE id = {id}"
                    f" AND NOT EXISTS (SELECT 1 FROM customers WHERE id = {other})",
                    f"DELETE FROM customers WHERE id = {id}",
                ]
            )
            database.attempt(db, statement)
            time.sleep(database.pause)


# Dropping


def test_drop_leaves_nothing_behind(shop: Database) -> None:
    before = shop.objects()
    source = shop.source()
    position = source.begin(["customers", "orders"], None)
    assert (shop.objects() != before) == shop.makes_objects
    shop.execute(*insert(1))
    drain(source, lambda _: None, position)
    source.drop()
    assert shop.objects() == before
    shop.execute(*insert(2))


def test_dropping_one_capture_leaves_others_alone(shop: Database) -> None:
    one, other = shop.source("one"), shop.source("one_more")
    one.begin(["customers"], None)
    position = other.begin(["customers"], None)
    one.drop()
    shop.execute(*insert(1))
    assert [row[0] for _, _, row in told(other, position)] == [1]


def test_a_position_before_a_drop_is_refused(shop: Database) -> None:
    if not shop.makes_objects:
        pytest.skip("nothing is made in this database, so nothing is dropped")
    source = shop.source()
    position = source.begin(["customers"], None)
    source.drop()
    source.close()
    with pytest.raises(SourceRefused):
        shop.source().begin(["customers"], position)


def test_drop_of_what_was_never_begun_does_nothing(shop: Database) -> None:
    before = shop.objects()
    shop.source("never").drop()
    assert shop.objects() == before


# Whatever an application does


NUMBERS = st.integers(0, 5)
WORDS = st.sampled_from(["NULL", "'a'", "'b'", "'c'", "'A'"])


@st.composite
def statements(draw: st.DrawFn, database: Database) -> str:
    id, other, word, n = draw(NUMBERS), draw(NUMBERS), draw(WORDS), draw(NUMBERS)
    insert, update = draw(st.sampled_from(database.inserts)), draw(st.sampled_from(database.updates))
    return draw(
        st.sampled_from(
            [
                f"{insert} INTO things VALUES ({id}, {word}, {n})",
                f"{insert} INTO things VALUES ({id}, {word}, {n}), ({other}, NULL, NULL)",
                f"INSERT INTO things VALUES ({id}, {word}, {n}) ON CONFLICT (word) DO UPDATE SET n = {n}",
                f"INSERT INTO things VALUES ({id}, {word}, {n}) ON CONFLICT (id) DO UPDATE SET word = {word}",
                f"{update} things SET id = {other} WHERE id = {id}",
                f"{update} things SET word = {word} WHERE id >= {id}",
                f"{update} things SET n = {n}, id = id + 1 WHERE id = {id}",
                f"DELETE FROM things WHERE id = {id}",
                "DELETE FROM things",
            ]
        )
    )


@st.composite
def programs(draw: st.DrawFn, database: Database) -> list[list[str]]:
    """Return transactions: statements, savepoints that are kept or not, and an end."""
    found = []
    for _ in range(draw(st.integers(1, 6))):
        body: list[str] = []
        for _ in range(draw(st.integers(1, 4))):
            inner = draw(st.lists(statements(database), min_size=1, max_size=4))
            if draw(st.booleans()):
                undone = ["ROLLBACK TO SAVEPOINT a"] if draw(st.booleans()) else []
                inner = ["SAVEPOINT a", *inner, *undone, "RELEASE SAVEPOINT a"]
            body += inner
        found.append(["BEGIN", *body, draw(st.sampled_from(["COMMIT", "COMMIT", "ROLLBACK"]))])
    return found


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_done_to_a_table_its_changes_make_the_same_one(
    application: Database, data: st.DataObject
) -> None:
    application.execute("DROP TABLE IF EXISTS things")
    application.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT UNIQUE, n INTEGER UNIQUE)")
    source, replica = application.source("things"), Replica()
    position = source.begin(["things"], None)
    try:
        for transaction in data.draw(programs(application)):
            application.execute_together(transaction)
            if data.draw(st.booleans()):
                position = drain(source, replica.apply, position)
                assert replica.rows("things") == sorted(application.rows("SELECT * FROM things"), key=repr)
        drain(source, replica.apply, position)
        assert replica.rows("things") == sorted(application.rows("SELECT * FROM things"), key=repr)
    finally:
        source.drop()
        source.close()
