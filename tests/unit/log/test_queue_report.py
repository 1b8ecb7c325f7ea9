"""What a queue tells of itself, as JSON too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headwater.log.queue_report import DeadMessage, QueueStatus


def test_the_depth_is_all_that_is_still_to_be_done() -> None:
    status = QueueStatus("t", "g", 1, 2, 3, 4, timedelta(seconds=5), 6, 7, 8)
    assert status.depth == 10
    assert status.to_dict()["depth"] == 10
    assert status.to_dict()["oldest"] == 5.0


def test_what_a_backend_does_not_tell_is_not_made_up() -> None:
    assert QueueStatus("t", "g", dead=3).depth is None


def test_a_dead_message_is_told_as_json() -> None:
    died = datetime(2026, 1, 2, tzinfo=UTC)
    dead = DeadMessage(0, {"n": 1}, {}, "no", 2, "t:0:1", died).to_dict()
    assert (dead["value"], dead["died"]) == ({"n": 1}, "2026-01-02T00:00:00Z")
