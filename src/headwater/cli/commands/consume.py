"""``headwater consume``: print records, like ``tail -f``, alone or as a member of a group.

Invariant: a group's committed offsets never pass what has been printed and flushed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import click
import pyarrow as pa

from headwater import Consumer, Log, Position, Start
from headwater.cli.failure import say
from headwater.cli.formats.writers import Write, writer
from headwater.cli.options import format_option, range_options, with_log
from headwater.errors import Fenced, UsageError

COMMIT_SECONDS = 0.5
PAUSE = 0.2
PATIENCE = 10.0
"""Seconds without a record after which a group that cannot reach the end is left."""


@dataclass(frozen=True)
class _Wish:
    """What the command line asked for."""

    topic: str
    start: Start
    end: Start
    follow: bool
    limit: int | None
    meta: bool


@click.command()
@click.argument("topic")
@range_options
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Only this partition.")
@click.option("--group", metavar="G", help="Read as a member of this group, and commit what was printed.")
@click.option("--follow", is_flag=True, help="Go on with records as they arrive, until Ctrl-C.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Stop after N records.")
@format_option("table", "ndjson", "csv", default="table")
@click.option(
    "--meta", is_flag=True, help="Show partition, offset, times, producer, sequence and headers too."
)
@with_log()
def consume(log: Log, topic: str, partition: int | None, group: str | None, form: str, **how: object) -> None:
    """Print the records of TOPIC.

    Without --follow it ends where the topic ended when it was started. With --group, it goes on
    where the group has committed (--from counts where nothing is), shares the partitions with the
    group's other members, and commits what it has printed, twice a second; after a crash, records that
    were printed but not yet committed are printed again.

    \b
    Examples:
      headwater consume orders --limit 10
      headwater consume orders --from "10 minutes ago" --follow
      headwater consume orders --group billing --format ndjson | while read order; do …; done
    """
    if group is not None and partition is not None:
        raise UsageError("a group shares the partitions out itself", hint="leave out --partition or --group")
    wish = _Wish(topic, **how)  # type: ignore[arg-type]  # click has checked them
    if wish.end != "latest" and (group is not None or wish.follow):
        raise UsageError("a group and --follow have no end", hint="leave out --to, or --group and --follow")
    write = writer(form, log.topic(topic), wish.meta)
    if group is None:
        _read(log, wish, partition, write)
    else:
        _consume(log, wish, group, write)


def _read(log: Log, wish: _Wish, partition: int | None, write: Write) -> None:
    if wish.limit == 0:
        return
    left = wish.limit
    for batch in log.read(wish.topic, partition, wish.start, wish.end, meta=wish.meta, follow=wish.follow):
        write(batch.slice(0, left))
        left = None if left is None else left - len(batch)
        if left is not None and left <= 0:
            return


def _consume(log: Log, wish: _Wish, group: str, write: Write) -> None:
    """Print and commit; the last batch, if the limit cuts it short, up to the cut."""
    left = wish.limit
    if left == 0:
        return
    with log.consumer(wish.topic, group, start=wish.start, meta=True) as member:
        printed = _Printed(member, group)
        for batch in _batches(log, member, wish, printed.commit):
            if left is not None and len(batch) > left:
                write(batch.slice(0, left))
                printed.commit(_place(member, batch.slice(left, 1)))
                return
            write(batch)
            left = None if left is None else left - len(batch)
            printed.add(last=left == 0)
            if left == 0:
                return


class _Printed:
    """Commits what was printed: at the end, in a pause, and now and then, for each commit has its price."""

    def __init__(self, member: Consumer, group: str):
        self._member, self._group = member, group
        self._committed = time.monotonic()
        self._waiting = False

    def add(self, last: bool) -> None:
        """Note that all that was polled is printed."""
        self._waiting = True
        if last or time.monotonic() - self._committed > COMMIT_SECONDS:
            self.commit()

    def commit(self, position: Position | None = None) -> None:
        """Commit what was printed, if anything, or up to a position."""
        if not self._waiting and position is None:
            return
        self._waiting, self._committed = False, time.monotonic()
        try:
            self._member.commit(position)
        except Fenced as fenced:
            say("warning", f'group "{self._group}" has given a partition to a member that will read it again')
            say("detail", fenced.message)


def _batches(log: Log, member: Consumer, wish: _Wish, pause: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    """Yield what the member is given: for ever, or up to where the topic ends now."""
    end = log.resolve(wish.topic, "latest")
    idle = 0.0
    while True:
        batch = member.poll(PAUSE)
        idle = 0.0 if batch is not None else idle + PAUSE
        if batch is not None:
            yield batch
        else:
            pause()
        if not wish.follow and (idle > PATIENCE or _finished(member, end)):
            pause()
            return


def _finished(member: Consumer, end: Position) -> bool:
    owned, reached = member.assignment(), member.position().offsets
    return bool(owned) and all(reached.get(p, 0) >= end.offsets.get(p, 0) for p in owned)


def _place(member: Consumer, record: pa.RecordBatch) -> Position:
    """Return where the member is when it stands before this record, which it has been given."""
    here = {record["_partition"][0].as_py(): record["_offset"][0].as_py()}
    reached = member.position()
    return replace(reached, offsets={**reached.offsets, **here})
