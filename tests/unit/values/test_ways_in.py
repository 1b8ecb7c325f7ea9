"""One rule for every way in: a value is kept exactly, or refused; and by all ways alike."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater
from headwater import schema, topic
from headwater.cli.formats.csv_rows import CsvRows
from headwater.errors import HeadwaterError, RecordTooLarge, RowError, SchemaError
from headwater.values import jsonl, rows
from soaking import examples

REFUSED = "refused"
BERLIN = timezone(timedelta(hours=1))


def kept(batches: list[pa.RecordBatch]) -> Any:
    [value] = [value for batch in batches for value in batch.column("d").to_pylist()]
    return value


def by_row(kind: str, value: Any) -> Any:
    return kept([rows.from_rows([{"d": value, "e": 1}], declared(kind))])


def by_arrow(kind: str, value: Any) -> Any:
    return kept(rows.from_data(pa.table({"d": pa.array([value]), "e": [1]}), declared(kind)))


def by_pandas(kind: str, value: Any) -> Any:
    return kept(rows.from_data(pd.DataFrame({"d": [value], "e": [1]}), declared(kind)))


def by_json(kind: str, value: Any) -> Any:
    return decoded(kind, b'{"d":' + json_text(value) + b',"e":1}')


def by_nested_json(kind: str, value: Any) -> Any:
    found = decoded(f"ARRAY<{kind}>", b'{"d":[' + json_text(value) + b'],"e":1}')
    return found[0] if isinstance(found, list) else found


def by_csv(kind: str, value: Any) -> Any:
    out = io.StringIO()
    text = str(value) if not isinstance(value, date) else value.isoformat()
    csv.writer(out, lineterminator="").writerow([text, 1])
    batch, bad = CsvRows(b"d,e", declared(kind)).decode([out.getvalue().encode()])
    if bad:
        raise bad[0][1]
    return kept(rows.from_data(batch, declared(kind)))


def decoded(kind: str, line: bytes) -> Any:
    batch, bad = jsonl.decode([line], declared(kind), strict=True)
    if bad:
        raise bad[0][1]
    return kept([batch])


def declared(kind: str) -> topic.Topic:
    return topic.create("t", f"d {kind}, e BIGINT")


def json_text(value: Any) -> bytes:
    if isinstance(value, float) and not math.isfinite(value):
        return b'"NaN"' if math.isnan(value) else b'"Infinity"' if value > 0 else b'"-Infinity"'
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value).encode()
    return b'"%s"' % str(value).encode() if isinstance(value, Decimal) else orjson.dumps(value)


Way = Callable[[str, Any], Any]
WAYS: tuple[Way, ...] = (by_row, by_arrow, by_pandas, by_json, by_nested_json, by_csv)


def outcome(way: Way, kind: str, value: Any) -> Any:
    try:
        found = way(kind, value)
    except HeadwaterError:
        return REFUSED
    return found


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        alike = math.copysign(1, left) == math.copysign(1, right)
        return (left == right and alike) or (math.isnan(left) and math.isnan(right))
    return bool(left == right) and type(left) is type(right)


def check(kind: str, value: Any, wanted: Any, ways: tuple[Way, ...] = WAYS) -> None:
    """Check that all ways keep what is wanted, or that all refuse."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:  # there is no such Arrow array
        ways = tuple(way for way in ways if way not in (by_arrow, by_pandas))
    found = {way.__name__: outcome(way, kind, value) for way in ways}
    assert all(same(each, wanted) for each in found.values()), (kind, value, wanted, found)


NUMBERS = (
    st.floats(allow_nan=False)
    | st.floats(width=32, allow_nan=False)
    | st.decimals(-10_000, 10_000, places=3).map(float)
    | st.integers(-(2**70), 2**70)
    | st.integers(-300, 300)
    | st.sampled_from(
        [1e300, -0.0, 5e-324, 1e-60, 2.0**-24, 2**53 + 1, 2**24 + 1, 2**60, 10**23, 0.1, 16777216.5]
    )
)


def as_float(number: float | int, width: int) -> Any:
    """Return the number of that width which is written as the one given, or that there is none."""
    with np.errstate(over="ignore"):
        try:
            made = np.float32(number) if width == 32 else np.float64(number)
        except OverflowError:
            return REFUSED
    if isinstance(number, float) and float(made) == number:
        return float(made)
    if not np.isfinite(made) or (made == 0 and number):
        return REFUSED
    exact = Decimal(repr(number))
    alike = Decimal(f"{float(made):.{_digits(exact) - 1}e}") == exact or Decimal(str(made)) == exact
    return float(made) if alike else REFUSED


