"""What every sink must do, as checks that any sink can be put through.

A check gets a ``TargetUnderTest``: how to open the sink anew, in this or any other process, and how to read
what is visible. It kills processes with ``kill -9`` around every step of a commit, and at any other
moment, lets a runner replay, and compares what is visible with what the batches come to.

Invariant: a sink that passes ``checks()`` is effectively once; one that promises at least once only
passes ``checks(exactly_once=False)``, and is exempt from the others.
"""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa

from headwater.errors import Fenced
from headwater.log.position import Position
from headwater.sinks import crash
from headwater.sinks.sink import Batch, Sink

SCHEMA = "k STRING NOT NULL, n BIGINT, note STRING"
"""The rows that the checks write."""
KEY = ("k",)

Visible = Counter[tuple[Any, ...]]
_POINTS = 60
"""More points than any commit has: a sink that never gets past them does not end."""
_KILLS = 6


@dataclass(frozen=True)
class TargetUnderTest:
    """A fresh place for one sink, and the two ways to it."""

    open: Callable[[], Sink]
    """Opens the sink; called again after every crash, also in a forked child."""
    visible: Callable[[], Iterable[Mapping[str, Any]]]
    """Returns the rows that a reader sees now, with the columns of ``SCHEMA``."""
    save: Callable[[], Callable[[], object]] | None = None
    """Takes a backup, and returns what puts it back; a sink that is effectively once needs it."""
    keyed: bool = True
    """Whether it keeps one row per key, or every row that was ever committed."""


Check = Callable[[TargetUnderTest], None]


def checks(exactly_once: bool = True) -> list[Check]:
    """Return the checks, each for a target of its own; without ``exactly_once``, those of at least once.

    >>> from headwater.sinks.foreach import ForeachSink
    >>> seen = []
    >>> open = lambda: ForeachSink(lambda rows, batch: seen.extend(rows.to_pylist()))
    >>> checks(exactly_once=False)[0](TargetUnderTest(open, lambda: seen, keyed=False))
    """
    always: list[Check] = [
        committed_rows_are_visible,
        a_batch_without_rows_shows_nothing,
        no_row_is_lost_by_a_crash_at_any_point,
        what_is_there_is_read_back,
    ]
    once: list[Check] = [
        a_replayed_batch_changes_nothing,
        an_older_batch_changes_nothing,
        a_sink_that_is_opened_again_goes_on,
        a_crash_at_any_point_leaves_a_batch_whole_or_out,
        a_kill_at_any_moment_leaves_batches_whole,
        an_older_runner_is_fenced,
        a_target_that_was_restored_from_a_backup_says_so,
    ]
    return always + once if exactly_once else always


# Of every sink


def committed_rows_are_visible(target: TargetUnderTest) -> None:
    """What ``commit`` has been called with is there when it returns."""
    batches = _batches(3, target)
    with target.open() as sink:
        sink.begin()
        for count, batch in enumerate(batches, 1):
            assert sink.commit(batch), "a new batch must be told as committed"
            _expect(target, batches[:count])


def a_batch_without_rows_shows_nothing(target: TargetUnderTest) -> None:
    """Batches without rows are taken, between others and in the first place."""
    batches = _batches(2, target, first=1)
    with target.open() as sink:
        sink.begin()
        assert sink.commit(_empty(0, target))
        assert sink.commit(batches[0])
        assert sink.commit(_empty(2, target))
        assert sink.commit(_renumbered(batches[1], 3))
    _expect(target, batches)


def no_row_is_lost_by_a_crash_at_any_point(target: TargetUnderTest) -> None:
    """After a crash and a replay of what ``begin`` does not know, every row is there."""
    batches = _batches(_POINTS, target)
    for count in range(1, _POINTS):
        newest = batches[count - 1 : count]
        died = _killed_at(count, target, newest)
        _run(target, newest)
        missing = _result(batches[:count], target) - _seen(target)
        assert not missing, f"lost after a crash at point {count}: {list(missing)[:3]}"
        if not died:
            return
    raise AssertionError("a commit went through too many points")


def what_is_there_is_read_back(target: TargetUnderTest) -> None:
    """Rows and batch number, beside the runner, who goes on; of a sink that can be read back."""
    batches = _batches(3, target)
    with target.open() as reader, target.open() as sink:
        before = reader.read_back()
        if before is None:
            return
        assert (before.batch, sum(map(len, before.rows))) == (-1, 0), "nothing was committed yet"
        sink.begin()
        for count, batch in enumerate(batches, 1):
            assert sink.commit(batch), "one who reads shuts nobody out"
            _expect_read_back(reader, batch.number, _result(batches[:count], target))
        sink.commit(_empty(3, target))
        _expect_read_back(reader, 3, _result(batches, target))


