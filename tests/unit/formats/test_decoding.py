"""Formats by their names: values and keys, each by its own."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from headwater import topic
from headwater.errors import LogRefused, TopicError
from headwater.formats import decoding
from headwater.formats.writer_schema import WriterSchema


class Nobody:
    def get(self, id: int, kind: str) -> WriterSchema:
        raise AssertionError("no registry is needed")


WRITERS = Nobody()


@pytest.mark.parametrize(
    ("format", "columns", "value", "row"),
    [
        ("json", "a INT, b STRING", b'{"a": 1}', {"a": 1, "b": None}),
        ("json_schema", "a INT, b STRING", b'\0\0\0\0\1{"a": 1}', {"a": 1, "b": None}),
        ("csv", "a INT, b STRING", b"1,x", {"a": 1, "b": "x"}),
        ("text", "line STRING", b"1,x", {"line": "1,x"}),
        ("bytes", "body BINARY", b"\xff", {"body": b"\xff"}),
        ('avro:"int"', "n BIGINT", b"\x02", {"n": 1}),
    ],
)
def test_a_value_is_read_by_its_format(format: str, columns: str, value: bytes, row: dict[str, Any]) -> None:
    declared = topic.create("t", columns, format=format)
    batch, bad = decoding.decode_values([value], declared, WRITERS)
    assert (batch.to_pylist(), bad) == ([row], [])
    assert batch.schema == declared.schema


@pytest.mark.parametrize(
    ("key_format", "columns", "key", "found"),
    [
        ("json", "id", b'{"id": 5, "more": 1}', {"id": 5}),
        ("json", "id", b" 5", {"id": 5}),
        ("json", "id,name", b'{"name": "a", "id": 5}', {"id": 5, "name": "a"}),
        ("csv", "id,name", b"5,a", {"id": 5, "name": "a"}),
        ("text", "name", b"5,a", {"name": "5,a"}),
        ('avro:"long"', "id", b"\x0a", {"id": 5}),
    ],
)
def test_a_key_is_read_by_its_format_and_the_value_has_the_other_columns(
    key_format: str, columns: str, key: bytes, found: dict[str, Any]
) -> None:
    declared = topic.create("t", "id BIGINT, name STRING, x INT", key=columns, key_format=key_format)
    batch, bad = decoding.decode_keys([key], declared, WRITERS)
    assert (batch.to_pylist(), bad) == ([found], [])
    others = {"id": 7, "name": "b", "x": 1}
    batch, bad = decoding.decode_values([b'{"id": 7, "name": "b", "x": 1}'], declared, WRITERS)
    assert bad == []
    assert batch.to_pylist() == [{name: value for name, value in others.items() if name not in found}]


@pytest.mark.parametrize("key", [b"", b"x", b'5,"more":1', b'"5"', b"{}", b"null", b'{"id": null}'])
def test_a_json_key_that_does_not_fit_is_refused(key: bytes) -> None:
    declared = topic.create("t", "id BIGINT, x INT", key="id", key_format="json")
    batch, bad = decoding.decode_keys([b"1", key, b"2"], declared, WRITERS)
    assert (batch.column("id").to_pylist(), [at for at, _ in bad]) == ([1, 2], [1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schema": "a INT", "format": "text"}, "needs one STRING column"),
        ({"schema": "a STRING, b STRING", "format": "text"}, "needs one STRING column"),
        ({"schema": "a STRING", "format": "bytes"}, "needs one BINARY column"),
        (
            {"schema": "a STRING, b INT", "key": "b", "key_format": "text"},
            "needs one STRING column for key_format",
        ),
        ({"schema": "a STRING", "key_format": "text"}, "has a key_format and no key"),
        ({"schema": "a STRING", "key": "a", "key_format": "text"}, "no column but those of its key"),
    ],
)
def test_columns_that_a_format_has_no_place_for_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TopicError, match=message):
        topic.create("t", **settings)
    topic.create("t", "host STRING, line STRING", key="host", key_format="text", format="text")


def test_a_format_that_cannot_be_read_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    decoding.check(topic.create("t", "a INT", format="avro", key="a"))
    with pytest.raises(TopicError, match="is not Avro"):
        decoding.check(topic.create("t", "a INT", format='avro:{"type":"x"}'))
    monkeypatch.setitem(sys.modules, "fastavro", None)
    monkeypatch.delitem(sys.modules, "headwater.formats.avro", raising=False)
    monkeypatch.delattr("headwater.formats.avro", raising=False)
    with pytest.raises(LogRefused, match='format "avro" is not installed') as refused:
        decoding.check(topic.create("t", "a INT", format="avro"))
    assert "headwater[kafka]" in str(refused.value)
