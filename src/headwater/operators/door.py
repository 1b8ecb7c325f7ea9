"""How an operator is used: ``orders.transform(dedup(on="id", within="1 hour"))``.

A door is what a user's call makes. It knows no Spark and no schema: when a DataFrame goes through
it, the engine asks it for the operator over that DataFrame's columns.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.operators.operator import Operator
from headwater.operators.pairing import Pairing

setting_aside: ContextVar[bool] = ContextVar("setting_aside", default=False)
"""Whether operators are built that set rows aside on which code of the user's fails."""


@dataclass(frozen=True)
class Side:
    """The rows of one input, as far as they are known beforehand."""

    schema: pa.Schema
    event_time: str | None
    table: tuple[str, ...] = ()
    """The key, if the rows are the changes of a table."""


@dataclass(frozen=True)
class Door:
    """An operator that waits for its rows."""

    name: str
    build: Callable[[pa.Schema, str | None], Operator[Any]]
    """Makes the operator over a schema, given its event-time column, if it has one."""

    def __call__(self, rows: Any) -> Any:
        """Return what comes out of the operator for a DataFrame."""
        from headwater.engine.applying import apply

        return apply(rows, self)


@dataclass(frozen=True)
class TableDoor:
    """An operator over a table that waits for its changes."""

    name: str
    build: Callable[[Side], Operator[Any]]
    """Makes the operator over the changes of a table."""

    def __call__(self, rows: Any) -> Any:
        """Return what comes out of the operator for a DataFrame of changes."""
        from headwater.engine.applying import apply_table  # type: ignore[attr-defined]

        return apply_table(rows, self)


@dataclass(frozen=True)
class JoinDoor:
    """An operator over two inputs that has one of them, and waits for the other."""

    name: str
    right: Any
    """A DataFrame."""
    pairing: Pairing
    build: Callable[[Side, Side], Operator[Any]]
    """Makes the operator over rows of the left and the right."""

    def __call__(self, rows: Any) -> Any:
        """Return what comes out of the operator for a DataFrame and the one that it has."""
        from headwater.engine.applying import join

        return join(rows, self)
