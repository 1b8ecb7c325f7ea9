"""What users hand over becomes the topic's types only where no value changes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from headwater import topic
from headwater.errors import RowError, UsageError
from headwater.values import rows


def stored(ddl: str, data: Any) -> list[Any]:
    """Return the values of the first column as the topic would hold them."""
    batches = rows.from_data(data, topic.create("t", ddl))
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def column(values: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"d": pa.array(values, kind)})


INT64, TEXT = pa.int64(), pa.string()


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("DECIMAL(10,2)", column([1.239])),
        ("DECIMAL(4,2)", column([500])),
        ("DECIMAL(4,1)", column([Decimal("1.25")])),
        ("BOOLEAN", column([5])),
        ("FLOAT", column([0.123456789])),
        ("FLOAT", column([1e-60])),
        ("FLOAT", column([1e300])),
        ("FLOAT", column([2**24 + 1])),
        ("DOUBLE", column([2**53 + 1])),
        ("INT", column([2**31])),
        ("INT", column([True])),
        ("BIGINT", column([1.5])),
        ("BIGINT", column([float("nan")])),
        ("BIGINT", column([2**63], pa.uint64())),
        ("BIGINT", column([1], pa.timestamp("us"))),
        ("BIGINT", column([Decimal("1.5")])),
        ("TIMESTAMP", column([1])),
        ("TIMESTAMP", column([2**60], pa.timestamp("s"))),
        ("TIMESTAMP", column([1001], pa.timestamp("ns"))),
        ("TIMESTAMP_NTZ", column([0], pa.timestamp("us", "Europe/Berlin"))),
        ("DATE", column([86_400_000_000], pa.timestamp("us"))),
        ("STRING", column([b"x"])),
        ("BINARY", column(["x"])),
        ("ARRAY<INT>", column([["1", "2"]])),
        ("ARRAY<BOOLEAN>", column([[5]])),
        ("ARRAY<DECIMAL(5,1)>", column([[1.29]])),
        ("STRUCT<x: INT>", column([{"x": "1"}])),
        ("MAP<STRING, INT>", column([[("a", 2**40)]], pa.map_(TEXT, INT64))),
    ],
)
def test_an_arrow_column_whose_values_would_change_is_refused(kind: str, data: pa.Table) -> None:
    with pytest.raises(RowError, match='column "d" of topic "t"'):
        stored(f"d {kind}", data)


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("INT", column([5, None]), [5, None]),
        ("BIGINT", column([5], pa.int8()), [5]),
        ("BIGINT", column([5.0, None]), [5, None]),
        ("DOUBLE", column([2**53]), [2.0**53]),
        ("DOUBLE", column([0.5], pa.float16()), [0.5]),
        ("FLOAT", column([0.1]), [pa.scalar(0.1, pa.float32()).as_py()]),
        ("DOUBLE", column([2**60]), [2.0**60]),
        ("FLOAT", column([0.5, None, float("inf")]), [0.5, None, float("inf")]),
        ("DECIMAL(10,2)", column([5]), [Decimal("5.00")]),
        ("DECIMAL(10,2)", column([1.1, None]), [Decimal("1.10"), None]),
        ("DECIMAL(10,2)", column([Decimal("1.5")]), [Decimal("1.50")]),
        ("STRING", column(["a"], pa.large_string()), ["a"]),
        ("STRING", pa.table({"d": pa.array(["a", None, "a"]).dictionary_encode()}), ["a", None, "a"]),
        ("BINARY", column([b"ab"], pa.binary(2)), [b"ab"]),
        ("TIMESTAMP", column([1000], pa.timestamp("ns")), [datetime(1970, 1, 1, 0, 0, 0, 1, UTC)]),
        ("TIMESTAMP", column([1], pa.timestamp("s")), [datetime(1970, 1, 1, 0, 0, 1, 0, UTC)]),
        ("DATE", column([date(2026, 1, 2)], pa.date64()), [date(2026, 1, 2)]),
        ("INT", column([None, None]), [None, None]),
        ("ARRAY<INT>", column([[2**40], None, [1, None]], pa.large_list(INT64)).slice(1), [None, [1, None]]),
        ("ARRAY<INT>", column([[1, 2], None], pa.list_(INT64, 2)), [[1, 2], None]),
        (
            "MAP<STRING, INT>",
            column([[("x", 2**40)], None, [("a", 1), ("b", None)]], pa.map_(TEXT, INT64)).slice(1),
            [None, [("a", 1), ("b", None)]],
        ),
        (
            "STRUCT<x: INT, y: STRING>",
            column([None, {"y": "a", "x": 1}], pa.struct([("y", TEXT), ("x", INT64)])),
            [None, {"x": 1, "y": "a"}],
        ),
        ("STRUCT<x: INT, y: STRING>", column([{"x": 1}]), [{"x": 1, "y": None}]),
    ],
)  # fmt: skip
def test_an_arrow_column_is_cast_where_every_value_stays(
    kind: str, data: pa.Table, expected: list[Any]
) -> None:
    assert stored(f"d {kind}", data) == expected


def test_a_batch_of_the_topics_own_types_is_not_copied() -> None:
    batch = pa.record_batch({"d": pa.array([1, 2]), "s": pa.array(["a", "b"])})
    taken = rows.from_arrow(batch, topic.create("t", "d BIGINT, s STRING"))
    assert [c.buffers()[1].address for c in taken.columns] == [c.buffers()[1].address for c in batch.columns]


@pytest.mark.parametrize(
    "data",
    [
        [{"d": {"at": {"x": 1}}}, {"d": {"at": {"x": 1, "yy": 2}}}],
        column([{"at": {"x": 1, "yy": 2}}]),
    ],
)
def test_an_unknown_nested_field_is_refused_and_its_path_named(data: Any) -> None:
    with pytest.raises(RowError, match=r'topic "t" has no field "d\.at\.yy"') as caught:
        stored("d STRUCT<at: STRUCT<x: INT, y: INT>>", data)
    assert caught.value.hint == 'did you mean "y"?'


def test_an_unknown_field_inside_an_array_or_a_map_is_refused_with_its_row() -> None:
    for kind, bad in [
        ("ARRAY<STRUCT<x: INT>>", [{"z": 1}]),
        ("MAP<STRING, STRUCT<x: INT>>", {"k": {"z": 1}}),
    ]:
        with pytest.raises(RowError, match=r'no field "d\.z"') as caught:
            stored(f"d {kind}", [{"d": None}, {"d": bad}])
        assert caught.value.row == 1


@pytest.mark.parametrize(
    ("kind", "values", "where"),
    [
        ("STRUCT<x: INT NOT NULL>", [None, {"x": 1}, {"x": None}], "d.x"),
        ("STRUCT<a: STRUCT<x: INT NOT NULL>>", [{"a": None}, None, {"a": {"x": None}}], "d.a.x"),
        ("ARRAY<STRUCT<x: INT NOT NULL>>", [[{"x": 1}], None, [None, {"x": None}]], "d.x"),
        ("MAP<STRING, STRUCT<x: INT NOT NULL>>", [None, [], [("k", {"x": None})]], "d.x"),
    ],
)
def test_not_null_holds_inside_structs(kind: str, values: list[Any], where: str) -> None:
    loose = topic.create("t", f"d {kind.replace(' NOT NULL', '')}").schema.field("d").type
    for data in ([{"d": value} for value in values], column(values, loose)):
        with pytest.raises(RowError, match=f'field "{where}" is NOT NULL') as caught:
            stored(f"d {kind}", data)
        assert caught.value.row == 2
        assert stored(f"d {kind}", data[:2]) == values[:2]


def test_a_map_with_a_key_twice_is_refused() -> None:
    pairs = [[("a", 1), ("b", 1)], None, [("a", 1), ("a", 2)]]
    for data in ([{"d": value} for value in pairs], column(pairs, pa.map_(TEXT, pa.int32()))):
        with pytest.raises(RowError, match="map \"d\" has the key 'a' twice") as caught:
            stored("d MAP<STRING, INT>", data)
        assert caught.value.row == 2
        assert stored("d MAP<STRING, INT>", data[:2]) == pairs[:2]


def test_a_fraction_deep_in_a_row_is_refused_with_its_row() -> None:
    ddl = "d MAP<STRING, ARRAY<STRUCT<n: INT>>>"
    assert stored(ddl, [{"d": {"k": [{"n": 2.0}]}}]) == [[("k", [{"n": 2}])]]
    with pytest.raises(RowError, match="is MAP") as caught:
        stored(ddl, [{"d": None}, {"d": {"k": [{"n": 2.5}]}}])
    assert caught.value.row == 1


def test_a_time_of_day_is_not_cut_from_a_date() -> None:
    assert stored("d DATE", [{"d": datetime(2026, 1, 2)}]) == [date(2026, 1, 2)]
    with pytest.raises(RowError, match="DATE") as caught:
        stored("d DATE", [{"d": date(2026, 1, 2)}, {"d": datetime(2026, 1, 2, 23)}])
    assert caught.value.row == 1


def test_only_a_topic_declared_as_json_takes_bare_values() -> None:
    assert stored("JSON", [{"a": 1}, [2]]) == ['{"a":1}', "[2]"]
    assert stored("payload VARIANT", [{"payload": {"a": 1}}]) == ['{"a":1}']
    with pytest.raises(RowError, match='no column "a"'):
        stored("payload VARIANT", [{"a": 1}])
    with pytest.raises(RowError, match="not a mapping"):
        stored("payload VARIANT", [[1]])


@pytest.mark.parametrize("bad", [None, 5, "text", [("d", 1)]])
def test_a_row_that_is_no_mapping_is_named(bad: Any) -> None:
    with pytest.raises(RowError, match="not a mapping") as caught:
        stored("d INT", [{"d": 1}, bad])
    assert caught.value.row == 1


def test_the_named_index_of_a_pandas_frame_is_kept_where_the_topic_has_it() -> None:
    frame = pd.DataFrame({"id": [1, 2], "a": [3, 4]})
    assert stored("id INT, a INT", frame.set_index("id")) == [1, 2]
    assert stored("id INT, a INT", frame.assign(shop=["x", "y"]).set_index(["shop", "id"])) == [1, 2]
    assert stored("a INT", frame.set_index("id")) == [3, 4]


def test_a_pandas_series_is_refused_with_what_to_pass() -> None:
    with pytest.raises(UsageError, match="cannot be a Series") as caught:
        stored("d INT", pd.Series([1], name="d"))
    assert "DataFrame" in str(caught.value.hint)


def test_an_empty_batch_is_checked_too() -> None:
    assert stored("d INT", column([], INT64)) == []
    for data in (pa.table({"zzz": pa.array([], TEXT)}), pd.DataFrame({"zzz": []})):
        with pytest.raises(RowError, match='no column "zzz"'):
            stored("d INT", data)


def test_a_column_that_comes_twice_is_refused() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["d", "d"])
    with pytest.raises(RowError, match='"d" appears twice'):
        stored("d BIGINT, e BIGINT", twice)
