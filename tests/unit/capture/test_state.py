"""What a capture remembers, in the log."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

import headwater
from headwater.capture.state import CaptureState, SnapshotProgress, StateTopic, load
from headwater.errors import DamagedLog, Fenced

STATE = CaptureState(
    "0/16B3748",
    index=3,
    sequences={"customers": 12},
    snapshots={"customers": SnapshotProgress((7, "ä", b"\x00\xff", Decimal("1.20")), 500)},
    stopped={"orders": "its key is gone"},
)


@pytest.mark.parametrize(
    "after",
    [
        (1,),
        ("a", 2.5),
        (b"\x00",),
        (Decimal("0.10"),),
        (date(2026, 1, 2),),
        (datetime(2026, 1, 2, tzinfo=UTC),),
        None,
    ],
)
def test_a_state_is_read_as_it_was_written(after: tuple[object, ...] | None) -> None:
    state = STATE.with_snapshot("orders", SnapshotProgress(after, 3, True))
    assert CaptureState.from_json(state.to_json()) == state


def test_the_newest_state_counts_and_the_log_keeps_it() -> None:
    with headwater.open("memory:") as log:
        assert load(log, "crm") is None
        with StateTopic(log, "crm") as topic:
            assert topic.load() is None
            topic.save(CaptureState("1"))
            topic.save(STATE)
        assert load(log, "crm") == STATE
        log.compact("crm.capture")
        assert load(log, "crm") == STATE


def test_an_older_capture_of_the_same_name_cannot_save_any_more() -> None:
    with headwater.open("memory:") as log:
        older = StateTopic(log, "crm")
        with StateTopic(log, "crm") as newer:
            newer.save(STATE)
            with pytest.raises(Fenced):
                older.save(CaptureState("1"))
        assert load(log, "crm") == STATE


def test_what_is_no_state_is_refused() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("crm.capture", "name STRING, state STRING", key="name", cleanup="compact")
        with log.producer("crm.capture") as producer:
            producer.send({"name": "crm", "state": "{}"})
        with pytest.raises(DamagedLog, match="does not hold the state"):
            load(log, "crm")


def test_a_table_may_have_any_name() -> None:
    state = CaptureState("7", snapshots={"$date": SnapshotProgress((b"a",))}, stopped={"$bytes": "why"})
    assert CaptureState.from_json(state.to_json()) == state


def test_how_far_outboxes_and_transactions_are_is_read_as_it_was_written() -> None:
    state = CaptureState("0/1").with_outbox("outbox", {0: 3, 1: 4}).with_deleted("outbox", {0: 5, 1: 4})
    state = replace(state, open_changes={"customers": 2}, transactions_since=7)
    assert CaptureState.from_json(state.to_json()) == state