def _digits(number: Decimal) -> int:
    return len("".join(map(str, number.as_tuple().digits)).strip("0")) or 1


@examples(300)
@given(NUMBERS)
def test_a_number_is_kept_in_a_floating_column_or_refused_by_all_ways(number: float | int) -> None:
    for kind, width in (("DOUBLE", 64), ("FLOAT", 32)):
        check(kind, number, as_float(number, width))


@examples(200)
@given(NUMBERS | st.booleans())
def test_a_number_is_kept_in_a_column_of_whole_numbers_or_refused_by_all_ways(number: Any) -> None:
    whole = not isinstance(number, bool) and math.isfinite(number) and number == int(number)
    ways = WAYS if isinstance(number, int) else (by_row, by_arrow, by_pandas)
    if isinstance(number, float) and abs(number) < 2**53:  # beyond, a text is another number than the float
        ways += (by_json, by_nested_json)
    for kind, bits in (("TINYINT", 7), ("INT", 31), ("BIGINT", 63)):
        fits = whole and -(2**bits) <= number < 2**bits
        check(kind, number, int(number) if fits else REFUSED, ways)


@examples(200)
@given(
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9) | st.integers()
)
def test_a_decimal_is_kept_or_refused_by_all_ways(number: Any) -> None:
    exact = Decimal(number)
    fits = abs(exact) < 10**8 and exact == round(exact, 2)
    ways = (by_row, by_json, by_nested_json, by_csv)
    ways += () if isinstance(number, Decimal) else (by_arrow,)  # whose decimals have a scale of their own
    check("DECIMAL(10,2)", number, Decimal(number).quantize(Decimal("0.01")) if fits else REFUSED, ways)


TIMES = st.datetimes(timezones=st.sampled_from([None, UTC, BERLIN]))


@examples(200)
@given(TIMES)
def test_a_time_is_kept_or_refused_by_all_ways(at: datetime) -> None:
    ways = (by_row, by_arrow, by_json, by_nested_json)
    try:
        moment: Any = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:  # Berlin's first hour of the year 1
        moment = REFUSED
    zoned = at.tzinfo is BERLIN
    wall = REFUSED if zoned else at.replace(tzinfo=None)
    found = {way: outcome(way, "TIMESTAMP", at) for way in ways}
    assert all(each == moment for each in found.values()), (at, found)
    check("TIMESTAMP_NTZ", at, wall, ways)


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_nanoseconds_are_not_cut_off(kind: str) -> None:
    fine, coarse = pd.Timestamp("2026-01-02T03:04:05.000000999"), pd.Timestamp("2026-01-02T03:04:05.000001")
    for way in (by_row, by_pandas):
        assert outcome(way, kind, fine) == REFUSED
        assert outcome(way, kind, coarse) != REFUSED
    if kind == "TIMESTAMP_NTZ":
        assert outcome(by_row, kind, np.datetime64("2026-01-02T03:04:05.000000999")) == REFUSED
    for text in ("2026-01-02T03:04:05.000000999", "2026-01-02T03:04:05.000000999Z"):
        assert outcome(by_json, kind, text) == REFUSED
        assert outcome(by_csv, kind, text) == REFUSED
    assert outcome(by_json, kind, "2026-01-02T03:04:05.000001000Z") != REFUSED


@pytest.mark.parametrize("way", [by_row, by_arrow, by_json, by_csv])
@pytest.mark.parametrize("day", ["0000-12-31", "-0001-01-01", "10000-01-01"])
def test_a_date_or_time_outside_of_the_years_that_can_be_read_is_refused(way: Way, day: str) -> None:
    for kind, unit in (("DATE", "D"), ("TIMESTAMP", "us"), ("TIMESTAMP_NTZ", "us")):
        text = day if kind == "DATE" else f"{day}T00:00:00"
        value: Any = text if way in (by_json, by_csv) else int(np.datetime64(day, unit).astype(int))
        if way is by_arrow:
            value = pa.scalar(value, schema.parse(f"d {kind}").field("d").type)
        with pytest.raises(RowError, match=r"cannot be read|column \"d\""):
            way(kind, value)


