"""An operator as it is declared, before its rows are known.

It knows no Spark and no schema: when rows come along, the engine asks it for the operator over their
columns.
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
class OperatorSpec:
    """An operator that waits for its rows; one over two inputs has the right ones already."""

    name: str
    build: Callable[..., Operator[Any]]
    """Makes the operator, given the ``Side`` of its rows, or those of the left and the right ones."""
    right: Any = None
    """A DataFrame, where there are two inputs."""
    pairing: Pairing | None = None
    """By what the rows of two inputs meet."""
    tables: tuple[int, ...] = ()
    """Which of the inputs, counted from 0, it takes as tables: they want every change of those."""
