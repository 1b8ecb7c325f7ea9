"""Columns of a topic that are computed when it is read: when an event happened, its key, its metadata.

A source declares them where no column of the records says it: ``event_time="timestamp_millis(at)"``. They are
of those who read, and never stored. Invariant: they depend on the record alone: every reading has the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from headwater import expressions, record
from headwater.errors import TopicError, nearest
from headwater.expressions import Expression
from headwater.names import listed
from headwater.schema import TIMESTAMP

METADATA: dict[str, pa.DataType] = {
    "_partition": record.META["_partition"],
    "_offset": record.META["_offset"],
    "_timestamp": TIMESTAMP,  # of the record: when the log stored it, or what its producer wrote on Kafka
    "_key": pa.binary(),
    "_headers": record.HEADERS,
    "_producer": record.META["_producer"],
}
"""What an expression may name beside the columns, and what a source may have as columns."""

_WORD = re.compile(r"`[^`]+`|\w+")


@dataclass(frozen=True)
class Computed:
    """A column that is computed."""

    name: str
    text: str
    """The expression."""
    type: pa.DataType

    @property
    def declared(self) -> str:
        """The expression with its name, as one writes it."""
        return f"{self.text} AS {self.name}"

    @property
    def columns(self) -> frozenset[str]:
        """The columns and the metadata that it reads."""
        return _parsed(self.text).columns

    def over(self, batch: pa.RecordBatch) -> pa.Array:
        """Return it for each row of a batch, which has the metadata that it names."""
        return _parsed(self.text).over(batch)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Expression:
    return expressions.parse(text)


def key_texts(key: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns and expressions of a key, as users write it, or refuse what is none."""
    if isinstance(key, str):
        return tuple(expressions.split(key)) if "(" in key or "[" in key else listed(key)
    if key is None:
        return ()
    if not isinstance(key, Sequence) or not all(isinstance(name, str) for name in key):
        raise TopicError(f"a key cannot be {key!r:.60}", hint='name its columns, as in key="shop,day"')
    return tuple(key)


def is_expression(text: str, schema: pa.Schema) -> bool:
    """Tell whether a text is more than the name of a column."""
    return text not in schema.names and (_WORD.fullmatch(text.strip()) is None or text in METADATA)


def column(text: str, schema: pa.Schema, default: str) -> Computed:
    """Return the computed column of an expression over columns, or refuse it."""
    parsed = _parsed(text)
    name = parsed.name or default
    if name in schema.names or name.lower() in record.RESERVED | METADATA.keys():
        raise TopicError(
            f'computed column "{name}" has the name of another column',
            hint=f'give it a name of its own, as in "{parsed.text} AS computed_{name.strip("_")}"',
        )
    return Computed(name, parsed.text, parsed.type(pa.schema([*schema, *METADATA.items()])))


def metadata(text: str, schema: pa.Schema) -> Computed:
    """Return the column of a piece of metadata: ``_offset`` becomes ``offset``, unless AS says otherwise."""
    found = _parsed(text) if isinstance(text, str) else None
    if found is None or found.text not in METADATA:
        hint = nearest(str(text), METADATA) or "metadata: " + ", ".join(METADATA)
        raise TopicError(f'records have no metadata "{text!s:.60}"', hint=hint)
    return column(text, schema, found.text.removeprefix("_"))


def extended(
    batch: pa.RecordBatch, computed: Sequence[Computed], keys: Callable[[], pa.Array]
) -> pa.RecordBatch:
    """Return a batch, which has the columns of ``record.META``, with what is computed from it too."""
    known = batch.append_column("_timestamp", batch.column("_received"))
    if any("_key" in each.columns for each in computed):
        known = known.append_column("_key", keys())
    for each in computed:
        if each.name not in batch.schema.names:
            batch = batch.append_column(pa.field(each.name, each.type), each.over(known))
    return batch
