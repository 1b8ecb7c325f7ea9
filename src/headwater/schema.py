"""Schemas: Spark DDL strings on the outside, Arrow inside, and the rule by which they may change.

The log must work without a JVM, so the DDL is read here and not by Spark. Invariant:
``parse(ddl(schema)) == schema`` for every schema this module can produce.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from headwater.errors import SchemaError, nearest
from headwater.names import backquoted

TIMESTAMP = pa.timestamp("us", "UTC")
VARIANT = {b"headwater.type": b"VARIANT"}
"""Field metadata of a column that holds any JSON value, stored as its text."""

DEEPEST = 24
"""How many types may lie in one another: Arrow reads no more than 64 levels, and a map takes two."""

_SIMPLE: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
_ALIASES = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
}
_NESTED = ("ARRAY", "MAP", "STRUCT", "DECIMAL", "VARCHAR", "CHAR", "VARIANT")
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|([A-Za-z_][A-Za-z_0-9]*)|(\d+)|('(?:[^'\\]|\\.)*')|([<>(),:]))")


class _Type(NamedTuple):
    """An Arrow type, and whether the field that has it holds free JSON."""

    arrow: pa.DataType
    variant: bool = False


def parse(text: str) -> pa.Schema:
    """Read a Spark DDL string into an Arrow schema.

    ``JSON`` alone stands for a topic with a free JSON value: one column, ``value VARIANT``.

    >>> parse("id BIGINT NOT NULL, tags ARRAY<STRING>").names
    ['id', 'tags']
    """
    if text.strip().upper() == "JSON":
        text = "value VARIANT"
    return pa.schema(_Reader(text).fields(closing=None))


def read(schema: str | pa.Schema) -> pa.Schema:
    """Return the schema that a DDL string or an Arrow schema stands for, in the form ``parse`` gives.

    An Arrow schema goes through its DDL, so that what is stored as text is what is in force.
    """
    if isinstance(schema, pa.Schema):
        return parse(ddl(schema))
    if isinstance(schema, str):
        return parse(schema)
    raise SchemaError(
        f"a schema cannot be a {type(schema).__name__}",
        hint='write Spark DDL, as in "id BIGINT NOT NULL, at TIMESTAMP", or pass an Arrow schema',
    )


def ddl(schema: pa.Schema) -> str:
    """Write an Arrow schema as a Spark DDL string."""
    for field in schema:
        if _depth(field.type) > DEEPEST:
            raise SchemaError(
                f'column "{field.name}" is nested too deeply',
                detail=f"at most {DEEPEST} types may lie in one another",
            )
    return ", ".join(f"{_name(f.name)} {type_name(f)}" + ("" if f.nullable else " NOT NULL") for f in schema)


def type_name(field: pa.Field) -> str:
    """Return the Spark name of a field's type."""
    return "VARIANT" if is_variant(field) else _type_name(field.type)


def is_variant(field: pa.Field) -> bool:
    """Tell whether a column holds free JSON."""
    return field.metadata is not None and field.metadata.get(b"headwater.type") == b"VARIANT"


def check_evolution(old: pa.Schema, new: pa.Schema) -> None:
    """Refuse any change of schema except nullable columns added at the end."""
    hint = "only nullable columns may be added, at the end; for anything else make a new topic and copy"
    for index, field in enumerate(old):
        if field.name not in new.names:
            raise SchemaError(f'column "{field.name}" cannot be removed', hint=hint)
        if new.names.index(field.name) != index:
            raise SchemaError(f'column "{field.name}" cannot be moved', hint=hint)
        if not new.field(index).equals(field, check_metadata=True):
            was, now = ddl(pa.schema([field])), ddl(pa.schema([new.field(index)]))
            raise SchemaError(
                f'column "{field.name}" cannot change', detail=f"it is `{was}`, asked for `{now}`", hint=hint
            )
    for field in list(new)[len(old) :]:
        if not field.nullable:
            raise SchemaError(
                f'new column "{field.name}" must be nullable',
                detail="records that are already stored have no value for it",
                hint="leave out NOT NULL",
            )


def evolve(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give a batch written with an older schema the columns it lacks, as nulls."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    columns = [
        batch.column(field.name) if field.name in batch.schema.names else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _name(name: str) -> str:
    if re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name):
        return name
    return backquoted(name)


def _depth(arrow: pa.DataType) -> int:
    """Return how many nested types lie in one another; beyond the deepest allowed it may be more."""
    level, depth = [arrow], 0
    while depth <= DEEPEST and (level := [each for each in level if pa.types.is_nested(each)]):
        level = [child for each in level for child in _children(each)]
        depth += 1
    return depth


