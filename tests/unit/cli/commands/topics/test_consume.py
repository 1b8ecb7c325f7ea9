from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run
from tests.unit.cli.contents import rows

from headwater import Log
from headwater.cli.formats import writers


@pytest.fixture
def ten(orders: Log) -> Log:
    """Orders 0 to 9."""
    with orders.producer("orders", "shop") as producer:
        producer.send_batch([{"id": n, "item": f"item {n}"} for n in range(10)])
    return orders


def ids(text: str) -> list[int]:
    return [json.loads(line)["id"] for line in text.splitlines()]


def test_a_table_has_a_header_and_a_line_per_record(run: Run, ten: Log) -> None:
    lines = run("consume", "orders", "--limit", 2).stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["id", "item", "at"],
        ["0", "item", "0", "null"],
        ["1", "item", "1", "null"],
    ]


def test_ndjson_can_be_produced_again(run: Run, ten: Log) -> None:
    text = run("consume", "orders", "--format", "ndjson").stdout
    ten.create_topic("copy", "id BIGINT NOT NULL, item STRING, at TIMESTAMP")
    assert run("produce", "copy", input=text).exit_code == 0
    assert rows(ten, "copy", "item") == rows(ten, "orders", "item")


def test_csv_of_every_type_can_be_produced_again(run: Run, log: Log, tmp_path: Path) -> None:
    ddl = (
        "id INT, t STRING, b BOOLEAN, f DOUBLE, d DECIMAL(8,2), day DATE, at TIMESTAMP, local TIMESTAMP_NTZ,"
        " raw BINARY, tags ARRAY<STRING>, m MAP<STRING, INT>, s STRUCT<x: INT, y: STRING>, v VARIANT"
    )
    full = (
        '{"id": 1, "t": "a\\n\\"b\\",", "b": true, "f": 1.5, "d": "2.50", "day": "2026-01-02", '
        '"at": "2026-01-02T03:04:05.678Z", "local": "2026-01-02T03:04:05", "raw": "aGk=", '
        '"tags": ["x", "y"], "m": {"k": 1}, "s": {"x": 1, "y": "z"}, "v": {"any": [1, null]}}'
    )
    log.create_topic("one", ddl)
    log.create_topic("two", ddl)
    assert run("produce", "one", input=full + '\n{"id": 2}\n{"id": 3, "t": ""}\n').exit_code == 0
    (tmp_path / "one.csv").write_text(run("consume", "one", "--format", "csv").stdout)
    assert run("produce", "two", "one.csv").exit_code == 0
    names = log.topic("one").schema.names
    for before, after in zip(rows(log, "one"), rows(log, "two"), strict=True):
        assert [after[name] for name in names] == [before[name] for name in names]


def test_meta_shows_where_records_are_and_who_sent_them(run: Run, ten: Log) -> None:
    text = run("consume", "orders", "--meta", "--format", "csv", "--limit", 1).stdout
    [record] = csv.DictReader(io.StringIO(text))
    assert (record["_partition"], record["_offset"], record["_producer"]) == ("0", "0", "shop")


def test_from_takes_an_offset_a_time_and_a_position(run: Run, ten: Log) -> None:
    def read(start: str) -> list[int]:
        return ids(run("consume", "orders", "--format", "ndjson", "--from", start).stdout)

    assert read("7") == [7, 8, 9]
    assert read("orders:0=8") == [8, 9]
    assert read("1 hour ago") == list(range(10))
    assert read("2100-01-01") == []
    assert read("latest") == []


def test_to_ends_before_a_place(run: Run, ten: Log) -> None:
    read = run("consume", "orders", "--format", "ndjson", "--from", 3, "--to", "orders:0=5").stdout
    assert ids(read) == [3, 4]


@pytest.mark.parametrize("endless", [("--follow",), ("--group", "g")])
def test_to_is_refused_where_there_is_no_end(run: Run, ten: Log, endless: tuple[str, ...]) -> None:
    result = run("consume", "orders", "--to", 5, *endless)
    assert result.exit_code == 2
    assert "leave out --to" in result.stderr


def test_a_start_past_the_end_is_refused(run: Run, ten: Log) -> None:
    result = run("consume", "orders", "--from", 99)
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'offset 99 of topic "orders", partition 0, is past the end' in result.stderr
    assert run("consume", "orders", "--from", 10).stderr == ""


