from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.cli.conftest import Run
from tests.unit.cli.contents import rows

from headwater import Log
from headwater.cli.append import Appending
from headwater.cli.formats import lines


def test_lines_of_json_are_appended_and_summed_up(run: Run, orders: Log) -> None:
    result = run("produce", "orders", input='{"id": 1, "item": "tea"}\n\n{"id": 2}')
    assert result.exit_code == 0
    assert result.stdout.startswith("2 rows in ")
    assert result.stdout.endswith("up to orders:0=2\n")
    assert rows(orders, "orders", "item") == ["tea", None]


def test_a_file_ending_in_csv_is_read_as_csv(run: Run, orders: Log, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text('id,item\n1,"tea, ""green""\nand black"\n2,\n3,""\n')
    assert run("produce", "orders", "orders.csv").exit_code == 0
    assert rows(orders, "orders", "item") == ['tea, "green"\nand black', None, ""]


def test_csv_times_are_utc_with_or_without_a_zone(run: Run, orders: Log) -> None:
    text = "id,at\n1,2026-01-02T03:04:05Z\n2,2026-01-02 03:04:05\n3,2026-01-02T05:04:05+02:00\n"
    assert run("produce", "orders", "--format", "csv", input=text).exit_code == 0
    assert len(set(rows(orders, "orders", "at"))) == 1


def test_csv_cells_of_nested_columns_hold_json(run: Run, log: Log) -> None:
    log.create_topic("events", "id INT, tags ARRAY<STRING>, data BINARY, free VARIANT, price DECIMAL(6,2)")
    text = 'free,id,tags,data,price\n"{""a"": 1}",1,"[""x"",""y""]",aGk=,1.50\n,2,,,\n'
    assert run("produce", "events", "--format", "csv", input=text).exit_code == 0
    one, two = rows(log, "events")
    assert (one["tags"], one["data"], one["free"]) == (["x", "y"], b"hi", '{"a":1}')
    assert (two["tags"], two["data"], two["free"], two["price"]) == (None, None, None, None)


def test_a_bad_line_stops_and_is_named_and_those_before_it_stay(
    run: Run, orders: Log, tmp_path: Path
) -> None:
    (tmp_path / "bad.ndjson").write_text('{"id": 1}\n\n{"id": "two"}\n{"id": 3}\n')
    result = run("produce", "orders", "bad.ndjson")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: bad.ndjson, line 3: ")
    assert "tail -n +3 bad.ndjson" in result.stderr
    assert rows(orders, "orders", "id") == [1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": 2', "value is not JSON"),
        ('{"id": 2, "itme": "tea"}', 'has no column "itme"'),
        ('{"item": "tea"}', '"id"'),
        ("[1, 2]", "not a JSON object"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_reason(run: Run, orders: Log, line: str, reason: str) -> None:
    result = run("produce", "orders", input='{"id": 1}\n' + line + "\n")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: standard input, line 2: ")
    assert reason in result.stderr
    assert rows(orders, "orders", "id") == [1]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("ndjson", b'{"id": 1}\n{"id": 2, "item": "\xff"}\n'),
        ("csv", b"id,item\n2,\xff\n"),
    ],
)
def test_invalid_utf8_is_told_as_such(run: Run, orders: Log, form: str, text: bytes) -> None:
    result = run("produce", "orders", "--format", form, input=text)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: standard input, line 2: value is not UTF-8")
    assert "is 0xff" in result.stderr


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("x,,,", 'column "id" is BIGINT\ndetail: got "x"; nothing is appended\nhint: write a whole number'),
        ("1,1.555,,", 'column "price" is DECIMAL(6,2)\ndetail: got "1.555"; '),
        ("1,,gestern,", 'column "at" is TIMESTAMP\ndetail: got "gestern"; '),
        ("1,,,oje", 'column "tags" is ARRAY<INT>, and the cell is not JSON\ndetail: got oje; '),
        ("1,2", "\ndetail: the header row has 4 columns, this one 2; "),
    ],
)
def test_a_bad_csv_cell_is_told_by_its_column_and_value(run: Run, log: Log, row: str, said: str) -> None:
    log.create_topic("t", "id BIGINT, price DECIMAL(6,2), at TIMESTAMP, tags ARRAY<INT>")
    stderr = run("produce", "t", "--format", "csv", input=f"id,price,at,tags\n{row}\n").stderr
    assert said in stderr
    assert "#" not in stderr
    assert "Row" not in stderr


