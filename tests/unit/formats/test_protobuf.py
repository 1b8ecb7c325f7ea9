"""Protobuf: messages of any type of their schema are read exactly or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2, wrappers_pb2
from hypothesis import given
from hypothesis import strategies as st

from headwater import topic
from headwater.errors import RowError
from headwater.formats import protobuf
from headwater.formats.writer_schema import SchemaReference, WriterSchema
from protobuf_kit import COLOURS, DEFAULTS, SCALARS, F, file, message, pool_of, text_of
from soaking import examples


class Schemas:
    def __init__(self, **schemas: WriterSchema):
        self.schemas = schemas

    def get(self, id: int, kind: str) -> WriterSchema:
        if f"s{id}" not in self.schemas:
            raise RowError(f"no schema {id}")
        return self.schemas[f"s{id}"]


SHOP = Schemas(s1=WriterSchema(text_of(file())))
ORDER = b"\0\0\0\0\1\x02\x02"
"""The prefix of the second message: one index, which is 1."""


def written(**fields: Any) -> bytes:
    return ORDER + bytes(message(**fields).SerializeToString())


def read(values: list[bytes], columns: str) -> Any:
    return protobuf.decode(values, topic.create("t", columns, format="protobuf"), SHOP)


FIELDS = st.fixed_dictionaries({}, optional={name: values for name, (_, _, values) in SCALARS.items()})


@examples(300)
@given(st.lists(FIELDS, max_size=5))
def test_scalars_are_read_exactly_and_have_their_default_where_they_are_not_set(
    rows: list[dict[str, Any]],
) -> None:
    columns = ", ".join(f"{name} {ddl}" for name, (_, ddl, _) in SCALARS.items())
    batch, bad = read([written(**row) for row in rows], columns + ", missing INT")
    assert bad == []
    assert batch.to_pylist() == [{**DEFAULTS, **row, "missing": None} for row in rows]


@examples(200)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "maybe": st.integers(-9, 9),
            "colour": st.sampled_from(COLOURS),
            "colours": st.lists(st.sampled_from(COLOURS), max_size=3),
            "line": st.fixed_dictionaries({"item": st.text()}),
            "lines": st.lists(st.fixed_dictionaries({"item": st.text()}), max_size=3),
            "note": st.text(),
            "count": st.integers(-(2**63), 2**63 - 1),
            "stock": st.dictionaries(st.text(), st.integers(-9, 9), max_size=3),
            "at": st.datetimes(timezones=st.just(UTC)),
        },
    )
)
def test_messages_wrappers_enums_times_and_maps_are_read(row: dict[str, Any]) -> None:
    columns = (
        "maybe INT, colour STRING, colours ARRAY<STRING>, line STRUCT<item: STRING, more: INT>, "
        "lines ARRAY<STRUCT<item: STRING>>, note STRING, count BIGINT, stock MAP<STRING, INT>, at TIMESTAMP"
    )
    fields = dict(row)
    if "note" in row:
        fields["note"] = wrappers_pb2.StringValue(value=row["note"])
    if "count" in row:
        fields["count"] = wrappers_pb2.Int64Value(value=row["count"])
    if "at" in row:
        since = row["at"] - datetime(1970, 1, 1, tzinfo=UTC)
        fields["at"] = timestamp_pb2.Timestamp(
            seconds=since // timedelta(seconds=1), nanos=since.microseconds * 1000
        )
    known = {name: fields.pop(name) for name in ("note", "count", "at") if name in fields}
    made = message(**fields)
    for name, value in known.items():
        getattr(made, name).MergeFromString(value.SerializeToString())
        getattr(made, name).SetInParent()
    batch, bad = read([ORDER + made.SerializeToString()], columns)
    assert bad == []
    [found] = batch.to_pylist()
    expected = {
        "maybe": None, "colour": "RED", "colours": [], "line": None, "lines": [], "note": None, "count": None,
        "stock": {}, "at": None, **row,
    }  # fmt: skip
    if expected["line"] is not None:
        expected["line"] = {**expected["line"], "more": None}
    assert {**found, "stock": dict(found["stock"])} == expected


def test_the_message_is_found_by_its_path() -> None:
    other = b"\0\0\0\0\1\0" + message("shop.Other", x=5).SerializeToString()
    inner = b"\0\0\0\0\1\x04\x02\0" + message("shop.Order.Line", item="a").SerializeToString()
    assert read([other], "x INT")[0].to_pylist() == [{"x": 5}]
    assert read([inner], "item STRING")[0].to_pylist() == [{"item": "a"}]
    _, bad = read([b"\0\0\0\0\1\x02\x0e", b"\0\0\0\0\1", b"\0\0\0\0\1\0\xff\xff", b"\0\0\0\0\2\0"], "x INT")
    assert [at for at, _ in bad] == [0, 1, 2, 3]
    assert "has no message [7]" in str(bad[0][1])
    assert bad[3][1].message == "no schema 2"


def test_versions_of_a_schema_are_rows_of_one_batch_and_may_refer_to_others() -> None:
    place = descriptor_pb2.FileDescriptorProto(name="place.proto", package="geo", syntax="proto3")
    place.message_type.add(name="Place").field.add(
        name="city", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL
    )
    newer = descriptor_pb2.FileDescriptorProto(
        name="o.proto", package="shop", syntax="proto3", dependency=["place.proto"]
    )
    order = newer.message_type.add(name="Order")
    order.field.add(name="wide", number=1, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL)
    order.field.add(
        name="where", number=2, type=F.TYPE_MESSAGE, type_name=".geo.Place", label=F.LABEL_OPTIONAL
    )
    schemas = Schemas(
        s1=WriterSchema(text_of(file())),
        s2=WriterSchema(text_of(newer), (SchemaReference("place.proto", WriterSchema(text_of(place))),)),
    )
    new = message(pool=pool_of(place, newer), wide=7)
    new.where.city = "Bern"
    values = [written(wide=2**40), b"\0\0\0\0\2\0" + new.SerializeToString()]
    declared = topic.create("t", "wide BIGINT, where STRUCT<city: STRING>", format="protobuf")
    batch, bad = protobuf.decode(values, declared, schemas)
    assert bad == []
    assert batch.to_pylist() == [{"wide": 2**40, "where": None}, {"wide": 7, "where": {"city": "Bern"}}]


def test_what_a_column_cannot_hold_is_refused() -> None:
    fine = message()
    fine.at.nanos = 1
    unknown = message()
    unknown.MergeFromString(b"\xf0\x01\x09")  # colour, field 30, number 9
    values = [
        written(positive=2**64 - 1),
        ORDER + fine.SerializeToString(),
        ORDER + unknown.SerializeToString(),
    ]
    for value, columns, said in zip(
        values,
        ["positive BIGINT, x INT", "at TIMESTAMP, x INT", "colour STRING, x INT"],
        ['column "positive" is BIGINT', "nanoseconds would be cut off", "its enum has no value 9"],
        strict=True,
    ):
        batch, bad = read([value, written()], columns)
        assert (len(batch), [at for at, _ in bad]) == (1, [0])
        assert said in str(bad[0][1])


def test_free_json_takes_any_message_as_protobuf_writes_it() -> None:
    made = message(lines=[{"item": "a"}])
    made.free["n"] = 1.5
    made.took.seconds = 3
    batch, bad = read(
        [ORDER + made.SerializeToString()], "free VARIANT, took VARIANT, lines VARIANT, text VARIANT"
    )
    assert bad == []
    found = {name: value.replace(" ", "") for name, value in batch.to_pylist()[0].items()}
    assert found == {"free": '{"n":1.5}', "took": '"3s"', "lines": '[{"item":"a"}]', "text": '""'}


@pytest.mark.parametrize("scale", [0, 2, 5])
def test_decimals_and_dates_of_known_packages_are_what_they_stand_for(scale: int) -> None:
    decimals = descriptor_pb2.FileDescriptorProto(name="d.proto", package="confluent.type", syntax="proto3")
    kind = decimals.message_type.add(name="Decimal")
    kind.field.add(name="value", number=1, type=F.TYPE_BYTES, label=F.LABEL_OPTIONAL)
    kind.field.add(name="precision", number=2, type=F.TYPE_UINT32, label=F.LABEL_OPTIONAL)
    kind.field.add(name="scale", number=3, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL)
    dates = descriptor_pb2.FileDescriptorProto(name="date.proto", package="google.type", syntax="proto3")
    kind = dates.message_type.add(name="Date")
    for number, name in enumerate(("year", "month", "day"), start=1):
        kind.field.add(name=name, number=number, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL)
    row = descriptor_pb2.FileDescriptorProto(
        name="r.proto", syntax="proto3", dependency=["d.proto", "date.proto"]
    )
    kind = row.message_type.add(name="Row")
    kind.field.add(
        name="price",
        number=1,
        type=F.TYPE_MESSAGE,
        type_name=".confluent.type.Decimal",
        label=F.LABEL_OPTIONAL,
    )
    kind.field.add(
        name="day", number=2, type=F.TYPE_MESSAGE, type_name=".google.type.Date", label=F.LABEL_OPTIONAL
    )
    references = (SchemaReference("d.proto", WriterSchema(text_of(decimals))),
                  SchemaReference("date.proto", WriterSchema(text_of(dates))))  # fmt: skip
    made = message("Row", pool_of(decimals, dates, row))
    made.price.value, made.price.scale = (-12345).to_bytes(3, "big", signed=True), scale
    made.day.year, made.day.month, made.day.day = 2026, 1, 2
    declared = topic.create("t", "price DECIMAL(12,5), day DATE", format="protobuf")
    schemas = Schemas(s1=WriterSchema(text_of(row), references))
    batch, bad = protobuf.decode([b"\0\0\0\0\1\0" + made.SerializeToString()], declared, schemas)
    assert bad == []
    assert batch.to_pylist() == [{"price": Decimal(-12345).scaleb(-scale), "day": date(2026, 1, 2)}]
