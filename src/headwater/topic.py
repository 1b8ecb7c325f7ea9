"""What a topic is declared to be, and which declarations are refused.

Invariant: a ``Topic`` that exists is valid; ``create`` and ``altered`` are the only ways to one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal

import pyarrow as pa

from headwater import computed as computing
from headwater import record, wire_format
from headwater import schema as schemas
from headwater.computed import Computed
from headwater.durations import interval, interval_text
from headwater.errors import SchemaError, TopicError, UsageError, nearest

Cleanup = Literal["delete", "compact"]

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")

SIDE_SUFFIXES = (".late", ".dead")
"""How the topics end that a pipeline makes for rows that it sets aside."""
TOMBSTONE_TIME = timedelta(days=1)
"""How long a compacted topic keeps the mark of a deleted key when it has no retention."""


@dataclass(frozen=True)
class Topic:
    """A named stream of records of one schema, in partitions."""

    name: str
    schemas: tuple[pa.Schema, ...]
    """Every schema the topic has had, oldest first; the last one is in force."""
    key: tuple[str, ...] = ()
    event_time: str | None = None
    partitions: int = 1
    retention: timedelta | None = None
    """Age at which records go; in a compacted topic, the age at which tombstones go."""
    retention_bytes: int | None = None
    cleanup: Cleanup = "delete"
    archive: str | None = None
    """Directory to which retention moves segments as Parquet, instead of deleting them."""
    id: str = ""
    """Its identity, given when it is made: a later topic of the same name has another."""
    computed: tuple[Computed, ...] = ()
    """Columns that reading it adds: key and event time may be among them."""
    producer: str | None = None
    """The column that names the producer of a record, where that is not who has sent it."""
    format: str = wire_format.JSON
    """How another program writes the values of its records on a broker."""
    key_format: str | None = None
    """How it writes their keys, if the key's columns are to be read from there and not from the value."""

    @property
    def schema(self) -> pa.Schema:
        """The schema in force."""
        return self.schemas[-1]

    @property
    def columns(self) -> pa.Schema:
        """The columns of its records, and those that are computed."""
        return pa.schema([*self.schema, *(pa.field(each.name, each.type) for each in self.computed)])

    @property
    def read_schema(self) -> pa.Schema:
        """The schema of what is read: every column nullable, and ``_deleted`` if compacted."""
        return record.read_schema(self.columns, self.compacted)

    @property
    def meta_schema(self) -> pa.Schema:
        """The schema of what is read with all metadata."""
        return record.read_schema(self.columns, self.compacted, meta=True)

    @property
    def computed_names(self) -> frozenset[str]:
        """The names of what is computed."""
        return frozenset(each.name for each in self.computed)

    @property
    def read_otherwise(self) -> bool:
        """Whether reading it gives more than what is stored."""
        return bool(self.computed) or self.producer is not None

    @property
    def stored_event_time(self) -> str | None:
        """The event-time column, if it is one of the records."""
        return None if self.event_time in self.computed_names else self.event_time

    @property
    def free(self) -> bool:
        """Whether its value is any JSON, not an object of columns: the schema ``JSON``."""
        field = self.schema.field(0)
        return len(self.schema) == 1 and field.name == "value" and schemas.is_variant(field)

    @property
    def plain(self) -> bool:
        """Whether its records are written as Headwater writes them unless it is told otherwise."""
        return self.format == wire_format.JSON and self.key_format is None

    @property
    def writable(self) -> bool:
        """Whether Headwater can append to it."""
        return self.format in (wire_format.JSON, "avro") and self.key_format is None

    @property
    def value_schema(self) -> pa.Schema:
        """The columns that a record's value holds: all, but for those that are read from its key."""
        if self.key_format is None:
            return self.schema
        return pa.schema([field for field in self.schema if field.name not in self.key])

    @property
    def compacted(self) -> bool:
        """Whether only the newest record of each key is kept."""
        return self.cleanup == "compact"

    def settings(self) -> dict[str, Any]:
        """Return the declaration as ``create`` takes it."""
        written = {each.name: each.declared for each in self.computed}
        return {
            "schema": schemas.ddl(self.schema),
            "key": [written.get(name, name) for name in self.key],
            "event_time": written.get(self.event_time or "", self.event_time),
            **self._reading(),
            "partitions": self.partitions,
            "retention": interval_text(self.retention) if self.retention else None,
            "retention_bytes": self.retention_bytes,
            "cleanup": self.cleanup,
            "archive": self.archive,
            "format": self.format,
            "key_format": self.key_format,
        }

    def _reading(self) -> dict[str, Any]:
        """Return what is declared of reading alone."""
        told = {*self.key, self.event_time}
        metadata = [each.declared for each in self.computed if each.name not in told]
        declared = {"metadata": metadata, "producer": self.producer}
        return {name: value for name, value in declared.items() if value}


