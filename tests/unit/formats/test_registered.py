"""Values that name their schema: each is read with its own, and a registry that is away is no bad row."""

from __future__ import annotations

from typing import Any

import pytest

from headwater import topic
from headwater.errors import LogUnavailable, RowError
from headwater.formats import registered
from headwater.formats.registered import Bare, Codec
from headwater.formats.typed_rows import DICTS
from headwater.formats.writer_schema import WriterSchema


def reader(schema: WriterSchema) -> Any:
    if schema.text == "none":
        raise KeyError("no reader")
    return {"fields": lambda body: {"a": body}, "bare": Bare, "fails": lambda body: 1 / 0}[schema.text]


CODEC = Codec("ANY", "any format", reader, DICTS)
NAMES = {1: "fields", 2: "bare", 3: "fails", 4: "none"}


class Schemas:
    def __init__(self) -> None:
        self.asked: list[int] = []

    def get(self, id: int, kind: str) -> WriterSchema:
        self.asked.append(id)
        if id == 9:
            raise LogUnavailable("the registry is away")
        if id not in NAMES:
            raise RowError(f"no {kind} schema {id}")
        return WriterSchema(NAMES[id])


def value(id: int, body: bytes = b"x") -> bytes:
    return b"\0" + id.to_bytes(4, "big") + body


def test_each_value_is_read_with_its_own_schema_and_each_schema_is_asked_for_once() -> None:
    schemas = Schemas()
    values = [value(1), value(5), value(2, b"y"), value(3), value(4), b"?", value(1, b"z"), value(5)]
    batch, bad = registered.decode(values, topic.create("t", "a BINARY"), schemas, CODEC)
    assert batch.column("a").to_pylist() == [b"x", b"y", b"z"]
    assert [(at, error.message) for at, error in bad] == [
        (1, "no ANY schema 5"),
        (3, 'value is not any format, for topic "t"'),
        (4, "schema 4 cannot be read as any format"),
        (5, "value does not begin with the id of its schema"),
        (7, "no ANY schema 5"),
    ]
    assert schemas.asked == [1, 5, 2, 3, 4]


def test_a_registry_that_is_away_is_no_bad_value() -> None:
    with pytest.raises(LogUnavailable):
        registered.decode([value(1), value(9)], topic.create("t", "a BINARY"), Schemas(), CODEC)
