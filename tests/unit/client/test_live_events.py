"""Lines of a stream become events, and the id is that of what was handed over."""

from __future__ import annotations

import pytest

from headwater.client.live_events import EventParser, change_of, record_of
from headwater.errors import OffsetLost

STREAM = """: headwater
retry: 1000

event: row
data: {"a":1}

id: 7
event: ready
data: {"sequence":7,"version":1}

: heartbeat
id: 9

event: lost
data: {"title":"gone","missed":3,"earliest":12}

"""


def test_ids_move_on_with_what_was_taken_and_with_signs_of_life() -> None:
    parser, seen = EventParser("5"), []
    for piece in STREAM:
        for event in parser.feed(piece):
            seen.append((event.name, parser.last))
    assert seen == [("row", "5"), ("ready", "5"), ("lost", "9")] and parser.last == "9"


def test_only_a_newline_ends_a_line() -> None:
    text = "a\x85\u2028\u2029b"
    [event] = EventParser().feed(f'event: row\ndata: {{"a":"{text}"}}\n\n')
    assert event.data == {"a": text}


def test_what_is_lost_is_raised_unless_rows_follow() -> None:
    parser = EventParser()
    *_, lost = parser.feed(STREAM)
    assert change_of(lost, snapshot=True) is None
    for typed in (lambda: change_of(lost, snapshot=False), lambda: record_of(lost)):
        with pytest.raises(OffsetLost, match="gone") as raised:
            typed()
        assert (raised.value.missed, raised.value.earliest) == (3, 12)
