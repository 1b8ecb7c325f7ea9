"""What is told of columns before any row comes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.operators.columns import check_columns, check_time, one_array, unused_name
from headwater.schema import parse

SCHEMA = parse("shop STRING, cents BIGINT, at TIMESTAMP, day DATE")


def test_columns_that_are_there_pass() -> None:
    check_columns("dedup", ["shop", "cents"], SCHEMA)
    check_time("dedup", "at", SCHEMA)


def test_a_key_of_no_columns_is_refused() -> None:
    with pytest.raises(UsageError, match="dedup has no columns to go by"):
        check_columns("dedup", [], SCHEMA)


def test_a_misspelt_column_is_told_with_those_that_are_there_and_the_nearest() -> None:
    with pytest.raises(UsageError, match='latest finds no column "chop" in its rows') as refused:
        check_columns("latest", ["cents", "chop"], SCHEMA)
    assert "the columns are shop, cents, at, day" in str(refused.value)
    assert '"shop"' in str(refused.value).split("hint:")[1]


@pytest.mark.parametrize(("name", "kind"), [("cents", "BIGINT"), ("day", "DATE")])
def test_an_event_time_that_is_no_timestamp_is_refused(name: str, kind: str) -> None:
    with pytest.raises(UsageError, match=f'scan cannot take column "{name}" as the event time') as refused:
        check_time("scan", name, SCHEMA)
    assert f"it is {kind}" in str(refused.value)


def test_a_timestamp_of_another_unit_is_refused_and_one_that_is_not_there_too() -> None:
    coarse = pa.schema([("at", pa.timestamp("ms", "UTC"))])
    with pytest.raises(UsageError, match='scan cannot take column "at" as the event time') as refused:
        check_time("scan", "at", coarse)
    assert "it is timestamp[ms, tz=UTC]" in str(refused.value)
    assert "in microseconds" in str(refused.value)
    with pytest.raises(UsageError, match='scan finds no column "when"'):
        check_time("scan", "when", SCHEMA)


def test_a_column_of_ours_has_a_name_that_is_free() -> None:
    assert unused_name("_low", SCHEMA.names) == "_low"
    assert unused_name("_low", ["_low", "_low_"]) == "_low__"


@pytest.mark.parametrize("chunks", [[], [[1]], [[1], [], [2]]])
def test_a_column_of_any_chunks_is_one_array(chunks: list[list[int]]) -> None:
    column = pa.chunked_array(chunks, pa.int64())
    assert isinstance(one_array(column), pa.Array)
    assert one_array(column).to_pylist() == [value for chunk in chunks for value in chunk]
