"""Texts of a command line or a URL as values of a key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.api.view_keys import bound, key, prefix, value
from headwater.errors import UsageError
from headwater.schema import parse
from headwater.values.keyed import KeyedSchema
from headwater.views import ViewStore


@pytest.fixture
def view(tmp_path: Path) -> Iterator[KeyedSchema]:
    with ViewStore(tmp_path / "views.db") as store:
        store.sink("stock", "shop STRING, item BIGINT, n INT", ("shop", "item"))
        yield store.view("stock").keyed


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_whole_number_is_read_as_it_is_written(number: int) -> None:
    assert value(str(number), pa.field("id", pa.int64())) == number


@pytest.mark.parametrize(
    ("text", "column", "read"),
    [
        ("1.50", "DECIMAL(10,2)", Decimal("1.50")),
        ("true", "BOOLEAN", True),
        ("12", "STRING", "12"),
        ("2026-01-02T12:00:00Z", "TIMESTAMP", datetime(2026, 1, 2, 12, tzinfo=UTC)),
        ("2026-01-02T12:00:00Z", "TIMESTAMP_NTZ", datetime(2026, 1, 2, 12)),
    ],
)
def test_a_text_becomes_what_its_column_holds(text: str, column: str, read: object) -> None:
    assert value(text, parse(f"a {column}").field("a")) == read


@pytest.mark.parametrize(
    ("text", "column"), [("x", "BIGINT"), ("1.5", "INT"), ("300", "TINYINT"), ("soon", "TIMESTAMP")]
)
def test_a_text_of_another_type_is_told_by_its_column(text: str, column: str) -> None:
    with pytest.raises(UsageError, match=f'column "a" is {column}, not "{text}"'):
        value(text, parse(f"a {column}").field("a"))


def test_a_key_is_whole_and_a_prefix_is_not_longer(view: KeyedSchema) -> None:
    assert key(["a", "7"], view) == ("a", 7)
    assert (prefix([], view), prefix(["a"], view)) == ((), ("a",))
    for texts in (["a"], ["a", "7", "1"]):
        with pytest.raises(UsageError, match=r"\(shop, item\)"):
            key(texts, view)
    with pytest.raises(UsageError, match=r"\(shop, item\)"):
        prefix(["a", "7", "1"], view)


def test_a_bound_is_of_the_column_after_the_prefix(view: KeyedSchema) -> None:
    assert (bound("7", view, 1), bound("7", view, 0), bound(None, view, 2)) == (7, "7", None)
    with pytest.raises(UsageError, match="has no range"):
        bound("7", view, 2)
