"""What comes out of a join of two tables, and which joins have results that nothing tells apart."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.operators.pairing import pairing
from headwater.operators.spec import Side
from headwater.operators.tables.shape import HOW, TableShape
from headwater.schema import parse

ORDERS = Side(parse("id BIGINT, customer BIGINT, cents BIGINT, _deleted BOOLEAN"), None, ("id",))
CUSTOMERS = Side(parse("id BIGINT, name STRING, _deleted BOOLEAN"), None, ("id",))
POSTS = Side(parse("author STRING, no BIGINT, text STRING, _deleted BOOLEAN"), None, ("author", "no"))
FOLLOWS = Side(parse("who STRING, author STRING, _deleted BOOLEAN"), None, ("who", "author"))


def shape(left: Side, right: Side, on: object, how: str = "inner", prefix: str | None = "r_") -> TableShape:
    return TableShape(pairing("joins.tables", on), left, right, how, prefix)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("made", "identity"),
    [
        (shape(ORDERS, CUSTOMERS, {"customer": "id"}), ("id",)),
        (shape(ORDERS, CUSTOMERS, {"customer": "id"}, "left"), ("id",)),
        (shape(CUSTOMERS, ORDERS, {"id": "customer"}, "right"), ("r_id",)),
        (shape(POSTS, FOLLOWS, "author"), ("author", "no", "who")),
        (shape(ORDERS, CUSTOMERS, "id", "full"), ("id",)),
        (shape(CUSTOMERS, CUSTOMERS, "id", "right"), ("id",)),
    ],
    ids=lambda made: made.how if isinstance(made, TableShape) else None,
)
def test_results_are_told_apart_by_the_keys_of_the_sides_that_are_there(
    made: TableShape, identity: tuple[str, ...]
) -> None:
    made.check()
    assert made.identity == identity
    assert set(identity) <= set(made.joined.schema.names)


def test_the_columns_of_both_come_out_without_what_says_that_a_row_went() -> None:
    made = shape(ORDERS, CUSTOMERS, {"customer": "id"})
    assert made.joined.schema.names == ["id", "customer", "cents", "name"]


def test_the_right_row_stands_in_for_the_left_one_only_where_that_may_be_missing() -> None:
    told = {how: shape(ORDERS, CUSTOMERS, "id", how).joined.optional for how in HOW}
    assert told == {"inner": False, "left": False, "right": True, "full": True}


def test_a_key_that_every_change_tells_is_one_of_both_primary_keys() -> None:
    assert shape(ORDERS, CUSTOMERS, "id").spread == ("_key0",)
    assert shape(ORDERS, CUSTOMERS, {"customer": "id"}).spread == ()
    assert shape(POSTS, FOLLOWS, {"text": "who", "author": "author"}).spread == ("_key1",)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (shape(POSTS, FOLLOWS, "author", "left"), "finds at most one right row for a left one"),
        (shape(FOLLOWS, POSTS, "author", "right"), "finds at most one left row for a right one"),
        (shape(ORDERS, CUSTOMERS, {"customer": "id"}, "full"), "finds at most one left row for a right one"),
        (shape(ORDERS, CUSTOMERS, {"id": "id", "customer": "name"}, "full"), "by the primary keys of both"),
    ],
    ids=lambda made: made.how if isinstance(made, TableShape) else None,
)
def test_a_join_of_which_a_part_may_be_missing_that_tells_results_apart_is_refused(
    made: TableShape, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        made.check()


def test_keys_of_two_types_are_refused_where_one_stands_in_for_the_other() -> None:
    narrow = Side(parse("id INT, name STRING, _deleted BOOLEAN"), None, ("id",))
    shape(ORDERS, narrow, "id", "left").check()
    with pytest.raises(UsageError, match='needs "id" and "id" to be of one type'):
        shape(ORDERS, narrow, "id", "right").check()


def test_rows_that_are_no_table_are_refused() -> None:
    with pytest.raises(UsageError, match="goes over tables, and the right rows are none"):
        shape(ORDERS, Side(parse("id BIGINT"), None, ("id",)), "id").check()
    with pytest.raises(UsageError, match="goes over tables, and the left rows are none"):
        shape(Side(ORDERS.schema, None), CUSTOMERS, "id").check()
