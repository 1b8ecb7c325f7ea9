"""The aggregates of a decider, open for commands: each is its events, and its state is folded from them.

A command is decided on a state that is kept in memory, and appended with the version of that state: if others
have appended meanwhile it is refused, the state brought up to date, and the command decided again. A refusal
of the user's is only told when it was decided on the newest state.

Invariant: of commands with one request id of a key, one is carried out, whoever sends it again, and however
often; and no event is stored that was not decided on all events before it, or that cannot be folded.
"""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, Protocol

from headwater import durations
from headwater.closing import Closing
from headwater.errors import Conflict, Rejected, UsageError
from headwater.log.conditional import ConditionalProducer
from headwater.log.interface import Log
from headwater.log.position import Position
from headwater.sourcing import requests
from headwater.sourcing.event_schema import META, EventSchema, Recording
from headwater.sourcing.fold import Fold
from headwater.sourcing.history import recorded_events
from headwater.sourcing.reply import RecordedEvent, Reply
from headwater.sourcing.requests import StoredRequests
from headwater.sourcing.scope import Scope
from headwater.sourcing.settings import DeciderSettings
from headwater.sourcing.snapshots import FILE, FoldedState, Snapshots
from headwater.sourcing.timer import OpenTimer, due

ATTEMPTS = 100
"""How often a command is decided anew because others came first, before that is told."""
_LOCKS = 512
Remember = bool | Literal["accepted"]


class DeciderParts(Protocol):
    """What a decider is made of."""

    name: str
    commands: tuple[type, ...]
    decide: Callable[[Any, Any], Sequence[Any] | None]
    settings: DeciderSettings
    schema: EventSchema
    fold: Fold

    @property
    def fingerprint(self) -> str:
        """What its fold does."""


class _Draft(NamedTuple):
    """What a command leads to, before anything of it is stored."""

    events: tuple[Any, ...]
    rows: list[dict[str, Any]]
    tags: list[list[str]]
    after: FoldedState
    at: int
    failed: Exception | None = None
    """Why there are no events: a rejection, or an error of the user's functions."""

    def can_be_remembered(self, remember: Remember) -> bool:
        """Tell whether it is to be recorded that the command led to no event."""
        return self.failed is None or (remember is True and isinstance(self.failed, Rejected))


class _AskedFor(NamedTuple):
    """A command that is asked for, and on which events it is decided."""

    key: str
    command: Any
    request_id: str | None
    scope: Scope