@pytest.mark.parametrize(
    "kind", ["ARRAY<TIMESTAMP>", "STRUCT<x: DATE>", "MAP<STRING, TIMESTAMP>", "MAP<DATE, INT>"]
)
def test_a_time_that_cannot_be_read_is_found_however_deep_and_its_row_named(kind: str) -> None:
    far = {"ARRAY": [-(10**17)], "STRUCT": {"x": -(10**7)}, "MAP<S": {"a": -(10**17)}, "MAP<D": {-(10**7): 1}}
    bad = next(value for name, value in far.items() if kind.startswith(name))
    with pytest.raises(RowError, match="cannot be read") as caught:
        rows.from_rows([{"d": None}, {"d": bad}], declared(kind))
    assert caught.value.row == 1
    texts = {"ARRAY": b'["0000-01-01T00:00:00Z"]', "STRUCT": b'{"x":"0000-01-01"}',
             "MAP<S": b'{"a":"0000-01-01T00:00:00Z"}', "MAP<D": b'{"0000-01-01":1}'}  # fmt: skip
    text = next(value for name, value in texts.items() if kind.startswith(name))
    batch, wrong = jsonl.decode([b"{}", b'{"d":' + text + b"}"], declared(kind))
    assert ([index for index, _ in wrong], len(batch)) == ([1], 1)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("STRING", b"x"),
        ("STRING", bytearray(b"x")),
        ("STRING", "\ud800"),
        ("BINARY", "x"),
        ("BOOLEAN", 1),
        ("DOUBLE", True),
        ("DOUBLE", Decimal("1.5")),
        ("BIGINT", np.bool_(True)),
        ("BIGINT", np.array(5)),
        ("DATE", pd.NaT),
        ("DATE", np.bool_(True)),
        ("TIMESTAMP", pd.NaT),
        ("DECIMAL(4,1)", True),
        ("DECIMAL(4,1)", float("nan")),
        ("ARRAY<STRING>", "ab"),
        ("ARRAY<INT>", {1, 2}),
        ("VARIANT", float("nan")),
        ("VARIANT", {"a": [1, {"b": float("inf")}]}),
        ("VARIANT", {1: 2}),
        ("VARIANT", "\ud800"),
    ],
)
def test_a_python_value_that_would_be_changed_is_refused_with_row_and_column(kind: str, value: Any) -> None:
    with pytest.raises(RowError) as caught:
        rows.from_rows([{"e": 1}, {"d": value}], declared(kind))
    assert caught.value.row == 1
    assert '"d"' in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["12345678901234567890123", "-0", "-0.0", "0.1234567890123456789", "1e-400", "[18446744073709551616]",
     '{"a":1,"a":2}', '{"a":[1.10, 12345678901234567]}', '{"\\u003a":1,"b":{"c":1,"c":2}}', "null"],
)  # fmt: skip
def test_free_json_is_kept_to_the_last_digit_by_all_ways(text: str) -> None:
    line = f'{{"d": {text} , "e":1}}'.encode()
    assert decoded("VARIANT", line) == text
    assert kept(rows.from_data(pa.table({"d": [text]}), declared("VARIANT"))) == text
    free, bad = jsonl.decode([text.encode()], topic.create("t", "JSON"))
    assert (free.column(0).to_pylist(), bad) == ([text], [])
    batch, bad = jsonl.decode([line], declared("VARIANT"))
    again, worse = jsonl.decode(jsonl.encode(batch, declared("VARIANT")), declared("VARIANT"))
    assert (again, bad, worse) == (batch, [], [])


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**400, 2**53 + 1])
def test_a_large_integer_in_free_json_is_kept_from_python(number: int) -> None:
    assert by_row("VARIANT", {"a": [number, None]}) == f'{{"a":[{number},null]}}'


@pytest.mark.parametrize(
    "line",
    [b'{"d":1,"d":2,"e":1}', b'{"d":1,"e":1,"e":1}', b'{"d":1,"\\u0064":2}'],
)
@pytest.mark.parametrize("kind", ["INT", "MAP<STRING, INT>", "VARIANT", "DATE"])
def test_a_row_that_has_a_column_twice_is_refused(kind: str, line: bytes) -> None:
    batch, bad = jsonl.decode([line], declared(kind))
    assert (len(batch), len(bad)) == (0, 1)


def test_a_map_or_a_struct_that_has_a_member_twice_is_refused() -> None:
    for kind in ("MAP<STRING, INT>", "STRUCT<a: INT>"):
        assert outcome(lambda k, v: decoded(k, v), kind, b'{"d":{"a":1,"a":2},"e":1}') == REFUSED