def test_a_bad_csv_cell_is_told_though_another_is_very_long(run: Run, orders: Log) -> None:
    result = run("produce", "orders", "--format", "csv", input=f"id,item\nx,{'y' * 200_000}\n")
    assert result.stderr.startswith("error: standard input, line 2: row does not fit")
    assert 'column "id" is BIGINT' in result.stderr


def test_a_csv_header_of_metadata_alone_is_refused(run: Run, orders: Log) -> None:
    result = run("produce", "orders", "--format", "csv", input="_offset\n1\n")
    assert result.stderr.startswith(
        'error: header row names no column of topic "orders"\nhint: its columns: id'
    )
    assert rows(orders) == []


def test_the_hints_of_a_bad_line_are_lines_of_their_own(run: Run, orders: Log) -> None:
    lines = run("produce", "orders", input='{"id": 1, "itme": 2}\n').stderr.splitlines()
    assert lines[2] == 'hint: did you mean "item"?'
    assert lines[3].startswith("hint: correct line 1, then go on with")


def test_a_deletion_is_refused_where_the_topic_is_not_compacted(run: Run, orders: Log) -> None:
    text = "id,_deleted\n1,false\n2,true\n"
    result = run("produce", "orders", "--format", "csv", input=text)
    assert result.stderr.startswith('error: standard input, line 3: topic "orders" is not compacted')
    assert rows(orders, "orders", "id") == [1]


def test_a_bad_csv_row_is_named_by_the_line_it_begins_on(run: Run, orders: Log) -> None:
    text = 'id,item\n1,"a\nb"\n2,tea\nthree,tea\n4,tea\n'
    result = run("produce", "orders", "--format", "csv", input=text)
    assert result.stderr.startswith("error: standard input, line 5: ")
    assert "three" in result.stderr
    assert rows(orders, "orders", "id") == [1, 2]


def test_a_null_in_a_required_csv_column_is_named_by_its_line(run: Run, orders: Log) -> None:
    result = run("produce", "orders", "--format", "csv", input="id,item\n1,tea\n,tea\n3,tea\n")
    assert result.stderr.startswith("error: standard input, line 3: ")
    assert rows(orders, "orders", "id") == [1]


def test_an_unknown_csv_column_is_refused_before_anything_is_appended(run: Run, orders: Log) -> None:
    result = run("produce", "orders", "--format", "csv", input="id,itme\n1,tea\n")
    assert 'has no column "itme"' in result.stderr
    assert 'did you mean "item"?' in result.stderr
    assert rows(orders) == []


def test_a_named_producer_adds_nothing_twice(run: Run, orders: Log) -> None:
    text = "".join(f'{{"id": {n}}}\n' for n in range(100))
    run("produce", "orders", "--producer", "import", input=text[: text.index('{"id": 40}')])
    result = run("produce", "orders", "--producer", "import", input=text)
    assert rows(orders, "orders", "id") == list(range(100))
    assert rows(orders, "orders", "_sequence") == list(range(1, 101))
    assert result.stdout.startswith("60 of 100 rows added, 40 were there already, in ")


