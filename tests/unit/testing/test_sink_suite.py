"""The public suite must catch sinks that break each promise; here are some that do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import Fenced
from headwater.sinks import Batch, Sink, crash
from headwater.testing import sink_suite
from headwater.testing.sink_suite import Check, TargetUnderTest, checks


class LineSink(Sink):
    """Rows as lines of a file, and in another file the epoch and the number: right in no order."""

    def __init__(self, path: Path):
        self.rows, self.state = path / "rows.jsonl", path / "state.json"
        self.rows.touch()
        self.epoch = 0

    def load(self) -> tuple[int, int]:
        return tuple(json.loads(self.state.read_text())) if self.state.exists() else (0, -1)  # type: ignore[return-value]

    def save(self, epoch: int, number: int) -> None:
        self.state.with_suffix(".new").write_text(json.dumps([epoch, number]))
        os.replace(self.state.with_suffix(".new"), self.state)
        crash.point("saved")

    def begin(self) -> int:
        epoch, number = self.load()
        self.epoch = epoch + 1
        self.save(self.epoch, number)
        return number

    def check(self) -> int:
        epoch, number = self.load()
        if epoch != self.epoch:
            raise Fenced("another runner has taken over")
        return number

    def append(self, rows: list[dict[str, Any]]) -> None:
        with open(self.rows, "a") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
        crash.point("appended")

    def commit(self, batch: Batch) -> bool:
        if batch.number <= self.check():
            return False
        self.append(batch.rows.to_pylist())
        self.save(self.epoch, batch.number)
        return True

    def receipt(self) -> str:
        return str(self.load()[1])

    def resume(self, receipt: str) -> str | None:
        return "some batches" if int(receipt or -1) > self.load()[1] else None

    def close(self) -> None:
        pass


class NumberFirst(LineSink):
    def commit(self, batch: Batch) -> bool:
        if batch.number <= self.check():
            return False
        self.save(self.epoch, batch.number)
        self.append(batch.rows.to_pylist())
        return True


class TwoHalves(LineSink):
    def append(self, rows: list[dict[str, Any]]) -> None:
        super().append(rows[:5])
        super().append(rows[5:])


class Forgetful(LineSink):
    def check(self) -> int:
        super().check()
        return -1


class Unfenced(LineSink):
    def check(self) -> int:
        return self.load()[1]


class Unaware(LineSink):
    def resume(self, receipt: str) -> str | None:
        return None


class Anxious(LineSink):
    def resume(self, receipt: str) -> str | None:
        return "everything"


class OnlyTheNewest(LineSink):
    def check(self) -> int:
        return super().check() - 1


class Silent(LineSink):
    def commit(self, batch: Batch) -> bool:
        super().commit(batch)
        return True


def target(kind: Callable[[Path], Sink], path: Path) -> TargetUnderTest:
    def visible() -> list[dict[str, Any]]:
        return [json.loads(line) for line in (path / "rows.jsonl").read_text().splitlines()]

    def saved() -> Callable[[], object]:
        texts = {file: file.read_text() for file in path.iterdir()}
        return lambda: [file.write_text(text) for file, text in texts.items()]

    kind(path)
    return TargetUnderTest(lambda: kind(path), visible, saved, keyed=False)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (NumberFirst, sink_suite.no_row_is_lost_by_a_crash_at_any_point),
        (NumberFirst, sink_suite.a_crash_at_any_point_leaves_a_batch_whole_or_out),
        (LineSink, sink_suite.a_crash_at_any_point_leaves_a_batch_whole_or_out),
        (TwoHalves, sink_suite.a_crash_at_any_point_leaves_a_batch_whole_or_out),
        (Forgetful, sink_suite.a_replayed_batch_changes_nothing),
        (OnlyTheNewest, sink_suite.a_replayed_batch_changes_nothing),
        (Forgetful, sink_suite.an_older_batch_changes_nothing),
        (Unfenced, sink_suite.an_older_runner_is_fenced),
        (Silent, sink_suite.a_replayed_batch_changes_nothing),
        (Unaware, sink_suite.a_target_that_was_restored_from_a_backup_says_so),
        (Anxious, sink_suite.a_target_that_was_restored_from_a_backup_says_so),
    ],
)
def test_a_sink_that_breaks_a_promise_is_caught(
    kind: Callable[[Path], Sink], check: Check, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError):
        check(target(kind, tmp_path))


def test_a_runner_that_fails_in_its_process_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    here = os.getpid()

    class Failing(LineSink):
        def commit(self, batch: Batch) -> bool:
            if os.getpid() != here:
                raise ValueError("nothing works here")
            return super().commit(batch)

    with pytest.raises(AssertionError, match="failed in its process"):
        sink_suite.no_row_is_lost_by_a_crash_at_any_point(target(Failing, tmp_path))
    assert "nothing works here" in capfd.readouterr().err


def test_points_do_nothing_unless_they_are_watched() -> None:
    seen: list[str] = []
    crash.point("one")
    crash.watch(seen.append)
    crash.point("two")
    crash.watch(None)
    crash.point("three")
    assert seen == ["two"]


def test_what_at_least_once_promises_is_kept_by_a_sink_that_promises_no_more(tmp_path: Path) -> None:
    for number, check in enumerate(checks(exactly_once=False)):
        place = tmp_path / str(number)
        place.mkdir()
        check(target(LineSink, place))
