"""In which form other programs write a topic's records: the names of formats, as declarations have them.

A schema in a file is read when a topic is declared, and kept in the declaration: whoever reads the topic
later may be in another directory, or on another machine. Invariant: a format that ``read`` returns means
the same everywhere.
"""

from __future__ import annotations

import json
from pathlib import Path

from headwater.errors import TopicError, nearest

JSON = "json"
"""A JSON object of the columns: what Headwater itself writes to a broker."""
RAW_AVRO = "avro:"
"""What stands before the schema of Avro that has no registry."""
NAMES = (JSON, "avro", "protobuf", "json_schema", "csv", "text", "bytes")
WHOLE = {"text": "STRING", "bytes": "BINARY"}
"""Formats of which the whole value goes into one column, with that column's type."""


def read(what: str, format: object) -> str:
    """Return a format as it is kept, or refuse it; ``what`` is what it was given as.

    >>> read("format", "csv")
    'csv'
    >>> read("format", 'avro:{"type": "string"}')
    'avro:{"type":"string"}'
    """
    if not isinstance(format, str):
        raise TopicError(f"{what} cannot be {format!r:.60}", hint=_CHOICES)
    if format.startswith(RAW_AVRO):
        return RAW_AVRO + _avro_schema(what, format.removeprefix(RAW_AVRO))
    if format not in NAMES:
        raise TopicError(f'{what} cannot be "{format:.60}"', hint=nearest(format, NAMES) or _CHOICES)
    return format


def name(format: str) -> str:
    """Return a format's name, without the schema that it brings.

    >>> name("csv"), name('avro:{"type":"string"}')
    ('csv', 'avro')
    """
    return "avro" if format.startswith(RAW_AVRO) else format


def _avro_schema(what: str, given: str) -> str:
    """Return a schema as compact JSON, from its text or from the file that is named."""
    text = given if given.lstrip()[:1] in ("{", "[", '"') else _file(what, given)
    try:
        return json.dumps(json.loads(text), separators=(",", ":"))
    except (ValueError, RecursionError) as error:
        raise TopicError(f"the Avro schema of {what} is not JSON", detail=str(error)) from None


def _file(what: str, path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, ValueError) as error:
        raise TopicError(
            f'the Avro schema "{path:.200}" of {what} cannot be read',
            detail=str(error),
            hint='name a file, as in format="avro:orders.avsc"',
        ) from None


_CHOICES = "formats: " + ", ".join(NAMES) + ', and "avro:FILE.avsc" for Avro without a registry'
