"""What the keys of records are: a column of the value again, or something of their own.

Invariant: a key that is guessed is true of every record that was looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from headwater import record
from headwater.errors import HeadwaterError
from headwater.formats import wire
from headwater.formats.json_columns import GuessedColumn, columns_of
from headwater.formats.writer_schema import WriterSchemas

Keyed = tuple[bytes | None, dict[str, Any]]
"""The key of a record, and the fields of its value as far as they are known."""
_TYPES = ("STRING", "BIGINT", "BOOLEAN", "DATE", "TIMESTAMP", "INT", "BINARY")


@dataclass(frozen=True)
class GuessedKey:
    """The columns of a key, and its format where they are not in the value."""

    names: tuple[str, ...] = ()
    format: str | None = None
    columns: tuple[GuessedColumn, ...] = ()
    """Those that are read from the record's key."""
    notes: tuple[str, ...] = ()

    @property
    def taken(self) -> set[str]:
        """The names of columns that are not read from the value."""
        return {each.name for each in self.columns}


def of(records: Sequence[Keyed], names: set[str], writers: WriterSchemas) -> GuessedKey:
    """Return the key of records; ``names`` are the columns that their values have."""
    keys = [key for key, _ in records if key is not None]
    if not keys:
        return GuessedKey()
    if len(keys) < len(records):
        return GuessedKey(notes=("some of its records have a key, and some have none",))
    if all(len(key) >= wire.PREFIX and key[0] == 0 for key in keys):
        return _registered(keys, names, writers)
    if (name := _in_value(records)) is not None:
        return GuessedKey((name,))
    objects = [_parsed(key) for key in keys]
    if all(isinstance(each, dict) and each for each in objects):
        return _fields("json", columns_of([each for each in objects if each]))
    texts = all(_is_text(key) for key in keys)
    return _fields("text" if texts else "bytes", [_own(names, "STRING" if texts else "BINARY")])


def _in_value(records: Sequence[Keyed]) -> str | None:
    """Return the field whose text all keys are."""
    for name, value in records[0][1].items():
        simple = isinstance(value, str | int) and not isinstance(value, bool)
        if simple and all(str(row.get(name)).encode() == key for key, row in records):
            return name
    return None


def _registered(keys: Sequence[bytes], names: set[str], writers: WriterSchemas) -> GuessedKey:
    try:
        id = wire.split(keys[-1]).id
        kind = writers.kind(id)
        if kind == "AVRO":
            from headwater.formats import schema_columns  # which needs what not everybody has installed

            columns = schema_columns.of_avro(writers.get(id, kind))
            return _fields("avro", [_own(names, columns)] if isinstance(columns, str) else columns)
        if kind == "JSON":
            objects = [_parsed(wire.split(key).body) for key in keys]
            if all(isinstance(each, dict) and each for each in objects):
                return _fields("json_schema", columns_of([each for each in objects if each]))
        note = f"its keys are written with a schema of the registry, of kind {kind}"
    except (HeadwaterError, ImportError, ValueError) as error:
        told = error.message if isinstance(error, HeadwaterError) else str(error)
        note = f"its keys seem to begin with the id of a schema, of which this is known: {told}"
    return GuessedKey(notes=(note,))


def _fields(format: str, columns: Sequence[GuessedColumn]) -> GuessedKey:
    names = [each.name.lower() for each in columns]
    wrong = [each.name for each in columns if each.type not in _TYPES or not each.name]
    wrong += [name for name in names if name in record.RESERVED or names.count(name) > 1]
    if wrong:
        note = f"its keys are {format}, with fields that cannot be a key: {', '.join(map(repr, wrong))}"
        return GuessedKey(notes=(note,))
    return GuessedKey(tuple(each.name for each in columns), format, tuple(columns))


def _own(names: set[str], kind: str) -> GuessedColumn:
    """Return a column for a key without fields, under a name that the value does not have."""
    taken = {name.lower() for name in names}
    return GuessedColumn(next(name for name in ("key", "record_key", "kafka_key") if name not in taken), kind)


def _parsed(key: bytes) -> Any:
    try:
        return orjson.loads(key)
    except orjson.JSONDecodeError:
        return None


def _is_text(key: bytes) -> bool:
    try:
        return key.decode().isprintable()
    except UnicodeDecodeError:
        return False
