"""The columns of what is read: a topic's own, and those that a record carries beside them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater import schema, topic
from headwater.errors import HeadwaterError
from headwater.record import DELETED, META, RESERVED, read_schema

OWN = schema.parse("id BIGINT NOT NULL, extra VARIANT, inner STRUCT<a: INT NOT NULL>")


@pytest.mark.parametrize(
    ("compacted", "meta", "more"),
    [(False, False, []), (True, False, [DELETED]), (False, True, list(META)), (True, True, list(META))],
)
def test_metadata_follows_a_topics_own_columns_in_one_order(
    compacted: bool, meta: bool, more: list[str]
) -> None:
    found = read_schema(OWN, compacted, meta)
    assert found.names == ["id", "extra", "inner", *more]
    assert [found.field(name).type for name in more] == [META[name] for name in more]


def test_every_column_that_is_read_may_be_null_as_a_tombstone_has_them() -> None:
    found = read_schema(OWN, compacted=True, meta=True)
    assert all(field.nullable for field in found)
    pa.RecordBatch.from_pylist([{"id": None, DELETED: True}], schema=found).validate(full=True)


def test_types_and_what_marks_free_json_stay() -> None:
    found = read_schema(OWN, compacted=False)
    assert found.types == OWN.types
    assert [schema.is_variant(field) for field in found] == [False, True, False]


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_no_column_of_a_topic_may_have_a_reserved_name_in_any_case(name: str) -> None:
    for written in (name, name.upper()):
        with pytest.raises(HeadwaterError, match=written):
            topic.create("t", f"id BIGINT, {written} STRING")
