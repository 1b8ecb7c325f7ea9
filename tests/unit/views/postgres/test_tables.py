"""Names and words for the tables of a version; what is done with them is tested on a server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.errors import UsageError
from headwater.views.postgres import tables
from headwater.views.postgres.table_version import TableVersion

COLUMNS = "who STRING, day DATE, n BIGINT, m BIGINT"
ENTRY = TableVersion(7, "orders", 2, COLUMNS, ("who", "day"), True, 3, 1, (), None, True, 0, False)


def test_an_index_is_named_by_its_entry_and_its_columns() -> None:
    names = {tables._index(entry, order) for entry in (ENTRY, replace(ENTRY, id=8)) for order in ("n", "m")}
    assert len(names) == 4
    assert tables._index(replace(ENTRY, published=False), "n") == tables._index(ENTRY, "n")
    assert str(tables._index(ENTRY, "n")).startswith("headwater_order_7_")


def test_an_order_that_the_key_has_already_needs_no_index() -> None:
    assert tables._index(ENTRY, None) is None
    assert tables._index(replace(ENTRY, key=("who",)), "who") is None


def test_an_order_by_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match='no column "o"'):
        tables._index(ENTRY, "o")


def test_a_table_that_is_lost_is_told_with_how_far_it_was() -> None:
    error = tables._missing(replace(ENTRY, published=False), "is gone")
    assert error.message == 'table "orders@2" of view "orders" is gone'
    assert error.detail == "up to batch 3 its rows were committed"
