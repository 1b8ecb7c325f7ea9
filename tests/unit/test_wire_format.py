"""Names of formats: which are taken, and that a schema in a file is kept in the declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater import topic, wire_format
from headwater.errors import TopicError


@pytest.mark.parametrize("name", wire_format.NAMES)
def test_every_name_is_taken_as_it_is(name: str) -> None:
    assert wire_format.read("format", name) == wire_format.name(name) == name


@pytest.mark.parametrize(
    ("format", "message", "hint"),
    [
        ("AVRO", 'format cannot be "AVRO"', "formats: json, avro"),
        ("prtobuf", 'format cannot be "prtobuf"', 'did you mean "protobuf"?'),
        (None, "format cannot be None", "formats: json, avro"),
        ("avro:", 'schema "" of format cannot be read', "name a file"),
        ("avro:nowhere.avsc", '"nowhere.avsc" of format cannot be read', "name a file"),
        ("avro:{", "schema of format is not JSON", None),
    ],
)
def test_what_is_no_format_is_refused_with_what_to_write(format: Any, message: str, hint: str | None) -> None:
    with pytest.raises(TopicError) as refused:
        wire_format.read("format", format)
    assert message in refused.value.message
    assert (hint or "") in (refused.value.hint or "")


def test_a_schema_in_a_file_is_read_when_the_topic_is_declared(tmp_path: Path) -> None:
    path = tmp_path / "orders.avsc"
    path.write_text('{"type": "record", "name": "o", "fields": []}')
    declared = topic.create("t", "id INT", format=f"avro:{path}")
    path.unlink()
    assert declared.format == 'avro:{"type":"record","name":"o","fields":[]}'
    assert topic.create("t", **declared.settings()) == declared
    assert wire_format.name(declared.format) == "avro"
