"""``headwater view``: against a real store, written as a runner writes it."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.cli.conftest import Run

from headwater import Log, Position
from headwater.cli.formats import view_changes
from headwater.sinks import Batch
from headwater.views import SqliteSink, ViewStore

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
SCHEMA = "shop STRING, day TIMESTAMP, item BIGINT, price DECIMAL(10,2), about STRUCT<colour: STRING>"
KEY = ("shop", "day", "item")


def batch(number: int, rows: list[tuple[object, ...]], schema: pa.Schema, read: int = 0) -> Batch:
    names = schema.names
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)
    return Batch(number, table, (Position("orders", {0: read}),), watermark=1_767_355_200_000_000)


def make(home: Path) -> ViewStore:
    home.mkdir(parents=True)
    return ViewStore(home / "views.db")


@pytest.fixture
def home(tmp_path: Path, log: Log) -> Path:
    """The home of pipeline ``trade``, where ``run`` looks for it."""
    log.create_topic("orders", "id BIGINT")
    return tmp_path / "data" / "pipelines" / "trade"


@pytest.fixture
def store(home: Path) -> Iterator[ViewStore]:
    with make(home) as store:
        yield store


@pytest.fixture
def stock(store: ViewStore) -> SqliteSink:
    """A view with three rows, by shop, day and item."""
    sink = store.sink("stock", SCHEMA, KEY)
    sink.begin()
    schema = store.view("stock").schema
    rows = [
        ("a", NOON, -7, Decimal("1.50"), {"colour": "red"}),
        ("a", NOON.replace(day=3), 2, Decimal("9.00"), None),
        ("b", NOON, 3, Decimal("4.00"), None),
    ]
    sink.commit(batch(0, rows, schema, read=3))
    return sink


# Where the views are


def test_the_only_pipeline_beside_the_log_is_taken(run: Run, stock: SqliteSink) -> None:
    header, line = run("view", "list").stdout.splitlines()
    assert header.split() == ["view", "rows", "key", "batch", "clock", "version"]
    assert line.split() == ["stock", "3", "shop,", "day,", "item", "0", "2026-01-02T12:00:00Z", "1"]


def test_of_several_pipelines_one_must_be_named(run: Run, stock: SqliteSink, home: Path) -> None:
    make(home.with_name("audit")).close()
    result = run("view", "list")
    assert result.exit_code == 2
    assert "has 2 pipelines: audit, trade" in result.stderr
    assert "hint: name one with --pipeline" in result.stderr
    assert "stock" in run("view", "list", "--pipeline", "trade").stdout
    assert 'did you mean "trade"?' in run("view", "list", "--pipeline", "tarde").stderr


def test_home_names_a_pipeline_that_is_elsewhere(
    run: Run, tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make(tmp_path / "elsewhere") as store:
        store.sink("far", "id BIGINT", "id")
    assert "far" in run("view", "list", "--home", tmp_path / "elsewhere").stdout
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path / "elsewhere"))
    assert "far" in run("view", "list").stdout
    result = run("view", "list", "--pipeline", "x")
    assert (result.exit_code, "--home" in result.stderr) == (2, True)


def test_a_home_that_is_a_level_too_high_is_answered_with_the_right_one(
    run: Run, stock: SqliteSink, home: Path
) -> None:
    result = run("view", "list", "--home", home.parent.parent)
    assert result.exit_code == 2
    assert f'did you mean "{home}"?' in result.stderr


def test_beside_a_log_without_pipelines_there_are_no_views(run: Run, orders: Log) -> None:
    result = run("view", "list")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: no views beside the log")
    assert run("view", "list", "--log", "file:nowhere").stderr.startswith('error: no log at "nowhere"')


def test_a_pipeline_on_kafka_has_its_home_here(run: Run, tmp_path: Path) -> None:
    with make(tmp_path / "headwater-shop") as store:
        store.sink("near", "id BIGINT", "id")
    assert "near" in run("view", "list", "--log", "kafka://nowhere:9092", "--pipeline", "shop").stdout


def test_an_unknown_view_is_answered_with_the_nearest(run: Run, stock: SqliteSink) -> None:
    result = run("view", "get", "stok", "a")
    assert (result.exit_code, result.stderr) == (
        2,
        'error: no view "stok"\nhint: did you mean "stock"?\n',
    )


# get


def test_a_row_is_got_by_its_key_whatever_the_types(run: Run, stock: SqliteSink) -> None:
    result = run("view", "get", "stock", "--format", "ndjson", "--", "a", "2026-01-02T12:00:00Z", "-7")
    assert json.loads(result.stdout) == {
        "shop": "a",
        "day": "2026-01-02T12:00:00.000000Z",
        "item": -7,
        "price": "1.50",
        "about": {"colour": "red"},
    }


def test_a_table_is_for_reading(run: Run, stock: SqliteSink) -> None:
    header, line = run("view", "get", "stock", "b", "2026-01-02 12:00", "3").stdout.splitlines()
    assert header.split() == ["shop", "day", "item", "price", "about"]
    assert line.split() == ["b", "2026-01-02T12:00:00Z", "3", "4.00", "null"]


def test_a_key_without_a_row_exits_with_1(run: Run, stock: SqliteSink) -> None:
    result = run("view", "get", "stock", "z", "2026-01-02", "3")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == 'error: view "stock" has no row with the key (z, 2026-01-02, 3)\n'


def test_a_key_of_another_length_is_told(run: Run, stock: SqliteSink) -> None:
    result = run("view", "get", "stock", "a", "2026-01-02")
    assert result.exit_code == 2
    assert 'key of view "stock" is (shop, day, item)' in result.stderr
    assert "got (a, 2026-01-02)" in result.stderr


@pytest.mark.parametrize(
    ("day", "item", "said"),
    [
        ("2026-01-02", "three", 'column "item" is BIGINT, not "three"'),
        ("2026-01-02", "3.5", 'column "item" is BIGINT, not "3.5"'),
        ("noon", "3", 'column "day" is TIMESTAMP, not "noon"'),
    ],
)
def test_a_value_that_is_not_of_its_type_is_told_with_how_to_write_it(
    run: Run, stock: SqliteSink, day: str, item: str, said: str
) -> None:
    result = run("view", "get", "stock", "a", day, item)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {said}\nhint: write ")
    assert "quotes" not in result.stderr


def test_a_key_may_be_of_any_type_that_keys_have(run: Run, store: ViewStore) -> None:
    schema = "a BOOLEAN, b DATE, c DECIMAL(4,1), d BINARY, e TIMESTAMP_NTZ"
    sink = store.sink("odd", schema, ("a", "b", "c", "d", "e"))
    sink.begin()
    row = (True, NOON.date(), Decimal("2.5"), b"hello", NOON.replace(tzinfo=None))
    sink.commit(batch(0, [row], store.view("odd").schema))
    result = run("view", "get", "odd", "true", "2026-01-02", "2.5", "aGVsbG8=", "2026-01-02T12:00:00")
    assert result.exit_code == 0, result.stderr
    assert "aGVsbG8=" in result.stdout


# scan


def test_a_scan_is_by_key_and_as_csv_for_others(run: Run, stock: SqliteSink) -> None:
    rows = list(csv.DictReader(run("view", "scan", "stock", "--format", "csv").stdout.splitlines()))
    assert [(row["shop"], row["item"]) for row in rows] == [("a", "-7"), ("a", "2"), ("b", "3")]


def test_a_prefix_and_a_range_narrow_a_scan(run: Run, stock: SqliteSink) -> None:
    def items(*args: object) -> list[int]:
        lines = run("view", "scan", "stock", "--format", "ndjson", *args).stdout.splitlines()
        return [json.loads(line)["item"] for line in lines]

    assert items("--prefix", "a") == [-7, 2]
    assert items("--prefix", "a", "--from", "2026-01-03") == [2]
    assert items("--prefix", "a", "--to", "2026-01-03") == [-7]
    assert items("--prefix", "a", "--prefix", "2026-01-02 12:00", "--from=-10", "--to", "0") == [-7]
    assert items("--from", "b") == [3]


def test_an_order_a_direction_and_a_limit(run: Run, stock: SqliteSink) -> None:
    result = run("view", "scan", "stock", "--order", "price", "--desc", "--limit", 2, "--format", "ndjson")
    assert [json.loads(line)["price"] for line in result.stdout.splitlines()] == ["9.00", "4.00"]
    assert run("view", "scan", "stock", "--limit", 0, "--format", "ndjson").stdout == ""


def test_a_scan_that_cannot_be_meant_is_refused(run: Run, stock: SqliteSink) -> None:
    result = run("view", "scan", "stock", "--order", "prise")
    assert (result.exit_code, 'did you mean "price"?' in result.stderr) == (2, True)
    whole = ["--prefix", "a", "--prefix", "2026-01-02", "--prefix", "1"]
    assert "leave out --from and --to" in run("view", "scan", "stock", *whole, "--from", "1").stderr
    assert "(shop, day, item)" in run("view", "scan", "stock", *whole, "--prefix", "1").stderr


def test_a_scan_without_rows_says_so_and_csv_has_its_header(run: Run, stock: SqliteSink) -> None:
    result = run("view", "scan", "stock", "--prefix", "z")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no rows\n")
    result = run("view", "scan", "stock", "--prefix", "z", "--format", "csv")
    assert (result.stdout, result.stderr) == ('"shop","day","item","price","about"\n', "")
    result = run("view", "scan", "stock", "--prefix", "z", "--format", "ndjson")
    assert (result.stdout, result.stderr) == ("", "")


# Reading one's own writes


def test_a_read_waits_for_a_position(run: Run, stock: SqliteSink, store: ViewStore) -> None:
    rows = [("c", NOON, 1, Decimal("1.00"), None)]
    later = threading.Timer(0.3, stock.commit, [batch(1, rows, store.view("stock").schema, read=4)])
    later.start()
    result = run("view", "scan", "stock", "--prefix", "c", "--wait-for", "orders:0=4", "--format", "ndjson")
    later.join()
    assert json.loads(result.stdout)["shop"] == "c"


def test_a_view_that_does_not_get_there_in_time_is_told(run: Run, stock: SqliteSink) -> None:
    result = run("view", "get", "stock", "b", "2026-01-02", "3", "--wait-for", "orders:0=9", "--timeout", 0.1)
    assert result.exit_code == 1
    assert 'view "stock" has not caught up within 0.1 seconds' in result.stderr
    assert "6 records are missing" in result.stderr


def test_what_is_no_position_is_told(run: Run, stock: SqliteSink) -> None:
    result = run("view", "scan", "stock", "--wait-for", "orders")
    assert (result.exit_code, 'invalid position "orders"' in result.stderr) == (2, True)


# changes


@pytest.fixture
def counts(store: ViewStore) -> SqliteSink:
    """A view whose row ``a`` was inserted, updated and deleted."""
    sink = store.sink("counts", "id STRING, n BIGINT", "id")
    sink.begin()
    for number, rows in enumerate(({"id": ["a"], "n": [1]}, {"id": ["a"], "n": [2]})):
        sink.commit(Batch(number, pa.table(rows)))
    sink.commit(Batch(2, pa.table({"id": ["a"], "n": [None], "_deleted": [True]})))
    return sink


def test_changes_show_the_row_after_or_before(run: Run, counts: SqliteSink) -> None:
    header, *lines = run("view", "changes", "counts").stdout.splitlines()
    assert header.split() == ["_sequence", "_change", "id", "n"]
    assert [line.split()[1:] for line in lines] == [
        ["insert", "a", "1"],
        ["update", "a", "2"],
        ["delete", "a", "2"],
    ]


def test_changes_as_ndjson_have_both_rows(run: Run, counts: SqliteSink) -> None:
    lines = run("view", "changes", "counts", "--since", 1, "--format", "ndjson").stdout.splitlines()
    one, two = {"id": "a", "n": 1}, {"id": "a", "n": 2}
    assert [json.loads(line) for line in lines] == [
        {"sequence": 2, "change": "update", "batch": 1, "old": one, "new": two},
        {"sequence": 3, "change": "delete", "batch": 2, "old": two},
    ]


def test_changes_begin_where_one_says(run: Run, counts: SqliteSink) -> None:
    assert run("view", "changes", "counts", "--since", 3, "--format", "ndjson").stdout == ""
    assert run("view", "changes", "counts", "--since", "latest", "--format", "ndjson").stdout == ""
    result = run("view", "changes", "counts", "--since", "now")
    assert (result.exit_code, "name a number, or latest" in result.stderr) == (2, True)
    assert run("view", "changes", "counts", "--since", 99).exit_code == 2


def test_following_goes_on_with_what_comes(counts: SqliteSink, store: ViewStore) -> None:
    found = view_changes.blocks(store.view("counts"), 2, follow=True)
    assert [change.kind for change in next(found)] == ["delete"]
    rows = pa.table({"id": ["b", "c"], "n": [1, 2]})
    later = threading.Timer(0.2, counts.commit, [Batch(3, rows)])
    later.start()
    assert [change.key for change in next(found)] == [("b",), ("c",)]
    later.join()


def test_without_a_beginning_all_that_is_kept_is_printed(
    run: Run, store: ViewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_changes, "BLOCK", 3)
    sink = store.sink("many", "id BIGINT, n BIGINT", "id", feed=5)
    sink.begin()
    for number in range(200):
        sink.commit(Batch(number, pa.table({"id": [1], "n": [number]})))
    result = run("view", "changes", "many", "--format", "ndjson")
    found = [json.loads(line)["sequence"] for line in result.stdout.splitlines()]
    assert 5 <= len(found) < 200
    assert found == list(range(201 - len(found), 201))
    assert result.stderr == f"note: {200 - len(found)} older changes are no longer retained\n"
