"""Tables as a server has them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def test_tables_are_told_with_columns_and_keys(capture: Any, execute: Any) -> None:
    execute(
        "CREATE TABLE `odd ``name` (b VARCHAR(5) NOT NULL, a INT UNSIGNED NOT NULL, c INT AS (a) STORED,"
        " PRIMARY KEY (a, b))",
        "CREATE TABLE shapes (id INT PRIMARY KEY, shape GEOMETRY)",
        "CREATE TABLE keyed (id UUID PRIMARY KEY, n INT)",
        "CREATE VIEW v AS SELECT id FROM shapes",
    )
    found = {each.name: each for each in capture().tables()}
    assert list(found) == ["keyed", "odd `name", "shapes"]
    odd = found["odd `name"]
    assert odd.key == ("a", "b")
    assert [(each.name, each.type, each.nullable, each.generated) for each in odd.columns] == [
        ("b", pa.string(), False, False),
        ("a", pa.int64(), False, False),
        ("c", pa.int32(), True, True),
    ]


def test_what_cannot_be_read_is_left_out_and_a_key_of_it_is_none(capture: Any, execute: Any) -> None:
    execute(
        "CREATE TABLE shapes (id INT PRIMARY KEY, shape GEOMETRY)",
        "CREATE TABLE keyed (id UUID PRIMARY KEY, n INT)",
    )
    found = {each.name: each for each in capture().tables()}
    assert [each.name for each in found["shapes"].columns] == ["id"]
    assert (found["keyed"].key, [each.name for each in found["keyed"].columns]) == ((), ["n"])


def test_a_column_that_is_left_out_does_not_disturb_the_others(capture: Any, execute: Any) -> None:
    execute("CREATE TABLE shapes (id INT PRIMARY KEY, shape GEOMETRY, n INT)")
    source = capture()
    source.begin(["shapes"], None)
    execute("INSERT INTO shapes VALUES (1, POINT(1, 2), 7)")
    (changes,) = source.read(5.0).changes
    assert changes.rows.to_pylist() == [{"id": 1, "n": 7}]
    assert source.chunk("shapes", None, 5).rows.to_pylist() == [{"id": 1, "n": 7}]
