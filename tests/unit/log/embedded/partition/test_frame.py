"""Frames: what is packed is unpacked, and bytes that do not match their checksums are no frame."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import schema
from headwater.log.embedded.partition import frame
from headwater.log.embedded.partition.frame import Compression, Flag, Header, Kind

SCHEMA = schema.parse("n INT NOT NULL, text STRING")
numbers = st.integers(-(2**63), 2**63 - 1)
small = st.integers(0, 2**32 - 1)
headers = st.builds(
    Header,
    kind=st.sampled_from(list(Kind)).map(int),
    flags=st.integers(0, 127),
    schema_version=st.integers(0, 2**16 - 1),
    rows=small,
    base=numbers,
    last=numbers,
    epoch=small,
    first_sequence=numbers,
    last_sequence=numbers,
    previous_sequence=numbers,
    received=numbers,
    sent=numbers,
    newest=numbers,
    payload_checksum=small,
    producer=st.text("aü-", max_size=100),
    payload_size=small,
)


@given(headers, st.binary(max_size=20), st.binary(max_size=20))
def test_a_header_comes_back_from_any_place_in_a_buffer(header: Header, before: bytes, after: bytes) -> None:
    packed = frame.pack(header)
    assert frame.unpack(before + packed + after, len(before)) == header
    assert len(packed) + header.payload_size == header.size()
    assert len(packed) <= frame.HEADER_MAX


@given(headers, st.data())
def test_a_header_with_any_byte_changed_or_cut_off_is_none(header: Header, data: st.DataObject) -> None:
    packed = bytearray(frame.pack(header))
    place = data.draw(st.integers(0, len(packed) - 1))
    assert frame.unpack(bytes(packed[:place])) is None
    packed[place] ^= data.draw(st.integers(1, 255))
    assert frame.unpack(bytes(packed)) is None


def header_of(draft: frame.Draft, kind: Kind = Kind.DATA) -> Header:
    return Header(
        kind, draft.flags, draft.schema_version, draft.rows, 0, draft.rows - 1, 0, draft.first_sequence,
        draft.last_sequence, -1, 0, draft.sent, draft.newest, draft.payload_checksum, "p", len(draft.payload),
    )  # fmt: skip


@pytest.mark.parametrize("compression", ["lz4", "zstd", "none"])
@pytest.mark.parametrize(
    ("sequence", "flag"),
    [
        ([5, 6, 7], Flag.NONE),
        ([5, 6, 9], Flag.STEPS),
        ([5, 6, 262], Flag.SEQUENCE),
        ([0, 1, 2**32 - 1], Flag.SEQUENCE),
    ],
)
def test_a_batch_comes_back_with_its_sequence_numbers_in_the_smallest_form(
    compression: Compression, sequence: list[int], flag: Flag
) -> None:
    batch = pa.RecordBatch.from_pylist([{"n": n, "text": "x" * n} for n in range(3)], schema=SCHEMA)
    draft = frame.draft(batch, 0, np.array(sequence), compression, sent=1, newest=2)
    found = frame.decode(header_of(draft), draft.payload, SCHEMA)
    assert draft.flags == flag
    assert draft.payload_checksum == zlib.crc32(draft.payload)
    assert found.select(["n", "text"]).to_pylist() == batch.to_pylist()
    if flag == Flag.STEPS:
        assert np.cumsum(found.column("_steps")).tolist() == [each - sequence[0] for each in sequence]
    if flag == Flag.SEQUENCE:
        assert found.column("_sequence").to_pylist() == [each - sequence[0] for each in sequence]


def test_metadata_columns_are_told_by_flags_and_a_tombstone_may_lack_what_is_not_null() -> None:
    batch = pa.RecordBatch.from_pylist(
        [{"n": None, "text": None, "_deleted": True}],
        schema=pa.schema([*(f.with_nullable(True) for f in SCHEMA), frame.COLUMNS[Flag.DELETED]]),
    )
    draft = frame.draft(batch, 3, np.array([0]), sent=0, newest=frame.NO_TIME)
    assert (draft.flags, draft.schema_version) == (Flag.DELETED, 3)
    assert frame.decode(header_of(draft), draft.payload, SCHEMA).to_pylist() == batch.to_pylist()


def test_the_columns_of_a_small_frame_are_aligned_wherever_it_lies() -> None:
    batch = pa.record_batch({"n": pa.array(range(5), pa.int64())})
    made = frame.draft(batch, 0, np.arange(5), sent=0, newest=frame.NO_TIME)
    header = Header(
        frame.Kind.DATA, made.flags, 0, 5, 0, 4, 0, 0, 4, -1, 0, 0, frame.NO_TIME, made.payload_checksum, "p",
        len(made.payload),
    )  # fmt: skip
    for shift in range(8):
        block = memoryview(bytes(shift) + bytes(made.payload))[shift:]
        read = frame.decode(header, block, batch.schema)
        assert read.equals(batch)
        assert read.column(0).buffers()[1].address % 8 == 0