def create(
    name: str,
    schema: str | pa.Schema,
    *,
    key: str | Sequence[str] | None = (),
    event_time: str | None = None,
    partitions: int = 1,
    retention: str | timedelta | None = None,
    retention_bytes: int | None = None,
    cleanup: Cleanup = "delete",
    archive: str | os.PathLike[str] | None = None,
    metadata: Sequence[str] = (),
    producer: str | None = None,
    format: str = wire_format.JSON,
    key_format: str | None = None,
) -> Topic:
    """Check a declaration and return the topic it declares."""
    parsed, keys = schemas.read(schema), computing.key_texts(key)
    made = {
        text: computing.column(text, parsed, default)
        for text, default in (*((each, "key") for each in keys), (event_time, "event_time"))
        if isinstance(text, str) and computing.is_expression(text, parsed)
    }
    topic = Topic(
        name=name,
        schemas=(parsed,),
        computed=(*made.values(), *(computing.metadata(each, parsed) for each in metadata)),
        producer=producer,
        key=tuple(made[each].name if each in made else each for each in keys),
        event_time=made[event_time].name if event_time in made else event_time,
        partitions=partitions,
        retention=interval(retention) if retention is not None else None,
        retention_bytes=retention_bytes,
        cleanup=cleanup,
        archive=_path(archive),
        format=wire_format.read("format", format),
        key_format=None if key_format is None else wire_format.read("key_format", key_format),
    )
    _check(topic)
    return topic


def altered(topic: Topic, **changes: Any) -> Topic:
    """Return the topic with its schema evolved or its settings changed, or refuse."""
    for fixed in ("name", "key", "event_time"):
        if fixed in changes:
            raise TopicError(
                f'{fixed} of topic "{topic.name}" cannot be changed',
                detail="stored records were placed and timed by it",
                hint="make a new topic and copy the records",
            )
    known = ("schema", "partitions", "retention", "retention_bytes", "cleanup", "archive")
    for setting in changes:
        if setting not in known:
            raise UsageError(
                f'topic has no setting "{setting}"',
                hint=nearest(setting, known) or "settings: " + ", ".join(known),
            )
    schema = changes.pop("schema", None)
    if changes.get("retention") is not None:
        changes["retention"] = interval(changes["retention"])
    if "archive" in changes:
        changes["archive"] = _path(changes["archive"])
    new = replace(topic, **changes)
    if topic.compacted and not new.compacted:
        raise TopicError(
            f'topic "{topic.name}" cannot stop being compacted',
            detail="its tombstones would become rows of nulls",
            hint="make a new topic and copy the records",
        )
    if schema is not None:
        parsed = schemas.read(schema)
        schemas.check_evolution(topic.schema, parsed)
        if len(parsed) > len(topic.schema):
            if topic.free:
                raise SchemaError(
                    f'topic "{topic.name}" holds free JSON values and cannot get columns',
                    hint="make a new topic and copy the records",
                )
            new = replace(new, schemas=(*topic.schemas, parsed))
    _check(new)
    if new.partitions < topic.partitions:
        raise TopicError(
            f'topic "{topic.name}" cannot have fewer partitions',
            detail=f"it has {topic.partitions}, asked for {new.partitions}",
        )
    return new


def overlaid(topic: Topic, declared: Topic) -> Topic:
    """Return a topic with what a declaration computes of its records, be it its key and its time."""
    computed = declared.computed_names
    return replace(
        topic,
        computed=declared.computed,
        producer=declared.producer,
        event_time=declared.event_time if declared.event_time in computed else topic.event_time,
        key=declared.key if computed.intersection(declared.key) else topic.key,
    )


def stored(topic: Topic) -> Topic:
    """Return a topic as those who append to it see it: without what is computed when it is read."""
    return replace(topic, computed=(), producer=None, event_time=topic.stored_event_time)


def _path(archive: str | os.PathLike[str] | None) -> str | None:
    path = os.fspath(archive) if isinstance(archive, os.PathLike) else archive
    if path is not None and not (isinstance(path, str) and path and "\0" not in path):
        raise TopicError(
            f"archive cannot be {archive!r:.60}", hint='name a directory, as in archive="archive"'
        )
    return path


def check_name(what: str, name: str) -> None:
    """Refuse a name that not every backend can take, or that is hidden in a directory."""
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise TopicError(
            f'invalid {what} name "{name!s:.220}"',
            hint='use letters, digits, ".", "_" and "-", at most 200 of them, and no "." first',
        )


