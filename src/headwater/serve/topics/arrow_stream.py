"""Arrow streams from outside: read with nothing believed that they say of themselves.

Invariant: reading takes memory in proportion to what was sent. A compressed stream says how large it is
when it is not, so it is refused before its first batch is read.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from headwater.errors import RowError
from headwater.serve.http.problem import HttpProblem

_RECORD_BATCH, _DICTIONARY = 3, 2
_HEADER_TYPE, _HEADER = 1, 2
_COMPRESSION, _DICTIONARY_DATA = 3, 1


def read(data: bytes) -> pa.Table:
    """Return the rows of a stream."""
    try:
        _refuse_compression(data)
        table = pa.ipc.open_stream(data).read_all()
        table.validate(full=True)
    except HttpProblem:
        raise
    except (pa.ArrowException, ValueError, IndexError, struct.error, OSError, KeyError) as error:
        raise RowError(
            "the body is not an Arrow IPC stream", detail=(str(error).splitlines() or [""])[0][:200] or None
        ) from None
    return table


def _refuse_compression(data: bytes) -> None:
    reader = pa.ipc.MessageReader.open_stream(data)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if _is_compressed(message.metadata.to_pybytes()):
            raise HttpProblem(
                415, "a compressed Arrow stream is not taken", hint="write it without compression"
            )


def _is_compressed(message: bytes) -> bool:
    """Tell whether a message is of a batch with compressed buffers; its metadata is a FlatBuffer."""
    root = struct.unpack_from("<I", message)[0]
    kind_at = _field(message, root, _HEADER_TYPE)
    kind = message[kind_at] if kind_at else 0
    if kind not in (_RECORD_BATCH, _DICTIONARY):
        return False
    batch = _table(message, root, _HEADER)
    if kind == _DICTIONARY:
        batch = _table(message, batch, _DICTIONARY_DATA)
    return _field(message, batch, _COMPRESSION) != 0


def _table(message: bytes, table: int, number: int) -> int:
    at = _field(message, table, number)
    return at + int(struct.unpack_from("<I", message, at)[0])


def _field(message: bytes, table: int, number: int) -> int:
    """Return where a field of a table lies, 0 if it has none."""
    offsets = table - int(struct.unpack_from("<i", message, table)[0])
    size = struct.unpack_from("<H", message, offsets)[0]
    if 4 + 2 * number >= size:
        return 0
    at = int(struct.unpack_from("<H", message, offsets + 4 + 2 * number)[0])
    return table + at if at else 0
