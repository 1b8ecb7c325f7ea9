"""What is told of a capture, by what it has noted."""

from __future__ import annotations

import json

from headwater.capture.figures.status import FRESH, noted_status
from headwater.capture.state import CaptureFigures, CaptureState, SnapshotProgress
from headwater.durations import now


def noted(**figures: object) -> CaptureState:
    told = {"state": "streaming", "noted": now(), "changes": 7, **figures}
    return CaptureState("17", snapshots={"customers": SnapshotProgress((3,), 3, True)},
                        figures=CaptureFigures(**told))  # type: ignore[arg-type]  # fmt: skip


def test_a_capture_that_has_noted_something_lately_runs() -> None:
    status = noted_status("crm", noted(reached=now() - 3_000_000, retained=12, alert="much"))
    assert (status.capture, status.state, status.changes, status.position) == ("crm", "streaming", 7, "17")
    assert (status.retained, status.alert, status.error) == (12, "much", None)
    assert status.behind is not None and 2.9 <= status.behind < 60.0


def test_one_that_has_noted_nothing_for_a_while_is_silent() -> None:
    assert noted_status("crm", noted(noted=now() - FRESH - 1)).state == "silent"
    assert noted_status("crm", noted(noted=now() - FRESH - 1, state="ended")).state == "ended"


def test_why_it_waits_is_told() -> None:
    status = noted_status("crm", noted(state="waiting", error="the database is away"))
    assert (status.state, str(status.error)) == ("waiting", "the database is away")


def test_it_is_told_as_json() -> None:
    told = json.loads(json.dumps(noted_status("crm", noted(committed=1_767_323_045_000_000)).to_dict()))
    assert told["committed"] == "2026-01-02T03:04:05Z"
    assert told["snapshots"] == {"customers": {"after": [3], "rows": 3, "done": True}}
    assert (told["delay"], told["behind"], told["noted"][-1]) == (None, None, "Z")


def test_a_state_of_before_there_were_figures_is_read() -> None:
    told = json.loads(noted().to_json())
    del told["figures"]
    state = CaptureState.from_json(json.dumps(told))
    assert (noted_status("crm", state).state, noted_status("crm", state).noted) == ("starting", None)
