"""Arrow streams of strangers."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.serve.http.problem import HttpProblem
from headwater.serve.topics import arrow_stream

TABLE = pa.table({"id": [1, 2, 3], "item": pa.array(["a", "b", "a"]).dictionary_encode()})


def stream(compression: Any = None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, TABLE.schema, options=options) as out:
        out.write_table(TABLE)
    return sink.getvalue()


def test_a_stream_is_read() -> None:
    assert arrow_stream.read(stream()).equals(TABLE)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_compressed_one_is_refused_before_it_can_grow(compression: str) -> None:
    with pytest.raises(HttpProblem) as refused:
        arrow_stream.read(stream(compression))
    assert refused.value.status == 415


@given(st.integers(0, 2000), st.binary(max_size=8))
def test_a_damaged_one_is_refused_or_read_and_never_more(at: int, junk: bytes) -> None:
    whole = stream()
    damaged = whole[: at % len(whole)] + junk + whole[at % len(whole) + len(junk) :]
    with suppress(HeadwaterError):
        arrow_stream.read(damaged).validate(full=True)
