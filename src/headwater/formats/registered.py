"""Values that name the schema they were written with: each is read with its own.

Records of one partition may have been written with many versions of a schema, in any order. The libraries of
Avro and Protobuf read one value at a time, and a value's length is known only by reading it, so this goes row
by row as far as Python values; from there on it goes by columns. Invariant: as in ``formats``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headwater.errors import HeadwaterError, RowError
from headwater.formats import typed_rows, wire
from headwater.formats.typed_rows import RowForm
from headwater.formats.writer_schema import WriterSchema, WriterSchemas
from headwater.topic import Topic
from headwater.values.bulk import Bad, Rows

ReadValue = Callable[[bytes], Any]
"""Reads one value: a mapping of fields, or ``Bare``."""


class Bare(NamedTuple):
    """A value that is no record of fields: it is the topic's only column."""

    value: Any


@dataclass(frozen=True)
class Codec:
    """How values of one kind of schema are read."""

    kind: str
    """As the registry calls it."""
    title: str
    reader: Callable[[WriterSchema], ReadValue]
    form: RowForm


def decode(values: Sequence[bytes], topic: Topic, writers: WriterSchemas, codec: Codec) -> Rows:
    """Return the rows of values that name their schema, and those that do not fit."""
    found: dict[bytes, ReadValue] = {}
    refused: dict[bytes, RowError] = {}

    def read(value: bytes) -> Any:
        prefix = wire.prefix(value)
        reader = found.get(prefix)
        if reader is None:
            if prefix in refused:
                raise refused[prefix].with_traceback(None)  # which would grow with each value
            try:
                reader = found[prefix] = _reader(wire.split(value).id, writers, codec)
            except RowError as error:
                refused[prefix] = error
                raise
        return reader(value[len(prefix) :])

    return decode_each(values, topic, read, codec)


def decode_each(values: Iterable[bytes], topic: Topic, read: ReadValue, codec: Codec) -> Rows:
    """Return the rows of values that one function reads, and those that do not fit."""
    rows: list[Mapping[str, Any]] = []
    places: list[int] = []
    bad: list[Bad] = []
    for index, value in enumerate(values):
        try:
            rows.append(_row(read(value), topic, codec))
            places.append(index)
        except RowError as error:
            bad.append((index, error))
        except HeadwaterError:
            raise  # the registry is away
        except Exception as error:  # of bytes that are something else, a library may raise anything
            bad.append((index, _unreadable(topic, codec, error)))
    batch, misfits = typed_rows.fit(rows, topic, codec.form)
    return batch, sorted([*bad, *((places[at], error) for at, error in misfits)], key=lambda each: each[0])


def _reader(id: int | str, writers: WriterSchemas, codec: Codec) -> ReadValue:
    try:
        return codec.reader(writers.get(id, codec.kind))
    except HeadwaterError:
        raise
    except Exception as error:  # as above
        detail = _first_line(error)
        raise RowError(f"schema {id} cannot be read as {codec.title}", detail=detail) from None


def _row(read: Any, topic: Topic, codec: Codec) -> Mapping[str, Any]:
    if not isinstance(read, Bare):
        return read  # type: ignore[no-any-return]
    names = topic.schema.names
    if len(names) > 1:
        raise RowError(
            f'{codec.title} value has no fields, and topic "{topic.name}" has the columns {", ".join(names)}',
            detail=f"got {read.value!r:.80}",
        )
    return {names[0]: read.value}


def _unreadable(topic: Topic, codec: Codec, error: Exception) -> RowError:
    return RowError(f'value is not {codec.title}, for topic "{topic.name}"', detail=_first_line(error))


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
