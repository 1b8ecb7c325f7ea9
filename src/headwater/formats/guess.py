"""How a topic that nobody has declared could be declared: a guess from its newest records.

Format first, then columns, then which of them is the key and which the event time; it is for people to
correct. Invariant: what is guessed is a declaration that can be made, and says of how many of the records
it is not true.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import orjson

from headwater import record
from headwater import topic as topics
from headwater.errors import HeadwaterError
from headwater.formats import csv_records, decoding, guessed_key, wire
from headwater.formats.guessed_time import event_time
from headwater.formats.json_columns import GuessedColumn, columns_of
from headwater.formats.writer_schema import WriterSchemas
from headwater.topic import Topic

_NAMES = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json_schema"}


class SampledRecord(NamedTuple):
    """A record as a broker has it."""

    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class DeclarationGuess:
    """A declaration of a topic, guessed."""

    topic: str
    records: int
    """How many were looked at."""
    schema: str = "JSON"
    format: str = "json"
    key: tuple[str, ...] = ()
    key_format: str | None = None
    event_time: str | None = None
    deletes: bool = False
    """Whether some have no value: a table's deletions."""
    notes: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The line of a pipeline that declares it."""
        kind = "table" if self.deletes and self.key else "source"
        name = re.sub(r"\W", "_", self.topic)
        name = f"_{name}" if name[:1].isdigit() else name
        options = {
            "topic": self.topic if name != self.topic else None,
            "key": self._key(),
            "event_time": self.event_time,
            "format": self.format if self.format != "json" else None,
            "key_format": self.key_format,
        }
        given = [f"{option}={_quoted(value)}" for option, value in options.items() if value is not None]
        return f"{kind}({', '.join([_quoted(name), _quoted(self.schema), *given])})"

    def _key(self) -> str | list[str] | None:
        """Return the key as an argument: names that are more than a word in a list."""
        plain = all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in self.key)
        return (",".join(self.key) if plain else list(self.key)) or None

    def declared(self) -> Topic:
        """Return the topic that it declares."""
        return topics.create(
            self.topic,
            self.schema,
            key=self.key,
            event_time=self.event_time,
            cleanup="compact" if self.deletes and self.key else "delete",
            format=self.format,
            key_format=self.key_format,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, with the line."""
        settings = {"schema": self.schema, "key": list(self.key), "event_time": self.event_time}
        formats = {"format": self.format, "key_format": self.key_format}
        return {**settings, **formats, "records": self.records, "line": self.line, "notes": list(self.notes)}


@dataclass
class _Values:
    """What the values of a sample are, as far as one can see."""

    format: str
    columns: list[GuessedColumn] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Those that have fields by name, to compare keys with."""
    notes: list[str] = field(default_factory=list)


def guess(topic: str, samples: Sequence[SampledRecord], writers: WriterSchemas) -> DeclarationGuess:
    """Return how a topic could be declared, by some of its records."""
    values = [each.value for each in samples if each.value is not None]
    if not values:
        return DeclarationGuess(topic, len(samples), notes=("it has no records with a value",))
    found = _values(values, writers)
    key = guessed_key.of(
        [(each.key, row) for each, row in zip(_present(samples), _rows(found, values), strict=True)],
        {each.name for each in found.columns},
        writers,
    )
    columns = _declarable(
        [*key.columns, *(each for each in found.columns if each.name not in key.taken)], found
    )
    made = DeclarationGuess(
        topic=topic,
        records=len(samples),
        schema=", ".join(each.ddl for each in columns) if columns else "JSON",
        format=found.format,
        key=key.names if columns else (),
        key_format=key.format if columns else None,
        event_time=event_time(columns),
        deletes=any(each.value is None for each in samples),
        notes=(*found.notes, *key.notes),
    )
    return _checked(made, samples, writers)


def _present(samples: Sequence[SampledRecord]) -> list[SampledRecord]:
    return [each for each in samples if each.value is not None]


def _rows(found: _Values, values: Sequence[bytes]) -> list[dict[str, Any]]:
    return found.rows if len(found.rows) == len(values) else [{} for _ in values]


def _values(values: Sequence[bytes], writers: WriterSchemas) -> _Values:
    if all(len(value) >= wire.PREFIX and value[0] == 0 for value in values):
        return _registered(values, writers)
    objects = _parsed(values)
    if objects is not None:
        if not all(isinstance(each, dict) for each in objects):
            return _Values("json", notes=["its values are JSON, and not all of them objects"])
        return _Values("json", columns_of(objects), objects)
    if (columns := csv_records.guessed_columns(values)) is not None:
        note = "CSV has no names for its columns: c1, c2 and so on are ours"
        return _Values("csv", columns, notes=[note])
    texts = [_text(value) for value in values]
    if None not in texts:
        return _Values("text", [GuessedColumn("line", "STRING")])
    note = 'its values are no text; if they are Avro, name the schema: format="avro:FILE.avsc"'
    return _Values("bytes", [GuessedColumn("body", "BINARY")], notes=[note])


def _registered(values: Sequence[bytes], writers: WriterSchemas) -> _Values:
    """Return what a registry says of values that begin with the id of a schema; the newest says it."""
    id, body = wire.split(values[-1])
    try:
        kind = writers.kind(id)
        if kind == "JSON":
            objects = _parsed([wire.split(value).body for value in values])
            rows = [each for each in objects or () if isinstance(each, dict)]
            return _Values(_NAMES[kind], columns_of(rows), rows)
        from headwater.formats import schema_columns  # which needs what not everybody has installed

        schema = writers.get(id, kind)
        if kind == "PROTOBUF":
            return _Values("protobuf", schema_columns.of_protobuf(schema, wire.message_path(body)[0]))
        columns = schema_columns.of_avro(schema)
        return _Values("avro", [GuessedColumn("value", columns)] if isinstance(columns, str) else columns)
    except (HeadwaterError, ImportError, ValueError) as error:
        told = error.message if isinstance(error, HeadwaterError) else str(error)
        note = f"its values seem to begin with the id of a schema, of which this is known: {told}"
        return _Values("bytes", [GuessedColumn("body", "BINARY")], notes=[note])


def _parsed(values: Sequence[bytes]) -> list[Any] | None:
    try:
        return [orjson.loads(value) for value in values]
    except orjson.JSONDecodeError:
        return None


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _declarable(columns: Sequence[GuessedColumn], found: _Values) -> list[GuessedColumn]:
    """Return the columns that a topic can have."""
    seen: dict[str, GuessedColumn] = {}
    for each in columns:
        if not each.name or each.name.lower() in record.RESERVED or each.name.lower() in seen:
            found.notes.append(f'field "{each.name}" has a name that no column can have, and is left out')
        else:
            seen[each.name.lower()] = each
    return list(seen.values())


def _checked(
    made: DeclarationGuess, samples: Sequence[SampledRecord], writers: WriterSchemas
) -> DeclarationGuess:
    """Return a guess with the number of records that it is not true of."""
    try:
        topic = made.declared()
    except HeadwaterError as error:  # a type that cannot be nested, or so: the values themselves can be had
        schema, format = ("JSON", "json") if made.format == "json" else ("body BINARY", "bytes")
        notes = (*made.notes, f"no columns were found: {error.message}")
        return DeclarationGuess(made.topic, made.records, schema, format, notes=notes)
    values = [each.value for each in samples if each.value is not None]
    _, bad = decoding.decode_values(values, topic, writers)
    if not bad:
        return made
    told = f"{len(bad)} of {len(values)} records do not fit: {bad[0][1].message}"
    return replace(made, notes=(*made.notes, told))


def _quoted(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False)