def test_a_number_of_many_digits_reaches_a_decimal_as_it_is_written() -> None:
    assert decoded("DECIMAL(20,2)", b'{"d":123456789012345678.91,"e":1}') == Decimal("123456789012345678.91")
    assert decoded("MAP<STRING, DECIMAL(20,2)>", b'{"d":{"a":123456789012345678.91},"e":1}') == [
        ("a", Decimal("123456789012345678.91"))
    ]


@dataclass
class Reading:
    value: float


def test_a_number_that_json_lacks_is_found_in_a_dataclass_too() -> None:
    assert by_row("VARIANT", {"a": Reading(1.5)}) == '{"a":{"value":1.5}}'
    with pytest.raises(RowError, match="nan"):
        by_row("VARIANT", {"a": Reading(float("nan"))})


def nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("ddl", ["id BIGINT, doc VARIANT", "JSON"])
def test_free_json_that_is_nested_too_deeply_is_refused_and_nothing_else(ddl: str) -> None:
    with headwater.open("memory:") as log:
        log.create_topic("t", ddl)
        for depth in (1, 300, 100_000, 2):
            value = nest(depth)
            with log.producer("t") as producer:
                try:
                    producer.send({"value": value} if ddl == "JSON" else {"id": depth, "doc": value})
                    producer.flush()
                    assert depth < 300
                except RowError as error:
                    assert depth >= 300
                    assert "nested too deeply" in str(error)
        assert sum(len(batch) for batch in log.read("t")) == 2


def test_json_text_that_is_nested_too_deeply_is_refused_by_all_ways() -> None:
    for depth in (250, 260, 1000, 100_000):
        text = "[" * depth + "]" * depth
        found = [
            outcome(lambda kind, value: decoded(kind, b'{"d":%s}' % value.encode()), "VARIANT", text),
            outcome(
                lambda kind, value: kept(rows.from_data(pa.table({"d": [value]}), declared(kind))),
                "VARIANT",
                text,
            ),
            REFUSED if jsonl.decode([text.encode()], topic.create("t", "JSON"))[1] else text,
        ]
        assert set(found) == ({text} if depth <= 250 else {REFUSED}), depth


def test_a_device_time_that_cannot_be_read_is_refused() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("t", "id BIGINT")
        with log.producer("t") as producer:
            producer.send({"id": 1}, occurred=datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))))
            producer.send({"id": 2}, occurred=datetime.max)
            with pytest.raises(RowError, match='"occurred"'):
                producer.flush()
        assert [row["id"] for batch in log.read("t", meta=True) for row in batch.to_pylist()] == [2]


@pytest.mark.parametrize("opening", ["ARRAY<", "MAP<STRING, ", "STRUCT<x: "])
def test_a_schema_that_is_nested_too_deeply_is_refused(opening: str) -> None:
    def ddl(depth: int) -> str:
        return "d " + opening * depth + "INT" + ">" * depth

    for depth in (schema.DEEPEST + 1, 5000):
        with pytest.raises(SchemaError, match="invalid schema") as caught:
            schema.parse(ddl(depth))
        assert "deep" in str(caught.value.detail)
        assert len(caught.value.message) < 300
    kind = pa.int32()
    for _ in range(5000):
        kind = pa.list_(kind)
    with pytest.raises(SchemaError, match="deep"):
        schema.read(pa.schema([("d", kind)]))
    deepest: Any = 1
    for _ in range(schema.DEEPEST):
        deepest = {"ARRAY<": [deepest], "MAP<STRING, ": {"k": deepest}, "STRUCT<x: ": {"x": deepest}}[opening]
    with headwater.open("memory:") as log:
        log.create_topic("t", ddl(schema.DEEPEST))
        with log.producer("t") as producer:
            producer.send({"d": deepest})
        assert sum(len(batch) for batch in log.read("t")) == 1


def test_headers_count_for_the_size_of_a_record() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("t", "id BIGINT")
        with log.producer("t") as producer:
            producer.send({"id": 1}, headers={"trace": b"x" * 900_000})
            producer.send({"id": 2}, headers={"trace": b"x" * 600_000, "more": b"y" * 600_000})
            producer.send({"id": 3})
            with pytest.raises(RecordTooLarge, match="too large") as caught:
                producer.flush()
        assert "headers" in str(caught.value.detail)
        assert [n for batch in log.read("t") for n in batch.column("id").to_pylist()] == [1, 3]
