"""Expressions mean what they mean to Spark, which computes null where it would stop (ANSI mode off)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headwater import schema
from headwater.expressions import parse

SCHEMA = "i BIGINT, f DOUBLE, s STRING, r STRUCT<a: BIGINT>, l ARRAY<BIGINT>, m MAP<STRING, STRING>, b BINARY"
NUMBERS = [0, 1, -1, 1_700_000_000, 1_700_000_000_123, -5_000_000_000, 253_402_300_799, None]
FRACTIONS = [0.0, 1.5, -1.25, 1_700_000_000.123456, 3e9, -0.000001, None, 7.0]
TEXTS = [
    "2026-01-02T03:04:05.678Z", "2026-01-02 03:04:05+02:00", "2026-1-2", "2026-02-30", "x", "", None,
    " 2026-01-02 03:04 ",
]  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {
        "i": NUMBERS[at], "f": FRACTIONS[at], "s": TEXTS[at], "r": None if at == 3 else {"a": at},
        "l": None if at == 2 else list(range(at)), "m": {"k": str(at)} if at % 2 else {}, "b": b"k%d" % at,
    }
    for at in range(8)
]  # fmt: skip
DATES = ["07.03.2026 21:05", "7.3.2026 21:05", "31.02.2026 00:00", "29.02.2024 23:59", "", None]


@pytest.mark.parametrize(
    "text",
    [
        "timestamp_seconds(i / 1000)", "timestamp_micros(i)", "timestamp_seconds(f)", "CAST(f AS TIMESTAMP)",
        "CAST(s AS TIMESTAMP)", "to_timestamp(s)", "i + 1 - 2 * 3", "i / 4", "-i", "r.a", "l[1]", "m['k']",
        "concat(s, '|', 'x')", "upper(s)", "lower(concat('A', s))", "trim(s)", "coalesce(i, r.a)",
        "CAST(i AS STRING)", "CAST(m['k'] AS BIGINT)", "CAST(m['k'] AS DOUBLE)", "CAST(b AS STRING)",
        "(i + 2) * 3", "CAST(CAST(s AS TIMESTAMP) AS BIGINT)",
        "i = 1", "i <> 1", "i < f", "f >= i", "i <=> NULL", "s = 'x' OR i > 0", "NOT i > 0 AND f IS NOT NULL",
        "NOT i = 1 OR s IS NULL AND f < 0", "i IN (1, -1, NULL)", "s NOT IN ('x', '')", "i BETWEEN -1 AND 1",
        "s LIKE '2026-_-%'", "s NOT LIKE '%0%'", "CAST(s AS TIMESTAMP) > '2026-01-02'", "i + 1 > 0 = TRUE",
        "CASE WHEN i > 0 THEN i WHEN f > 0 THEN 7 ELSE NULL END", "CASE WHEN s = 'x' THEN 1 ELSE f END",
        "r.a >= 3 AND l[0] IS NULL", "f = -0.0", "f / 0.0 IS NULL",
    ],
)  # fmt: skip
def test_an_expression_is_what_spark_computes(spark: SparkSession, text: str) -> None:
    ours = parse(text).over(pa.RecordBatch.from_pylist(ROWS, schema=schema.parse(SCHEMA)))
    with without_ansi(spark):
        theirs = spark.createDataFrame(ROWS, SCHEMA).selectExpr(f"{text} AS x").toArrow()
    assert ours.to_pylist() == theirs.column(0).cast(ours.type).to_pylist()


@pytest.mark.parametrize("pattern", ["dd.MM.yyyy HH:mm", "d.M.yyyy HH:mm"])
def test_a_pattern_reads_what_spark_reads(spark: SparkSession, pattern: str) -> None:
    text = f"to_timestamp(s, '{pattern}')"
    ours = parse(text).over(pa.RecordBatch.from_pydict({"s": pa.array(DATES)})).to_pylist()
    with without_ansi(spark):
        rows = [(each,) for each in DATES]
        theirs = spark.createDataFrame(rows, "s STRING").selectExpr(f"{text} AS x").toArrow()
    assert ours == theirs.column(0).to_pylist()
    assert any(isinstance(each, datetime) for each in ours)


@contextmanager
def without_ansi(spark: SparkSession) -> Iterator[None]:
    """Let Spark compute null instead of an error, for a while."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        yield
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
