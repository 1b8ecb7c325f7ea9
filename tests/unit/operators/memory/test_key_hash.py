"""Keys as numbers: equal for equal keys, and the same in every release."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.groups import group
from headwater.operators.memory.key_hash import KeyHashes, hashed_groups, numbered
from soaking import examples
from unit.operators.stepping import ROWS, SCHEMA, Row, table


@examples(100)
@given(st.lists(ROWS, max_size=30), st.lists(st.sampled_from(SCHEMA.names), min_size=1, unique=True))
def test_keys_have_one_number_where_groups_are_one(rows: list[Row], by: list[str]) -> None:
    hashed, grouped = hashed_groups(table(rows), by), group(table(rows), by)
    assert hashed.of.tolist() == grouped.of.tolist()
    assert hashed.first.tolist() == grouped.first.tolist()
    pairs = list(zip(hashed.keys.high.tolist(), hashed.keys.low.tolist(), strict=True))
    assert len(set(pairs)) == len(grouped.keys)
    for place, index in enumerate(hashed.first.tolist()):
        alone = hashed_groups(table([rows[index]]), by).keys
        assert (int(alone.high[0]), int(alone.low[0])) == pairs[place], "whatever else is grouped with it"


def numbers(*columns: pa.Array) -> list[tuple[int, int]]:
    names = [str(place) for place in range(len(columns))]
    keys = hashed_groups(pa.table(list(columns), names), names).keys
    return list(zip(keys.high.tolist(), keys.low.tolist(), strict=True))


def test_the_numbers_of_before_are_those_of_now() -> None:
    """States are stored by them: another number would be another key."""
    some: list[Any] = [
        pa.array([0, None, 7]),
        pa.array(["", "ada", None]),
        pa.array([0.0, math.nan]),
        pa.array([Decimal("1.50"), None]),
        pa.array([[1, 2], []]),
        pa.array([True, False]),
    ]
    assert [numbers(each) for each in some] == KNOWN
    assert numbers(pa.array(["a"]), pa.array([1])) == KNOWN_PAIR


def test_keys_are_one_where_both_halves_are_equal() -> None:
    keys = KeyHashes(np.array([7, -(1 << 63), 7, 7]), np.array([1, 1, (1 << 62), 1]))
    assert numbered(keys).tolist() == [1, 0, 2, 1]
    assert numbered(keys.take(np.array([], np.int64))).tolist() == []


def test_null_is_no_whole_number() -> None:
    constants = [0x6A09E667F3BCC909, 0xBB67AE8584CAA73B - (1 << 64)]
    assert len(set(numbers(pa.array([None, *constants])))) == 3


def test_no_two_whole_numbers_are_one_and_low_ones_have_a_greater_number() -> None:
    found = numbers(pa.array(range(-50_000, 50_000)))
    assert len({high for high, _ in found}) == 100_000
    assert all(0 <= low < 1 << 63 for _, low in found)


KNOWN = [
    [
        (-2152535657050944081, 4685109482889842056),
        (580542743492490023, 645298249590312735),
        (-621772950581698083, 5014711291435376941),
    ],
    [
        (-1234437913770119892, 1745038721478136848),
        (-796693519578285026, 8973676048949394230),
        (580542743492490023, 645298249590312735),
    ],
    [(-2152535657050944081, 4685109482889842056), (-8716197209033667902, 2591222829124295956)],
    [(5191827078407248201, 498220816958387523), (580542743492490023, 645298249590312735)],
    [(-7696950922255815271, 522645925893055857), (-7730567452678717097, 8570425501121382628)],
    [(-1956407806741107680, 66148973157657097), (-2152535657050944081, 4685109482889842056)],
]
KNOWN_PAIR = [(5571191914661617185, 4674975171511238279)]