def test_what_is_no_place_is_refused_with_all_that_are(run: Run, ten: Log) -> None:
    for words in (("consume", "orders", "--from", "yesterday"), ("seek", "g", "orders", "--to", "nowhere")):
        hint = run(*words).stderr.splitlines()[1]
        assert all(word in hint for word in ("earliest", "latest", "offset", "time", "partitions"))


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_what_is_printed_with_its_metadata_can_be_produced_again(run: Run, log: Log, form: str) -> None:
    for name in ("one", "two"):
        log.create_topic(name, "id BIGINT, name STRING", key="id", cleanup="compact")
    with log.producer("one") as producer:
        producer.send({"id": 1, "name": "Ann"}, headers={"by": "web"})
        producer.delete(1)
    text = run("consume", "one", "--meta", "--format", form).stdout
    result = run("produce", "two", "--format", form, input=text)
    assert result.exit_code == 0, result.stderr
    assert rows(log, "two", "name") == ["Ann", None]
    assert rows(log, "two", "_deleted") == [False, True]


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_metadata_is_left_out_in_a_topic_that_is_not_compacted(run: Run, ten: Log, form: str) -> None:
    text = run("consume", "orders", "--meta", "--format", form).stdout
    assert run("produce", "orders", "--format", form, input=text).exit_code == 0
    assert rows(ten, "orders", "item") == [f"item {n}" for n in range(10)] * 2


def test_one_partition_can_be_read_alone(run: Run, log: Log) -> None:
    log.create_topic("events", "id BIGINT", key="id", partitions=2)
    run("produce", "events", input="".join(f'{{"id": {n}}}\n' for n in range(20)))
    parts = [ids(run("consume", "events", "--partition", p, "--format", "ndjson").stdout) for p in (0, 1)]
    assert all(parts)
    assert sorted(parts[0] + parts[1]) == list(range(20))


def test_a_group_goes_on_where_it_has_committed(run: Run, ten: Log) -> None:
    def read(*more: object) -> list[int]:
        result = run("consume", "orders", "--group", "g", "--format", "ndjson", *more)
        assert (result.exit_code, result.stderr) == (0, "")
        return ids(result.stdout)

    assert read("--limit", 4) == [0, 1, 2, 3]
    assert read("--limit", 0) == []
    assert read("--limit", 3) == [4, 5, 6]
    assert read() == [7, 8, 9]
    assert read() == []


def test_a_limit_moves_only_the_partition_that_was_cut(run: Run, log: Log) -> None:
    log.create_topic("events", "id BIGINT", key="id", partitions=3)
    run("produce", "events", input="".join(f'{{"id": {n}}}\n' for n in range(60)))
    seen: list[int] = []
    while part := ids(run("consume", "events", "--group", "g", "--limit", 7, "--format", "ndjson").stdout):
        seen += part
    assert sorted(seen) == list(range(60))


def test_a_groups_first_start_is_from(run: Run, ten: Log) -> None:
    read = run("consume", "orders", "--group", "new", "--from", 8, "--format", "ndjson").stdout
    assert ids(read) == [8, 9]


def test_a_group_and_a_partition_exclude_each_other(run: Run, ten: Log) -> None:
    result = run("consume", "orders", "--group", "g", "--partition", 0)
    assert result.exit_code == 2
    assert "leave out --partition or --group" in result.stderr


def test_large_topics_are_printed_in_blocks(run: Run, ten: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "BLOCK", 3)
    for form, header in (("ndjson", 0), ("csv", 1), ("table", 1)):
        assert len(run("consume", "orders", "--format", form).stdout.splitlines()) == 10 + header


@pytest.mark.parametrize("form", ["table", "csv", "ndjson"])
def test_a_column_that_is_added_meanwhile_does_not_disturb(
    run: Run, ten: Log, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    before = ten.topic("orders")
    ten.alter_topic("orders", schema="id BIGINT NOT NULL, item STRING, at TIMESTAMP, note STRING")
    monkeypatch.setattr(type(ten), "topic", lambda *_: before)
    result = run("consume", "orders", "--format", form)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "note" not in result.stdout


def test_a_tombstone_is_marked_and_other_records_are_not(run: Run, log: Log) -> None:
    log.create_topic("customers", "id BIGINT, name STRING", key="id", cleanup="compact")
    with log.producer("customers") as producer:
        producer.send({"id": 1, "name": "Ann"})
        producer.delete(1)
    read = [
        json.loads(line) for line in run("consume", "customers", "--format", "ndjson").stdout.splitlines()
    ]
    assert read == [{"id": 1, "name": "Ann"}, {"id": 1, "_deleted": True}]


def test_control_characters_cannot_reach_the_terminal(run: Run, orders: Log) -> None:
    with orders.producer("orders") as producer:
        producer.send({"id": 1, "item": "\x1b[31mred\nline\x9b"})
    text = run("consume", "orders").stdout
    assert r"\x1b[31mred\nline\x9b" in text
    assert "\x1b" not in text
