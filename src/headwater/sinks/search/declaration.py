"""What an index is declared to hold: rows by key, and which of their columns are searched.

Invariant: a column that is searched is there, and is text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater import schema as schemas
from headwater.errors import UsageError, nearest
from headwater.names import listed
from headwater.values.keyed import KeyedSchema, declare


@dataclass(frozen=True)
class SearchSchema(KeyedSchema):
    """Rows by key, some of whose columns are searched."""

    text: tuple[str, ...] = ()


def declare_search(
    what: str, schema: str | pa.Schema, key: str | tuple[str, ...], text: str | Sequence[str]
) -> SearchSchema:
    """Check a declaration."""
    keyed, names = declare(what, schema, key), listed(text)
    if not names:
        raise UsageError(f"{what} has no column to search", hint='name them: text=["name"]')
    if len(set(names)) < len(names):
        raise UsageError(f"{what} searches a column twice", detail=", ".join(names))
    for name in names:
        _check_text(keyed, name)
    return SearchSchema(keyed.what, keyed.schema, keyed.key, names)


def _check_text(keyed: KeyedSchema, name: str) -> None:
    if name not in keyed.schema.names:
        raise UsageError(
            f'{keyed.what} has no column "{name}" to search', hint=nearest(name, keyed.schema.names)
        )
    field = keyed.schema.field(name)
    if not pa.types.is_string(field.type) or schemas.is_variant(field):
        raise UsageError(
            f'column "{name}" of {keyed.what} cannot be searched',
            detail=f"it is {schemas.type_name(field)}, and words are looked for in STRING",
            hint="cast it to STRING in the node",
        )
