"""A seal: whatever is missing, added or changed is noticed, however it is read."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.files import seal
from headwater.engine.files.seal import BrokenSeal


def copied(data: bytes, block: int) -> bytes:
    """Unseal bytes that come a few at a time."""
    source, sink = io.BytesIO(data), io.BytesIO()
    seal.copy_unsealed(lambda _: source.read(block), sink)
    return sink.getvalue()


@given(st.binary(max_size=200), st.integers(1, 90))
def test_what_was_sealed_is_read_whole(data: bytes, block: int) -> None:
    written = io.BytesIO()
    seal.copy_sealed(io.BytesIO(data), written.write)
    assert written.getvalue() == seal.sealed(data)
    assert seal.unsealed(seal.sealed(data)) == copied(seal.sealed(data), block) == data


@given(st.binary(max_size=200), st.integers(1, 90), st.data())
def test_what_was_cut_or_changed_is_refused(data: bytes, block: int, chance: st.DataObject) -> None:
    whole = seal.sealed(data)
    place = chance.draw(st.integers(0, len(whole) - 1))
    changed = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    readings: list[Callable[[bytes], bytes]] = [seal.unsealed, lambda each: copied(each, block)]
    for wrong in (whole[:place], changed, whole + b"\n", whole[1:]):
        for read in readings:
            with pytest.raises(BrokenSeal):
                read(wrong)
