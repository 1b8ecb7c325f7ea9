"""A decider: how the commands of one kind of aggregate become events, and events a state.

It is declared once, as pure functions over frozen dataclasses, and opened on a log. Invariant: a declaration
that cannot be stored, or that says two things at once, is refused when it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater import durations
from headwater import topic as topics
from headwater.engine.plan.fingerprint import fingerprint
from headwater.log.interface import Log
from headwater.log.open import open as open_log
from headwater.pipeline.pipeline import Pipeline
from headwater.sourcing.aggregates import Aggregates
from headwater.sourcing.command_client import CommandClient, connected
from headwater.sourcing.command_schema import CommandSchema
from headwater.sourcing.event_schema import EventSchema
from headwater.sourcing.event_topic import prepared
from headwater.sourcing.fold import Fold
from headwater.sourcing.handler import DeciderHandling
from headwater.sourcing.settings import checked_settings
from headwater.sourcing.timer import TimerFold

Decide = Callable[[Any, Any], Sequence[Any] | None]
Evolve = Callable[[Any, Any], Any]


class Decider:
    """How one kind of aggregate decides: commands in, events out, and a state that is folded from them.

    - ``name``: of the aggregates, and of the topic of their events.
    - ``initial``: the state before the first event.
    - ``decide``: ``decide(state, command)`` returns the events, or raises ``Rejected(why)``.
    - ``evolve``: ``evolve(state, event)`` returns the next state, and does not change the one it is given.
    - ``commands``: their classes, frozen dataclasses.
    - ``events``: their classes, frozen dataclasses in the past tense, whose fields are the topic's columns.
    - ``**settings``: ``upcasters``, ``timers``, ``tags``, ``boundary``, ``snapshot_every``, ``partitions``:
      ``DeciderSettings`` tells of each.

    Both functions are pure: they ask no clock and no database, and may be called again for the same command.

    >>> from dataclasses import dataclass
    >>> from headwater.errors import Rejected
    >>> @dataclass(frozen=True)
    ... class Deposit:
    ...     cents: int
    >>> @dataclass(frozen=True)
    ... class Deposited:
    ...     cents: int
    >>> account = Decider(
    ...     "account", initial=0, decide=lambda balance, command: [Deposited(command.cents)],
    ...     evolve=lambda balance, event: balance + event.cents, commands=[Deposit], events=[Deposited],
    ... )
    >>> with account.open("memory:") as bank:
    ...     reply = bank.execute("ada", Deposit(500), request_id="r1")
    ...     again = bank.execute("ada", Deposit(500), request_id="r1")
    ...     bank.state("ada"), reply == again, list(bank.events("ada"))
    (500, True, [Deposited(cents=500)])
    """

    def __init__(
        self,
        name: str,
        *,
        initial: Any,
        decide: Decide,
        evolve: Evolve,
        commands: Sequence[type],
        events: Sequence[type],
        **settings: Any,
    ):
        topics.check_name("decider", name)
        self.name = name
        self.decide, self.evolve = decide, evolve
        self.commands, self.events = tuple(commands), tuple(events)
        self.command_schema = CommandSchema(name, self.commands)
        self.settings = checked_settings(name, settings)
        self.schema = EventSchema(name, self.events, self.settings.upcasters)
        self.fold = Fold(initial, evolve, TimerFold(self.settings.timers, self.events))
        self._fingerprinted = (initial, evolve, self.settings.upcasters, self.settings.timers, self.events)

    @property
    def fingerprint(self) -> str:
        """What its fold does, as a short text: a snapshot of another fold is not used."""
        return fingerprint(self._fingerprinted)

    @property
    def handling(self) -> DeciderHandling:
        """What ``Pipeline.handler`` needs of it."""
        return DeciderHandling(self)

    def connect(self, pipeline: Pipeline) -> CommandClient:
        """Connect to the handler that a pipeline has for it: commands go by the log, and replies come back.

        - ``pipeline``: which declares ``pipeline.handler(decider)``, and runs, here or anywhere.

        >>> with account.connect(bank) as client:  # doctest: +SKIP
        ...     client.execute("ada", Deposit(500))
        """
        return connected(self, pipeline)

    def open(
        self,
        log: str | Log,
        *,
        id: str | None = None,
        clock: Callable[[], int] | None = None,
        cache: int = 10_000,
    ) -> Aggregates:
        """Open the aggregates on a log, making their topic, or giving it the columns of new fields.

        - ``log``: the log, or its URL; one that is given stays open when the aggregates are closed.
        - ``id=None``: of the one writer: with one, whoever opened them before under it is fenced. Kafka has
          one writer in any case.
        - ``clock=None``: what time it is, in microseconds since 1970; the system's if None.
        - ``cache=10000``: how many states are kept in memory.
        """
        opened = open_log(log) if isinstance(log, str) else log
        try:
            prepared(opened, self.name, self.schema, self.settings.partitions)
            producer = opened.conditional_producer(self.name, id=id)
        except BaseException:
            if opened is not log:
                opened.close()
            raise
        return Aggregates(
            self, opened, producer, clock=clock or durations.now, cache=cache, owns_log=opened is not log
        )