def _expect_read_back(reader: Sink, number: int, wanted: Visible) -> None:
    contents = reader.read_back()
    assert contents is not None, "what can be read back can be read again"
    seen = Counter(_values(row) for rows in contents.rows for row in rows.to_pylist())
    assert (contents.batch, contents.unreadable) == (number, []), "it is read back as of its last batch"
    assert contents.settled(), "nobody writes meanwhile"
    assert seen == wanted, f"read back too much {seen - wanted}, too little {wanted - seen}"


# Of a sink that is effectively once


def a_replayed_batch_changes_nothing(target: TargetUnderTest) -> None:
    """The last batch, committed again by the same runner or the next, is told as there before."""
    batches = _batches(3, target)
    with target.open() as sink:
        sink.begin()
        for batch in batches:
            sink.commit(batch)
            assert not sink.commit(batch), "a replayed batch must be told as there before"
            _expect(target, batches[: batch.number + 1])
    with target.open() as sink:
        sink.begin()
        assert not sink.commit(batches[-1]), "a replayed batch must be told as there before"
    _expect(target, batches)


def an_older_batch_changes_nothing(target: TargetUnderTest) -> None:
    """Any batch up to the last one committed is left out."""
    batches = _batches(4, target)
    _run(target, batches)
    with target.open() as sink:
        sink.begin()
        for batch in batches:
            assert not sink.commit(batch), "an older batch must be told as there before"
    _expect(target, batches)


def a_sink_that_is_opened_again_goes_on(target: TargetUnderTest) -> None:
    """``begin`` names the last batch, or an earlier one where it cannot know, and never a later one."""
    batches = _batches(4, target)
    for count, batch in enumerate(batches):
        with target.open() as sink:
            last = sink.begin()
            assert last < count, f"begin() returned {last} after batch {count - 1}"
            assert sink.commit(batch)
    _expect(target, batches)


def a_crash_at_any_point_leaves_a_batch_whole_or_out(target: TargetUnderTest) -> None:
    """``kill -9`` between any two steps: whole or not there; after the replay there once."""
    batches = _batches(_POINTS, target)
    _run(target, batches[:1])
    for count in range(1, _POINTS - 1):
        before, after = batches[:count], batches[: count + 1]
        receipt = _receipt_of(target)
        died = _killed_at(count, target, after)
        _expect(target, before, after)
        assert _missing(target, receipt) is None, "a crash loses nothing"
        _run(target, after, again=True)
        _expect(target, after)
        if not died:
            return
    raise AssertionError("a commit went through too many points")


def a_kill_at_any_moment_leaves_batches_whole(target: TargetUnderTest) -> None:
    """``kill -9`` at moments nobody chose: what is visible is the result of the first so many batches."""
    chance, batches = random.Random(7), _batches(400, target)
    reached = 0
    for _ in range(_KILLS):
        child = _in_child(lambda: _run(target, batches))
        time.sleep(chance.uniform(0.02, 0.3))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        now = _first_that_fits(target, batches, reached)
        assert now is not None, f"what is visible after batch {reached} is no result of whole batches"
        reached = now
    last = batches[: reached + 2]
    _run(target, last, again=True)
    _expect(target, last)


def an_older_runner_is_fenced(target: TargetUnderTest) -> None:
    """When a second runner has begun, the first writes nothing any more."""
    batches = _batches(3, target)
    with target.open() as first, target.open() as second:
        first.begin()
        first.commit(batches[0])
        second.begin()
        for _ in range(2):
            try:
                first.commit(batches[1])
            except Fenced:
                pass
            else:
                raise AssertionError("a runner that was replaced must get Fenced")
            _expect(target, batches[:1])
        assert second.commit(batches[1])
        assert second.commit(batches[2])
    _expect(target, batches)


def a_target_that_was_restored_from_a_backup_says_so(target: TargetUnderTest) -> None:
    """What the newest batches have left is told as lost when it is, and not before."""
    assert target.save is not None, "name how the target is saved and restored"
    batches = _batches(4, target)
    _run(target, batches[:2])
    restore = target.save()
    with target.open() as sink:
        sink.begin()
        receipts = [_receipt(sink, batch) for batch in (*batches[2:], _empty(4, target))]
    for receipt in ("", *receipts):
        assert _missing(target, receipt) is None, "nothing is lost yet"
    restore()
    _expect(target, batches[:2])
    assert _missing(target, "") is None, "who has committed nothing has lost nothing"
    for receipt in receipts:
        assert _missing(target, receipt), "a target that is older than its receipt must say so"


