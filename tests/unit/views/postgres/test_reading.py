"""What a reader asks PostgreSQL for, and how it takes the answer. No server."""

from __future__ import annotations

from datetime import date

import pytest

from headwater.errors import UsageError
from headwater.views.changes import Change
from headwater.views.postgres import reading
from headwater.views.postgres.table_version import TableVersion
from headwater.views.query import ViewQuery

COLUMNS = "who STRING, day DATE, n BIGINT"
ENTRY = TableVersion(7, "orders", 2, COLUMNS, ("who", "day"), True, 3, 1, (), None, True, 0, False)
ALL = 'SELECT "who", "day", "n" FROM "orders" WHERE '


def asked(query: ViewQuery) -> tuple[str, list[object]]:
    statement, values = reading._select(query, ENTRY)
    return statement.as_string(None), values


def test_a_scan_of_everything_is_in_the_order_of_the_key() -> None:
    assert asked(ViewQuery()) == (f'{ALL}true ORDER BY "who", "day" LIMIT %s', [None])


def test_values_are_parameters_of_the_columns_types() -> None:
    found = asked(ViewQuery(prefix=("x'; --",), start=date(2026, 1, 2), limit=5))
    assert found == (
        f'{ALL}"who" = %s AND "day" >= %s ORDER BY "who", "day" LIMIT %s',
        ["x'; --", date(2026, 1, 2), 5],
    )
    with pytest.raises(UsageError, match='column "day" of view "orders" is DATE'):
        asked(ViewQuery(prefix=("x", "2026-01-02")))


def test_a_null_is_less_than_anything_in_both_directions() -> None:
    up, down = (asked(ViewQuery(order="n", descending=each))[0] for each in (False, True))
    assert 'ORDER BY "n" NULLS FIRST, "who", "day" LIMIT' in up
    assert 'ORDER BY "n" DESC NULLS LAST, "who" DESC, "day" DESC LIMIT' in down


def test_changes_are_rows_before_and_after_and_a_row_that_is_not_there_is_none() -> None:
    day = date(2026, 1, 2)
    rows = [
        (1, 0, 4, None, None, None, "a", day, 1),
        (2, 1, 4, "a", day, 1, "a", day, None),
        (3, 2, 5, "a", day, None, None, None, None),
    ]
    one, none = {"who": "a", "day": day, "n": 1}, {"who": "a", "day": day, "n": None}
    assert reading._decoded(rows, ENTRY) == [
        Change(1, "insert", ("a", day), None, one, 4),
        Change(2, "update", ("a", day), one, none, 4),
        Change(3, "delete", ("a", day), none, None, 5),
    ]
