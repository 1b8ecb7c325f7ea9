"""Datagrams of a feed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.ingest.feed.wire import (
    DATAGRAM_BYTES,
    HEADER_BYTES,
    HEARTBEAT,
    POINTER,
    RECORDS,
    FeedDatagram,
    decode,
    encode,
    packed,
    topic_mark,
)
from soaking import examples

MARK = topic_mark("one")
DATAGRAMS = st.builds(
    FeedDatagram, st.just(RECORDS), st.integers(0, 9), st.just(7), st.just(8), st.binary(max_size=50)
)


@given(DATAGRAMS.filter(lambda each: b"\n" not in each.payload), st.data())
def test_a_damaged_datagram_is_none(datagram: FeedDatagram, data: st.DataObject) -> None:
    whole = encode(datagram, MARK)
    assert decode(whole, MARK) == datagram
    assert decode(whole, topic_mark("other")) is None
    at = data.draw(st.integers(0, len(whole) - 1))
    broken = bytearray(whole)
    broken[at] ^= data.draw(st.integers(1, 255))
    assert decode(bytes(broken), MARK) is None
    assert decode(whole[:at], MARK) is None


def test_a_datagram_with_fewer_records_than_it_names_is_none() -> None:
    assert decode(encode(FeedDatagram(RECORDS, 0, 0, 3, b"{}\n{}"), MARK), MARK) is None
    assert decode(encode(FeedDatagram(HEARTBEAT, 0, 3, 3), MARK), MARK) is not None


@examples(100)
@given(st.lists(st.integers(2, 2500), min_size=1, max_size=30), st.integers(0, 5), st.booleans())
def test_packed_records_are_those_that_were_given_in_datagrams_of_bounded_size(
    sizes: list[int], first: int, gap: bool
) -> None:
    lines = [b"x" * size for size in sizes]
    offsets = [first + number + (number > 3 and gap) for number in range(len(lines))]
    at = first
    for each in packed(2, offsets, lines):
        assert each.partition == 2
        assert each.first == at or (gap and each.first == at + 1)
        assert len(encode(each, MARK)) <= DATAGRAM_BYTES
        here = [line for offset, line in zip(offsets, lines, strict=True) if each.first <= offset < each.end]
        if each.kind == RECORDS:
            assert each.lines == here
        else:
            assert each.kind == POINTER
            assert len(here) != each.end - each.first or len(here[0]) > DATAGRAM_BYTES - HEADER_BYTES
        at = each.end
    assert at == offsets[-1] + 1
