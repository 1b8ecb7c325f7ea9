"""Protobuf schemas as text: compiled with what they import, or told with what the compiler says."""

from __future__ import annotations

import pytest

from headwater import topic
from headwater.errors import LogRefused
from headwater.formats import proto_text, protobuf
from headwater.formats.writer_schema import SchemaReference, WriterSchema

PLACE = SchemaReference(
    "geo/place.proto", WriterSchema('syntax = "proto3"; message Place { string city = 1; }')
)
ORDER = WriterSchema(
    'syntax = "proto3"; import "geo/place.proto"; import "google/protobuf/wrappers.proto";'
    "message Order { int32 id = 1; Place place = 2; google.protobuf.Int32Value n = 3; }",
    (PLACE,),
)


class Schemas:
    def kind(self, id: int) -> str:
        return "PROTOBUF"

    def get(self, id: int, kind: str) -> WriterSchema:
        return ORDER if id == 1 else WriterSchema("message {")


def test_text_is_compiled_with_what_it_imports() -> None:
    file = proto_text.compiled(ORDER, "order.proto")
    assert [message.name for message in file.message_type] == ["Order"]
    assert list(file.dependency) == ["geo/place.proto", "google/protobuf/wrappers.proto"]
    declared = topic.create("t", "id INT, place STRUCT<city: STRING>, n INT", format="protobuf")
    values = [b"\0\0\0\0\1\0\x08\x05\x12\x03\x0a\x01x\x1a\x02\x08\x07", b"\0\0\0\0\2\0"]
    batch, bad = protobuf.decode(values, declared, Schemas())
    assert batch.to_pylist() == [{"id": 5, "place": {"city": "x"}, "n": 7}]
    assert [(at, error.message) for at, error in bad] == [(1, "schema 2 cannot be read as Protobuf")]
    assert "Expected message name" in str(bad[0][1].detail)


@pytest.mark.parametrize("name", ["/etc/x.proto", "../x.proto", "a/../../x.proto"])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be called"):
        proto_text.compiled(WriterSchema("", (SchemaReference(name, WriterSchema("")),)), "x.proto")


def test_without_a_compiler_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proto_text, "find_spec", lambda name: None)
    with pytest.raises(LogRefused, match="no compiler is installed") as refused:
        proto_text.compiled(ORDER, "order.proto")
    assert "headwater[formats]" in str(refused.value.hint)
