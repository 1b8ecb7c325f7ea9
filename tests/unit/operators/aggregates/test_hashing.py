"""Hashes: equal for equal values, the same for ever, and different for nearly all others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.aggregates.hashing import hashes
from soaking import examples

STORED = {
    "texts": [12035550249420947055, 10771866968965039624, 17900686583502088177],
    "integers": [16294208416658607535, 16490336266968443936, 2296115805719413641],
    "floats": [17606427253252083309, 673586283495342769],
}


@examples(60)
@given(st.lists(st.text(max_size=5), max_size=12), st.integers(0, 5))
def test_a_text_has_one_hash_whatever_lies_beside_it(texts: list[str], start: int) -> None:
    sliced = hashes(pa.array(texts, pa.string()).slice(start)).tolist()
    assert sliced == [hashes(pa.array([text])).tolist()[0] for text in texts[start:]]
    assert len(set(sliced)) == len(set(texts[start:]))


def test_a_stored_hash_is_found_again_for_ever() -> None:
    assert hashes(pa.array(["", "ada", "ü"])).tolist() == STORED["texts"]
    assert hashes(pa.array([0, -1, 2**40])).tolist() == STORED["integers"]
    assert hashes(pa.array([0.5, -2.0])).tolist() == STORED["floats"]


def test_zero_has_no_sign_and_all_nans_are_one() -> None:
    other = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    found = hashes(pa.array([0.0, -0.0, math.nan, other, 1.0])).tolist()
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert len(set(found)) == 3


@pytest.mark.parametrize(
    ("narrow", "wide", "values"),
    [
        (pa.int8(), pa.int64(), [-1, 0, 100]),
        (pa.float32(), pa.float64(), [0.5, -1.25]),
        (pa.string(), pa.binary(), ["a", "bc"]),
    ],
    ids=str,
)
def test_the_width_of_a_type_makes_no_difference(narrow: Any, wide: Any, values: list[Any]) -> None:
    column = pa.array(values, narrow)
    assert hashes(column).tolist() == hashes(column.cast(wide)).tolist()


def test_texts_that_share_their_letters_differ() -> None:
    texts = ["ab", "ba", "a", "aa", "aaa", "\0", "\0\0", "", "a\0", "\0a"]
    assert len(set(hashes(pa.array(texts)).tolist())) == len(texts)


def test_hashes_of_numbers_in_a_row_fill_all_bits_evenly() -> None:
    bits = np.unpackbits(hashes(pa.array(np.arange(20_000))).view(np.uint8)).reshape(-1, 64)
    assert abs(bits.mean(axis=0) - 0.5).max() < 0.02


def test_dates_lists_and_decimals_have_hashes_too() -> None:
    for column in (
        pa.array([1, 2, 1], pa.date32()),
        pa.array([["a"], ["a", "b"], ["a"]]),
        pa.array([1, 2, 1]).cast(pa.decimal128(21, 2)),
        pa.array([True, False, True]),
    ):
        one, other, again = hashes(column).tolist()
        assert one == again != other
    assert hashes(pa.array([], pa.string())).tolist() == []
