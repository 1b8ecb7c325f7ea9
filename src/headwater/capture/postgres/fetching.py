"""Messages of a copy as libpq has them, many at a time.

Invariant: a message costs one call of C and nothing is done with a single one; whatever ends the copy is
told.
"""

from __future__ import annotations

import select
from dataclasses import dataclass
from typing import Final

import numpy as np
import psycopg
from psycopg import pq

from headwater.capture.postgres.tuples import PADDING, Buffer, Places
from headwater.errors import SourceRefused

LARGEST: Final = 4 * 2**20
"""How many bytes are taken at once; a single message may be larger. About as many fit into the buffers of a
socket, so that the server goes on while these are decoded."""

_ADDRESSED: Final = 2**31 - 2**10
"""Arrow's columns address their bytes with 32 bits."""


@dataclass(frozen=True)
class Messages:
    """Messages, one behind the other, with padding behind the last."""

    buffer: Buffer
    start: Places

    @classmethod
    def of(cls, messages: list[bytes]) -> Messages:
        """Join messages into one buffer."""
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        if lengths.sum() > _ADDRESSED:
            raise SourceRefused(
                "PostgreSQL has sent more at once than can be held", hint="read smaller chunks of the table"
            )
        return cls(Buffer(b"".join([*messages, PADDING])), np.cumsum(lengths) - lengths)

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Taken:
    """Messages that were there, and whether the copy has ended."""

    messages: list[bytes]
    ended: bool = False


def take(pg: pq.abc.PGconn, most: int = LARGEST) -> Taken:
    """Return the messages that have come, without waiting."""
    get, size, dry = pg.get_copy_data, 0, False
    messages: list[bytes] = []
    while size < most:
        length, message = get(1)
        if length > 0:
            # As bytes, which the collector of garbage does not look at: that of so many views of memory
            # took more time than all else that is done with a small transaction.
            messages.append(bytes(message))
            size, dry = size + length, False
        elif length < 0:
            return Taken(messages, ended=True)
        elif dry:
            break
        else:
            pg.consume_input()
            dry = True
    return Taken(messages)


def wait(pg: pq.abc.PGconn, seconds: float) -> None:
    """Wait until something has come."""
    poll = select.poll()
    poll.register(pg.socket, select.POLLIN)
    poll.poll(max(1, int(seconds * 1000)))


def failure(result: pq.abc.PGresult) -> psycopg.Error:
    """Return the error of a result; one without a code is of libpq, whose connection is lost."""
    error = psycopg.errors.error_from_result(result)
    return error if error.sqlstate is not None else psycopg.OperationalError(str(error))


def finish(pg: pq.abc.PGconn) -> None:
    """Take what is behind the end of a copy, and raise the error if it has ended with one."""
    failed = None
    while (result := pg.get_result()) is not None:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            failed = failure(result)
        elif result.status == pq.ExecStatus.COPY_BOTH:
            break
    if failed is not None:
        raise failed
