"""Process managers: events of some aggregates lead to commands of others, and what is refused is made good.

A command is known by the event that led to it, its aggregate, its kind and its number among those: so it is
carried out once, however often the event is handled, and whatever others ``react`` returns beside it after a
change. What came of it, a rejection too, is recorded with its aggregate, so it is the same each time. Then
the compensation for a rejection is carried out once as well.

Invariant: when an event is committed, each of its commands has been accepted, or rejected and compensated,
whatever was killed meanwhile. Where another command was carried out in the place of one, that is an error.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headwater import topic as topics
from headwater.closing import Closing
from headwater.errors import HeadwaterError, Rejected, UsageError
from headwater.log.interface import Log
from headwater.log.open import open as open_log
from headwater.sourcing import requests
from headwater.sourcing.aggregates import Aggregates, Remember
from headwater.sourcing.decider import Decider
from headwater.sourcing.event_feed import DeciderFeed, PublishedEvent
from headwater.sourcing.event_topic import prepared
from headwater.sourcing.process_status import ProcessStatus

POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Send:
    """A command for an aggregate of another decider, or of the same."""

    to: Decider
    key: str
    command: Any
    id: str = ""
    """What it is known by among the commands of its event for that key: its kind and number unless said."""


@dataclass(frozen=True)
class RefusedStep:
    """A command of a process that was rejected, the event that led to it, and why."""

    published: PublishedEvent
    send: Send
    why: str


React = Callable[[PublishedEvent], Iterable[Send] | None]
Compensate = Callable[[RefusedStep], Iterable[Send] | None]
Effect = Callable[[PublishedEvent], None]


class ProcessManager:
    """What is done about the events of a decider: commands for others, and side effects.

    - ``name``: of the process; its group in the log, and a part of the request ids of its commands.
    - ``reads``: the decider whose events it acts upon.
    - ``react``: from an event to the commands that it leads to; a pure function.
    - ``compensate=None``: from a command that was rejected to those that make it good; without it a rejection
      is an end like another.
    - ``effect=None``: what else is to be done for an event, once its commands are: mail, a call. It may be
      repeated after a crash, and is left out when events are replayed.

    >>> from headwater.sourcing import Decider
    >>> @dataclass(frozen=True)
    ... class Note:
    ...     text: str
    >>> @dataclass(frozen=True)
    ... class Noted:
    ...     text: str
    >>> def keep(name):
    ...     return Decider(name, initial=(), decide=lambda notes, note: [Noted(note.text)],
    ...                    evolve=lambda notes, noted: (*notes, noted.text), commands=[Note], events=[Noted])
    >>> inbox, archive = keep("inbox"), keep("archive")
    >>> copying = ProcessManager("copying", reads=inbox, react=lambda published: [
    ...     Send(archive, "all", Note(f"{published.key}: {published.event.text}"))])
    >>> with open_log("memory:") as log, inbox.open(log) as box, copying.open(log) as process:
    ...     reply = box.execute("ada", Note("hello"))
    ...     process.catch_up()
    ...     with archive.open(log) as archived:
    ...         archived.state("all")
    1
    ('ada: hello',)
    """

    def __init__(
        self,
        name: str,
        *,
        reads: Decider,
        react: React,
        compensate: Compensate | None = None,
        effect: Effect | None = None,
    ):
        topics.check_name("process", name)
        self.name, self.reads = name, reads
        self.react, self.compensate, self.effect = react, compensate, effect

    def open(
        self,
        log: str | Log,
        *,
        using: Sequence[Aggregates] = (),
        clock: Callable[[], int] | None = None,
    ) -> RunningProcess:
        """Open the process on a log; several may be open at once, and share the partitions.

        - ``log``: the log, or its URL.
        - ``using=()``: aggregates that are open already, to which commands are sent; others are opened when
          they are needed. On Kafka, where a topic has one writer, those of this program belong here.
        - ``clock=None``: what time it is, in microseconds since 1970; the system's if None.
        """
        opened = open_log(log) if isinstance(log, str) else log
        return RunningProcess(self, opened, clock, using=using, owns_log=opened is not log)


class RunningProcess(Closing):
    """A process manager at work; used by one thread at a time.

    >>> from headwater.sourcing import unique
    >>> usernames = unique("username")
    >>> watching = ProcessManager("watching", reads=usernames.decider, react=lambda published: None)
    >>> with open_log("memory:") as log, usernames.open(log) as names:
    ...     reply = names.claim("ada", owner="user-1")
    ...     process = watching.open(log)
    ...     print(process.step(timeout=1), process.catch_up(), process.replay())
    ...     print(process.status().handled, process.status().behind)
    ...     stop = threading.Event()
    ...     stop.set()
    ...     process.run(stop)
    ...     process.close()
    1 0 1
    1 0
    """

    def __init__(
        self,
        process: ProcessManager,
        log: Log,
        clock: Callable[[], int] | None,
        *,
        using: Sequence[Aggregates],
        owns_log: bool,
    ):
        self._process, self._log, self._clock, self._owns_log = process, log, clock, owns_log
        self._targets = {each.decider.name: each for each in using}
        self._opened: list[Aggregates] = []
        self._handled, self._last_error = 0, ""
        reads = process.reads
        topic = prepared(log, reads.name, reads.schema, reads.settings.partitions)
        self._prefix = f"{requests.PROCESS_ID}{process.name}:{topic.id[:8]}"
        self._feed = DeciderFeed(log, topic.name, process.reads.schema, f"process.{process.name}")

    def step(self, timeout: float = 0.0) -> int:
        """Handle the events that have come, and commit them; return how many there were.

        If one cannot be handled, what is wrong is raised, and the next step begins with it.

        - ``timeout=0.0``: how many seconds to wait for one.
        """
        events = self._feed.poll(timeout)
        for number, each in enumerate(events):
            try:
                self._handle(each, _index_in_row(events, number), muted=False)
            except BaseException as error:
                self._last_error = f"{type(error).__name__}: {error}".splitlines()[0]
                self._feed.begin_again(each)
                raise
            self._handled += 1
        if self._feed.uncommitted:
            self._feed.commit()
        return len(events)

    def status(self) -> ProcessStatus:
        """Return what it has done, how much is left, and what it has failed with last; from any thread."""
        return ProcessStatus(self._handled, self._feed.behind(), self._last_error or None)

    def catch_up(self) -> int:
        """Handle all events that are there, and those that they lead to; return how many there were."""
        total = 0
        while count := self.step(0.2):
            total += count
        return total

    def run(self, stop: threading.Event) -> None:
        """Handle events as they come until told to stop.

        - ``stop``: ends it within about a second after it is set.
        """
        while not stop.is_set():
            self.step(POLL_SECONDS)

    def replay(self) -> int:
        """Handle all events again that have been handled, without their side effects; return how many.

        Commands that were carried out are so already; what a changed ``react`` adds is carried out now. One
        that has taken the place of another, of the same kind and for the same key, is refused.
        """
        events = list(self._feed.before())
        for number, each in enumerate(events):
            self._handle(each, _index_in_row(events, number), muted=True)
        return len(events)

    def close(self) -> None:
        """Leave the group, and close what was opened."""
        self._feed.close()
        for each in self._opened:
            each.close()
        if self._owns_log:
            self._log.close()

    def _handle(self, published: PublishedEvent, part: int, muted: bool) -> None:
        id = f"{self._prefix}:{published.partition}:{published.offset}:{part}"
        for name, send in self._named(self._process.react(published)):
            try:
                self._carry_out(send, f"{id}:{name}")
            except Rejected as rejected:
                self._make_good(RefusedStep(published, send, rejected.why), f"{id}:{name}")
        if self._process.effect is not None and not muted:
            self._process.effect(published)

    def _make_good(self, refusal: RefusedStep, id: str) -> None:
        compensate = self._process.compensate
        for name, send in self._named(compensate(refusal) if compensate else ()):
            try:
                # A rejection is not remembered: once the decider accepts it, the process can go on.
                self._carry_out(send, f"{id}:made-good:{name}", "accepted")
            except Rejected as rejected:
                raise HeadwaterError(
                    f'process "{self._process.name}" cannot make good what was rejected',
                    detail=f'{send.command!r:.200} for "{send.key}": {rejected.why}; '
                    f"the rejection: {refusal.why}",
                    hint="a compensation must always be possible: let its decider accept it",
                ) from rejected

    def _carry_out(self, send: Send, id: str, remember: Remember = True) -> None:
        marked = requests.with_content(id, send.to.command_schema.content(send.command))
        self._aggregates(send.to).execute(send.key, send.command, request_id=marked, remember=remember)

    def _named(self, sends: Iterable[Send] | None) -> Iterator[tuple[str, Send]]:
        """Yield each command with what it is known by: others in front of it must not change that."""
        seen = Counter[tuple[str, str, str]]()
        for send in sends or ():
            if not isinstance(send, Send):
                raise UsageError(
                    f'process "{self._process.name}" returned {send!r:.80}', hint="return Send(…)"
                )
            name = send.id or type(send.command).__name__
            place = (send.to.name, send.key, name)
            if send.id and place in seen:
                raise self._doubled(send)
            yield (f"id:{name}" if send.id else f"{name}:{seen[place]}"), send
            seen[place] += 1

    def _doubled(self, send: Send) -> UsageError:
        return UsageError(
            f'process "{self._process.name}" returned two commands of id "{send.id}" for "{send.key}"',
            detail="the second would be taken for the first, sent again",
            hint="give each an id of its own, or none",
        )

    def _aggregates(self, decider: Decider) -> Aggregates:
        if decider.name not in self._targets:
            self._targets[decider.name] = decider.open(self._log, clock=self._clock)
            self._opened.append(self._targets[decider.name])
        return self._targets[decider.name]


def _index_in_row(events: Sequence[PublishedEvent], number: int) -> int:
    """Return the how-many-th event of its record this is: an old one may have been split."""
    this, index = events[number], 0
    while number > index and (events[number - index - 1].partition, events[number - index - 1].offset) == (
        this.partition, this.offset,
    ):  # fmt: skip
        index += 1
    return index