def _children(arrow: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(arrow):
        return [arrow.key_type, arrow.item_type]
    return [arrow.field(number).type for number in range(arrow.num_fields)]


def _type_name(arrow: pa.DataType) -> str:
    for name, simple in _SIMPLE.items():
        if arrow == simple:
            return name
    if pa.types.is_decimal(arrow):
        return f"DECIMAL({arrow.precision},{arrow.scale})"
    if pa.types.is_map(arrow):
        return f"MAP<{_type_name(arrow.key_type)}, {_type_name(arrow.item_type)}>"
    if pa.types.is_list(arrow):
        return f"ARRAY<{_type_name(arrow.value_type)}>"
    if pa.types.is_struct(arrow):
        inner = ", ".join(
            f"{_name(f.name)}: {type_name(f)}" + ("" if f.nullable else " NOT NULL") for f in arrow
        )
        return f"STRUCT<{inner}>"
    raise SchemaError(f"Arrow type {arrow} has no Spark counterpart")


class _Reader:
    """A recursive-descent reader over the tokens of one DDL string."""

    def __init__(self, text: str):
        self.text = text
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error(f"cannot read {text[at:].strip()[:20]!r}")
            self.tokens.append(match[0].strip())
            at = match.end()
        self.at = 0
        self.depth = 0

    def error(self, reason: str) -> SchemaError:
        return SchemaError(
            f'invalid schema "{self.text[:200]}"',
            detail=reason,
            hint='write Spark DDL, as in "id BIGINT NOT NULL, at TIMESTAMP, tags ARRAY<STRING>"',
        )

    def peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, what: str) -> str:
        token = self.peek()
        if token is None:
            raise self.error(f"{what} expected at the end")
        self.at += 1
        return token

    def expect(self, token: str) -> None:
        found = self.take(f'"{token}"')
        if found != token:
            raise self.error(f'"{token}" expected, found "{found}"')

    def accept(self, *words: str) -> bool:
        if [t.upper() for t in self.tokens[self.at : self.at + len(words)]] != list(words):
            return False
        self.at += len(words)
        return True

    def fields(self, closing: str | None) -> list[pa.Field]:
        fields = [self.field()]
        while self.accept(","):
            fields.append(self.field())
        if self.peek() != closing:
            raise self.error(f'"," or {closing or "the end"!r} expected, found "{self.peek()}"')
        seen: set[str] = set()
        for field in fields:
            if field.name.lower() in seen:
                raise self.error(f'column "{field.name}" appears twice')
            seen.add(field.name.lower())
        return fields

    def field(self) -> pa.Field:
        name = self.take("a column name")
        if name[0] == "`":
            name = name[1:-1].replace("``", "`")
        elif not re.match(r"[A-Za-z_]", name):
            raise self.error(f'a column name expected, found "{name}"')
        self.accept(":")
        kind = self.type(name)
        nullable = not self.accept("NOT", "NULL")
        if self.accept("COMMENT"):
            self.take("a comment")
        return pa.field(name, kind.arrow, nullable, VARIANT if kind.variant else None)

    def type(self, column: str) -> _Type:
        written = self.take(f'a type for column "{column}"')
        name = _ALIASES.get(written.upper(), written.upper())
        if name in _SIMPLE:
            return _Type(_SIMPLE[name])
        special: dict[str, Callable[[str], pa.DataType]] = {
            "ARRAY": self.array, "MAP": self.map, "STRUCT": self.struct,
            "DECIMAL": self.decimal, "VARCHAR": self.text_type, "CHAR": self.text_type,
        }  # fmt: skip
        if name == "VARIANT":
            return _Type(pa.string(), variant=True)
        if name not in special:
            known = nearest(name, [*_SIMPLE, *_ALIASES, *_NESTED])
            raise SchemaError(
                f'column "{column}" has an unknown type "{written}"',
                hint=known or "known types: " + ", ".join([*_SIMPLE, *_NESTED]),
            )
        nests = name in ("ARRAY", "MAP", "STRUCT")
        self.depth += nests
        if self.depth > DEEPEST:
            raise self.error(f'column "{column}" is nested too deeply: over {DEEPEST} types in one another')
        made = _Type(special[name](column))
        self.depth -= nests
        return made

    def plain(self, column: str) -> pa.DataType:
        kind = self.type(column)
        if kind.variant:
            raise self.error(f'VARIANT inside ARRAY or MAP is not supported (column "{column}")')
        return kind.arrow

    def array(self, column: str) -> pa.DataType:
        self.expect("<")
        inner = self.plain(column)
        self.expect(">")
        return pa.list_(inner)

    def map(self, column: str) -> pa.DataType:
        self.expect("<")
        key = self.plain(column)
        self.expect(",")
        value = self.plain(column)
        self.expect(">")
        return pa.map_(key, value)

    def struct(self, column: str) -> pa.DataType:
        self.expect("<")
        fields = self.fields(closing=">")
        self.expect(">")
        if any(is_variant(f) for f in fields):
            raise self.error(f'VARIANT inside STRUCT is not supported (column "{column}")')
        return pa.struct(fields)

    def decimal(self, column: str) -> pa.DataType:
        precision, scale = 10, 0
        if self.accept("("):
            precision = self.number()
            if self.accept(","):
                scale = self.number()
            self.expect(")")
        if not (0 < precision <= 38 and 0 <= scale <= precision):
            raise self.error(f'DECIMAL({precision},{scale}) of column "{column}" is out of range')
        return pa.decimal128(precision, scale)

    def text_type(self, column: str) -> pa.DataType:
        self.expect("(")
        self.number()
        self.expect(")")
        return pa.string()

    def number(self) -> int:
        token = self.take("a number")
        if not token.isdigit():
            raise self.error(f'a number expected, found "{token}"')
        return int(token)
