"""Values that one owner alone may have: user names, seats, invoice numbers.

Requests are routed by the value that must be unique: it is the key of an aggregate, whose claims are decided
one after the other. So no index is locked, and no two keys are decided on together.

Invariant: at any time a value has one owner at the most, whatever is sent at once, sent again, or killed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.closing import Closing
from headwater.errors import Rejected
from headwater.log.interface import Log
from headwater.sourcing.aggregates import Aggregates
from headwater.sourcing.decider import Decider
from headwater.sourcing.reply import Reply
from headwater.sourcing.timer import DurableTimer


@dataclass(frozen=True)
class ClaimValue:
    """Ask for a value."""

    owner: str


@dataclass(frozen=True)
class ConfirmClaim:
    """Keep a value for good that was claimed for a time."""

    owner: str


@dataclass(frozen=True)
class ReleaseClaim:
    """Give a value back."""

    owner: str


@dataclass(frozen=True)
class ExpireClaim:
    """Take back a value whose claim was not confirmed in time."""

    owner: str


@dataclass(frozen=True)
class Claimed:
    """A value has an owner."""

    owner: str


@dataclass(frozen=True)
class ClaimConfirmed:
    """A value stays with its owner."""

    owner: str


@dataclass(frozen=True)
class ClaimReleased:
    """A value is free again: its owner gave it back."""

    owner: str


@dataclass(frozen=True)
class ClaimExpired:
    """A value is free again: its claim was not confirmed in time."""

    owner: str


@dataclass(frozen=True)
class ClaimState:
    """Who has a value."""

    owner: str | None = None
    confirmed: bool = False


def unique(name: str, *, hold: str | None = None) -> UniqueValues:
    """Declare values that one owner alone may have.

    - ``name``: of the values; their claims are the topic ``NAME.claims``.
    - ``hold=None``: how long a claim lasts that is not confirmed, ``"15 minutes"``; for good if None.

    >>> with unique("username").open("memory:") as usernames:
    ...     reply = usernames.claim("ada", owner="user-1")
    ...     try:
    ...         usernames.claim("ada", owner="user-2")
    ...     except Rejected as rejected:
    ...         print(rejected.why)
    ...     usernames.owner("ada")
    username "ada" is taken
    'user-1'
    """
    return UniqueValues(name, hold)


class UniqueValues:
    """Values that one owner alone may have, as they are declared: ``unique`` makes them."""

    def __init__(self, name: str, hold: str | None):
        self.name = name
        timers = [] if hold is None else [_expiry(hold)]
        self.decider = Decider(
            f"{name}.claims",
            initial=ClaimState(),
            decide=_decide,
            evolve=_evolve,
            commands=[ClaimValue, ConfirmClaim, ReleaseClaim, ExpireClaim],
            events=[Claimed, ClaimConfirmed, ClaimReleased, ClaimExpired],
            timers=timers,
        )

    def open(self, log: str | Log, *, clock: Callable[[], int] | None = None) -> UniqueClaims:
        """Open the values on a log.

        - ``log``: the log, or its URL.
        - ``clock=None``: what time it is, in microseconds since 1970; the system's if None.
        """
        return UniqueClaims(self.name, self.decider.open(log, clock=clock))


class UniqueClaims(Closing):
    """The values of a name, open for claims; used from any thread.

    >>> names = unique("username", hold="15 minutes").open("memory:")
    >>> names.claim("ada", owner="user-1").events
    (Claimed(owner='user-1'),)
    >>> names.confirm("ada", owner="user-1").events
    (ClaimConfirmed(owner='user-1'),)
    >>> names.release("ada", owner="user-1").events
    (ClaimReleased(owner='user-1'),)
    >>> names.owner("ada") is None
    True
    >>> names.close()
    """

    def __init__(self, name: str, aggregates: Aggregates):
        self._name, self.aggregates = name, aggregates

    def claim(self, value: str, owner: str, *, request_id: str | None = None) -> Reply:
        """Give a value to an owner, or raise ``Rejected`` if another has it.

        - ``value``: what must be unique; texts that differ in any way are different values.
        - ``owner``: who asks for it. Who has it already is told so, and nothing is added.
        - ``request_id=None``: as for ``Aggregates.execute``.
        """
        return self._execute(value, ClaimValue(owner), request_id)

    def confirm(self, value: str, owner: str, *, request_id: str | None = None) -> Reply:
        """Keep a value for good that was claimed for a time; ``Rejected`` if that is over.

        - ``value``: what was claimed.
        - ``owner``: who has claimed it.
        - ``request_id=None``: as for ``Aggregates.execute``.
        """
        return self._execute(value, ConfirmClaim(owner), request_id)

    def release(self, value: str, owner: str, *, request_id: str | None = None) -> Reply:
        """Give a value back; one that the owner has not is left as it is.

        - ``value``: what was claimed.
        - ``owner``: who has it.
        - ``request_id=None``: as for ``Aggregates.execute``.
        """
        return self._execute(value, ReleaseClaim(owner), request_id)

    def owner(self, value: str) -> str | None:
        """Return who has a value, or None if it is free.

        - ``value``: what must be unique.
        """
        self.aggregates.settle(value)
        state: ClaimState = self.aggregates.state(value)
        return state.owner

    def close(self) -> None:
        """Release the log, if it was opened for these values."""
        self.aggregates.close()

    def _execute(self, value: str, command: Any, request_id: str | None) -> Reply:
        try:
            return self.aggregates.execute(value, command, request_id=request_id)
        except Rejected as rejected:
            raise Rejected(f'{self._name} "{value}" {rejected.why}', detail=rejected.detail) from None


def _expiry(hold: str) -> DurableTimer:
    return DurableTimer(
        Claimed,
        after=hold,
        command=lambda event: ExpireClaim(event.owner),
        until=[ClaimConfirmed, ClaimReleased, ClaimExpired],
    )


def _decide(state: ClaimState, command: Any) -> Sequence[Any]:
    mine = state.owner == command.owner
    if isinstance(command, ClaimValue):
        if state.owner is not None and not mine:
            raise Rejected("is taken")
        return [] if mine else [Claimed(command.owner)]
    if isinstance(command, ConfirmClaim):
        if not mine:
            raise Rejected("is not claimed by this owner")
        return [] if state.confirmed else [ClaimConfirmed(command.owner)]
    if not mine or (isinstance(command, ExpireClaim) and state.confirmed):
        return []
    return [
        ClaimReleased(command.owner) if isinstance(command, ReleaseClaim) else ClaimExpired(command.owner)
    ]


def _evolve(state: ClaimState, event: Any) -> ClaimState:
    if isinstance(event, Claimed):
        return ClaimState(event.owner)
    return ClaimState(event.owner, confirmed=True) if isinstance(event, ClaimConfirmed) else ClaimState()
