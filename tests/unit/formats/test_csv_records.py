"""CSV records: RFC 4180 to the letter, each value for itself, every cell exact or refused."""

from __future__ import annotations

import csv
import io
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import topic
from headwater.formats import csv_records
from headwater.topic import Topic
from soaking import examples

TEXTS = topic.create("t", "a STRING, b STRING", format="csv")
ONE = topic.create("t", "a STRING", format="csv")
PIECES = st.sampled_from(['"', ",", "a", "\n", "\r", "\r\n", '""', " ", "ü", "\ufeff", "\0", "b,c"])


def record(value: str) -> list[str | None] | None:
    """Return the cells of a record, a character at a time, None where the grammar has no such record."""
    cells: list[str | None] = []
    rest = value.removesuffix("\n").removesuffix("\r")
    while True:
        cell: str | None
        if rest[:1] == '"':
            cell, rest = "", rest[1:]
            while rest and (rest[0] != '"' or rest[:2] == '""'):
                cell, rest = cell + rest[0], rest[2 if rest[0] == '"' else 1 :]
            if not rest:
                return None
            rest = rest[1:]
        else:
            cell = ""
            while rest and rest[0] not in '",\r\n':
                cell, rest = cell + rest[0], rest[1:]
            cell = cell or None
        cells.append(cell)
        if not rest:
            return cells
        if rest[0] != ",":
            return None
        rest = rest[1:]


@pytest.mark.parametrize("declared", [TEXTS, ONE])
@examples(1500)
@given(values=st.lists(st.lists(PIECES, max_size=8).map("".join), max_size=5))
def test_values_are_records_of_the_grammar_and_none_touches_another(
    declared: Topic, values: list[str]
) -> None:
    batch, bad = csv_records.decode([value.encode() for value in values], declared)
    cells = [record(value) for value in values]
    right = [at for at, found in enumerate(cells) if found is not None and len(found) == len(declared.schema)]
    assert [list(row.values()) for row in batch.to_pylist()] == [cells[at] for at in right]
    assert [at for at, _ in bad] == [at for at in range(len(values)) if at not in right]


KINDS: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "TINYINT": st.integers(-128, 127),
    "DOUBLE": st.floats(allow_nan=False),
    "BOOLEAN": st.booleans(),
    "STRING": st.text(),
    "DECIMAL(9,2)": st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    "DATE": st.dates(),
    "TIMESTAMP": st.datetimes(timezones=st.just(UTC)),
    "ARRAY<BIGINT>": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
}
ROWS = st.lists(st.tuples(*(st.none() | each for each in KINDS.values())), max_size=6)
TYPED = topic.create("t", ", ".join(f"c{n} {kind}" for n, kind in enumerate(KINDS)), format="csv")


EMPTY = "\ue000empty\ue000"
"""Stands for an empty text, which Python writes like a null."""


def cell(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return orjson.dumps(value).decode()
    return value.isoformat() if isinstance(value, date | datetime) else None if value is None else str(value)


def written(row: tuple[Any, ...]) -> bytes:
    """Return a row as CSV: Python's own writer quotes what has to be, and we an empty text."""
    cells = [cell(value) for value in row]
    line = io.StringIO()
    csv.writer(line).writerow([f"{EMPTY}" if text == "" else text for text in cells])
    return line.getvalue().replace(EMPTY, '""').encode()


@examples(300)
@given(ROWS)
def test_what_python_writes_is_read_exactly(rows: list[tuple[Any, ...]]) -> None:
    batch, bad = csv_records.decode([written(row) for row in rows], TYPED)
    assert bad == []
    assert [tuple(row.values()) for row in batch.to_pylist()] == rows


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("BIGINT", "0x10"), ("BIGINT", "1.0"), ("BIGINT", "+1"), ("BIGINT", " 1"), ("TINYINT", "128"),
        ("BIGINT", "9223372036854775808"), ("DOUBLE", "1e400"), ("DOUBLE", "0.12345678901234567890123"),
        ("FLOAT", "0.123456789"), ("DECIMAL(4,2)", "1.234"), ("DATE", "2026-02-30"),
        ("TIMESTAMP", "yesterday"), ("TIMESTAMP", "2026-01-02T03:04:05.123456789Z"), ("BOOLEAN", "yes"),
        ("BINARY", "?"), ("VARIANT", '1,""b"":2'), ("ARRAY<INT>", "[1"), ("STRUCT<x: INT>", "{}{}"),
        ("BIGINT NOT NULL", ""),
    ],
)  # fmt: skip
def test_a_cell_that_is_not_of_its_type_is_refused_and_the_others_kept(kind: str, text: str) -> None:
    declared = topic.create("t", f"a {kind}, b STRING", format="csv")
    good = b'"' + GOOD[kind.split("(")[0].split("<")[0].split()[0]] + b'",x'
    value = f'"{text}",y'.encode() if text else b",y"
    batch, bad = csv_records.decode([good, value, good], declared)
    assert batch.column("b").to_pylist() == ["x", "x"]
    [(at, error)] = bad
    assert at == 1
    assert 'column "a"' in error.message


GOOD = {
    "BIGINT": b"1", "TINYINT": b"127", "DOUBLE": b"0.1", "FLOAT": b"0.5", "DECIMAL": b"1.23",
    "DATE": b"2026-02-28", "TIMESTAMP": b"2026-01-02T03:04:05Z", "BOOLEAN": b"true", "BINARY": b"aGk=",
    "VARIANT": b"[1]", "ARRAY": b"[1]", "STRUCT": b'{""x"":1}',
}  # fmt: skip


def test_errors_say_what_is_wrong() -> None:
    declared = topic.create("t", "a BIGINT, b STRING", format="csv")
    _, bad = csv_records.decode([b"1", b"1,2,3", b'1,"x', b'1,x"y', b"\xff,x", b"1,x\n2,y"], declared)
    assert [error.detail for _, error in bad[:2]] == [
        "it has 1 cells, the schema 2 columns",
        "it has 3 cells, the schema 2 columns",
    ]
    assert [error.message for _, error in bad[2:]] == [
        'value is not one CSV record, for topic "t"',
        'value is not one CSV record, for topic "t"',
        'value is not UTF-8, for topic "t"',
        'value is not one CSV record, for topic "t"',
    ]


def test_many_columns_are_counted_too() -> None:
    declared = topic.create("t", ", ".join(f"c{n} INT" for n in range(1200)), format="csv")
    batch, bad = csv_records.decode([b",".join([b"7"] * 1200), b",".join([b"7"] * 1199)], declared)
    assert (len(batch), [at for at, _ in bad]) == (1, [1])


def test_numbers_that_are_none_are_kept_as_such() -> None:
    declared = topic.create("t", "a DOUBLE, b INT", format="csv")
    batch, bad = csv_records.decode([b"NaN,1", b"-inf,2"], declared)
    found = batch.column("a").to_pylist()
    assert (math.isnan(found[0]), found[1], bad) == (True, -math.inf, [])
