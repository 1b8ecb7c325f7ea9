"""The changes of a view: which rows each batch inserted, updated or deleted, in order.

Changes are numbered, and at least the newest ones are kept. Invariant: a reader gets every change
after the one it names, each once and in order, or an error that says how many are gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from headwater.errors import OffsetLost, UsageError
from headwater.views.view_version import FIRST, ViewVersion

Kind = Literal["insert", "update", "delete"]
Row = dict[str, Any]
INSERT, UPDATE, DELETE = 0, 1, 2
_KINDS: tuple[Kind, ...] = ("insert", "update", "delete")
CHUNK = 1_000
"""Changes that are read at once."""
_HOW_TO_GO_ON = "read the rows again with view.snapshot(), then go on with changes(since=snapshot.sequence)"


@dataclass(frozen=True)
class Change:
    """One row of a view that a batch has changed."""

    sequence: int
    """Grows from change to change; what to name to go on after this one."""
    kind: Kind
    key: tuple[Any, ...]
    old: dict[str, Any] | None
    """The row before, None for an insert."""
    new: dict[str, Any] | None
    """The row after, None for a delete."""
    batch: int


def change(number: int, kind: int, batch: int, old: Row, new: Row, key: tuple[str, ...]) -> Change:
    """Return a change; of an insert the old row does not count, of a delete the new one."""
    present = new if kind == INSERT else old
    return Change(
        number,
        _KINDS[kind],
        tuple(present[name] for name in key),
        None if kind == INSERT else old,
        None if kind == DELETE else new,
        batch,
    )


def resume_after(entry: ViewVersion, since: int) -> int:
    """Return after which change of a version to go on; refuse one of another version."""
    since = since or entry.first
    if since >> FIRST == entry.first >> FIRST:
        return since
    raise OffsetLost(
        f'view "{entry.name}" has been rebuilt since change {since}',
        detail=f"version {entry.version} is published now, with changes of its own",
        hint=_HOW_TO_GO_ON,
        missed=0,
        earliest=entry.first + 1,
    )


def check_retained(view: str, since: int, earliest: int, last: int) -> None:
    """Refuse to go on after a change whose successors are no longer kept, or that has not happened."""
    if since > last:
        raise UsageError(f'view "{view}" has no change {since} yet', detail=f"the newest one is {last}")
    missed = earliest - 1 - since
    if missed > 0:
        raise OffsetLost(
            f'{missed:,} changes of view "{view}" after number {since} are no longer kept',
            detail=f"the oldest one that is kept has number {earliest}",
            hint=_HOW_TO_GO_ON,
            missed=missed,
            earliest=earliest,
        )
