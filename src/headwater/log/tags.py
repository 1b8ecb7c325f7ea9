"""Tags: the texts under which a record is found, its key among them, as the index keeps them.

A record carries its tags in one header, so they are stored with it or not at all, on every backend; its key
is one without being written twice. In the index a tag is a digest of fixed size.

Invariant: a key and a text are never the same tag, and a tag has the same digest in every process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from headwater.errors import UsageError
from headwater.record import HEADERS, Headers
from headwater.values.keys import key_bytes

HEADER = "headwater-tags"
"""The header of a record that holds its tags, as a JSON array of texts."""
_MOST_BYTES = 1000


def key_tag(key: bytes) -> bytes:
    """Return the tag of a key, by its bytes."""
    return hashlib.blake2b(b"k" + key, digest_size=16).digest()


def text_tag(text: str) -> bytes:
    """Return the tag of a text."""
    return hashlib.blake2b(b"t" + text.encode(), digest_size=16).digest()


def checked_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Refuse what is no list of tags."""
    if isinstance(tags, str) or not isinstance(tags, Sequence):
        raise UsageError(f"tags are a list of texts, not {tags!r:.80}", hint='as in tags=["course:7"]')
    for each in tags:
        if not isinstance(each, str) or not 0 < len(each.encode(errors="replace")) <= _MOST_BYTES:
            raise UsageError(f"a tag is text of 1 to {_MOST_BYTES} bytes, not {each!r:.80}")
    return tuple(dict.fromkeys(tags))


def header(tags: Sequence[str], others: Headers | None) -> list[tuple[str, bytes]] | None:
    """Return the headers of a record: its tags, and what its sender adds."""
    if others and HEADER in others:
        raise UsageError(f'header "{HEADER}" is where tags are kept', hint="pass them as tags=")
    own = [(HEADER, orjson.dumps(list(tags)))] if tags else []
    added = [
        (name, value.encode() if isinstance(value, str) else value) for name, value in (others or {}).items()
    ]
    return [*own, *added] or None


def headers_column(headers: Sequence[list[tuple[str, bytes]] | None]) -> pa.Array | None:
    """Return the headers of records as a column, or None where no record has any."""
    return pa.array(headers, HEADERS) if any(headers) else None


def tags_of_records(keys: Sequence[pa.Array], headers: pa.Array | None) -> list[list[bytes]]:
    """Return the tags of records that were read: of each its key, and what its header says."""
    found = [[key_tag(key)] for key in key_bytes(keys).to_pylist()]
    for tags, each in zip(found, headers.to_pylist() if headers is not None else (), strict=False):
        tags += map(text_tag, texts(each))
    return found


def texts(headers: Sequence[tuple[str, bytes]] | None) -> list[str]:
    """Return the tags that a record's headers hold; a header of others under that name holds none."""
    for name, value in headers or ():
        if name == HEADER:
            return _listed(value)
    return []


def _listed(value: bytes) -> list[str]:
    try:
        listed: Any = orjson.loads(value)
    except orjson.JSONDecodeError:
        return []
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