def _check(topic: Topic) -> None:
    check_name("topic", topic.name)
    _check_columns(topic)
    _check_formats(topic)
    if not _is_number(topic.partitions) or not 1 <= topic.partitions <= 1024:
        raise TopicError(f"a topic has 1 to 1024 partitions, not {topic.partitions!r:.60}")
    size = topic.retention_bytes
    if size is not None and not (_is_number(size) and 0 < size < 1 << 63):
        raise TopicError(
            f"retention_bytes must be positive, not {size!r:.60}",
            hint="write a whole number of bytes, as in 10_000_000_000",
        )
    if topic.cleanup not in ("delete", "compact"):
        raise TopicError(f'cleanup is "delete" or "compact", not "{topic.cleanup}"')
    if topic.compacted and not topic.key:
        raise TopicError(
            f'compacted topic "{topic.name}" needs a key',
            detail="compaction keeps the newest record of each key",
            hint="name the key column(s)",
        )
    if topic.compacted and (topic.retention_bytes is not None or topic.archive is not None):
        raise TopicError(
            f'compacted topic "{topic.name}" takes neither retention_bytes nor archive',
            detail="it keeps the newest record of each key for ever; retention is its tombstones' time",
        )


def _check_columns(topic: Topic) -> None:
    if len(set(topic.columns.names)) < len(topic.columns.names):
        raise TopicError(
            f'topic "{topic.name}" has a column twice', detail=", ".join(topic.columns.names), hint="use AS"
        )
    for name in topic.schema.names:
        if name.lower() in record.RESERVED:
            raise SchemaError(
                f'column name "{name}" is reserved', hint="it is the name of a record's metadata"
            )
    if len(set(topic.key)) < len(topic.key):
        raise TopicError(f'key of topic "{topic.name}" has a column twice', detail=", ".join(topic.key))
    for name in topic.key:
        _require(topic, name)
        kind = topic.columns.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_floating(kind):
            raise TopicError(
                f'column "{name}" cannot be a key',
                detail=f"{schemas.type_name(topic.columns.field(name))} values have no one text form",
            )
    if topic.producer is not None:
        _require(topic, topic.producer)
        _check_producer(topic, topic.columns.field(topic.producer))
    for each in topic.computed:
        if topic.compacted and each.name in topic.key and each.columns != {"_key"}:
            raise TopicError(
                f'key "{each.text}" of table "{topic.name}" is not computed from the record\'s key',
                detail="a deletion has nothing but its key",
                hint='write it over _key, as in key="CAST(_key AS STRING)", or name a column',
            )
    if topic.event_time is not None:
        _require(topic, topic.event_time)
        _check_time(topic, topic.columns.field(topic.event_time))


def _check_producer(topic: Topic, column: pa.Field) -> None:
    if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
        raise TopicError(
            f'column "{column.name}" of topic "{topic.name}" cannot name a producer',
            detail=f"it is {schemas.type_name(column)}",
            hint="name a STRING or an integer column",
        )


def _check_time(topic: Topic, column: pa.Field) -> None:
    if pa.types.is_timestamp(column.type):
        return
    computed = {each.name: each.text for each in topic.computed}
    text = computed.get(column.name, column.name)
    hint = "declare it as TIMESTAMP, or name another column"
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        hint += f'; a source computes one: "timestamp_millis({text})", or "timestamp_seconds({text})"'
    elif pa.types.is_string(column.type):
        hint += f'; a source computes one: "to_timestamp({text})", or with a pattern behind the column'
    what = "event-time expression" if column.name in computed else "event-time column"
    detail = f"it is {schemas.type_name(column)}"
    raise TopicError(f'{what} "{text}" is not a TIMESTAMP', detail=detail, hint=hint)


def _check_formats(topic: Topic) -> None:
    """Refuse columns that a format has no place for."""
    if topic.key_format is not None:
        if not topic.key:
            raise TopicError(
                f'topic "{topic.name}" has a key_format and no key', hint="name the column(s) of the key"
            )
        if not topic.value_schema.names:
            raise TopicError(
                f'topic "{topic.name}" has no column but those of its key',
                detail="with a key_format they are read from the record's key, and none from its value",
            )
        if topic.computed_names.intersection(topic.key):
            raise TopicError(
                f'topic "{topic.name}" has a key_format and a key that is computed',
                hint="name the column(s) that the record's key holds",
            )
        keys = pa.schema([topic.schema.field(name) for name in topic.key])
        _check_whole(topic, "key_format", topic.key_format, keys)
    _check_whole(topic, "format", topic.format, topic.value_schema)


def _check_whole(topic: Topic, what: str, format: str, columns: pa.Schema) -> None:
    wanted = wire_format.WHOLE.get(format)
    found = [schemas.type_name(field) for field in columns]
    if wanted is not None and found != [wanted]:
        raise TopicError(
            f'topic "{topic.name}" needs one {wanted} column for {what} "{format}"',
            detail=f"it has {schemas.ddl(columns)}",
        )


def _require(topic: Topic, column: str) -> None:
    if column not in topic.columns.names:
        known = topic.columns.names
        hint = nearest(str(column), known) or "its columns: " + ", ".join(known)
        raise TopicError(f'topic "{topic.name}" has no column "{column}"', hint=hint)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
