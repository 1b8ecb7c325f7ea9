"""The thread that appends to a topic: what comes while one write is under way shares the next.

Invariant: a request is answered when its events are durable, or refused and none of them is stored. One with
a key that was seen before gets the first answer again. When the log cannot be written, the answer says so
and what was begun is tried again before anything else.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from headwater import durations
from headwater.closing import Closing
from headwater.errors import HeadwaterError, LogUnavailable, RowError, UnknownTopic
from headwater.log import Log, Position, Producer
from headwater.serve.http.problem import HttpProblem
from headwater.serve.topics.decoding import checked, decode
from headwater.serve.topics.request_journal import RequestJournal, WrittenRequest
from headwater.serve.topics.request_queue import RequestQueue
from headwater.serve.topics.submission import Sent, Submission
from headwater.sinks.crash import point
from headwater.topic import Topic
from headwater.values import keys

Outcomes = dict[Submission, Sent | HeadwaterError]
_log = logging.getLogger("headwater")


@dataclass(frozen=True)
class _Fresh:
    """A request that is to be appended now."""

    submission: Submission
    table: pa.Table
    sequence: int
    journalled: int | None
    """Its id in the journal, if it is written down there."""


class GroupCommit(Closing):
    """Appends to one topic, for all requests."""

    def __init__(self, log: Log, topic: str, journal: RequestJournal, loop: asyncio.AbstractEventLoop):
        self._log, self._topic, self._journal, self._loop = log, topic, journal, loop
        self._producer: Producer = log.producer(topic, journal.producer(journal.slot))
        self._queue = RequestQueue(loop)
        self._unfinished: list[int] = []
        """Requests in the journal that the producer still has, or that are appended and not noted as such."""
        self._thread = threading.Thread(target=self._run, name=f"headwater-send-{topic}", daemon=True)
        self._thread.start()

    def submit(self, submission: Submission) -> None:
        """Take a request; call it in the event loop, where its outcome is told."""
        if not self._queue.put(submission):
            raise UnknownTopic(f'topic "{self._topic}" was deleted')

    def close(self) -> None:
        """Append what was taken, and end."""
        self._queue.close()
        self._thread.join()
        self._producer.close()

    def _run(self) -> None:
        while group := self._queue.take():
            finish: Callable[[], None] | None = None
            try:
                outcomes, finish = self._commit(group)
            except HeadwaterError as error:
                outcomes = dict.fromkeys(group, error)
            except Exception as error:  # of ours: those who wait are answered, and the next group goes on
                _log.exception('events for topic "%s" cannot be appended', self._topic)
                outcomes = dict.fromkeys(
                    group, HeadwaterError("the server failed", detail=type(error).__name__)
                )
            self._loop.call_soon_threadsafe(_tell, outcomes)
            if finish is not None:
                finish()

    def _commit(self, group: Sequence[Submission]) -> tuple[Outcomes, Callable[[], None] | None]:
        self._resume()
        topic, outcomes, candidates = self._log.topic(self._topic), Outcomes(), dict[Submission, pa.Table]()
        for each, made in decode(group, topic).items():
            if isinstance(made, HeadwaterError):
                outcomes[each] = made
            else:
                candidates[each] = made
        return self._store(candidates, topic, outcomes)

    def _store(
        self, candidates: dict[Submission, pa.Table], topic: Topic, outcomes: Outcomes
    ) -> tuple[Outcomes, Callable[[], None] | None]:
        fresh, repeated = self._begun(candidates, topic, outcomes)
        try:
            positions = self._append(fresh, topic.partitions) if fresh else []
        except RowError:  # one of them is too large, or the like: the others go on without it
            return self._store(_fitting(candidates, topic, outcomes), topic, outcomes)
        for each, position in zip(fresh, positions, strict=True):
            outcomes[each.submission] = Sent(position.brief, each.table.num_rows)
        for again, first in repeated.items():
            outcomes[again] = _again(outcomes[first])
        written = [
            (each.journalled, position.brief)
            for each, position in zip(fresh, positions, strict=True)
            if each.journalled is not None
        ]
        return outcomes, partial(self._finish_or_keep, written) if written else None

    def _resume(self) -> None:
        """Append first what an earlier group could not; while that fails, nothing else is begun."""
        reached = self._producer.flush()
        if self._unfinished:
            self._finish([(id, reached.brief) for id in self._unfinished])
            self._unfinished = []

    def _begun(
        self, candidates: dict[Submission, pa.Table], topic: Topic, outcomes: Outcomes
    ) -> tuple[list[_Fresh], dict[Submission, Submission]]:
        """Give fresh requests their numbers, and write down those that need it.

        The second of two with one key is to get the outcome of the first.
        """
        needing = {
            each for each, table in candidates.items() if each.key is not None or _spread(table, topic)
        }
        if not needing:
            return self._numbered(candidates), {}
        fresh: list[_Fresh] = []
        repeated: dict[Submission, Submission] = {}
        seen: dict[str, Submission] = {}
        sequence, identity = self._producer.sequence, topic.id or topic.name
        with self._journal.beginning() as beginning:
            for each, table in candidates.items():
                if each.key is not None:
                    if (first := seen.get(each.key)) is not None:
                        if first.digest == each.digest:
                            repeated[each] = first
                        else:
                            outcomes[each] = _another(each.key)
                        continue
                    if (known := beginning.find(identity, each.key)) is not None:
                        outcomes[each] = _known(known, each)
                        continue
                    seen[each.key] = each
                id = None
                if each in needing:
                    id = beginning.add(_written(each, table, topic, sequence))
                fresh.append(_Fresh(each, table, sequence, id))
                sequence += table.num_rows
        point("written down")
        return fresh, repeated

    def _numbered(self, candidates: dict[Submission, pa.Table]) -> list[_Fresh]:
        fresh, sequence = [], self._producer.sequence
        for each, table in candidates.items():
            fresh.append(_Fresh(each, table, sequence, None))
            sequence += table.num_rows
        return fresh

    def _append(self, fresh: Sequence[_Fresh], partitions: int) -> list[Position]:
        written = [each.journalled for each in fresh if each.journalled is not None]
        try:
            positions = self._producer.append_changes(
                [each.table for each in fresh], sequence=fresh[0].sequence, partitions=partitions
            )
        except BaseException as error:
            if not self._producer.waiting:  # it holds nothing, so nothing was appended, nor will be
                if written:
                    self._journal.forget(written)
                raise
            self._unfinished += written
            if isinstance(error, LogUnavailable):
                raise _unsure(error) from error
            raise
        point("appended")
        return positions

    def _finish_or_keep(self, written: list[tuple[int, str]]) -> None:
        """Note what is appended and answered; where that cannot be done now, before the next group."""
        try:
            self._finish(written)
        except Exception as error:  # the thread goes on: who sends next is told if it fails still
            _log.warning('what is appended to topic "%s" is noted later: %s', self._topic, error)
            self._unfinished += [id for id, _ in written]

    def _finish(self, written: list[tuple[int, str]]) -> None:
        self._journal.finish(written, durations.now())
        point("finished")


def _fitting(
    candidates: dict[Submission, pa.Table], topic: Topic, outcomes: Outcomes
) -> dict[Submission, pa.Table]:
    """Return the requests that the log takes; the others are refused, one at least."""
    left = {}
    for each, table in candidates.items():
        try:
            left[each] = checked(table, topic)
        except RowError as error:
            outcomes[each] = error
    if len(left) == len(candidates):
        raise HeadwaterError("rows that fit one by one do not fit together")
    return left


def _again(outcome: Sent | HeadwaterError) -> Sent | HeadwaterError:
    return Sent(outcome.position, outcome.rows, True) if isinstance(outcome, Sent) else outcome


def _tell(outcomes: Outcomes) -> None:
    for submission, outcome in outcomes.items():
        submission.resolve(outcome)


def _spread(table: pa.Table, topic: Topic) -> bool:
    """Tell whether rows go to several partitions, where a crash could leave a part of them."""
    if topic.partitions == 1 or table.num_rows < 2:
        return False
    if not topic.key or any(name not in table.schema.names for name in topic.key):
        return True
    columns = [table[name].combine_chunks() for name in topic.key]
    numbers = keys.partitions(
        [each.chunk(0) if isinstance(each, pa.ChunkedArray) else each for each in columns], topic.partitions
    )
    return bool((numbers != numbers[0]).any())


def _written(submission: Submission, table: pa.Table, topic: Topic, sequence: int) -> WrittenRequest:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return WrittenRequest(
        0, topic.id or topic.name, topic.name, submission.key, submission.digest, 0, sequence,
        table.num_rows, topic.partitions, durations.now(), sink.getvalue().to_pybytes(), None,
    )  # fmt: skip


def _known(known: WrittenRequest, again: Submission) -> Sent | HeadwaterError:
    """Return the answer for a request whose key was seen before."""
    if known.digest != again.digest:
        return _another(known.key or "")
    if known.position is None:
        return HttpProblem(
            409,
            "a request with this Idempotency-Key is under way",
            hint="send it again in a moment, with the same key",
            retry_after=1,
        )
    return Sent(known.position, known.rows, repeated=True)


def _another(key: str) -> HeadwaterError:
    return HttpProblem(
        422,
        f'another request was sent with the Idempotency-Key "{key:.80}"',
        hint="a key stands for one request; choose a new one",
    )


def _unsure(error: LogUnavailable) -> HeadwaterError:
    return HttpProblem(
        503,
        error.message,
        detail="the events may still be stored",
        hint="send them again with the same Idempotency-Key, which stores them once",
        retry_after=1,
    )