def _receipt(sink: Sink, batch: Batch) -> str:
    sink.commit(batch)
    return sink.receipt()


def _receipt_of(target: TargetUnderTest) -> str:
    with target.open() as sink:
        sink.begin()
        return sink.receipt()


def _missing(target: TargetUnderTest, receipt: str) -> str | None:
    with target.open() as sink:
        sink.begin()
        return sink.resume(receipt)


# Batches, and what they come to


def _batches(count: int, target: TargetUnderTest, first: int = 0) -> list[Batch]:
    return [_batch(number, target) for number in range(first, first + count)]


def _batch(number: int, target: TargetUnderTest) -> Batch:
    """Return a batch with keys of earlier ones, some of them twice or, where there are keys, deleted."""
    keys = [f"k{(number * 7 + place * 3) % 23:02d}" for place in range(9)] + [f"new-{number}"]
    columns: dict[str, Any] = {
        "k": keys,
        "n": [number * 100 + place for place in range(len(keys))],
        "note": [None if place % 4 == 3 else f'née "{number}"' for place in range(len(keys))],
    }
    if target.keyed:
        columns["_deleted"] = [place % 5 == 2 for place in range(len(keys))]
    return Batch(number, _table(columns), (Position("input", {0: number + 1}),), number * 1_000_000)


def _table(columns: Mapping[str, Any]) -> pa.Table:
    types = {"k": pa.string(), "n": pa.int64(), "note": pa.string(), "_deleted": pa.bool_()}
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def _empty(number: int, target: TargetUnderTest) -> Batch:
    return Batch(number, _batch(number, target).rows.slice(0, 0), (Position("input", {0: number + 1}),), 5)


def _renumbered(batch: Batch, number: int) -> Batch:
    return Batch(number, batch.rows, batch.positions, batch.watermark)


def _result(batches: Sequence[Batch], target: TargetUnderTest) -> Visible:
    """Return what the batches come to."""
    rows = [row for batch in batches for row in batch.rows.to_pylist()]
    if not target.keyed:
        return Counter(map(_values, rows))
    newest = {row["k"]: row for row in rows}
    return Counter(_values(row) for row in newest.values() if not row["_deleted"])


def _values(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["k"], row["n"], row["note"]


def _seen(target: TargetUnderTest) -> Visible:
    return Counter(map(_values, target.visible()))


def _expect(target: TargetUnderTest, *either: Sequence[Batch]) -> None:
    """Compare what is visible with the result of the batches, or of one of several runs of them."""
    seen = _seen(target)
    wanted = [_result(batches, target) for batches in either]
    if seen not in wanted:
        more, less = list(seen - wanted[-1])[:3], list(wanted[-1] - seen)[:3]
        raise AssertionError(f"after {len(either[-1])} batches: too much {more}, too little {less}")


def _first_that_fits(target: TargetUnderTest, batches: Sequence[Batch], least: int) -> int | None:
    seen = _seen(target)
    for count in range(least, len(batches) + 1):
        if _result(batches[:count], target) == seen:
            return count
    return None


# Runners


def _run(target: TargetUnderTest, batches: Sequence[Batch], again: bool = False) -> None:
    """Do as a runner does: begin, and commit what is not there yet; ``again``: the last one in any case."""
    with target.open() as sink:
        last = sink.begin()
        for batch in batches:
            if batch.number > last or (again and batch is batches[-1]):
                sink.commit(batch)


def _killed_at(count: int, target: TargetUnderTest, batches: Sequence[Batch]) -> bool:
    """Run in a process that dies at its ``count``-th point; tell whether it got as far as that."""

    def run() -> None:
        crash.arm(count)
        _run(target, batches)

    status = os.waitstatus_to_exitcode(os.waitpid(_in_child(run), 0)[1])
    assert status in (0, -signal.SIGKILL), "the runner failed in its process: see its traceback"
    return status != 0


def _in_child(run: Callable[[], None]) -> int:
    """Run in a forked process, which ends without any cleaning up; return its process id."""
    child = os.fork()
    if child == 0:
        _end(run)
    return child


def _end(run: Callable[[], None]) -> NoReturn:
    try:
        run()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
