"""What a warehouse table is declared to hold."""

from __future__ import annotations

import pytest

from headwater.errors import SchemaError, UsageError
from headwater.sinks.warehouse.declaration import declare_warehouse


def test_a_history_has_three_columns_more() -> None:
    with_history = declare_warehouse("table", "id BIGINT NOT NULL, name STRING", "id", True)
    assert with_history.stored.names == ["id", "name", "valid_from", "valid_to", "is_current"]
    assert declare_warehouse("table", "id BIGINT, is_current BOOLEAN", "id", False).stored.names == [
        "id",
        "is_current",
    ]


def test_names_of_the_history_are_refused() -> None:
    with pytest.raises(SchemaError, match="valid_from"):
        declare_warehouse("table", "id BIGINT, Valid_From TIMESTAMP", "id", True)
    with pytest.raises(UsageError, match="no column"):
        declare_warehouse("table", "id BIGINT", "key", True)