def test_what_a_named_producer_has_added_is_counted_beside_others(
    run: Run, orders: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '{"id": 1}\n{"id": 2}\n{"id": 3}\n'
    run("produce", "orders", "--producer", "p", input=text)
    add = Appending.add

    def add_beside_another(self: Appending, batch: pa.RecordBatch) -> None:
        with orders.producer("orders") as other:
            other.send({"id": 9})
        add(self, batch)

    monkeypatch.setattr(Appending, "add", add_beside_another)
    result = run("produce", "orders", "--producer", "p", input=text)
    assert result.stdout.startswith("0 of 3 rows added, 3 were there already, in ")


def test_a_corrected_line_goes_on_where_the_named_producer_stopped(run: Run, orders: Log) -> None:
    bad = run("produce", "orders", "--producer", "p", input='{"id": 1}\n{"id": 2.5}\n{"id": 3}\n')
    assert "run the same command again" in bad.stderr
    run("produce", "orders", "--producer", "p", input='{"id": 1}\n{"id": 2}\n{"id": 3}\n')
    assert rows(orders, "orders", "id") == [1, 2, 3]


def test_a_deleted_key_is_a_tombstone_in_a_compacted_topic(run: Run, log: Log) -> None:
    log.create_topic("customers", "id BIGINT, name STRING NOT NULL", key="id", cleanup="compact")
    text = '{"id": 1, "name": "Ann"}\n{"id": 1, "_deleted": true}\n{"id": 2, "name": "Bo"}\n'
    result = run("produce", "customers", input=text)
    assert result.exit_code == 0, result.stderr
    assert rows(log, "customers", "_deleted") == [False, True, False]
    assert rows(log, "customers", "_sequence") == [1, 2, 3]


def test_any_json_goes_into_a_topic_of_free_json(run: Run, log: Log) -> None:
    log.create_topic("anything", "JSON")
    run("produce", "anything", input='{"a": 1}\n[1, 2]\n"text"\n')
    assert [value.replace(" ", "") for value in rows(log, "anything", "value")] == [
        '{"a":1}',
        "[1,2]",
        '"text"',
    ]


def test_many_chunks_are_one_input(run: Run, orders: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "CHUNK", 100)
    text = "".join(f'{{"id": {n}, "item": "ä{n}"}}\r\n' for n in range(500))
    assert run("produce", "orders", input=text).exit_code == 0
    assert rows(orders, "orders", "item") == [f"ä{n}" for n in range(500)]


def test_a_line_without_end_is_refused_in_bounded_memory(
    run: Run, orders: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "CHUNK", 1000)
    monkeypatch.setattr(lines, "LONGEST", 5000)
    result = run("produce", "orders", input='{"id": 1}\n{"id": 2, "item": "' + "x" * 100_000)
    assert result.exit_code == 1
    assert "line 2" in result.stderr
    assert rows(orders, "orders", "id") == [1]


def test_a_byte_order_mark_is_not_part_of_the_first_line(run: Run, orders: Log) -> None:
    assert run("produce", "orders", input=b'\xef\xbb\xbf{"id": 1}\n').exit_code == 0
    assert rows(orders, "orders", "id") == [1]


def test_a_bad_first_line_leaves_nothing(run: Run, orders: Log) -> None:
    result = run("produce", "orders", input="hello\n")
    assert result.stderr.startswith("error: standard input, line 1: value is not JSON")
    assert rows(orders) == []


def test_an_empty_input_appends_nothing(run: Run, orders: Log) -> None:
    result = run("produce", "orders", input="")
    assert result.exit_code == 0
    assert result.stdout.startswith("0 rows in ")
    assert "up to" not in result.stdout


def test_the_advice_after_a_bad_line_names_the_log_as_it_was_named(run: Run, orders: Log, url: str) -> None:
    with open("two words.ndjson", "w") as file:
        file.write('{"id": 1}\n{"id": "x"}\n')
    place = "`(tail -n +2 'two words.ndjson') | headwater produce orders --format ndjson"
    assert f"{place}`" in run("produce", "orders", "two words.ndjson").stderr
    named = f"{place} --log {url}`"
    assert named in run("--log", url, "produce", "orders", "two words.ndjson").stderr
    assert named in run("produce", "orders", "two words.ndjson", "--log", url).stderr
