"""Counts of ways in."""

from __future__ import annotations

from headwater import durations
from headwater.ingest.status import FRESH, IngestCounts, IngestStatus, noted_state


def test_what_is_lost_is_told_and_the_rest_is_not() -> None:
    status = IngestStatus("m", "statsd://x", "running", {"rows": 2, "malformed": 1}, noted=0)
    assert status.losses == {"malformed": 1}
    assert status.to_dict()["noted"].startswith("1970-01-01")


def test_a_way_in_that_has_noted_nothing_for_long_is_silent() -> None:
    assert noted_state("running", durations.now() - 2 * FRESH) == "silent"
    assert noted_state("running", durations.now()) == "running"
    assert noted_state("ended", 0) == "ended"


def test_counts_go_on_from_those_of_before() -> None:
    tally = IngestCounts({"rows": 5})
    tally.add(rows=1, dead=0)
    assert tally.to_dict() == {"rows": 6}
