"""Messages of the plugin become runs of changes, however the stream is cut."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_kit as kit
from headwater.capture.postgres.pgoutput import (
    OpenTransaction,
    Parsed,
    Parser,
    RowMessages,
    TruncateMessage,
    relation_at,
)
from headwater.capture.postgres.tuples import split

COLUMNS = [("id", 23, True), ("name", 25, False)]
CELL = st.none() | st.binary(max_size=5)
ROW = st.tuples(CELL, CELL)
TABLE = st.sampled_from([7, 8])
CHANGE = st.one_of(
    st.builds(kit.insert, TABLE, ROW),
    st.builds(kit.update, TABLE, ROW, st.none() | ROW, st.sampled_from([b"K", b"O"])),
    st.builds(kit.delete, TABLE, ROW),
    st.sampled_from([kit.truncate(7), kit.truncate(7, 8), kit.relation(7, COLUMNS), kit.wrapped(b"Oabc")]),
)


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    messages = []
    for number, changes in enumerate(draw(st.lists(st.lists(CHANGE, max_size=4), max_size=5))):
        final = 1000 * (number + 1)
        described = [kit.relation(7, COLUMNS), kit.relation(8, COLUMNS, "u")] if not number else []
        idle = [kit.keepalive(final + 500)] if draw(st.booleans()) else []
        messages += [kit.begin(100 + number, final, number), *described, *changes]
        messages += [kit.commit(final, final + 10), *idle]
    return messages


def pieces(messages: list[bytes], cuts: list[int]) -> list[list[bytes]]:
    places = sorted({min(cut, len(messages)) for cut in cuts} | {0, len(messages)})
    return [messages[begin:end] for begin, end in pairwise(places)]


def changes_of(parsed: Parsed) -> list[tuple[object, ...]]:
    """Return the changes one by one: kind, table, transaction and index."""
    found: list[tuple[object, ...]] = []
    for part in parsed.parts:
        ids = parsed.transactions.id
        if isinstance(part, TruncateMessage):
            found += [("T", each.number, ids[part.transaction], part.index) for each in part.relations]
        else:
            assert isinstance(part, RowMessages)
            rows = zip(part.kind.tolist(), part.transaction.tolist(), part.index.tolist(), strict=True)
            found += [(chr(kind), part.relation.number, ids[at], index) for kind, at, index in rows]
    return found


@given(streams(), st.lists(st.integers(0, 60)))
def test_a_stream_is_the_same_however_it_is_cut(messages: list[bytes], cuts: list[int]) -> None:
    parser, found = Parser(), []
    for piece in pieces(messages, cuts):
        found += changes_of(parser.parse(kit.fetched(piece)))
    expected = [
        (each.kind, each.relation, str(each.transaction), each.index) for each in kit.slowly(messages)
    ]
    assert sorted(found) == sorted(expected)
    for table in (7, 8):  # the order within a table is that of the stream
        assert [each for each in found if each[1] == table] == [each for each in expected if each[1] == table]
    assert parser.open is None


@given(streams(), st.integers(0, 60))
def test_a_stream_that_begins_again_leaves_out_what_was_handed_out(messages: list[bytes], cut: int) -> None:
    first, rest = messages[:cut], messages[cut:]
    parser = Parser()
    before = changes_of(parser.parse(kit.fetched(first)))
    begins = [at for at, each in enumerate(first) if each[25:26] == b"B"]
    again = messages[begins[-1] :] if parser.open is not None else rest
    # The tables are described again on a new connection.
    described = [kit.relation(7, COLUMNS), kit.relation(8, COLUMNS, "u")]
    after = changes_of(Parser(parser.open).parse(kit.fetched([*again[:1], *described, *again[1:]])))
    whole = changes_of(Parser().parse(kit.fetched(messages)))
    assert sorted(before + after) == sorted(whole)


def test_the_position_is_behind_whole_transactions_alone() -> None:
    parser = Parser()
    opened = [kit.begin(1, 100), kit.relation(7, COLUMNS), kit.insert(7, [b"1", None]), kit.keepalive(500)]
    assert parser.parse(kit.fetched(opened)).position is None
    assert parser.open == OpenTransaction(1, 100, 946_684_800_000_000, 1)
    assert parser.parse(kit.fetched([kit.commit(100, 120)])).position == 120
    assert parser.parse(kit.fetched([kit.keepalive(130)])).position == 130
    assert parser.parse(kit.fetched([])).position is None


def test_a_transaction_has_one_position_whether_it_has_ended_or_not() -> None:
    parser = Parser()
    first = parser.parse(kit.fetched([kit.begin(1, 0x100, 7)]))
    second = parser.parse(kit.fetched([kit.commit(0x100, 0x120, 7)]))
    assert first.transactions.position == second.transactions.position == ("0/101",)
    assert first.transactions.committed.tolist() == [946_684_800_000_007]


def test_a_table_that_changes_has_its_new_columns_from_then_on() -> None:
    more = [*COLUMNS, ("age", 23, False)]
    messages = [
        kit.begin(1, 100), kit.relation(7, COLUMNS), kit.insert(7, [b"1", b"a"]),
        kit.relation(7, more), kit.insert(7, [b"2", b"b", b"3"]), kit.commit(100, 120),
    ]  # fmt: skip
    parsed = Parser().parse(kit.fetched(messages))
    widths = [len(part.relation.columns) for part in parsed.parts if isinstance(part, RowMessages)]
    assert widths == [2, 3]


def test_a_table_is_described_with_its_identity() -> None:
    message = kit.relation(7, COLUMNS, "orders", "i")
    found = relation_at(message, 25)
    assert (found.number, found.schema, found.name, found.identity) == (7, "public", "orders", "i")
    assert [(each.name, each.type, each.identifies) for each in found.columns] == COLUMNS


def test_a_run_says_where_its_messages_are() -> None:
    messages = [kit.begin(1, 1), kit.relation(7, COLUMNS), kit.insert(7, [b"x", None])]
    (run,) = Parser().parse(kit.fetched(messages)).parts
    assert isinstance(run, RowMessages)
    assert split(run.buffer, run.start + 6, 2).columns[0].binary().to_pylist() == [b"x"]


def test_a_change_of_a_table_that_was_never_described_is_an_error() -> None:
    with pytest.raises(KeyError):
        Parser().parse(kit.fetched([kit.begin(1, 1), kit.wrapped(b"I" + struct.pack(">I", 9) + b"N")]))
