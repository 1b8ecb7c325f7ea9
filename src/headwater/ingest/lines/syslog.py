r"""Messages of syslog become rows: RFC 5424 in full, RFC 3164 as text with what can be had.

Invariant: the text of a message is kept whole. A time without a year or a zone, as RFC 3164 has it, is not
guessed at: such a message has the time at which it was received.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from headwater import durations
from headwater import schema as schemas
from headwater.ingest.lines.decoding import decode_texts
from headwater.ingest.lines.framing import SyslogSplitter
from headwater.ingest.lines.tcp import LineProtocol
from headwater.values.bulk import Rows

COLUMNS = (
    "at TIMESTAMP, received TIMESTAMP, facility INT, severity INT, host STRING, app STRING, process STRING,"
    " message_id STRING, data ARRAY<STRUCT<id: STRING, name: STRING, value: STRING>>, message STRING,"
    " version INT"
)
PROTOCOL = LineProtocol("syslog", SyslogSplitter, datagrams=True)
_PRIORITY = re.compile(r"<(\d{1,3})>")
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)"
_NAME = r"[!#-<>-\\^-~]{1,32}"
_VALUE = r'"(?:[^"\\\]]|\\.)*"'
_ELEMENT = rf"\[{_NAME}(?: {_NAME}={_VALUE})*\]"
_MODERN = re.compile(
    rf"1 (-|{_TIME}) ([!-~]{{1,255}}) ([!-~]{{1,48}}) ([!-~]{{1,128}}) ([!-~]{{1,32}})"
    rf" (-|(?:{_ELEMENT})+)(?: (.*))?",
    re.DOTALL,
)
_ELEMENTS = re.compile(rf"\[({_NAME})((?: {_NAME}={_VALUE})*)\]")
_PARAMETERS = re.compile(rf" ({_NAME})=({_VALUE})")
_ESCAPED = re.compile(r'\\(["\\\]])')
_OLD = re.compile(
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<host>\S+) "
    r"(?:(?P<app>[^\s:\[\]]{1,48})(?:\[(?P<process>\d+)\])?: ?)?.*",
    re.DOTALL,
)
_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


class SyslogMessage(NamedTuple):
    """A message, in the order of the columns but for ``received``."""

    at: datetime | None
    facility: int | None
    severity: int | None
    host: str | None = None
    app: str | None = None
    process: str | None = None
    message_id: str | None = None
    data: Sequence[dict[str, str | None]] | None = None
    message: str | None = None
    version: int | None = None


def parse_message(text: str) -> SyslogMessage:
    """Return what a message says.

    >>> parse_message("<34>1 2026-01-02T03:04:05Z web su - ID47 - failed").message
    'failed'
    """
    facility = severity = None
    found = _PRIORITY.match(text)
    if found and int(found[1]) < 192:
        facility, severity = divmod(int(found[1]), 8)
        modern = _MODERN.fullmatch(text, found.end())
        at = _time(modern[1]) if modern else None
        if modern and (at or modern[1] == "-"):
            host, app, process, message_id = (_value(modern[n]) for n in range(2, 6))
            message = (modern[7] or "").removeprefix(_BYTE_ORDER_MARK)
            data = _data(modern[6])
            return SyslogMessage(at, facility, severity, host, app, process, message_id, data, message, 1)
        old = _OLD.fullmatch(text, found.end())
        parts: dict[str, Any] = old.groupdict() if old else {}
        return SyslogMessage(None, facility, severity, **parts, message=text[found.end() :])
    return SyslogMessage(None, None, None, message=text)


def decode_messages(lines: Sequence[bytes]) -> Rows:
    """Return the rows of messages, and the number and error of each that is no text."""
    texts, bad = decode_texts(lines)
    # One by one: structured data is a grammar of its own, with escapes; about 4 µs each.
    messages = [parse_message(text) for text in texts.to_pylist()]
    schema = schemas.read(COLUMNS)
    received = pa.array([durations.now()] * len(messages), pa.int64()).cast(schemas.TIMESTAMP)
    by_name = dict(zip(SyslogMessage._fields, zip(*messages, strict=True), strict=False)) if messages else {}
    columns = {name: pa.array(values, schema.field(name).type) for name, values in by_name.items()}
    if not messages:
        return pa.RecordBatch.from_pylist([], schema), bad
    times = columns["at"].fill_null(received[0])
    columns |= {"at": times, "received": received}
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema), bad


def _value(text: str) -> str | None:
    return None if text == "-" else text


def _time(text: str) -> datetime | None:
    try:
        return None if text == "-" else datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):  # the 30th of February
        return None


def _data(text: str) -> list[dict[str, str | None]]:
    """Return every parameter with the id of its element; an element without any has a row of its own."""
    rows: list[dict[str, str | None]] = []
    for id, parameters in _ELEMENTS.findall(text) if text != "-" else ():
        pairs = _PARAMETERS.findall(parameters)
        rows += [{"id": id, "name": name, "value": _ESCAPED.sub(r"\1", value[1:-1])} for name, value in pairs]
        rows += [] if pairs else [{"id": id, "name": None, "value": None}]
    return rows
