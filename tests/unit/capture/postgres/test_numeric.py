"""Decimal numbers in binary form."""

from __future__ import annotations

import struct
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.capture.postgres.numeric import decimals
from pgoutput_kit import cells


def encoded(value: Decimal | None, scale: int) -> bytes | None:
    """Return a number as PostgreSQL sends it: digits of base 10000 without zeros at either end."""
    if value is None:
        return None
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits))) * 10 ** (exponent + 40)
    groups, weight = [], -11
    while number:
        number, group = divmod(number, 10_000)
        groups.insert(0, group)
        weight += 1
    while groups and not groups[-1]:
        groups.pop()
    head = struct.pack(">hhHh", len(groups), weight if groups else 0, 0x4000 if sign else 0, scale)
    return head + struct.pack(f">{len(groups)}H", *groups)


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Decimal128Type, list[Decimal | None]]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    whole = st.integers(-(10**precision) + 1, 10**precision - 1)
    # Not by scaleb, which rounds to the digits of the context.
    value = whole.map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))
    return pa.decimal128(precision, scale), draw(st.lists(st.none() | value))


@given(columns())
def test_a_number_comes_out_as_it_went_in(column: tuple[pa.Decimal128Type, list[Decimal | None]]) -> None:
    kind, values = column
    array, unfit = decimals(cells([encoded(value, kind.scale) for value in values]), kind)
    array.validate(full=True)
    assert (array.to_pylist(), array.type, unfit) == (values, kind, {})


def test_what_is_no_number_is_told() -> None:
    special = [struct.pack(">hhHh", 0, 0, sign, 0) for sign in (0xC000, 0xD000, 0xF000)]
    array, unfit = decimals(cells([encoded(Decimal("1.5"), 1), *special]), pa.decimal128(20, 1))
    assert array.to_pylist() == [Decimal("1.5"), None, None, None]
    assert unfit == {1: "NaN", 2: "Infinity", 3: "-Infinity"}
