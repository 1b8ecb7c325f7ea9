"""What ``send`` and ``send_batch`` were given is what is stored, whatever becomes of it afterwards."""

from __future__ import annotations

import copy
from collections import UserDict
from datetime import datetime
from typing import Any
from unittest import mock

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater
from headwater import Log
from headwater.errors import RowError
from soaking import examples

NESTED = "id BIGINT, raw BINARY, tags ARRAY<STRING>, deep MAP<STRING, STRUCT<xs: ARRAY<INT>>>, doc VARIANT"
FLAT = "id BIGINT, name STRING, amount DOUBLE"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
NESTED_ROWS = st.fixed_dictionaries(
    {"id": st.integers(0, 9)},
    optional={
        "raw": st.binary(max_size=4).map(bytearray),
        "tags": st.lists(st.text(max_size=3), max_size=3),
        "deep": st.dictionaries(
            st.text(max_size=2),
            st.fixed_dictionaries({"xs": st.lists(st.integers(0, 9), max_size=3)}),
            max_size=2,
        ),
        "doc": JSON,
    },
)
FLAT_ROWS = st.fixed_dictionaries(
    {}, optional={"id": st.integers(0, 9), "name": st.text(max_size=3), "amount": st.floats(0, 9)}
)


def spoil(value: Any) -> None:
    """Change everything that can be changed, from the inside out."""
    if isinstance(value, dict):
        for each in list(value.values()):
            spoil(each)
        value.clear()
        value["spoiled"] = True
    elif isinstance(value, list):
        for each in value:
            spoil(each)
        value[:] = ["spoiled"]
    elif isinstance(value, bytearray):
        value[:] = b"spoiled"


def sent(ddl: str, rows: list[Any], headers: bool) -> list[dict[str, Any]]:
    """Return what is stored of rows that are spoiled once they have been sent."""
    with headwater.open("memory:") as log:
        log.create_topic("t", ddl)
        with log.producer("t", linger="1 minute") as producer:
            for row in rows:
                marks = {"trace": bytearray(b"f00d")} if headers else None
                producer.send(row, headers=marks)  # type: ignore[arg-type]
                spoil(row)
                spoil(marks)
        return [row for batch in log.read("t", meta=True) for row in batch.to_pylist()]


def expected(row: dict[str, Any]) -> dict[str, Any]:
    row = copy.deepcopy(row)
    if "raw" in row:
        row["raw"] = bytes(row["raw"])
    if "deep" in row:
        row["deep"] = list(row["deep"].items())
    if row.get("doc") is not None:
        row["doc"] = orjson.dumps(row["doc"]).decode()
    return row


@examples(60)
@given(st.lists(NESTED_ROWS, max_size=4), st.booleans())
def test_a_nested_row_that_is_changed_after_send_is_stored_as_it_was(rows: list[Any], headers: bool) -> None:
    wanted = [expected(row) for row in rows]
    found = sent(NESTED, rows, headers)
    names = ("id", "raw", "tags", "deep", "doc")
    assert [{name: row[name] for name in names} for row in found] == [
        {name: row.get(name) for name in names} for row in wanted
    ]
    if headers:
        assert all(row["_headers"] == [("trace", b"f00d")] for row in found)


@examples(60)
@given(st.lists(FLAT_ROWS | FLAT_ROWS.map(UserDict), max_size=6), st.booleans())
def test_a_flat_row_that_is_changed_after_send_is_stored_as_it_was(rows: list[Any], headers: bool) -> None:
    wanted = [dict(row) for row in rows]
    for row in rows:
        row |= {}
    found = sent(FLAT, rows, headers)
    names = ("id", "name", "amount")
    assert [{name: row[name] for name in names} for row in found] == [
        {name: row.get(name) for name in names} for row in wanted
    ]


def test_a_dict_that_is_used_again_is_stored_as_it_was_each_time() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("t", FLAT)
        with log.producer("t", linger="1 minute") as producer:
            row: dict[str, Any] = {"name": "a", "amount": 0.5}
            for n in range(1000):
                row["id"] = n
                producer.send(row)
        assert [n for batch in log.read("t") for n in batch.column("id").to_pylist()] == list(range(1000))


def test_a_free_json_value_that_is_changed_after_send_is_stored_as_it_was() -> None:
    value: list[Any] = [{"a": [1]}]
    found = sent("JSON", [value, {"b": {"c": 1}}, (1, [2])], headers=False)
    assert [row["value"] for row in found] == ['[{"a":[1]}]', '{"b":{"c":1}}', "[1,[2]]"]


@pytest.fixture
def log() -> Any:
    with headwater.open("memory:") as log:
        yield log


