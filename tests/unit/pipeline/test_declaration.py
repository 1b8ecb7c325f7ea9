"""What a declaration answers about itself."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pyarrow as pa
import pytest

from headwater import topic
from headwater.pipeline.declaration import Declaration, InputTiming, Source, Table

COLUMNS = pa.schema([("id", pa.int64())])


def source(name: str = "orders") -> Source:
    declared = topic.create("shop.orders", COLUMNS)
    return Source(name=name, file="/far/shop.py", line=3, declared=declared)


def test_a_declaration_is_named_by_its_kind_and_line() -> None:
    assert source().title == Source.title_of("orders") == 'source "orders"'
    assert source().location == "/far/shop.py:3"


def test_a_declaration_never_changes() -> None:
    with pytest.raises(FrozenInstanceError):
        source().topic = "other"  # type: ignore[misc]
    assert source() == source()
    assert source().stored_in_home() is not None


def test_an_input_is_read_from_its_topic_and_never_computed() -> None:
    made = source()
    assert (made.readable_topic, made.written_topic, made.upstreams) == ("shop.orders", None, ())
    assert made.external
    assert not (made.verifiable or made.has_versions)
    assert made.recompute_hint is None
    assert made.timing == InputTiming()


def test_a_table_is_compacted_by_its_key_and_a_source_is_not() -> None:
    declared = topic.create("customers", COLUMNS, key="id", cleanup="compact")
    table = Table(name="customers", file="shop.py", line=4, key=("id",), declared=declared)
    assert (table.compacted, Table.needs_key) == (True, True)
    assert (source().compacted, Source.needs_key) == (False, False)


def test_what_has_no_topic_says_how_to_have_it_read() -> None:
    class Plain(Declaration):
        kind = "plain"

    plain = Plain(name="totals", file="shop.py", line=5)
    assert plain.readable_topic is None
    assert plain.unreadable_hint == 'make "totals" a stream'
    assert plain.resolved({"totals": "Totals"}) is plain


def test_a_topic_of_another_program_has_typed_rows_where_the_log_is_the_pipelines_own() -> None:
    foreign = replace(source(), declared=replace(source().declared, format="csv", key_format="text"))
    assert foreign.stored_in_home() == source()
