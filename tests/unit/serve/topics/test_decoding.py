"""Bodies of many requests, decoded together, are what each is alone."""

from __future__ import annotations

import asyncio
from typing import cast

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater import topic as topics
from headwater.errors import RowError
from headwater.serve.topics.body import Body
from headwater.serve.topics.decoding import checked, decode
from headwater.serve.topics.submission import Submission

TOPIC = topics.create("orders", "id BIGINT, item STRING", key="id")
ROW = st.sampled_from([b'{"id":1}', b'{"id":2,"item":"x"}', b'{"id":"x"}', b"{}", b'{\n"id":3}', b"[]", b"{"])


def submission(lines: list[bytes]) -> Submission:
    future = cast("asyncio.Future[object]", None)
    return Submission(Body(b"[" + b",".join(lines) + b"]", "application/json"), None, None, None, future)  # type: ignore[arg-type]


@given(st.lists(st.lists(ROW, max_size=4), min_size=1, max_size=5))
def test_together_they_are_what_each_is_alone(bodies: list[list[bytes]]) -> None:
    together = decode(requests := [submission(each) for each in bodies], TOPIC)
    for each in requests:
        alone = decode([each], TOPIC)[each]
        if isinstance(alone, pa.Table):
            assert together[each].equals(alone)
        else:
            assert str(together[each]) == str(alone)


def test_the_row_at_fault_is_counted_within_its_own_request() -> None:
    good, bad = submission([b'{"id":1}'] * 3), submission([b'{"id":1}', b'{"id":"x"}'])
    error = decode([good, bad], TOPIC)[bad]
    assert isinstance(error, RowError) and (error.row, error.column) == (1, "id")


def test_rows_are_checked_as_the_log_checks_them() -> None:
    assert checked(pa.table({"id": pa.array([1], pa.int16())}), TOPIC).schema.field("id").type == pa.int64()
