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
"""Seconds without a record after which a group that cannot reach the end is remaining."""


@dataclass(frozen=True)
class _Request:
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
@click.option("--follow", is_flag=True, help="Keep printing records as they arrive, until Ctrl-C.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Stop after N records.")
@format_option("table", "ndjson", "csv", default="table")
@click.option(
    "--meta", is_flag=True, help="Show partition, offset, times, producer, sequence and headers too."
)
@with_log()
def consume(log: Log, topic: str, partition: int | None, group: str | None, form: str, **how: object) -> None:
    """Print the records of TOPIC.

    Without --follow, it stops where the topic ended when the command was started. With --group, it
    starts at the offsets that the group has committed (and at --from where there are none), shares the
    partitions with the other members of the group, and commits what it has printed twice a second. After
    a crash, records that were printed but not committed are printed again.

    \b
    Examples:
      headwater consume orders --limit 10
      headwater consume orders --from "10 minutes ago" --follow
      headwater consume orders --group billing --format ndjson | while read order; do …; done
    """
    if group is not None and partition is not None:
        raise UsageError("a group assigns the partitions itself", hint="leave out --partition or --group")
    request = _Request(topic, **how)  # type: ignore[arg-type]  # click has checked them
    if request.end != "latest" and (group is not None or request.follow):
        raise UsageError("a group and --follow have no end", hint="leave out --to, or --group and --follow")
    write = writer(form, log.topic(topic), request.meta)
    if group is None:
        _read(log, request, partition, write)
    else:
        _consume(log, request, group, write)


def _read(log: Log, request: _Request, partition: int | None, write: Write) -> None:
    if request.limit == 0:
        return
    remaining = request.limit
    for batch in log.read(
        request.topic, partition, request.start, request.end, meta=request.meta, follow=request.follow
    ):
        write(batch.slice(0, remaining))
        remaining = None if remaining is None else remaining - len(batch)
        if remaining is not None and remaining <= 0:
            return


def _consume(log: Log, request: _Request, group: str, write: Write) -> None:
    """Print and commit; the last batch, if the limit cuts it short, up to the cut."""
    remaining = request.limit
    if remaining == 0:
        return
    with log.consumer(request.topic, group, start=request.start, meta=True) as member:
        printed = _Printed(member, group)
        for batch in _batches(log, member, request, printed.commit):
            if remaining is not None and len(batch) > remaining:
                write(batch.slice(0, remaining))
                printed.commit(_position_before(member, batch.slice(remaining, 1)))
                return
            write(batch)
            remaining = None if remaining is None else remaining - len(batch)
            printed.add(last=remaining == 0)
            if remaining == 0:
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


def _batches(
    log: Log, member: Consumer, request: _Request, pause: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    """Yield what the member is given: for ever, or up to where the topic ends now."""
    end = log.resolve(request.topic, "latest")
    idle = 0.0
    while True:
        batch = member.poll(PAUSE)
        idle = 0.0 if batch is not None else idle + PAUSE
        if batch is not None:
            yield batch
        else:
            pause()
        if not request.follow and (idle > PATIENCE or _finished(member, end)):
            pause()
            return


def _finished(member: Consumer, end: Position) -> bool:
    owned, reached = member.assignment(), member.position().offsets
    return bool(owned) and all(reached.get(p, 0) >= end.offsets.get(p, 0) for p in owned)


def _position_before(member: Consumer, record: pa.RecordBatch) -> Position:
    """Return where the member is when it stands before this record, which it has been given."""
    here = {record["_partition"][0].as_py(): record["_offset"][0].as_py()}
    reached = member.position()
    return replace(reached, offsets={**reached.offsets, **here})
