"""Chunks by keys of every kind."""

# ruff: noqa: S608  # statements of a test's own

from __future__ import annotations

from typing import Any

import pytest

from headwater.errors import SourceRefused


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("INT", [str(n) for n in range(-5, 5)]),
        ("BIGINT UNSIGNED", [str(2**64 - 1 - n) for n in range(9)]),
        ("DECIMAL(38,18)", [f"0.{n:018}" for n in range(9)]),
        (
            "VARCHAR(9) COLLATE utf8mb4_general_ci",
            [f"'{each}'" for each in ("B", "a", "é", "z", "", "%s", "\\'", "c d")],
        ),
        ("VARBINARY(4)", ["X'00'", "X''", "X'FF'", "X'27'", "X'5C'"]),
        ("DATE", ["'2024-01-02'", "'1000-01-01'", "'9999-12-31'"]),
        ("DATETIME(3)", ["'2024-01-02 03:04:05.678'", "'2024-01-02 03:04:05.679'", "'1999-01-01'"]),
        ("ENUM('z','a','m')", ["'z'", "'a'", "'m'"]),
        ("BIT(10)", ["1", "512", "3"]),
    ],
)
def test_keys_of_every_kind_are_read_in_chunks(
    capture: Any, execute: Any, kind: str, values: list[str]
) -> None:
    execute(f"CREATE TABLE t (k {kind}, n INT, PRIMARY KEY (k, n))")
    execute(*(f"INSERT INTO t VALUES ({value}, {n})" for value in values for n in (1, 2)))
    source = capture()
    source.begin(["t"], None)
    found, after = [], None
    while True:
        chunk = source.chunk("t", after, 3)
        found += [tuple(row.values()) for row in chunk.rows.to_pylist()]
        if chunk.last:
            break
        after = chunk.after
    assert len(found) == len(set(found)) == 2 * len(values)
    assert not chunk.unfit


def test_a_table_that_is_gone_is_refused(capture: Any, execute: Any) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY)")
    source = capture()
    source.begin(["t"], None)
    execute("DROP TABLE t")
    with pytest.raises(SourceRefused, match="does not exist"):
        source.chunk("t", None, 10)


def test_many_rows_are_counted_about(capture: Any, execute: Any) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t SELECT seq FROM seq_1_to_12000")
    assert 6000 < capture().count("t") < 24000
