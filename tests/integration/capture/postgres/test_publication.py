"""Publications of a capture's own, and given ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from capture_kit import deliveries, singles
from headwater.capture.postgres.source import PostgresSource
from headwater.errors import SourceRefused

Capture = Callable[..., PostgresSource]


@pytest.fixture
def given(db: psycopg.Connection) -> Iterator[str]:
    db.execute("CREATE TABLE items (id int PRIMARY KEY)")
    db.execute("CREATE TABLE others (id int PRIMARY KEY)")
    yield "given_publication"
    db.execute("DROP PUBLICATION IF EXISTS given_publication")


def test_a_given_publication_is_used_and_stays(db: psycopg.Connection, capture: Capture, given: str) -> None:
    db.execute("CREATE PUBLICATION given_publication FOR TABLE items, others")
    source = capture(publication=given)
    source.begin(["items"], None)
    db.execute("INSERT INTO items VALUES (1)")
    db.execute("INSERT INTO others VALUES (2)")
    assert [each.table for each in singles(deliveries(source))] == ["items"]
    source.drop()
    assert db.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", (given,)).fetchone()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("SELECT 1", "does not exist"),
        ("CREATE PUBLICATION given_publication FOR TABLE others", "it does not have items"),
        ("CREATE PUBLICATION given_publication FOR TABLE items WITH (publish = 'insert')", "leaves changes"),
        ("CREATE PUBLICATION given_publication FOR TABLE items WHERE (id > 3)", "leaves changes, rows"),
    ],
)
def test_a_publication_that_leaves_something_out_is_refused(
    db: psycopg.Connection, capture: Capture, given: str, made: str, said: str
) -> None:
    if "WHERE" in made and db.info.server_version < 150_000:
        pytest.skip("publications have filters from PostgreSQL 15 on")
    db.execute(made)
    with pytest.raises(SourceRefused) as refused:
        capture(publication=given).begin(["items"], None)
    assert said in str(refused.value)
    assert refused.value.hint


def test_a_publication_of_partitions_is_refused(db: psycopg.Connection, capture: Capture, given: str) -> None:
    db.execute("CREATE TABLE logs (id int PRIMARY KEY) PARTITION BY HASH (id)")
    db.execute("CREATE PUBLICATION given_publication FOR TABLE logs")
    with pytest.raises(SourceRefused, match="publish_via_partition_root"):
        capture(publication=given).begin(["logs"], None)


def test_tables_that_inherit_are_tables_of_their_own(db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE animals (id int PRIMARY KEY)")
    db.execute("CREATE TABLE birds (wings int, PRIMARY KEY (id)) INHERITS (animals)")
    source = capture()
    source.begin(["animals"], None)
    db.execute("INSERT INTO birds VALUES (1, 2)")
    db.execute("INSERT INTO animals VALUES (2)")
    assert [each.row for each in singles(deliveries(source))] == [{"id": 2}]
    assert source.chunk("animals", None, 10).rows.to_pylist() == [{"id": 2}]


def test_a_publication_that_is_gone_is_refused(db: psycopg.Connection, capture: Capture, given: str) -> None:
    source = capture(name="unpublished")
    begun = source.begin(["items"], None)
    db.execute("DROP PUBLICATION headwater_unpublished")
    with pytest.raises(SourceRefused, match='publication "headwater_unpublished" is gone'):
        source.begin(["items"], begun)


def test_a_publication_that_goes_while_it_is_read_is_refused(
    db: psycopg.Connection, capture: Capture, given: str
) -> None:
    source = capture(name="vanishing")
    source.begin(["items"], None)
    db.execute("DROP PUBLICATION headwater_vanishing")
    db.execute("INSERT INTO items VALUES (1)")
    with pytest.raises(SourceRefused, match='"headwater_vanishing" does not exist') as refused:
        deliveries(source)
    assert "begin anew" in str(refused.value.hint)
