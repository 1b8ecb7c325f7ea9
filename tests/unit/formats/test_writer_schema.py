"""Schemas of a registry are values: the same schema is read once, whoever asks."""

from __future__ import annotations

from headwater.formats.writer_schema import SchemaReference, WriterSchema


def test_schemas_with_the_same_text_and_references_are_one() -> None:
    def schema(text: str) -> WriterSchema:
        return WriterSchema('"x"', (SchemaReference("x", WriterSchema(text)),))

    assert len({schema('"int"'), schema('"int"'), schema('"long"')}) == 2
