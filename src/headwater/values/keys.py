"""Keys as bytes, and the partition they belong to.

The hash is Kafka's default (murmur2), and a key's bytes are what is sent to Kafka as the record's
key, so a key lies in the same partition on every backend: a STRING as its UTF-8, any other single
column as its JSON text, several columns as a JSON array.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_BLOCK = 1 << 15
_M = np.uint32(0x5BD1E995)
_WORDS = struct.Struct("<I")


def key_bytes(columns: Sequence[pa.Array]) -> pa.BinaryArray:
    """Return the bytes of each key, given its columns (none of them with nulls)."""
    if len(columns) == 1:
        return _plain(columns[0]).cast(pa.binary())
    parts = [_json(column) for column in columns]
    inner = pc.binary_join_element_wise(*parts, ",")
    return pc.binary_join_element_wise("[", inner, "]", "").cast(pa.binary())


def split_key(key: bytes, types: Sequence[pa.DataType]) -> list[Any]:
    """Return the values of a key's columns from its bytes, as JSON has them."""
    if len(types) > 1:
        return list(json.loads(key))
    if pa.types.is_binary(types[0]):
        return [key]
    text = key.decode()
    if pa.types.is_integer(types[0]):
        return [int(text)]
    return [text == "true"] if pa.types.is_boolean(types[0]) else [text]


def partitions(columns: Sequence[pa.Array], count: int) -> npt.NDArray[np.int32]:
    """Return the partition, of ``count``, to which each key belongs."""
    if count == 1:
        return np.zeros(len(columns[0]), np.int32)
    if len(columns) > 1:
        return _modulo(murmur2(key_bytes(columns)), count)
    # Keys repeat: hashing each distinct one once is cheaper than hashing every row.
    encoded = columns[0].dictionary_encode()
    of_key = _modulo(murmur2(key_bytes([encoded.dictionary])), count)
    place: npt.NDArray[np.int32] = encoded.indices.to_numpy(zero_copy_only=False)
    return of_key[place]


def partition_of(key: bytes, count: int) -> int:
    """Return the partition of one key: the same as ``partitions``, without the cost of a column."""
    if count == 1:
        return 0
    hashed, size = 0x9747B28C ^ len(key), len(key) & ~3
    for (word,) in _WORDS.iter_unpack(key[:size]):
        word = word * 0x5BD1E995 & 0xFFFFFFFF
        word = (word ^ word >> 24) * 0x5BD1E995 & 0xFFFFFFFF
        hashed = hashed * 0x5BD1E995 & 0xFFFFFFFF ^ word
    if key[size:]:
        hashed = (hashed ^ int.from_bytes(key[size:], "little")) * 0x5BD1E995 & 0xFFFFFFFF
    hashed = (hashed ^ hashed >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    return ((hashed ^ hashed >> 15) & 0x7FFFFFFF) % count


def murmur2(keys: pa.BinaryArray) -> npt.NDArray[np.uint32]:
    """Hash each key as Kafka's default partitioner does."""
    count = len(keys)
    offsets = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + count + 1]
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    blocks = [_block(data, offsets[at : at + _BLOCK + 1]) for at in range(0, count, _BLOCK)]
    return np.concatenate(blocks) if blocks else np.empty(0, np.uint32)


def _modulo(hashes: npt.NDArray[np.uint32], count: int) -> npt.NDArray[np.int32]:
    return ((hashes & np.uint32(0x7FFFFFFF)) % np.uint32(count)).astype(np.int32)


def _block(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32]:
    """Hash one block of keys, all of them one word at a time."""
    start = offsets[:-1].astype(np.int64)
    length = np.diff(offsets).astype(np.uint32)
    words = length >> 2
    hashed: npt.NDArray[np.uint32] = np.uint32(0x9747B28C) ^ length
    for word in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > word)
        k = _word(data, start[rows] + 4 * word) * _M
        k ^= k >> np.uint32(24)
        hashed[rows] = (hashed[rows] * _M) ^ (k * _M)
    tail, rest = start + 4 * words.astype(np.int64), length & np.uint32(3)
    for size, shift in ((3, 16), (2, 8), (1, 0)):
        rows = np.flatnonzero(rest >= size)
        hashed[rows] ^= data[tail[rows] + size - 1].astype(np.uint32) << np.uint32(shift)
    hashed[rest > 0] *= _M
    hashed ^= hashed >> np.uint32(13)
    hashed *= _M
    return hashed ^ (hashed >> np.uint32(15))


def _word(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    word = data[at].astype(np.uint32)
    for byte in (1, 2, 3):
        word |= data[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    return word


def _plain(column: pa.Array) -> pa.Array:
    """Return the text of a single-column key."""
    if pa.types.is_timestamp(column.type):
        return pc.strftime(column.cast(pa.timestamp("us", "UTC")), "%Y-%m-%dT%H:%M:%SZ")
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return column
    return column.cast(pa.string())


def _json(column: pa.Array) -> pa.Array:
    """Return each value of one column of a composite key as JSON."""
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return column.cast(pa.string())
    text = _plain(column)
    if pa.types.is_binary(text.type):
        text = pc.cast(pa.array([value.hex() for value in text.to_pylist()]), pa.string())
    distinct = text.dictionary_encode()
    quoted = [json.dumps(value, ensure_ascii=False) for value in distinct.dictionary.to_pylist()]
    return pa.array(quoted, pa.string()).take(distinct.indices)
