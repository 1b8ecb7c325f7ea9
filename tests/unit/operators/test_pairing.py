"""Two inputs on one way."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.operators.pairing import Pairing, pairing

LEFT = pa.schema([("id", pa.int64()), ("who", pa.string()), ("at", pa.timestamp("us", "UTC"))])
RIGHT = pa.schema([("customer", pa.string()), ("at", pa.timestamp("us", "UTC")), ("id", pa.int32())])
ON = Pairing((("who", "customer"),))
NUMBERS = st.none() | st.integers(0, 5)


def table(rows: list[tuple[int | None, int | None]], schema: pa.Schema) -> pa.Table:
    kinds = {"id": lambda a, b: a, "at": lambda a, b: b}
    return pa.Table.from_pylist(
        [{name: kinds.get(name, lambda a, b: f"c{b}")(a, b) for name in schema.names} for a, b in rows],
        schema=schema,
    )


@given(st.lists(st.tuples(NUMBERS, NUMBERS)), st.lists(st.tuples(NUMBERS, NUMBERS)))
def test_both_sides_come_apart_as_they_went_in(
    left: list[tuple[int | None, int | None]], right: list[tuple[int | None, int | None]]
) -> None:
    mine, other = table(left, LEFT), table(right, RIGHT)
    sent = ON.sent(mine, other, ON.schema("join", LEFT, RIGHT))
    assert ON.left(sent).equals(mine)
    assert ON.right(sent).equals(other)
    keys = [*mine["who"].to_pylist(), *other["customer"].to_pylist()]
    assert sent["_key0"].to_pylist() == keys


@pytest.mark.parametrize(
    ("on", "pairs"),
    [
        ("id", (("id", "id"),)),
        ("shop, day", (("shop", "shop"), ("day", "day"))),
        (["shop"], (("shop", "shop"),)),
        ({"customer_id": "id"}, (("customer_id", "id"),)),
    ],
)
def test_columns_are_named_in_three_ways(on: object, pairs: object) -> None:
    assert pairing("join", on).on == pairs  # type: ignore[arg-type]


def test_numbers_of_two_widths_are_compared_and_a_text_with_a_number_is_not() -> None:
    assert pairing("join", "id").schema("join", LEFT, RIGHT).field("_key0").type == pa.int64()
    with pytest.raises(UsageError, match='join cannot compare "who" with "id"'):
        pairing("join", {"who": "id"}).schema("join", LEFT, RIGHT)