class Aggregates(Closing):
    """The aggregates of one decider on a log; made by ``Decider.open``, used from any thread.

    >>> from headwater.sourcing import unique
    >>> from headwater.sourcing.uniqueness import ClaimValue
    >>> names = unique("username", hold="15 minutes").decider.open("memory:")
    >>> reply = names.execute("ada", ClaimValue("user-1"), request_id="r1")
    >>> reply.events, reply.version, names.reply("ada", "r1") == reply
    ((Claimed(owner='user-1'),), 1, True)
    >>> names.state("ada"), names.version("ada"), list(names.events("ada"))
    (ClaimState(owner='user-1', confirmed=False), 1, [Claimed(owner='user-1')])
    >>> [(each.command, each.state.owner) for each in names.history("ada")]
    [('ClaimValue', 'user-1')]
    >>> names.settle("ada"), len(names.open_timers("ada"))
    (None, 1)
    >>> names.close()
    """

    def __init__(
        self,
        decider: DeciderParts,
        log: Log,
        producer: ConditionalProducer,
        *,
        clock: Callable[[], int],
        cache: int,
        owns_log: bool,
    ):
        self.decider, self.log, self.clock = decider, log, clock
        self._producer, self._owns_log = producer, owns_log
        self._topic = log.topic(decider.name)
        self._columns = [*META, *(n for n in self._topic.schema.names if n not in META)]
        self._requests = StoredRequests(producer, self._topic, decider.schema, self._columns)
        self._cache_size, self._cached = cache, OrderedDict[Scope, FoldedState]()
        self._cache_lock = threading.Lock()
        self._locks = [threading.RLock() for _ in range(_LOCKS)]
        directory = log.derived_directory(decider.name) if decider.settings.snapshot_every else None
        path = None if directory is None else directory / FILE
        self._snapshots = Snapshots(path, decider.fingerprint if path else "")

    def execute(
        self, key: str, command: Any, *, request_id: str | None = None, remember: Remember = False
    ) -> Reply:
        """Decide a command, and store its events if it is accepted; they are durable when this returns.

        - ``key``: of the aggregate.
        - ``command``: an instance of one of the decider's commands.
        - ``request_id=None``: a text that the caller chooses, and uses again when it sends the same command
          again: it is carried out once for this key, and the first reply returned each time.
        - ``remember=False``: True records what comes of the request also if that is a rejection, or no event;
          ``"accepted"`` also if it is no event.

        Raises ``Rejected``, and writes nothing, if the decider says no. So a rejection, and a command that
        leads to no event, leave nothing behind: sent again, they are decided again, unless they are to be
        remembered, as a process manager has it.
        """
        self._check(key, command, request_id)
        if remember and request_id is None:
            raise UsageError("only what has a request id can be remembered", hint="give it one")
        with self._lock(key):
            if self.decider.settings.timers:
                self._settle(key)
            return self._execute(key, command, request_id, remember)

    def state(self, key: str) -> Any:
        """Return the state of an aggregate, folded from all of its events that are durable now.

        - ``key``: of the aggregate; the initial state if it has no events.
        """
        return self._fresh(Scope(_checked_key(key)), self._known(Scope(key))).state

    def version(self, key: str) -> int:
        """Return the offset behind the newest event of an aggregate, or 0 if it has none.

        - ``key``: of the aggregate.
        """
        return self._producer.version(_checked_key(key))

    def events(self, key: str) -> Iterator[Any]:
        """Yield the events of an aggregate, oldest first, as they are today.

        - ``key``: of the aggregate.
        """
        return (each.event for each in self.history(key))

    def history(self, key: str) -> Iterator[RecordedEvent]:
        """Yield the events of an aggregate with when and why they came, and the state after each.

        - ``key``: of the aggregate.
        """
        rows = Scope(_checked_key(key)).rows(self._producer, 0, self._columns)
        return recorded_events(rows, self.decider.fold, self.decider.schema)

    def reply(self, key: str, request_id: str) -> Reply | None:
        """Return the reply to a command that was carried out under a request id, if one was.

        - ``key``: of the aggregate.
        - ``request_id``: as it was given to ``execute``.
        """
        found = self._requests.find(_checked_key(key), request_id)
        return None if found is None or found.rejection is not None else found.reply

    def settle(self, key: str) -> None:
        """Carry out the timers of an aggregate that are due; ``execute`` does so by itself.

        - ``key``: of the aggregate.
        """
        if self.decider.settings.timers:
            with self._lock(_checked_key(key)):
                self._settle(key)

    def open_timers(self, key: str) -> list[OpenTimer]:
        """Return the timers of an aggregate that have been started and have not ended, the next one first.

        - ``key``: of the aggregate.
        """
        scope = Scope(_checked_key(key))
        return sorted(self._fresh(scope, self._known(scope)).timers.values(), key=lambda each: each.due)

    def close(self) -> None:
        """Release the log, if it was opened for these aggregates. A ``with`` block does it at its end."""
        self._snapshots.close()
        self._producer.close()
        if self._owns_log:
            self.log.close()

    # Deciding

    def _execute(self, key: str, command: Any, request_id: str | None, remember: Remember) -> Reply:
        request = _AskedFor(key, command, request_id, self._scope(key, command))
        scope = request.scope
        folded, newest = self._known(scope), False
        for attempt in range(ATTEMPTS):
            if folded is None or attempt:
                folded, newest = self._fresh(scope, folded), True
            draft = self._draft(request, folded)
            if not draft.events:
                if request_id is not None and self._requests.is_stored(key, request_id):
                    return self._requests.first_reply(key, command, request_id)
                if not (newest or self._fresh(scope, folded) is folded):
                    continue
                if not (remember and draft.can_be_remembered(remember)):
                    return self._without_events(key, folded, draft.failed)
            try:
                return self._record(request, folded, draft)
            except Conflict as conflict:
                if request_id is not None and conflict.condition == requests.once(key, request_id):
                    return self._requests.first_reply(key, command, request_id)
                if attempt == ATTEMPTS - 1:
                    raise
                if attempt:  # another process is at it: let one of the two be first
                    time.sleep(random.random() * 0.002 * min(attempt, 10))
        raise AssertionError("unreachable: the last attempt raises")

    def _draft(self, request: _AskedFor, folded: FoldedState) -> _Draft:
        """Decide a command, and fold what it leads to: what cannot be folded must not be stored."""
        try:
            events = tuple(self.decider.decide(folded.state, request.command) or ())
            return self._drafted(request, folded, events)
        except Exception as error:
            return self._drafted(request, folded, (), error)

    def _drafted(
        self,
        request: _AskedFor,
        folded: FoldedState,
        events: tuple[Any, ...],
        failed: Exception | None = None,
    ) -> _Draft:
        key, command, id, scope = request
        at, schema, tags = self.clock(), self.decider.schema, self.decider.settings.tags
        recording = Recording(key, durations.instant(at), type(command).__name__, id)
        why = failed.why if isinstance(failed, Rejected) else None
        rows = [schema.row(each, recording) for each in events] or [schema.nothing(recording, why)]
        own = [] if id is None else [requests.tag(id)]
        every = [[*own, *(tags(each) if tags else ())] for each in events] or [own]
        read = [each for each, found in zip(events, every, strict=False) if scope.includes(found)]
        return _Draft(events, rows, every, self.decider.fold.ahead(folded, read, at, id), at, failed)

    def _record(self, request: _AskedFor, folded: FoldedState, draft: _Draft) -> Reply:
        """Append the events of a command, or that it led to none, and what is said of that."""
        key, _, id, scope = request
        conditions = scope.conditions(folded.version, self._topic)
        if id is not None:
            conditions = [requests.once(key, id), *conditions]
        appended = self._producer.append(draft.rows, conditions=conditions, tags=draft.tags)
        self._remember(scope, self.decider.fold.placed(draft.after, draft.at, appended.offsets))
        if draft.failed is not None:
            raise draft.failed
        return Reply(draft.events, appended.offsets[-1] + 1, appended.position)

    def _without_events(self, key: str, folded: FoldedState, failed: Exception | None) -> Reply:
        if failed is not None:
            raise failed
        number = self._producer.partition(key)
        return Reply((), folded.version, Position(self._topic.name, {number: folded.version}, self._topic.id))

    # States

    def _scope(self, key: str, command: Any) -> Scope:
        boundary = self.decider.settings.boundary
        if boundary is None:
            return Scope(key)
        lists = tuple(tuple(each) for each in boundary(key, command))
        if not lists or not all(lists):
            raise UsageError(
                f'boundary of decider "{self.decider.name}" names no tags for {type(command).__name__}',
                hint='return lists of tags, as in [["course:7"], ["student:3"]]',
            )
        return Scope(None, lists)

    def _known(self, scope: Scope) -> FoldedState | None:
        with self._cache_lock:
            return self._cached.get(scope)

    def _fresh(self, scope: Scope, folded: FoldedState | None) -> FoldedState:
        """Return the state of now: the same object, if nothing has come."""
        end = scope.end(self._producer)
        if folded is not None and folded.version >= end:
            return folded
        if folded is None:
            folded = self._from_snapshot(scope)
        rows = scope.rows(self._producer, folded.version, self._columns)
        folded = self.decider.fold.rows(folded, rows, self.decider.schema)
        self._remember(scope, folded)
        return folded

    def _from_snapshot(self, scope: Scope) -> FoldedState:
        """Return the newest snapshot, if the event up to which it goes is the one that is stored."""
        found = None if scope.key is None else self._snapshots.newest(scope.key)
        if found is None or scope.key is None:
            return self.decider.fold.beginning
        last = next(iter(scope.rows(self._producer, found.version - 1, ["recorded_at"])), None)
        reached = None if last is None else (last["_offset"] + 1, durations.micros(last["recorded_at"]))
        if reached == (found.version, found.recorded_at):
            return found
        self._snapshots.forget(scope.key)
        return self.decider.fold.beginning

    def _remember(self, scope: Scope, folded: FoldedState) -> None:
        """Keep a state in memory, and now and then as a snapshot."""
        with self._cache_lock:
            before = self._cached.pop(scope, None)
            self._cached[scope] = folded
            if len(self._cached) > self._cache_size:
                self._cached.popitem(last=False)
        every, since = self.decider.settings.snapshot_every, 0 if before is None else before.count
        if every is not None and scope.key is not None and folded.count // every > since // every:
            self._snapshots.save(scope.key, folded)

    # Timers

    def _settle(self, key: str) -> None:
        """Carry out what is due, in its order; what comes of it, a rejection too, is recorded and ends it."""
        scope = Scope(key)
        folded = self._fresh(scope, self._known(scope))
        while (found := due(folded.timers, self.clock())) is not None:
            timer_key, timer = found
            with suppress(Rejected):
                command, id = self.decider.fold.timers.command(timer), self.decider.fold.timers.id(timer)
                self._execute(key, command, id, remember=True)
            folded = self._fresh(scope, self._known(scope))
            if timer_key in folded.timers and folded.timers[timer_key] == timer:
                folded = self.decider.fold.without_timer(folded, timer_key)
                self._remember(scope, folded)

    def _lock(self, key: str) -> threading.RLock:
        return self._locks[hash(key) % _LOCKS]

    def _check(self, key: str, command: Any, request_id: str | None) -> None:
        _checked_key(key)
        if type(command) not in self.decider.commands:
            raise UsageError(
                f'decider "{self.decider.name}" has no command "{type(command).__name__}"',
                hint="its commands: " + ", ".join(each.__name__ for each in self.decider.commands),
            )
        if request_id is not None:
            requests.check(request_id)


def _checked_key(key: str) -> str:
    if not isinstance(key, str) or not key:
        raise UsageError(f"the key of an aggregate is a text, not {key!r:.80}")
    return key
