"""Which type holds what."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.capture.postgres.columns import AS_TEXT, SqlType, decoder
from pgoutput_kit import cells, text_cells

NUMBERS = {"int4": 23, "text": 25, "numeric": 1700, "time": 1083, "_int4": 1007, "_time": 1183}
TYPES = {number: SqlType(name) for name, number in NUMBERS.items()} | {
    1007: SqlType("_int4", element=23),
    1183: SqlType("_time", element=1083),
    1231: SqlType("_numeric", element=1700),
    90001: SqlType("mood", "e", built_in=False),
    90002: SqlType("price", "d", 1700, modifier=((8 << 16) | 2) + 4, built_in=False),
    90003: SqlType("text", "b", built_in=False),
    90004: SqlType("prices", "d", 1231, modifier=((8 << 16) | 2) + 4, built_in=False),
}


def modifier(precision: int, scale: int) -> int:
    return ((precision << 16) | (scale & 0x7FF)) + 4


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ((10, 2), pa.decimal128(10, 2)),
        ((38, 38), pa.decimal128(38, 38)),
        ((39, 2), pa.string()),
        ((3, -2), pa.decimal128(5, 0)),
        ((2, 5), pa.decimal128(5, 5)),
    ],
)
def test_a_declared_precision_makes_a_decimal(declared: tuple[int, int], expected: pa.DataType) -> None:
    assert decoder(1700, modifier(*declared), TYPES.get).type == expected


def test_what_has_no_type_of_ours_is_text() -> None:
    assert decoder(1700, -1, TYPES.get) is AS_TEXT
    assert decoder(1083, -1, TYPES.get) is AS_TEXT
    assert decoder(1183, -1, TYPES.get) is AS_TEXT
    assert decoder(4711, -1, TYPES.get) is AS_TEXT
    assert decoder(90003, -1, TYPES.get) is AS_TEXT


def test_a_domain_is_what_it_is_made_of_and_an_enumeration_is_text() -> None:
    assert decoder(90002, -1, TYPES.get).type == pa.decimal128(8, 2)
    assert decoder(90004, -1, TYPES.get).type == pa.list_(pa.decimal128(8, 2))
    assert decoder(90001, -1, TYPES.get).type == pa.string()
    assert decoder(90001, -1, TYPES.get).binary is not None


def test_either_form_of_a_value_is_read() -> None:
    whole = decoder(23, -1, TYPES.get)
    assert whole.decode(cells([b"\0\0\0\7", None]))[0] == pa.array([7, None], pa.int32())
    assert whole.decode(text_cells(["7", None]))[0] == pa.array([7, None], pa.int32())
    assert decoder(1007, -1, TYPES.get).decode(text_cells(["{1,2}"]))[0].to_pylist() == [[1, 2]]
