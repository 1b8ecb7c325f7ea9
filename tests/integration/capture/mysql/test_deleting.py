"""Rows that are deleted by their keys, as a chunk has them."""

# ruff: noqa: S608  # statements of a test's own

from __future__ import annotations

from typing import Any

import pytest

from headwater.capture.outbox.captured_outbox import named_rows, row_names


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("INT", ["-5", "0", "7"]),
        ("BIGINT UNSIGNED", [str(2**64 - 1), "0", "1"]),
        ("DECIMAL(38,18)", ["0.000000000000000001", "0.000000000000000002", "-1"]),
        ("VARCHAR(9)", ["'é'", "'%s'", "'\\''"]),
        ("VARBINARY(4)", ["X'00'", "X'FF'", "X'27'"]),
        ("DATETIME(3)", ["'2024-01-02 03:04:05.678'", "'2024-01-02 03:04:05.679'", "'1999-01-01'"]),
        ("DATE", ["'2024-01-02'", "'1000-01-01'", "'9999-12-31'"]),
        ("ENUM('z','a','m')", ["'z'", "'a'", "'m'"]),
    ],
)
def test_rows_of_keys_of_every_kind_are_deleted(
    capture: Any, execute: Any, kind: str, values: list[str]
) -> None:
    execute(f"CREATE TABLE `a``b` (k {kind}, n INT, PRIMARY KEY (k, n))")
    execute(*(f"INSERT INTO `a``b` VALUES ({value}, {n})" for value in values for n in (1, 2)))
    source = capture()
    source.begin(["a`b"], None)
    rows = source.chunk("a`b", None, 10).rows
    some = rows.filter(rows["n"].cast("int64").to_numpy() == 1)
    keys = named_rows(row_names(some, ["k", "n"]), some.schema)
    assert source.delete_rows("a`b", keys)
    assert [row[0] for row in execute("SELECT n FROM `a``b`")] == [2, 2, 2]
