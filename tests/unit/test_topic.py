"""Declarations: what is taken, and what is refused with a hint instead of a traceback."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater import record, schema, topic
from headwater.errors import HeadwaterError, SchemaError, TopicError, UsageError
from headwater.log.embedded.partition import frame
from headwater.log.position import check_start


def test_every_internal_column_name_is_reserved_in_any_case() -> None:
    internal = {field.name for field in [*frame.COLUMNS.values(), *frame.COMPACTED]} | set(record.META)
    assert internal <= record.RESERVED
    for name in record.RESERVED:
        for spelled in (name, name.upper(), name.title()):
            with pytest.raises(SchemaError, match="is reserved"):
                topic.create("t", f"{spelled} STRING, n INT")
            with pytest.raises(SchemaError, match="is reserved"):
                topic.altered(topic.create("t", "n INT"), schema=f"n INT, {spelled} STRING")


@pytest.mark.parametrize(
    "added",
    [("N", pa.string()), ("", pa.string()), ("s", pa.struct([("x", pa.int32()), ("X", pa.int32())]))],
)
def test_an_arrow_schema_is_held_to_the_same_rules_when_a_topic_is_altered(added: Any) -> None:
    with pytest.raises(SchemaError, match="invalid schema"):
        topic.altered(topic.create("t", "n INT"), schema=pa.schema([("n", pa.int32()), added]))


def test_an_altered_schema_is_the_one_that_will_be_read_back() -> None:
    items = pa.list_(pa.field("element", pa.int32(), nullable=False))
    field = pa.field("l", items, metadata={"from": "elsewhere"})
    new = topic.altered(topic.create("t", "n INT"), schema=pa.schema([("n", pa.int32()), field])).schema
    assert new.equals(schema.parse("n INT, l ARRAY<INT>"), check_metadata=True)


def test_an_archive_may_be_a_path_and_a_key_may_be_none() -> None:
    made = topic.create("t", "n INT", archive=Path("old") / "records", key=None)
    assert (made.archive, made.key) == ("old/records", ())
    assert topic.altered(made, archive=Path("new")).archive == "new"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": 5}, "invalid topic name"),
        ({"name": None}, "invalid topic name"),
        ({"schema": None}, "a schema cannot be a NoneType"),
        ({"schema": ["n INT"]}, "a schema cannot be a list"),
        ({"key": 5}, "a key cannot be 5"),
        ({"key": [None]}, "a key cannot be"),
        ({"key": ["n", "n"]}, "has a column twice"),
        ({"event_time": 5}, 'no column "5"'),
        ({"partitions": "2"}, "1 to 1024 partitions"),
        ({"partitions": True}, "1 to 1024 partitions"),
        ({"retention_bytes": "5"}, "must be positive"),
        ({"retention_bytes": 1.5}, "must be positive"),
        ({"retention": 5}, "invalid interval"),
        ({"retention": timedelta(days=-1)}, "not a positive length"),
        ({"retention": timedelta.max}, "is too long"),
        ({"retention": "99999999999 weeks"}, "is too long"),
        ({"archive": 5}, "archive cannot be 5"),
        ({"archive": ""}, "archive cannot be"),
    ],
)
def test_an_argument_of_a_wrong_type_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((TopicError, UsageError), match=message):
        topic.create(**{"name": "t", "schema": "n INT", **settings})
    changes = {name: value for name, value in settings.items() if name not in ("name", "key", "event_time")}
    if any(value is not None for value in changes.values()):
        with pytest.raises((TopicError, UsageError), match=message):
            topic.altered(topic.create("t", "n INT"), **changes)


def test_an_unknown_option_of_a_log_is_answered_with_the_nearest(tmp_path: Path) -> None:
    for url in (f"file:{tmp_path / 'log'}", "memory:"):
        with pytest.raises(UsageError, match='no option "durabilty"') as caught:
            headwater.open(url, durabilty="os")
        assert caught.value.hint == 'did you mean "durability"?'


def test_a_url_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="invalid log URL"):
        headwater.open(tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize("start", ["bogus", None, 1.5, True, [0]])
def test_what_is_no_place_in_a_topic_is_refused(start: Any) -> None:
    with pytest.raises(HeadwaterError, match="cannot start at"):
        check_start(start, topic.create("t", "n INT"))


def test_a_topic_of_free_json_cannot_get_columns() -> None:
    with pytest.raises(SchemaError, match="cannot get columns"):
        topic.altered(topic.create("t", "JSON"), schema="value VARIANT, n BIGINT")