def test_a_frame_or_an_array_that_is_changed_after_send_batch_is_stored_as_it_was(log: Log) -> None:
    log.create_topic("t", "id BIGINT, amount DOUBLE, raw BINARY")
    numbers = np.arange(200_000)
    frame = pd.DataFrame({"id": np.arange(200_000), "amount": np.arange(200_000) / 2})
    rows = [{"id": n, "raw": bytearray(b"ab")} for n in range(5)]
    with log.producer("t") as producer:
        for _ in range(3):  # more than one, so that they are encoded while the next is made
            producer.send_batch(pa.table({"id": numbers}))
            numbers[:] = -1
            producer.send_batch(frame)
            frame.loc[:, "id"] = -1
            frame["amount"].to_numpy()[:] = -1.0 if frame["amount"].to_numpy().flags.writeable else 0
            producer.send_batch(rows)
            spoil(rows)
            numbers, frame = np.arange(200_000), frame.assign(id=np.arange(200_000))
            rows = [{"id": n, "raw": bytearray(b"ab")} for n in range(5)]
    found = pa.Table.from_batches(log.read("t"))
    assert found.column("id").to_pylist() == [*range(200_000), *range(200_000), *range(5)] * 3
    assert set(found.column("raw").to_pylist()) == {None, b"ab"}


class Hostile:
    """An object that fails at whatever it is asked."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError("no copy")

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("column", ["id", "name", "at", "tags", "doc", "unknown"])
@pytest.mark.parametrize("flat", [True, False])
def test_a_row_that_cannot_even_be_shown_keeps_no_other_from_being_stored(
    log: Log, column: str, flat: bool
) -> None:
    nested = "" if flat else ", tags ARRAY<INT>, doc VARIANT"
    log.create_topic("t", f"id BIGINT, name STRING, at TIMESTAMP{nested}")
    errors = []
    producer = log.producer("t", linger="1 minute")
    for n in range(20):
        bad = {column: Hostile()} if n in (3, 11) else {}
        try:
            producer.send({"id": n, "name": "a", "at": datetime(2026, 1, 1)} | bad)
        except RowError as error:
            errors.append(str(error))
    for _ in range(2):
        try:
            producer.close()
        except RowError as error:
            errors.append(str(error))
    assert errors
    assert all(any(word in error for word in ("Hostile", column, "RuntimeError")) for error in errors)
    assert [n for batch in log.read("t") for n in batch.column("id").to_pylist()] == [
        n for n in range(20) if n not in (3, 11)
    ]


@pytest.mark.parametrize("row", [Hostile(), 5, None, [("id", 1)], ("a", "b")])
def test_a_thing_that_is_no_row_keeps_no_other_from_being_stored(log: Log, row: Any) -> None:
    log.create_topic("t", "id BIGINT, name STRING")
    with log.producer("t", linger="1 minute") as producer:
        producer.send({"id": 0, "name": "a"})
        with pytest.raises(RowError):
            producer.send(row)
            producer.flush()
        producer.send({"id": 2})
    assert [n for batch in log.read("t") for n in batch.column("id").to_pylist()] == [0, 2]


def test_a_column_that_is_added_is_stored_by_a_producer_that_was_open_before(log: Log) -> None:
    log.create_topic("t", "id BIGINT, name STRING")
    with log.producer("t", linger="1 minute") as producer:
        producer.send({"id": 1, "name": "a"})
        log.alter_topic("t", schema="id BIGINT, name STRING, city STRING")
        producer.send({"id": 2, "name": "b", "city": "Oslo"})
        producer.send({"id": 3, "name": "c"})
    rows = [row for batch in log.read("t") for row in batch.to_pylist()]
    assert rows == [
        {"id": 1, "name": "a", "city": None},
        {"id": 2, "name": "b", "city": "Oslo"},
        {"id": 3, "name": "c", "city": None},
    ]


def test_records_keep_the_schema_that_they_were_converted_to(log: Log) -> None:
    """A topic that is altered between the conversion of rows and their encoding does not relabel them."""
    old = log.create_topic("t", "id BIGINT, name STRING")
    with log.producer("t") as producer:
        new = log.alter_topic("t", schema="id BIGINT, name STRING, city STRING")
        versions = iter([old, new])  # as it is told in this order when it is altered in between
        with mock.patch.object(producer._builder, "_topic", lambda: next(versions, new)):
            producer.send({"id": 1, "name": "a"})
            producer.flush()
        producer.send({"id": 2, "name": "b", "city": "Oslo"})
    rows = [row for batch in log.read("t") for row in batch.to_pylist()]
    assert rows == [{"id": 1, "name": "a", "city": None}, {"id": 2, "name": "b", "city": "Oslo"}]
