"""What keys are: a column of the value again, or something of their own."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.formats import guessed_key
from headwater.formats.writer_schema import WriterSchema


class Schemas:
    def kind(self, id: int) -> str:
        if id == 9:
            raise UsageError("no schema registry is named")
        return {1: "AVRO", 2: "AVRO", 3: "JSON", 4: "PROTOBUF"}[id]

    def get(self, id: int, kind: str) -> WriterSchema:
        record = '{"type":"record","name":"k","fields":[{"name":"id","type":"int"}]}'
        return WriterSchema({1: '"long"', 2: record}[id])


def found(
    *records: tuple[bytes | None, dict[str, object]], names: tuple[str, ...] = ()
) -> guessed_key.GuessedKey:
    return guessed_key.of(records, set(names), Schemas())


def test_a_key_that_is_in_the_value_is_that_column() -> None:
    rows = [(b"7", {"n": 1, "id": 7}), (b"8", {"n": 1, "id": 8})]
    assert found(*rows) == guessed_key.GuessedKey(("id",))
    assert found((b"ada", {"who": "ada"})).names == ("who",)
    assert found((None, {"who": "ada"})) == guessed_key.GuessedKey()


@pytest.mark.parametrize(
    ("key", "format", "columns"),
    [
        (b'{"shop": "a", "n": 5}', "json", ["shop STRING", "n BIGINT"]),
        (b"ada", "text", ["record_key STRING"]),
        (b"\x00\x00\x07", "bytes", ["record_key BINARY"]),
        (b"\0\0\0\0\1\2", "avro", ["record_key BIGINT"]),
        (b"\0\0\0\0\2\2", "avro", ["id INT"]),
        (b'\0\0\0\0\3{"id": 5}', "json_schema", ["id BIGINT"]),
    ],
)
def test_a_key_of_its_own_has_a_format_and_columns(key: bytes, format: str, columns: list[str]) -> None:
    made = found((key, {"Key": 1}), names=("Key",))
    assert (made.format, [each.ddl for each in made.columns]) == (format, columns)
    assert made.names == tuple(column.split()[0] for column in columns)


@pytest.mark.parametrize(
    ("key", "note"),
    [
        (b"\0\0\0\0\4\0", "of kind PROTOBUF"),
        (b"\0\0\0\0\x09\0", "no schema registry is named"),
        (b'{"price": 1.5}', "cannot be a key: 'price'"),
    ],
)
def test_what_cannot_be_a_key_is_said(key: bytes, note: str) -> None:
    made = found((key, {}))
    assert made.names == ()
    assert note in made.notes[0]
    assert found((b"x", {}), (None, {})).notes == ("some of its records have a key, and some have none",)
