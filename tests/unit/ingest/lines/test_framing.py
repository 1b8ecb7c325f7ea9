"""Lines out of bytes that arrive in any pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.ingest.lines.framing import NewlineSplitter, Splitter, SyslogSplitter
from soaking import examples

LONGEST = 12
PIECES = st.lists(st.integers(1, 9), min_size=1, max_size=30)


def fed(splitter: Splitter, data: bytes, sizes: list[int]) -> list[bytes]:
    lines, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        lines += splitter.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    return lines + splitter.rest()


@examples(100)
@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b""))), st.booleans(), PIECES)
def test_lines_are_the_same_whatever_pieces_they_come_in(
    lines: list[bytes], ended: bool, sizes: list[int]
) -> None:
    data = b"".join(line + b"\n" for line in lines)
    if not ended:
        data = data[:-1]
    expected = data.split(b"\n")
    expected = expected[:-1] if not expected[-1] else expected
    whole = [line.removesuffix(b"\r")[: LONGEST + 1] for line in expected]
    assert fed(NewlineSplitter(LONGEST), data, sizes) == whole


@examples(100)
@given(
    st.lists(
        st.tuples(st.booleans(), st.binary(min_size=1, max_size=20).map(lambda m: m.replace(b"\n", b"-")))
    ),
    PIECES,
)
def test_counted_messages_and_lines_may_alternate(
    messages: list[tuple[bool, bytes]], sizes: list[int]
) -> None:
    data, expected = b"", []
    for counted, message in messages:
        text = message if counted else b"<" + message.rstrip(b"\r")
        data += b"%d %b" % (len(text), text) if counted else text + b"\n"
        expected.append(text[: LONGEST + 1])
    assert fed(SyslogSplitter(LONGEST), data, sizes) == expected


def test_no_more_is_kept_of_a_line_than_its_limit() -> None:
    splitter = NewlineSplitter(LONGEST)
    for _ in range(100):
        assert splitter.feed(b"x" * 100) == []
    assert splitter.held == 10_000
    assert len(splitter._kept) == LONGEST + 2
    assert splitter.feed(b"\nshort\n") == [b"x" * 13, b"short"]


def test_a_line_that_begins_with_a_number_is_one() -> None:
    assert SyslogSplitter().feed(b"12345678 a\n2026 years\n") == [b"12345678 a"]
    assert SyslogSplitter().feed(b"1x\n") == [b"1x"]


def test_a_counted_message_that_is_not_whole_is_none() -> None:
    splitter = SyslogSplitter()
    assert splitter.feed(b"10 abc") == []
    assert splitter.held
    assert splitter.rest() == []
