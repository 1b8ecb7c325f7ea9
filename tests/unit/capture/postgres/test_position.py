"""Positions in the write-ahead log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.capture.postgres import position
from headwater.errors import UsageError


@given(st.integers(0, 2**64 - 1))
def test_a_position_is_the_same_as_text_and_as_number(number: int) -> None:
    assert position.number(position.text(number)) == number
    assert position.texts([number]) == [position.text(number)]


def test_a_stored_position_names_its_server() -> None:
    stored = position.of_system(0x16B374D848, "7709193921950386636")
    assert stored == "16/B374D848@7709193921950386636"
    assert position.number(stored) == 0x16B374D848
    assert position.system(stored) == "7709193921950386636"
    assert position.system("16/B374D848") is None


def test_what_is_no_position_is_refused() -> None:
    with pytest.raises(UsageError, match='"here" is no position'):
        position.number("here")


def test_the_last_record_ends_before_the_header_of_a_page() -> None:
    assert position.record_end(0x1529F00) == 0x1529F00
    assert position.record_end(0x152A000 + 24) == 0x152A000
    assert position.record_end(0x2000000 + 40) == 0x2000000
