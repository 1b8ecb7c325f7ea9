"""What an operator is: rows in, rows out, and a state in containers that store themselves.

Rows with equal keys meet in one bucket, and an operator sees one bucket at a time. Its containers are opened
again after a restart, or in another process.

Invariant: an operator's only memory is its state, and the same rows, clock and state give the same
step to the byte.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import pyarrow as pa

from headwater.operators.event_time import NEVER
from headwater.operators.memory.operator_memory import OperatorMemory

ERROR = "_error"
"""The column of a rejected row that tells why it is one."""

S = TypeVar("S")


def rejected(rows: pa.Table, reasons: Sequence[str]) -> pa.Table:
    """Return rows that are to be dead letters, each with why: on every way there they have this form."""
    return rows.append_column(ERROR, pa.array(reasons, pa.string()))


@dataclass(frozen=True)
class Step:
    """What came of one call: every row that went in is in ``late``, a duplicate, ``dead``, or used."""

    out: pa.Table
    """Rows for those downstream, of the schema that ``output_schema`` tells."""
    late: pa.Table | None = None
    """Rows of the input that came too late to be used, of the schema that ``late_schema`` tells."""
    duplicates: int = 0
    """How many rows of the input were left out because they were known."""
    dead: pa.Table | None = None
    """Rows on which code of the user's has failed, as they came, with ``ERROR``, what it said."""


class Operator(ABC, Generic[S]):
    """A stateful operator over one bucket of keys; made on the driver, pickled to the workers.

    Times are microseconds since 1970. The watermark (our clock is one) says that rows from before it
    are late; it never goes back, and it is the one before this call's rows were known.
    """

    version: ClassVar[int] = 1
    """Raised when what was stored before would be opened as something else, or rows of before and of now
    would not add up to one result: a state of another version is refused, and computed anew. What a change of
    an aggregate, or of a container of rows, does counts for every operator that uses it."""

    key: tuple[str, ...]
    """The columns by which rows meet."""

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns out that tell results apart, of which the last one counts; none where all count."""
        return ()

    @property
    def event_time_out(self) -> str | None:
        """The column out that tells when, if it is not that of the rows in."""
        return None

    @property
    def uncompared_columns(self) -> tuple[str, ...]:
        """The columns out that tell how a result came about, and not what it is: no proof compares them."""
        return ()

    @property
    def waits(self) -> bool:
        """Whether results are held back until the clock has passed them: without a clock none comes out."""
        return False

    @property
    def repeatable(self) -> bool:
        """Whether the rows alone decide what comes out, so that a batch gives what the steps gave."""
        return True

    @abstractmethod
    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the rows out for rows of a schema in, or refuse it with an error."""

    def late_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of late rows: theirs, and what the operator has to say of each."""
        return schema

    @abstractmethod
    def initial_state(self, schema: pa.Schema) -> S:
        """Return an empty state for rows of a schema."""

    @abstractmethod
    def memory(self, state: S) -> OperatorMemory:
        """Return the containers of a state, by names that stay: they store what they learn."""

    @abstractmethod
    def step(self, state: S, rows: pa.Table, watermark: int) -> Step:
        """Take new rows, perhaps none, and change the state."""

    @abstractmethod
    def next_timer(self, state: S) -> int | None:
        """Return the clock at which ``step`` is called though no rows come; None without such a timer."""

    def output_watermark(self, watermark: int) -> int:
        """Return the watermark of the rows out for a clock of the rows in: no earlier row comes out then."""
        return watermark


def run(operator: Operator[S], rows: pa.Table, watermark: int) -> list[Step]:
    """Run over all rows of a bucket at once: a batch. Nothing is late in it."""
    state = operator.initial_state(rows.schema)
    first = operator.step(state, rows, NEVER)
    timer = operator.next_timer(state)
    if timer is None or timer > watermark:
        return [first]
    return [first, operator.step(state, rows.slice(0, 0), watermark)]
