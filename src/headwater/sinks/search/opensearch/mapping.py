"""How columns lie in an index: what OpenSearch is told of them when the index is made.

=========================  ==============================================================
a column that is searched  ``text``, with ``.keyword`` beside it to sort and filter by
STRING                     ``keyword``
integers, BOOLEAN          ``long``, ``boolean``
FLOAT, DOUBLE, DECIMAL     ``double``; the row itself has every digit
DATE, TIMESTAMP            ``date``
BINARY                     ``binary``
ARRAY, MAP, STRUCT         kept with the row, and not searched; VARIANT too
=========================  ==============================================================

Invariant: no value of a column is refused because of its mapping.
"""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa

from headwater import schema as schemas
from headwater.errors import SchemaError
from headwater.sinks.search.declaration import SearchSchema

MARKER = "headwater_sink"
"""The document, and the only field in it, that tells how far the index has got."""
OURS = "headwater"
"""What the mapping of an index tells that we have made, so that a rebuild may replace it."""
_OWN = {
    "_id",
    "_index",
    "_source",
    "_routing",
    "_ignored",
    "_field_names",
    "_meta",
    "_type",
    "_version",
    "_score",
}
_LONGEST = 8191
"""Characters of a keyword: longer ones are kept, but not found; Lucene takes no more than 32,766 bytes."""
_t = pa.types


def index_settings(declared: SearchSchema) -> bytes:
    """Return how an index is made: its rows become visible when a batch is there, and not before."""
    # Deletions are remembered for an hour, not a minute: so long a row that is older cannot come back.
    settings = {"number_of_shards": 1, "refresh_interval": "-1", "gc_deletes": "1h"}
    fields = {field.name: _field(field, field.name in declared.text) for field in declared.schema}
    own = {MARKER: {"type": "object", "enabled": False}}
    return orjson.dumps(
        {
            "settings": {"index": settings},
            "mappings": {"dynamic": False, "_meta": {OURS: True}, "properties": fields | own},
        }
    )


def check_names(declared: SearchSchema) -> None:
    """Refuse names of columns that mean something else there."""
    for name in declared.schema.names:
        if name in _OWN or name == MARKER or "." in name or not name.strip():
            raise SchemaError(
                f'{declared.what} cannot have a column "{name}"',
                detail="OpenSearch has a meaning of its own for that name",
                hint="give the column another name",
            )


def _field(field: pa.Field, searched: bool) -> dict[str, Any]:
    keyword = {"type": "keyword", "ignore_above": _LONGEST}
    if searched:
        return {"type": "text", "fields": {"keyword": keyword}}
    if _t.is_nested(field.type) or schemas.is_variant(field):
        return {"type": "object", "enabled": False}
    if _t.is_string(field.type):
        return keyword
    if _t.is_binary(field.type):
        return {"type": "binary"}
    kind = _number(field.type)
    return {"type": kind} if kind == "boolean" else {"type": kind, "ignore_malformed": True}


def _number(kind: pa.DataType) -> str:
    if _t.is_boolean(kind):
        return "boolean"
    if _t.is_integer(kind):
        return "long"
    return "date" if _t.is_temporal(kind) else "double"
