"""Which rows of an outbox are events already, while its snapshot goes on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.capture.change import DELETE, INSERT, UPDATE
from headwater.capture.outbox.published_rows import PublishedRows


def rows(*values: str) -> pa.RecordBatch:
    return pa.record_batch({"value": list(values)})


def note(published: PublishedRows, *changes: tuple[int, bytes, str]) -> None:
    operations = np.array([change[0] for change in changes], np.int8)
    published.note([change[1] for change in changes], operations, rows(*(change[2] for change in changes)))


def unpublished(published: PublishedRows, *found: tuple[bytes, str]) -> list[bytes]:
    names = [name for name, _ in found]
    return [names[row] for row in published.unpublished(names, rows(*(value for _, value in found)))]


def test_what_the_topic_has_and_what_the_stream_inserts_is_published() -> None:
    published = PublishedRows([b"a"])
    note(published, (INSERT, b"b", "1"))
    assert unpublished(published, (b"a", "x"), (b"b", "1"), (b"c", "2")) == [b"c"]


def test_a_row_that_was_there_is_unpublished_whatever_becomes_of_it() -> None:
    published = PublishedRows()
    note(published, (DELETE, b"a", ""), (UPDATE, b"b", "new"))
    assert unpublished(published, (b"a", "1"), (b"b", "old")) == [b"a", b"b"]


def test_a_row_that_came_and_went_and_came_again_is_published() -> None:
    published = PublishedRows()
    note(published, (INSERT, b"a", "1"), (DELETE, b"a", ""), (INSERT, b"a", "2"))
    assert unpublished(published, (b"a", "1")) == unpublished(published, (b"a", "2")) == []


def test_a_key_that_goes_and_comes_again_is_either_of_two_rows() -> None:
    published = PublishedRows()
    note(published, (DELETE, b"a", ""), (INSERT, b"a", "new"), (INSERT, b"b", "1"))
    assert unpublished(published, (b"a", "old")) == [b"a"]
    assert unpublished(published, (b"a", "new"), (b"b", "1")) == []


def test_behind_a_chunk_a_row_that_had_come_again_is_published() -> None:
    published = PublishedRows()
    note(published, (DELETE, b"a", ""), (INSERT, b"a", "new"), (DELETE, b"b", ""))
    published.pass_chunk()
    note(published, (UPDATE, b"a", "newer"), (INSERT, b"b", "2"))
    assert unpublished(published, (b"a", "newer"), (b"b", "2")) == []
