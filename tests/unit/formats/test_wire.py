"""The prefix of a value whose schema is in a registry."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RowError
from headwater.formats import wire


def written(number: int) -> bytes:
    """Return a zigzag varint, as the definition has it: seven bits a byte, the lowest first."""
    bits, made = number * 2 if number >= 0 else -number * 2 - 1, bytearray()
    while bits > 127:
        made.append(bits % 128 + 128)
        bits //= 128
    return bytes([*made, bits])


@given(st.integers(0, 2**32 - 1), st.binary())
def test_the_id_and_the_rest_are_told_apart(id: int, body: bytes) -> None:
    assert wire.split(b"\0" + id.to_bytes(4, "big") + body) == (id, body)


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\0\0\1", b"\1\0\0\0\1x", b'{"id": 1}'])
def test_what_has_no_prefix_is_refused(value: bytes) -> None:
    with pytest.raises(RowError, match="does not begin with the id"):
        wire.split(value)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=5), st.binary())
def test_a_path_to_a_message_is_read_as_it_is_written(path: list[int], rest: bytes) -> None:
    encoded = written(len(path)) + b"".join(map(written, path)) + rest
    assert wire.message_path(encoded) == (tuple(path), rest)


@given(st.binary())
def test_one_zero_stands_for_the_first_message(rest: bytes) -> None:
    assert wire.message_path(b"\0" + rest) == ((0,), rest)


@pytest.mark.parametrize("body", [b"", b"\x80", b"\x02", b"\x04\x02", b"\x01\x00", b"\xff" * 9, written(101)])
def test_a_path_that_ends_too_early_or_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="message indexes"):
        wire.message_path(body)


@given(st.uuids(), st.binary())
def test_a_global_id_is_taken_from_a_header_only(id: UUID, body: bytes) -> None:
    value = b"\1" + id.bytes + body
    assert wire.split(wire.HeadedValue(value)) == (str(id), body)
    assert wire.prefix(wire.HeadedValue(value)) + body == value
    with pytest.raises(RowError, match="does not begin with the id"):
        wire.split(value)
